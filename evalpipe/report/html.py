"""The report as one HTML file that opens offline: templates, drawings, safety policy.

Belongs here: putting cells (``views.py``) and drawings (``svg``) into templates. Does not belong
here: sentences and number formats. Labels come from logs and are hostile: autoescape is on, and a
Content-Security-Policy with the script's hash forbids everything else, the network included.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from dataclasses import dataclass
from typing import Any

import jinja2
from markupsafe import Markup

from evalpipe.report import capabilities, checks, grouped, views
from evalpipe.report import format as fmt
from evalpipe.report import gate as gates
from evalpipe.report.format import unit_of
from evalpipe.report.json import for_script, to_json
from evalpipe.report.model import Evidence, Report, plain
from evalpipe.report.records import Metric, Slice
from evalpipe.report.svg import forest, gate, panel, scale, ties


@dataclass(frozen=True, slots=True)
class PanelCell:
    """One panel of the small multiples."""

    svg: Markup
    caption: str
    title: str


@dataclass(frozen=True, slots=True)
class PanelRow:
    """One metric of the small multiples."""

    metric: Metric
    notes: tuple[str, ...]
    partner: str
    cells: tuple[PanelCell, ...]
    axis: Markup | None


def to_html(report: Report) -> str:
    """The whole report as one HTML document; the same report gives the same bytes."""
    env = _environment()
    script = _source("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return env.get_template("page.html.j2").render(
        **_context(report),
        script=Markup(script),
        script_hash=digest,
        css=Markup(_source("tokens.css") + _source("report.css")),
        data=Markup(for_script(to_json(report))),
    )


@functools.cache
def _environment() -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("evalpipe.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {
        "count": fmt.count,
        "day": fmt.day,
        "percent": fmt.percent,
        "short": lambda label: len(label) <= _SHORT,
        "nowrap": _nowrap,
    }
    return env


_SHORT = 34
#: Only the outermost ticks of a panel are labelled; the rest make its domain tight.
_PANEL_TICKS = 12


def _nowrap(label: str) -> str:
    """A short label that does not break inside."""
    return label.replace(" ", fmt.NBSP) if len(label) <= _SHORT else label


@functools.cache
def _source(name: str) -> str:
    loader = _environment().loader
    assert loader is not None  # made above
    return loader.get_source(_environment(), name)[0]


def _context(report: Report) -> dict[str, Any]:
    ev = report.evidence
    metric = ev.metric(ev.headline_metric)
    k = len(ev.headline)
    domain = scale.around(forest.domain_of(ev.headline), is_mirrored=not metric.is_higher_better)
    rows = views.forest_rows(ev)
    groups = capabilities.column_groups(ev)
    return {
        "report": report,
        "ev": ev,
        "title": plain(report.answer.headline),
        "window": fmt.day_range(ev.window.first, ev.window.last),
        "facts": views.facts(ev),
        "gate_rows": [(cells, Markup(gate.row(cells.row))) for cells in views.gate_rows(ev)],
        "gate_command": gates.command_for(ev.gate, ev.window.criteria_name, ev.window.window),
        "gate_axis": Markup(gate.axis()) if _has_common_margin(ev) else None,
        "gate_note": views.gate_note(ev),
        "gate_level": fmt.percent(1 - 2 * gates.ALPHA, 0),
        "level": fmt.percent(1 - ev.alpha, 0),
        "alpha": fmt.percent(ev.alpha, 0),
        "k": k,
        "metric": metric,
        "unit": unit_of(metric.name),
        "comparison_intro": views.comparison_intro(ev),
        "shared": grouped.group_rows(ev),
        "groups_note": grouped.note(ev),
        "has_panels": any(e.is_shown for e in ev.estimates),
        "forest_axis": Markup(forest.axis(domain, unit_of(metric.name), *_directions(ev))),
        "comparison_title": views.comparison_title(ev),
        "common_flag": views.common_flag(ev),
        "forest": [
            (row, Markup(forest.row(row.estimate, row.version.role, domain)), Markup(tie))
            for row, tie in zip(rows, ties.ties([row.letters for row in rows]), strict=True)
        ],
        "levels": views.level_rows(ev),
        "matrix": _matrix(ev),
        "differences": _differences(ev),
        "ties_width": ties.width([row.letters for row in rows]),
        "n_pairs": k * (k - 1) // 2,
        "groups": [(group, _panels(ev, group)) for group in groups],
        "order": _panel_order(ev),
        "fold": panel.height(len(capabilities.focus(ev))) if len(capabilities.focus(ev)) < len(ev.versions) else None,
        "n_focus": len(capabilities.focus(ev)),
        "numbers": _numbers(ev),
        "checks": checks.check_rows(ev),
        "strata": ev.strata,
    }


def _directions(ev: Evidence) -> tuple[str, str]:
    average = ev.basis is not None and ev.basis.reference in {"uniform", "loo_uniform", "stratum_mean"}
    return f"\u2190 worse than {'average' if average else 'the reference'}", "better \u2192"


def _has_common_margin(ev: Evidence) -> bool:
    return any(row.margin > 0 and row.kind == "non_inferiority" for row in ev.gate.rows)


def _matrix(ev: Evidence) -> list[tuple[int, list[views.PairCells | None]]]:
    shown = [row.version for row in ev.headline]
    return [(i, [views.pair_cells(ev, i, j) for j in shown]) for i in shown]


def _differences(ev: Evidence) -> tuple[int, list[tuple[int, views.PairCells]]] | None:
    pivot = views.pivot(ev)
    if pivot is None:
        return None
    others = [row.version for row in ev.headline if row.version != pivot]
    cells = [(j, cell) for j in others if (cell := views.pair_cells(ev, pivot, j)) is not None]
    return (pivot, cells) if cells else None


def _panel_order(ev: Evidence) -> list[int]:
    """Versions from the top of a panel: those in focus, then the rest, each in the order above."""
    first = capabilities.focus(ev)
    return [*first, *(i for i in range(len(ev.versions)) if i not in first)]


def _panels(ev: Evidence, group: tuple[Slice, ...]) -> list[PanelRow]:
    scales = _scales(ev)
    out = []
    for metric in ev.metrics:
        domain, unit = scales[metric.name], unit_of(metric.name)
        cells = tuple(
            PanelCell(
                svg=_panel(ev, metric, part, domain),
                caption=capabilities.panel_caption(ev, metric, part),
                title=part.title,
            )
            for part in group
        )
        # Under every row: where fewer is better plus lies left, and no reader looks three rows down for that.
        axis = Markup(panel.axis(domain, unit)) if any(_is_drawn(ev, metric, part) for part in group) else None
        out.append(
            PanelRow(metric, capabilities.metric_notes(ev, metric), capabilities.partner_note(metric), cells, axis)
        )
    return out


def _panel(ev: Evidence, metric: Metric, part: Slice, domain: scale.Scale) -> Markup:
    rows = [(ev.at(metric.name, part.name, i), ev.versions[i].role) for i in _panel_order(ev)]
    return Markup(panel.panel(rows, domain) if _is_drawn(ev, metric, part) else panel.nothing(domain))


def _is_drawn(ev: Evidence, metric: Metric, part: Slice) -> bool:
    """Whether a panel holds any number."""
    found = (ev.at(metric.name, part.name, i) for i in range(len(ev.versions)))
    return any(estimate is not None and estimate.is_shown for estimate in found)


def _scales(ev: Evidence) -> dict[str, scale.Scale]:
    """One scale for all rates, right being better, and one for each other metric."""
    signs = {metric.name: 1 if metric.is_higher_better else -1 for metric in ev.metrics}
    rates = [name for name in signs if unit_of(name) is fmt.PP]
    ends = [
        signs[e.metric] * value
        for e in ev.estimates
        if e.metric in rates
        for value in panel.domain_of([e])
        if value is not None
    ]
    shared = scale.around(ends, most_ticks=_PANEL_TICKS)
    out = {}
    for metric in ev.metrics:
        if metric.name in rates:
            out[metric.name] = shared if metric.is_higher_better else shared.mirrored()
        else:
            own = panel.domain_of([e for e in ev.estimates if e.metric == metric.name])
            out[metric.name] = scale.around(own, most_ticks=_PANEL_TICKS, is_mirrored=not metric.is_higher_better)
    return out


def _numbers(ev: Evidence) -> list[tuple[Metric, list[tuple[int, list[str]]]]]:
    return [
        (
            m,
            [
                (i, [capabilities.capability_cell(ev, m.name, s.name, i) for s in ev.slices])
                for i in range(len(ev.versions))
            ],
        )
        for m in ev.metrics
    ]
