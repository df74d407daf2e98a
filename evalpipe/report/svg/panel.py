"""Small multiples: one panel a metric and slice, all versions in the order of the comparison."""

from __future__ import annotations

from collections.abc import Sequence

from evalpipe.report.format import Unit, signed
from evalpipe.report.records import Estimate
from evalpipe.report.svg.forest import tick_places
from evalpipe.report.svg.marks import bar, mark_class, marker, nested
from evalpipe.report.svg.scale import Scale

PITCH = 11
_TOP = 2


def height(n: int) -> int:
    """Height of a panel of ``n`` versions."""
    return PITCH * n + 2 * _TOP


def panel(rows: Sequence[tuple[Estimate | None, str]], scale: Scale) -> str:
    """One panel.

    Args:
        rows: Estimate (or None) and role of each version, from the top.
        scale: Scale shared by all panels of the metric's unit.

    Returns:
        SVG whose height fits all rows; after the zero line it has one child a version. An underpowered
        row lies on a hatched band; a row without a number says so.
    """
    zero = scale.pct(0)
    out = [f'<line class="zero" x1="{zero}" x2="{zero}" y1="0" y2="100%"/>']
    for i, (estimate, role) in enumerate(rows):
        y = _TOP + PITCH * i + PITCH / 2
        if estimate is None or not estimate.is_shown or estimate.estimate is None:
            out.append(f'<text class="none" x="{zero}" dx="6" y="{y + 3:g}">unavailable</text>')
            continue
        marks = (_hatch(i) if estimate.is_underpowered else "") + _interval(estimate, scale, y)
        marks += marker(scale.pct(estimate.estimate), f"{y:g}", role, 2.8)
        out.append(f'<g class="{mark_class(role)}">{marks}</g>')
    return f'<svg class="panel" height="{height(len(rows))}" aria-hidden="true">{"".join(out)}</svg>'


def nothing(scale: Scale) -> str:
    """A panel of which no row holds a number: the word once."""
    zero = scale.pct(0)
    line = f'<line class="zero" x1="{zero}" x2="{zero}" y1="0" y2="100%"/>'
    word = f'<text class="none" x="{zero}" dx="6" y="{PITCH}">unavailable</text>'
    return f'<svg class="panel" height="{height(1)}" aria-hidden="true">{line}{word}</svg>'


def axis(scale: Scale, unit: Unit) -> str:
    """Tick labels under a row of panels: zero and the outermost ticks that leave room."""
    places = tick_places(scale, unit)
    ends = [tick for tick in (scale.ticks[0], scale.ticks[-1]) if abs(scale.x(tick) - scale.x(0)) > 12]
    labels = []
    for tick in (0.0, *ends):
        anchor = "middle" if tick == 0 else "start" if scale.x(tick) < 50 else "end"
        text = signed(tick, unit, places)
        labels.append(f'<text class="tick" x="{scale.pct(tick)}" y="11" text-anchor="{anchor}">{text}</text>')
    return f'<svg class="paxis" height="14" aria-hidden="true">{"".join(labels)}</svg>'


def domain_of(rows: Sequence[Estimate]) -> list[float | None]:
    """Ends that set the scale: those of underpowered rows would crush all others, so they do not."""
    return [value for e in rows if e.is_shown and not e.is_underpowered for value in (e.lo, e.hi, e.estimate)]


def _interval(estimate: Estimate, scale: Scale, y: float) -> str:
    if estimate.lo is None or estimate.hi is None:
        return ""
    out = bar(scale.pct(estimate.lo), scale.pct(estimate.hi), f"{y:g}", "n")
    # An arrow head says that an interval goes on beyond the panel.
    for end, value in ((scale.lo, estimate.lo), (scale.hi, estimate.hi)):
        if (value < end) if end == scale.lo else (value > end):
            side = 1 if scale.x(end) > 50 else -1
            out += nested(scale.pct(end), f"{y:g}", f"M0 -3L{4 * side} 0 0 3z")
    return out


def _hatch(i: int) -> str:
    return f'<rect class="hatch" x="0" y="{_TOP + PITCH * i}" width="100%" height="{PITCH}"/>'
