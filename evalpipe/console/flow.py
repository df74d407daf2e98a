"""The order of a run: land, make stale days, score, publish, report.

Belongs here: what the verbs ``run`` and ``backfill`` do, in terms of jobs. Does not belong here:
what a job does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from evalpipe.console import show
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.orchestration.runner import Runner, ranges
from evalpipe.settings import Settings, peek_first_day
from evalpipe.steps import analysis as analysis_step
from evalpipe.steps import erase, rejections, retention
from evalpipe.steps.analysis import stale_as_of_days, trailing_name
from evalpipe.steps.context import Context, open_context, today, yesterday
from evalpipe.steps.land import require_days_of_home, require_sources
from evalpipe.steps.seal import expired
from evalpipe.store.lake import Lake


@dataclass(slots=True)
class Summary:
    """What a run did.

    Attributes:
        days: Days whose slices were made.
        red: Refused days with code and explanation.
        as_of: Last as-of day of the run that has an analysis, or ``None`` where none has.
        window: Window that was scored.
        scored: As-of days of the run that have an analysis.
        asked: Last as-of day of the run, whether it has an analysis or not; ``None`` where no day has outcomes.
    """

    days: list[date] = field(default_factory=list)
    red: dict[date, tuple[str, str]] = field(default_factory=dict)
    as_of: date | None = None
    window: str = "all"
    scored: list[date] = field(default_factory=list)
    asked: date | None = None


def run_sources(
    settings: Settings,
    runner: Runner,
    sources: Sequence[str | Path],
    *,
    days: tuple[date, date] | None,
    undated_as: date | None,
    window: str,
) -> Summary:
    """Land files, make every stale day, score, publish and report; an erasure that was killed is ended first.

    Args:
        settings: Settings of the home.
        runner: Runs jobs of that home.
        sources: Files, folders, patterns, or prefixes of a bucket.
        days: Restrict to days from A to B.
        undated_as: Day for sessions without a date.
        window: ``all``, or a number of days such as ``28d``.
    """
    require_sources(sources)
    first_day = peek_first_day(settings)
    if undated_as is not None:
        require_days_of_home(first_day, undated_as, undated_as, "--undated-as")
    if days is not None:
        require_days_of_home(first_day, *days, "--days")
    erase.resume(settings)
    runner.land(sources, undated_as).require()
    return make_days(settings, runner, days=days, window=window)


def make_days(settings: Settings, runner: Runner, *, days: tuple[date, date] | None, window: str) -> Summary:
    """Make stale days, score, publish and report; then take away what has expired.

    Args:
        settings: Settings of the home.
        runner: Runs jobs of that home.
        days: Restrict to days from A to B.
        window: ``all``, or a number of days such as ``28d``.
    """
    as_of = yesterday()
    if days is not None:
        require_days_of_home(peek_first_day(settings), *days, "days")
    erase.resume(settings)
    summary = Summary(window=window)
    seen: set[date] = set()
    stale, left = _stale(settings, as_of, days), set[date]()
    # Ranges of a long plan read each other across their border, so the next plan may still hold some.
    while stale:
        for start, end in ranges(sorted(stale)):
            outcome = runner.slices(start, end, as_of)
            if not outcome.is_refusal:
                outcome.require()
        seen |= stale
        left = _stale(settings, as_of, days)
        if left >= stale:
            break
        stale = left
    red = _refused(settings, days)
    # Days of a restricted range may wait for neighbours that were not asked for.
    if days is None and left:
        raise EvalpipeError("CONTRACT_BROKEN", "days stay stale after they were made", where=f"{min(left)}")
    summary.days = sorted(seen - set(red))
    summary.red = {day: (entry["code"], entry["what"]) for day, entry in red.items()}
    if days is not None:
        summary.red |= _out_of_reach(settings, days, as_of)
    _score(settings, runner, summary, days, as_of)
    if retention.is_due(settings):
        runner.retention().require()
    return summary


def _out_of_reach(settings: Settings, days: tuple[date, date], as_of: date) -> dict[date, tuple[str, str]]:
    """Days that were asked for, and would have to be made from text that has expired."""
    with open_context(settings, as_of=as_of) as context:
        _, lost = retention.sealed_days(context)
    return {day: (error.code, error.what) for day in lost if days[0] <= day <= days[1] for error in (expired(day),)}


def _stale(settings: Settings, as_of: date, days: tuple[date, date] | None) -> set[date]:
    start, end = days or (date.min, date.max)
    with open_context(settings, as_of=as_of) as context:
        # A session may start up to a day ahead; its day has no partition before it begins.
        return {day for day in context.plan().days if start <= day <= min(end, today())}


def _refused(settings: Settings, days: tuple[date, date] | None) -> dict[date, dict[str, Any]]:
    start, end = days or (date.min, date.max)
    refused = rejections.rejected(Lake(settings.lake))
    return {day: entry for day, entry in refused.items() if start <= day <= end}


def _score(settings: Settings, runner: Runner, summary: Summary, days: tuple[date, date] | None, as_of: date) -> None:
    with open_context(settings, as_of=as_of) as context:
        targets = _as_of_days(context, summary.window, days)
        # A run of one as-of day makes the trailing analyses of the last weeks anew too.
        late = stale_as_of_days(context)
        trailing = trailing_name(context)
    if not targets and late:
        runner.score(late[-1], trailing, as_of).require()
    if len(targets) > 1:
        show.note(f"Scoring {len(targets)} as-of days, {targets[0]} to {targets[-1]}")
    for start, end in ranges(targets):
        runner.score(start, summary.window, as_of, until=end).require()
    if not targets and not late:
        runner.publish(as_of).require()
    with open_context(settings, as_of=as_of) as context:
        keys = {day: analysis_step.analysis_key(context, day, summary.window) for day in targets}
        summary.scored = [day for day, key in keys.items() if context.lake.manifest(key) is not None]
    summary.asked = targets[-1] if targets else None
    summary.as_of = summary.scored[-1] if summary.scored else None


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
