"""Gate rows: an interval against the declared limit, right is better whatever the metric's sign.

All criteria with a margin share one scale in units of their own margin. A criterion without one
(superiority over no change) has its own scale.
"""

from __future__ import annotations

from evalpipe.report.gate import threshold
from evalpipe.report.records import GateRow
from evalpipe.report.svg.marks import bar, marker, nested
from evalpipe.report.svg.scale import Scale

_REACH = 2.2


def scale_of(row: GateRow) -> Scale:
    """Scale of a row in metric units, signed so that positive is better."""
    if row.margin > 0:
        reach = _REACH * row.margin
    else:
        ends = [abs(value) for value in (row.lower, row.upper) if value is not None]
        reach = 1.15 * max(ends, default=1.0) or 1.0
    return Scale(-reach, reach, (0.0,))


def row(gate: GateRow) -> str:
    """The plot cell of one criterion: tinted zone beyond the limit, limit, no change, interval."""
    scale = scale_of(gate)
    limit = threshold(gate.kind, gate.margin)
    at, zero = scale.pct(limit), scale.pct(0)
    out = [f'<rect class="zone" x="0" y="0" width="{at}" height="100%"/>']
    if limit != 0:
        out.append(f'<line class="zero" x1="{zero}" x2="{zero}" y1="0" y2="100%"/>')
    out.append(f'<line class="limit" x1="{at}" x2="{at}" y1="0" y2="100%"/>')
    if gate.estimate is None or gate.lower is None or gate.upper is None:
        out.append(f'<text class="none" x="{zero}" dx="10" y="50%" dy="4">no number exists</text>')
    else:
        out.append(f'<g class="c">{bar(scale.pct(gate.lower), scale.pct(gate.upper), "50%", "k")}')
        if scale.lo <= gate.estimate <= scale.hi:
            out.append(marker(scale.pct(gate.estimate), "50%", "candidate", 4.5))
        if gate.upper > scale.hi:
            out.append(_arrow(scale.pct(gate.upper), 1))
        if gate.lower < scale.lo:
            out.append(_arrow(scale.pct(gate.lower), -1))
        out.append("</g>")
    return f'<svg class="gaterow" aria-hidden="true">{"".join(out)}</svg>'


def axis() -> str:
    """The head of the plot column: the limit and no change, for a limit on the side of harm."""
    scale = Scale(-_REACH, _REACH, (0.0,))
    margin, zero = scale.pct(-1), scale.pct(0)
    return (
        '<svg class="axis" height="32" aria-hidden="true">'
        f'<text class="dir" x="{margin}" y="12" text-anchor="end">too far \u2190</text>'
        f'<text class="dir lim" x="{margin}" y="28" text-anchor="end">margin</text>'
        f'<text class="dir" x="{zero}" y="12">\u2192 better</text>'
        f'<text class="dir" x="{zero}" y="28">no change</text></svg>'
    )


def _arrow(x: str, side: int) -> str:
    return nested(x, "50%", f"M0 -5L{7 * side} 0 0 5z")
