"""The report: one static HTML file that opens offline, with Markdown and JSON from one model.

Belongs here: rendering of analysis tables. Does not belong here: any estimate (``inference``), any
reading or writing of files (callers write the text that these functions return).
"""

from evalpipe.report.build import build
from evalpipe.report.frames import ReportInputs
from evalpipe.report.html import to_html
from evalpipe.report.json import to_json
from evalpipe.report.markdown import to_markdown
from evalpipe.report.model import Report, plain


def headline(report: Report) -> str:
    """The answer in one line, as the document's title and heading say it."""
    return plain(report.answer.headline)


__all__ = ["Report", "ReportInputs", "build", "headline", "to_html", "to_json", "to_markdown"]
