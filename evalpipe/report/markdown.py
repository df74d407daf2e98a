"""The report as Markdown, for a terminal, a pull request or Dagster's metadata.

Belongs here: tables of the same cells (``views.py``) and sentences. Does not belong here: any text
that HTML does not carry. Labels from logs are escaped: they may hold markup.
"""

from __future__ import annotations

from collections.abc import Sequence

from evalpipe.report import capabilities, checks, grouped, views
from evalpipe.report import format as fmt
from evalpipe.report import gate as gates
from evalpipe.report.format import unit_of
from evalpipe.report.model import Evidence, Report, plain
from evalpipe.report.records import Metric

_ESCAPED = {"\\": "\\\\", "`": "\\`", "*": "\\*", "|": "\\|", "<": "&lt;", ">": "&gt;", "&": "&amp;"}


def to_markdown(report: Report) -> str:
    """The whole report as GitHub-flavoured Markdown."""
    ev = report.evidence
    out = [f"# {_safe(plain(report.answer.headline))}", ""]
    out += [" ".join(_safe(plain(sentence)) for sentence in report.answer.sentences), ""]
    out += [" · ".join(f"{fact.label}: {_safe(fact.value)}" for fact in views.facts(ev)), ""]
    out += ["## What may not be concluded", ""]
    out += [f"- **{_safe(caveat.lead)}** {_safe(caveat.text)}" for caveat in report.not_concluded]
    out += ["", *_gate(ev), *_groups(ev), *_comparison(report), *_looks(report), *_capabilities(ev), *_health(ev)]
    out += ["## Methods", ""]
    out += [f"{n}. **{_safe(note.lead)}** {_safe(note.text)}" for n, note in enumerate(report.notes, start=1)]
    out += ["", *_table(("provenance", "value"), [(name, value) for name, value in report.provenance])]
    return "\n".join(out)


def _looks(report: Report) -> list[str]:
    if not report.looks:
        return []
    return ["## Second looks", "", *(f"- **{_safe(note.lead)}** {_safe(note.text)}" for note in report.looks), ""]


def _gate(ev: Evidence) -> list[str]:
    gate = ev.gate
    pair = gate.candidate and gate.baseline
    question = f"May {gate.candidate} replace {gate.baseline}?" if pair else "May a candidate replace its baseline?"
    out = [f"## {_safe(question)}", ""]
    if gate.verdict is None:
        command = gates.command_for(gate, ev.window.criteria_name, ev.window.window)
        return [*out, gate.sentence, *(["", f"To decide on a pair: `{command}`"] if command else []), ""]
    out += [f"**{gate.verdict.upper()}**: {_safe(gate.sentence)}", ""]
    level = fmt.percent(1 - 2 * gates.ALPHA, 0)
    rows = [
        (
            f"{c.title} ({c.demand}; {c.better} is better)",
            c.row.verdict.upper(),
            f"{c.change} {c.interval}".strip(),
            c.row.reading,
        )
        for c in views.gate_rows(ev)
    ]
    return [*out, *_table(("criterion", "result", f"change [{level}]", "reading"), rows)]


def _groups(ev: Evidence) -> list[str]:
    shared = grouped.group_rows(ev)
    if not shared:
        return []
    level = fmt.percent(1 - ev.alpha, 0)
    out = ["## Who can be told apart, by the work they share", "", _safe(grouped.note(ev)), ""]
    rows = [(g.group.title, g.leading, str(len(g.versions)), g.told, g.sessions) for g in shared]
    out += _table(("work", "leading set", "versions", "pairs told apart", "sessions"), rows, right={2, 3, 4})
    for g in shared:
        names = [(ev.versions[v.index].label, v) for v in g.versions]
        out += [f"### {_safe(g.group.title)}", ""]
        out += _table(
            ("version", "leading set", f"level [{level}]", f"against the group [{level}]", "all at once", "sessions"),
            [(n, "yes" if v.is_leading else "no", v.rate, v.shift, v.simultaneous, v.sessions) for n, v in names],
            right={2, 3, 4, 5},
        )
        told = [line for line in g.pairs if line.is_told]
        if told:
            out += _table(
                ("version", "is better than", f"by [{level}]"),
                [(ev.versions[p.first].label, ev.versions[p.second].label, p.text) for p in told],
                right={2},
            )
        left = len(g.pairs) - len(told)
        out += [f"{fmt.plural(left, 'pair')} cannot be told apart." if left else "Every pair is told apart.", ""]
    return out


def _comparison(report: Report) -> list[str]:
    ev = report.evidence
    k = len(ev.headline)
    unit, level = unit_of(ev.headline_metric), fmt.percent(1 - ev.alpha, 0)
    out = [f"## {views.comparison_title(ev)}", ""]
    if not ev.versions:
        return [*out, "No version has an estimate in this window.", ""]
    out += [_safe(views.comparison_intro(ev)) if k else "No version has an estimate over all traffic.", ""]
    if note := views.common_flag(ev):
        out += [_safe(note), ""]
    if report.raw_note:
        out += [f"> {_safe(report.raw_note)}", ""]
    head = (
        "version",
        f"net improvement{',' + unit.suffix if unit.suffix else ''} [{level}]",
        f"all {k} at once" if k else "all at once",
        "rank set",
        "group",
        "sessions",
        "users",
    )
    rows = [
        (
            f"{row.version.label}{f' ({row.version.role})' if row.version.role else ''}",
            " ".join(filter(None, (row.number, row.interval, row.flag))) if row.estimate else row.why,
            row.simultaneous.partition(": ")[2] or fmt.UNAVAILABLE,
            row.ranks,
            row.letters,
            row.sessions,
            row.users,
        )
        for row in views.forest_rows(ev)
    ]
    out += _table(head, rows, right={1, 2, 5, 6})
    if not k:
        return out
    out += ["Versions that share a letter cannot be told apart.", ""]
    levels = [(row.version.label, row.level, row.raw_rate, row.raw_rank, row.missing) for row in views.level_rows(ev)]
    titles = ("version", f"level [{level}]", "plain rate (descriptive)", "its rank", "no outcome")
    return [*out, *_table(titles, levels, right={1, 2, 3, 4})]


def _capabilities(ev: Evidence) -> list[str]:
    out = ["## Headline and capabilities, by scenario", ""]
    if not any(e.is_shown for e in ev.estimates):
        return [*out, "No version has an estimate in this window, so no scenario is shown.", ""]
    shown = capabilities.focus(ev)
    if len(shown) < len(ev.versions):
        out += [f"{len(shown)} of {len(ev.versions)} versions: the gate pair and the leading set.", ""]
    for metric in ev.metrics:
        rows = [
            (ev.versions[i].label, *(capabilities.capability_cell(ev, metric.name, part.name, i) for part in ev.slices))
            for i in shown
        ]
        head = ("version", *(part.title for part in ev.slices))
        out += [f"### {_metric_title(metric)}", "", *_table(head, rows, right=set(range(1, len(head))))]
    return out


def _metric_title(metric: Metric) -> str:
    notes = [metric.unit, *([] if metric.is_higher_better else ["fewer is better"])]
    notes += [f"conditional on {metric.conditional_on}"] if metric.conditional_on else []
    return f"{metric.title} ({', '.join(notes)})"


def _health(ev: Evidence) -> list[str]:
    health = ev.health
    out = ["## Data health", ""]
    if health.sources:
        rows = [
            (
                s.source,
                *map(fmt.count, (s.files, s.read, s.kept, s.noise, s.quarantined)),
                "reconciles" if s.is_balanced else "does not reconcile",
            )
            for s in health.sources
        ]
        out += _table(
            ("source", "files", "read", "kept", "noise", "quarantined", "balance"), rows, right={1, 2, 3, 4, 5}
        )
    else:
        out += ["Reading balance: unavailable.", ""]
    if health.quarantine:
        out += _table(
            ("quarantine code", "meaning", "records"),
            [(q.code, q.meaning, fmt.count(q.records)) for q in health.quarantine],
            right={2},
        )
    if health.entities:
        out += _table(
            ("masked entity", "values", "replacements"),
            [(e.title, fmt.count(e.values), fmt.count(e.hits)) for e in health.entities],
            right={1, 2},
        )
    leak = health.leak
    state = fmt.UNAVAILABLE if leak.passed is None else "passed" if leak.passed else "failed"
    out += [f"Leak check: {state}.", ""]
    shown = [(row.title, row.value, row.word, " ".join(row.details)) for row in checks.check_rows(ev)]
    return (
        [*out, *_table(("check", "value", "result", "detail"), shown)]
        if shown
        else [*out, "Checks of design and data: unavailable.", ""]
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], right: set[int] | None = None) -> list[str]:
    rule = ["---:" if n in (right or set()) else "---" for n in range(len(head))]
    lines = [f"| {' | '.join(_safe(cell) for cell in cells)} |" for cells in (head, *rows)]
    return [lines[0], f"|{'|'.join(rule)}|", *lines[1:], ""]


def _safe(text: str) -> str:
    # Brackets alone are intervals and stay; followed by another bracket they would be a link.
    escaped = "".join(_ESCAPED.get(char, char) for char in text)
    return escaped.replace("](", "]\\(").replace("][", "]\\[")
