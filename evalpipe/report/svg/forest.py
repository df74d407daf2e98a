"""Rows of the forest table: thick interval for the version alone, thin one for all at once."""

from __future__ import annotations

from collections.abc import Sequence

from evalpipe.report.format import Unit, signed
from evalpipe.report.records import Estimate
from evalpipe.report.svg.marks import bar, mark_class, marker
from evalpipe.report.svg.scale import Scale


def row(estimate: Estimate | None, role: str, scale: Scale) -> str:
    """The plot cell of one version; grid lines only where no number exists."""
    grid = "".join(_vertical(scale, tick) for tick in scale.ticks)
    marks = ""
    if estimate is not None and estimate.is_shown and estimate.estimate is not None:
        if estimate.lo_sim is not None and estimate.hi_sim is not None:
            marks += bar(scale.pct(estimate.lo_sim), scale.pct(estimate.hi_sim), "50%", "n")
        if estimate.lo is not None and estimate.hi is not None:
            marks += bar(scale.pct(estimate.lo), scale.pct(estimate.hi), "50%", "k")
        marks += marker(scale.pct(estimate.estimate), "50%", role, 4.5)
    return f'<svg class="row" aria-hidden="true">{grid}<g class="{mark_class(role)}">{marks}</g></svg>'


def axis(scale: Scale, unit: Unit, worse: str, better: str) -> str:
    """The head of the plot column: tick labels and the two directions in words.

    Args:
        scale: Scale of the rows.
        unit: Unit of the tick labels.
        worse, better: Words at the left and the right of zero.
    """
    out = [
        f'<text class="dir" x="{scale.pct(0)}" y="11" dx="-8" text-anchor="end">{worse}</text>',
        f'<text class="dir" x="{scale.pct(0)}" y="11" dx="8">{better}</text>',
    ]
    out += _tick_labels(scale, unit, 28)
    return f'<svg class="axis" height="32" aria-hidden="true">{"".join(out)}</svg>'


def domain_of(rows: Sequence[Estimate]) -> list[float | None]:
    """All ends that a forest row draws."""
    return [value for e in rows for value in (e.lo, e.hi, e.lo_sim, e.hi_sim, e.estimate)]


def tick_places(scale: Scale, unit: Unit) -> int:
    """Decimals that tick labels of a scale need."""
    step = (scale.ticks[1] - scale.ticks[0]) * unit.scale
    places = 0
    while places < 4 and abs(round(step, places) - step) > 1e-9:
        places += 1
    return places


def _tick_labels(scale: Scale, unit: Unit, y: int) -> list[str]:
    places = tick_places(scale, unit)
    return [
        f'<text class="tick" x="{scale.pct(tick)}" y="{y}" text-anchor="middle">{signed(tick, unit, places)}</text>'
        for tick in scale.ticks
    ]


def _vertical(scale: Scale, tick: float) -> str:
    kind = "zero" if tick == 0 else "grid"
    x = scale.pct(tick)
    return f'<line class="{kind}" x1="{x}" x2="{x}" y1="0" y2="100%"/>'
