"""Partitions: UTC days of a session's start, and agent versions for scorecards.

No day by version product: it multiplies past what the UI carries (about 25,000 partitions), while
28 days by version is what a scorecard already holds.
"""

from __future__ import annotations

from datetime import date, timedelta

import dagster as dg

#: One constant on every asset: a job takes the smallest policy of its assets, and one asset without
#: it would silently turn a single range run into a run a day.
SINGLE_RUN = dg.BackfillPolicy.single_run()

#: Versions register here before a scorecard is made.
RELEASES = dg.DynamicPartitionsDefinition(name="releases")

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"


def daily(first_day: date) -> dg.DailyPartitionsDefinition:
    """Daily partitions from the home's first day to today, today included."""
    return dg.DailyPartitionsDefinition(start_date=first_day.isoformat(), end_offset=1)


def days_of(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> list[date]:
    """Days of a run, in order; a range run has many."""
    return [date.fromisoformat(key) for key in sorted(context.partition_keys)]


def range_tags(start: date, end: date) -> dict[str, str]:
    """Tags that make one run cover a range of days."""
    return {RANGE_START: start.isoformat(), RANGE_END: end.isoformat()}


def nightly_range(day: date, first_day: date, look_ahead_days: int) -> tuple[date, date]:
    """Days that the night after ``day`` makes anew: outcomes look ahead, so the days before too."""
    return max(first_day, day - timedelta(days=look_ahead_days)), day
