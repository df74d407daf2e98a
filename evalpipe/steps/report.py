"""The report of one analysis: gathers its tables and the data health of its window, and renders.

Belongs here: choosing candidate and baseline, collecting inputs, writing the files. Does not belong
here: any sentence or drawing (``report``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from evalpipe import __version__, report
from evalpipe.report import Report, ReportInputs
from evalpipe.steps import analysis as analysis_step
from evalpipe.steps.analysed import require_latest
from evalpipe.steps.context import Context
from evalpipe.steps.decisions import make_gates
from evalpipe.steps.receipts import outcome_days
from evalpipe.store.files import write_atomically
from evalpipe.store.manifest import Manifest

_HEALTH = ("masked.files", "masked.redactions", "masked.quarantine")


@dataclass(frozen=True, slots=True)
class RenderedReport:
    """A report, where its files lie, and the analysis that it renders."""

    report: Report
    folder: Path
    manifest: Manifest

    @property
    def html(self) -> Path:
        """The page that opens offline."""
        return self.folder / "report.html"

    @property
    def markdown(self) -> Path:
        """The same as Markdown."""
        return self.folder / "report.md"

    @property
    def json(self) -> Path:
        """The same as data."""
        return self.folder / "report.json"


def make_report(
    context: Context, *, candidate: str | None = None, baseline: str | None = None, window: str | None = None
) -> RenderedReport:
    """Render the newest analysis.

    Args:
        context: The open home.
        candidate: Version that may ship; by default none is named.
        baseline: Version that it is compared with.
        window: Restrict to one window, such as ``28d`` or ``all``.

    Returns:
        The report with the files written.

    Raises:
        EvalpipeError: ``NO_RESULT`` where nothing was analysed.
    """
    return render(context, require_latest(context, window), candidate, baseline)


def render(
    context: Context, manifest: Manifest, candidate: str | None = None, baseline: str | None = None
) -> RenderedReport:
    """Render one analysis; see :func:`make_report`.

    Args:
        context: The open home.
        manifest: The analysis.
        candidate: Version that may ship; by default none is named.
        baseline: Version that it is compared with.
    """
    tables = analysis_step.tables_of(context, manifest)
    if candidate and baseline:
        tables["analysis.gates"] = make_gates(context, manifest, candidate, baseline)
    start = tables["analysis.diagnostics"]["window_start"].min()
    days = health_days(context, manifest, start if isinstance(start, date) else manifest.key.day)
    masked = [m for day in days if (m := context.lookup("masked", day)) is not None]
    tables |= {name: context.lake.read(name, masked) for name in _HEALTH}
    built = report.build(
        ReportInputs(
            tables=tables,
            criteria=context.criteria,
            candidate=candidate,
            baseline=baseline,
            product_version=__version__,
            leak=leak_of(masked),
        )
    )
    rendered = RenderedReport(built, folder(context, manifest), manifest)
    write_atomically(rendered.html, report.to_html(built))
    write_atomically(rendered.markdown, report.to_markdown(built))
    write_atomically(rendered.json, report.to_json(built))
    return rendered


def folder(context: Context, manifest: Manifest) -> Path:
    """Where the report of an analysis lies."""
    return context.settings.reports.joinpath(*manifest.key.variant) / f"day={manifest.key.day}"


def window_days(context: Context, manifest: Manifest) -> list[date]:
    """Days whose outcomes an analysis was made from."""
    return sorted(outcome_days(manifest.inputs))


def health_days(context: Context, manifest: Manifest, start: date) -> list[date]:
    """Days whose files the data health counts.

    A file of which nothing could be read holds no session, so it lies on the day that it landed, which
    no window of sessions need hold. It is counted from the window's first day on, because a report
    that leaves it out looks complete.

    Args:
        context: The open home.
        manifest: The analysis.
        start: First day of its window.
    """
    inside = window_days(context, manifest)
    unread = [
        day
        for day in context.lake.days("masked")
        if day >= start and (m := context.lookup("masked", day)) is not None and not m.rows("masked.sessions")
    ]
    return sorted({*inside, *unread})


def leak_of(masked: list[Manifest]) -> dict[str, Any] | None:
    """What the checks of a window's masked slices recorded; ``None`` where one of them has no record."""
    leaks = [m.stats["leak"] for m in masked if m.stats.get("leak")]
    if not leaks or len(leaks) < len(masked):
        return None
    return {
        "passed": all(leak["passed"] for leak in leaks),
        "findings": sum(finding["n"] for leak in leaks for finding in leak["findings"]),
        "canaries_planted": sum(leak["canaries_planted"] for leak in leaks),
        "canaries_counted": sum(leak["canaries_counted"] for leak in leaks),
    }
