"""The report: one static HTML file that opens offline, with Markdown and JSON from one model.

Belongs here: rendering of analysis tables. Does not belong here: any estimate (``inference``), any
reading or writing of files (callers write the text that these functions return).
"""

from typing import Any

from evalpipe.report.assignment import findings, stated
from evalpipe.report.build import build
from evalpipe.report.frames import ReportInputs
from evalpipe.report.grouped import group_rows
from evalpipe.report.html import to_html
from evalpipe.report.json import to_json
from evalpipe.report.markdown import to_markdown
from evalpipe.report.model import Report, plain


def headline(report: Report) -> str:
    """The answer in one line, as the document's title and heading say it."""
    return plain(report.answer.headline)


def assignment(report: Report) -> str:
    """How versions came to sessions, and what the checks of it found, for a terminal or a script."""
    ev = report.evidence
    found = findings(ev)
    return f"{stated(ev)}; {found}" if found else stated(ev)


def groups(report: Report) -> list[dict[str, Any]]:
    """Groups of versions that did the same work, for a terminal or a script; empty where all are compared.

    Returns:
        One entry a group: ``work``, ``leading`` and ``versions`` (labels, best estimate first),
        ``told_apart`` (better, worse, difference with its interval in words), ``pairs`` (how many
        there are) and ``sessions``.
    """
    ev = report.evidence
    return [
        {
            "work": cells.group.title,
            "leading": [ev.versions[i].label for i in cells.group.leading],
            "versions": [ev.versions[i].label for i in cells.group.versions],
            "told_apart": [
                [ev.versions[line.first].label, ev.versions[line.second].label, line.text]
                for line in cells.pairs
                if line.is_told
            ],
            "pairs": len(cells.pairs),
            "sessions": cells.group.n_sessions,
        }
        for cells in group_rows(ev)
    ]


__all__ = ["Report", "ReportInputs", "assignment", "build", "groups", "headline", "to_html", "to_json", "to_markdown"]
