"""Sensors: stale days that no night covers, such as late files, and versions seen for the first time."""

import dagster as dg

from evalpipe.orchestration.assets.analysis import versions_seen
from evalpipe.orchestration.partitions import RELEASES, range_tags
from evalpipe.orchestration.resources import HomeResource
from evalpipe.store.manifest import digest_of


@dg.sensor(
    name="late_days",
    job_name="slices",
    minimum_interval_seconds=900,
    description="Asks for a run over days that landed files made stale; the same plan as the command line's.",
)
def late_days(home: HomeResource) -> dg.SensorResult | dg.SkipReason:
    """Request one run a contiguous range of stale days."""
    with home.open() as context:
        plan = context.plan()
    if not plan.days:
        return dg.SkipReason("no day is stale")
    requests = [
        dg.RunRequest(
            # The key holds the reasons, so that the same state of a range is asked for once.
            run_key=digest_of(
                [str(start), str(end), {str(d): why for d, why in plan.stale.items() if start <= d <= end}]
            ),
            tags=range_tags(start, end),
        )
        for start, end in plan.runs
    ]
    return dg.SensorResult(run_requests=requests)


@dg.sensor(
    name="new_versions",
    job_name="release_scorecard",
    minimum_interval_seconds=900,
    description="Registers agent versions as partitions and asks for their first scorecard.",
)
def new_versions(context: dg.SensorEvaluationContext, home: HomeResource) -> dg.SensorResult | dg.SkipReason:
    """Register versions that are not partitions yet."""
    known = set(context.instance.get_dynamic_partitions(RELEASES.name or ""))
    with home.open() as opened:
        fresh = [version for version in versions_seen(opened) if version not in known]
    if not fresh:
        return dg.SkipReason("no new version")
    return dg.SensorResult(
        run_requests=[dg.RunRequest(run_key=version, partition_key=version) for version in fresh],
        dynamic_partitions_requests=[RELEASES.build_add_request(fresh)],
    )
