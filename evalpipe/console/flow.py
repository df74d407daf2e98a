"""The order of a run: land, make stale days, score, publish, report.

Belongs here: what the verbs ``run`` and ``backfill`` do, in terms of jobs. Does not belong here:
what a job does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.orchestration.runner import Runner, RunOutcome, ranges
from evalpipe.settings import Settings
from evalpipe.steps import analysis as analysis_step
from evalpipe.steps import rejections
from evalpipe.steps.context import Context, open_context, yesterday

#: As-of days that a run makes anew when late sessions changed their window; older ones wait for
#: ``backfill``, so that a late file does not recompute years.
AS_OF_DAYS_BACK = 35


@dataclass(slots=True)
class Summary:
    """What a run did.

    Attributes:
        days: Days whose slices were made.
        red: Refused days with code and explanation.
        as_of: As-of day that was scored, or ``None`` where no day is settled.
        window: Window that was scored.
    """

    days: list[date] = field(default_factory=list)
    red: dict[date, tuple[str, str]] = field(default_factory=dict)
    as_of: date | None = None
    window: str = "all"


def run_sources(
    settings: Settings,
    runner: Runner,
    paths: Sequence[Path],
    *,
    days: tuple[date, date] | None,
    undated_as: date | None,
    window: str,
) -> Summary:
    """Land files, make every stale day, score, publish and report.

    Args:
        settings: Settings of the home.
        runner: Runs jobs of that home.
        paths: Files or folders.
        days: Restrict to days from A to B.
        undated_as: Day for sessions without a date.
        window: ``all``, or a number of days such as ``28d``.
    """
    for path in paths:
        if not path.exists():
            raise EvalpipeError("SOURCE_NOT_FOUND", "no file or folder of that name", where=str(path))
    _require(runner.land(paths, undated_as))
    return make_days(settings, runner, days=days, window=window)


def make_days(settings: Settings, runner: Runner, *, days: tuple[date, date] | None, window: str) -> Summary:
    """Make stale days, score, publish and report.

    Args:
        settings: Settings of the home.
        runner: Runs jobs of that home.
        days: Restrict to days from A to B.
        window: ``all``, or a number of days such as ``28d``.
    """
    as_of = yesterday()
    summary = Summary(window=window)
    seen: set[date] = set()
    # A refused day leaves its range unfinished; the next plan has the others, so this ends.
    while True:
        with open_context(settings, as_of=as_of) as context:
            stale = [day for day in context.plan().days if days is None or days[0] <= day <= days[1]]
            red = rejections.rejected(context.lake)
        before = len(red)
        if not stale:
            break
        for start, end in ranges(stale):
            outcome = runner.slices(start, end, as_of)
            if not outcome.is_success:
                with open_context(settings, as_of=as_of) as context:
                    if len(rejections.rejected(context.lake)) == before:
                        _require(outcome)
        seen.update(stale)
        with open_context(settings, as_of=as_of) as context:
            left = set(context.plan().days)
            if left >= set(stale) and len(rejections.rejected(context.lake)) == before:
                if days is not None and any(not days[0] <= day <= days[1] for day in left):
                    break  # these days wait for neighbours that were not asked for
                raise EvalpipeError("CONTRACT_BROKEN", "days stay stale after they were made", where=f"{stale[0]}")
    summary.days = sorted(seen - set(red))
    summary.red = {
        day: (entry["code"], entry["what"]) for day, entry in red.items() if days is None or days[0] <= day <= days[1]
    }
    _score(settings, runner, summary, days, as_of)
    return summary


def _score(settings: Settings, runner: Runner, summary: Summary, days: tuple[date, date] | None, as_of: date) -> None:
    with open_context(settings, as_of=as_of) as context:
        targets = _as_of_days(context, summary.window, days)
        again = _stale_as_of_days(context)
        for day in targets:
            if opened := analysis_step.open_window(context, day, summary.window):
                analysis_step.require_one_key(opened)  # refused with its own code, before any job starts
    for day, window in [*again, *((day, summary.window) for day in targets)]:
        _require(runner.score(day, window, as_of))
    if not targets:
        _require(runner.publish(as_of))
    summary.as_of = targets[-1] if targets else None


def _as_of_days(context: Context, window: str, days: tuple[date, date] | None) -> list[date]:
    """As-of days to score: the last day with outcomes, or every day of a range that was asked for."""
    available = analysis_step.outcome_days_available(context)
    if not available:
        return []
    if window == "all":
        return [available[-1]]
    if days is not None:
        span = (days[1] - days[0]).days
        return [days[0] + timedelta(days=offset) for offset in range(span + 1)]
    return [min(context.as_of, available[-1] + timedelta(days=context.criteria.estimand.settle_days))]


def _stale_as_of_days(context: Context) -> list[tuple[date, str]]:
    """Trailing analyses of the last weeks whose window changed since they were made."""
    window = analysis_step.trailing_name(context)
    limit = context.as_of - timedelta(days=AS_OF_DAYS_BACK)
    out: list[tuple[date, str]] = []
    for manifest in context.lake.manifests("analysis"):
        key = manifest.key
        if key != analysis_step.analysis_key(context, key.day, window) or key.day < limit:
            continue
        opened = analysis_step.open_window(context, key.day, window)
        now = {f"outcomes {m.key.day}": m.content for m in opened.manifests} if opened else {}
        if now != dict(manifest.inputs) or context.lake.damage(manifest):
            out.append((key.day, window))
    return out


def _require(outcome: RunOutcome) -> None:
    if not outcome.is_success:
        what = "; ".join([*outcome.failed_checks, *outcome.errors]) or "a step failed"
        raise EvalpipeError("RUN_FAILED", what)
