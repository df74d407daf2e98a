"""Schedules: the night, one range run for the day that ended and the days that look ahead to it; retention."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import dagster as dg

from evalpipe.orchestration.partitions import nightly_range, range_tags
from evalpipe.store.plan import LOOK_AHEAD_DAYS


def nightly_schedule(first_day: date, home_config: Callable[[str], dict[str, Any]]) -> dg.ScheduleDefinition:
    """Two o'clock UTC, every night.

    ``build_schedule_from_partitioned_job`` would ask for yesterday alone; outcomes look three days
    ahead, so the night makes four days anew, in one run. The run stands on the day that ended, however
    late it is launched: a night that waited in a queue settles what it would have settled on time.

    Args:
        first_day: First day of the home.
        home_config: Configuration of the home resource for an as-of day (ISO).
    """

    @dg.schedule(job_name="nightly", cron_schedule="0 2 * * *", execution_timezone="UTC", name="nightly_at_two")
    def nightly_at_two(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        day = (context.scheduled_execution_time - timedelta(days=1)).date()
        start, end = nightly_range(day, first_day, LOOK_AHEAD_DAYS)
        return dg.RunRequest(
            run_key=day.isoformat(),
            tags=range_tags(start, end),
            run_config={"resources": {"home": {"config": home_config(day.isoformat())}}},
        )

    return nightly_at_two


def retention_schedule() -> dg.ScheduleDefinition:
    """Four o'clock UTC, every day; the only schedule that runs without being switched on.

    A period that somebody must remember to enforce is none.
    """
    return dg.ScheduleDefinition(
        job_name="retention",
        cron_schedule="0 4 * * *",
        execution_timezone="UTC",
        name="retention_at_four",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
