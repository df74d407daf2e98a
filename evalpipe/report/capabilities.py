"""Text of the small multiples: which versions and scenarios stand where, and the words beside a panel.

Belongs here: folding, captions and cells of metric by scenario. Does not belong here: drawings
(``svg/panel.py``) and the comparison (``views.py``).
"""

from __future__ import annotations

from evalpipe.contracts.metrics import BY_NAME
from evalpipe.report import format as fmt
from evalpipe.report.format import unit_of
from evalpipe.report.model import Evidence
from evalpipe.report.phrases import reasons
from evalpipe.report.records import Metric, Slice

#: Above so many versions the small multiples show the gate pair and the leading set first.
FOLD_ABOVE = 12
#: Columns of one grid of small multiples; further scenarios stand in a grid of their own.
MOST_COLUMNS = 6


def focus(ev: Evidence) -> tuple[int, ...]:
    """Versions that small multiples show first: all, or above twelve the gate pair and the leaders."""
    everyone = range(len(ev.versions))
    if len(ev.versions) <= FOLD_ABOVE:
        return tuple(everyone)
    keep = {*ev.leading[:FOLD_ABOVE], ev.with_role("candidate"), ev.with_role("baseline")}
    return tuple(i for i in everyone if i in keep)


def column_groups(ev: Evidence) -> tuple[tuple[Slice, ...], ...]:
    """Slices in groups of at most six columns, all traffic first."""
    return tuple(ev.slices[n : n + MOST_COLUMNS] for n in range(0, len(ev.slices), MOST_COLUMNS))


def metric_notes(ev: Evidence, metric: Metric) -> tuple[str, ...]:
    """Small print under a metric's name."""
    out = ["headline"] if metric.name == ev.headline_metric else []
    if metric.unit != "pp" and metric.unit not in metric.title:
        out.append(metric.unit)
    if not metric.is_higher_better:
        out.append("fewer is better")
    return tuple(out)


def partner_note(metric: Metric) -> str:
    """The conditional tag's text: what the denominator depends on and where to look as well."""
    if not metric.conditional_on:
        return ""
    beside = f"; read beside \u201c{BY_NAME[metric.partner].title}\u201d" if metric.partner else ""
    return f"of {metric.conditional_on}, which the version itself changes{beside}"


def panel_caption(ev: Evidence, metric: Metric, part: Slice) -> str:
    """What a panel says beside its marks: underpowered rows, or why there is none; empty otherwise."""
    rows = [e for i in range(len(ev.versions)) if (e := ev.at(metric.name, part.name, i)) is not None]
    if not any(e.is_shown for e in rows):
        return reasons(tuple(dict.fromkeys(code for e in rows for code in e.reasons)))
    weak = [e for e in rows if e.is_shown and e.is_underpowered]
    if not weak:
        return ""
    gaps = [e.mde for e in weak if e.mde is not None]
    seen = f"; smallest visible gap {fmt.size(min(gaps), unit_of(metric.name), 0)}" if gaps else ""
    who = "underpowered" if len(weak) == len(rows) else f"{len(weak)} of {len(rows)} underpowered"
    return f"{who}{seen}; no ranking"


def capability_cell(ev: Evidence, metric: str, slice_name: str, version: int) -> str:
    """The number of a panel's row as text."""
    row = ev.at(metric, slice_name, version)
    if row is None or not row.is_shown:
        return fmt.UNAVAILABLE
    text = fmt.estimate(row.estimate, row.lo, row.hi, unit_of(metric))
    text = text.replace(fmt.PP.suffix, "")
    words = [row.status] if row.status != "ok" else []
    words += ["underpowered"] if row.is_underpowered else []
    return " ".join([text, *words])
