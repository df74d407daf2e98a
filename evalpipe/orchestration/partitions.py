"""Partitions: UTC days of a session's start, and agent versions for scorecards.

No day by version product: it multiplies past what the UI carries (about 25,000 partitions), while
28 days by version is what a scorecard already holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta

import dagster as dg

from evalpipe.store.plan import LOOK_AHEAD_DAYS, LOOK_BACK_DAYS

#: One constant on every asset: a job takes the smallest policy of its assets, and one asset without
#: it would silently turn a single range run into a run a day.
SINGLE_RUN = dg.BackfillPolicy.single_run()

#: Versions register here before a scorecard is made.
RELEASES = dg.DynamicPartitionsDefinition(name="releases")

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
PARTITION = "dagster/partition"

#: A range run holds at most so many days: a failed check stops what follows for its whole range.
DAYS_A_RUN = 31


def daily(first_day: date) -> dg.DailyPartitionsDefinition:
    """Daily partitions from the home's first day to today, today included."""
    return dg.DailyPartitionsDefinition(start_date=first_day.isoformat(), end_offset=1)


def days_of(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> list[date]:
    """Days of a run, in order; a range run has many."""
    return [date.fromisoformat(key) for key in sorted(context.partition_keys)]


def range_tags(start: date, end: date) -> dict[str, str]:
    """Tags that make one run cover a range of days."""
    return {RANGE_START: start.isoformat(), RANGE_END: end.isoformat()}


def range_of(tags: Mapping[str, str]) -> tuple[date, date]:
    """Range of days of a run by its tags; a run of one partition is a range of one day, and a run
    without partitions has every day.
    """
    only = tags.get(PARTITION, "")
    start, end = tags.get(RANGE_START, only), tags.get(RANGE_END, only)
    return (date.fromisoformat(start), date.fromisoformat(end)) if start and end else (date.min, date.max)


def nightly_range(day: date, first_day: date, look_ahead_days: int) -> tuple[date, date]:
    """Days that the night after ``day`` makes anew: outcomes look ahead, so the days before too."""
    return max(first_day, day - timedelta(days=look_ahead_days)), day


def ranges(days: Sequence[date]) -> Iterator[tuple[date, date]]:
    """Ranges of at most :data:`DAYS_A_RUN` days that cover the days.

    Days whose outcomes read each other share a range, so that none is scored before its neighbour is
    there: a gap that outcomes look over does not end a range. Days in a gap hold nothing to make.
    """
    begin: date | None = None
    last: date | None = None
    for day in sorted(days):
        if begin is None or last is None:
            begin = day
        elif (day - last).days > LOOK_AHEAD_DAYS + LOOK_BACK_DAYS or (day - begin).days >= DAYS_A_RUN:
            yield begin, last
            begin = day
        last = day
    if begin is not None and last is not None:
        yield begin, last
