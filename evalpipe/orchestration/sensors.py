"""Sensors: new files, stale days that no night covers, and versions seen for the first time."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta

import dagster as dg

from evalpipe.contracts.errors import ERROR_CODES, EvalpipeError
from evalpipe.orchestration.assets.analysis import versions_seen
from evalpipe.orchestration.partitions import RELEASES, range_tags, ranges
from evalpipe.orchestration.resources import HomeResource
from evalpipe.steps.analysis import stale_as_of_days
from evalpipe.steps.context import Context, today
from evalpipe.steps.land import sources_state
from evalpipe.store.manifest import digest_of
from evalpipe.store.plan import LOOK_AHEAD_DAYS, LOOK_BACK_DAYS, rejection_receipt

#: A file that changed this recently may still be written.
_QUIET = timedelta(seconds=60)

#: A failed landing is asked for again after this, then after twice as long, up to the longest.
_FIRST_WAIT, _LONGEST_WAIT = timedelta(minutes=5), timedelta(hours=2)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the sensor of new files asked for last; its cursor.

    Attributes:
        state: Digest of what lay still under the sources.
        attempt: How often a landing of that was asked for.
        at: When it was asked for last (ISO, UTC).
    """

    state: str
    attempt: int
    at: str

    @property
    def run_key(self) -> str:
        """Key of the run that was asked for; Dagster never runs a key twice."""
        return f"{self.state}:{self.attempt}"

    @property
    def again_from(self) -> datetime:
        """From when on another attempt may be made."""
        wait: timedelta = min(_FIRST_WAIT * 2 ** min(self.attempt - 1, 10), _LONGEST_WAIT)
        return datetime.fromisoformat(self.at) + wait


def asked(cursor: str | None) -> Asked | None:
    """What a cursor says; nothing where an earlier version wrote it."""
    try:
        return Asked(**json.loads(cursor or ""))
    except (ValueError, TypeError):
        return None


@dg.sensor(
    name="new_files",
    job_name="landing",
    minimum_interval_seconds=300,
    description="Asks for a landing when files or objects under the sources of evalpipe.toml come, or grow, and are "
    "still, and asks again, ever more seldom, where a landing failed.",
)
def new_files(context: dg.SensorEvaluationContext, home: HomeResource) -> dg.SensorResult | dg.SkipReason:
    """Request one landing for what lies under the sources, once it stops changing."""
    settings = home.settings()
    if not settings.sources:
        return dg.SkipReason("evalpipe.toml names no sources")
    now = datetime.now(UTC)
    try:
        state, n_still = sources_state(settings.sources, now - _QUIET)
    except EvalpipeError as error:  # whose message holds a path, and paths name people
        return dg.SkipReason(f"{error.code}: {ERROR_CODES[error.code].meaning} 'evalpipe run SOURCE...' names it.")
    last = asked(context.cursor)
    if not n_still:
        return dg.SkipReason("no new file, or none that is still")
    attempt = 1
    if last is not None and last.state == state:
        if not _has_failed(context.instance, last.run_key):
            return dg.SkipReason("no new file, or none that is still")
        if now < last.again_from:
            return dg.SkipReason(f"the landing failed; asked for again from {last.again_from:%H:%M} UTC")
        attempt = last.attempt + 1
    ask = Asked(state, attempt, now.isoformat())
    config = {"resources": {"home": {"config": home.configured()}}}
    request = dg.RunRequest(run_key=ask.run_key, run_config=config)
    return dg.SensorResult(run_requests=[request], cursor=json.dumps(asdict(ask)))


def _has_failed(instance: dg.DagsterInstance, run_key: str) -> bool:
    """Whether a run of that key failed. One that a person cancelled has not."""
    runs = instance.get_runs(filters=dg.RunsFilter(tags={"dagster/run_key": run_key}), limit=1)
    return bool(runs) and runs[0].status is dg.DagsterRunStatus.FAILURE


@dg.sensor(
    name="late_days",
    job_name="late",
    minimum_interval_seconds=900,
    description="Asks for runs over days that landed files made stale, up to the published report; the same plan "
    "as the command line's.",
)
def late_days(home: HomeResource) -> dg.SensorResult | dg.SkipReason:
    """Request one run a range of stale days, or of as-of days that such a run left behind."""
    with home.open() as context:
        inputs = context.landing.day_inputs()
        landing = {day: item.digest for day, item in inputs.items()}
        # A session may start up to a day ahead; its day has no partition yet.
        stale = {day: why for day, why in context.plan(inputs).stale.items() if day <= today()}
        runs = ranges(sorted(stale) or stale_as_of_days(context))
        requests = [
            _request(context, landing, {d: why for d, why in stale.items() if start <= d <= end}, (start, end), home)
            for start, end in runs
        ]
    return dg.SensorResult(run_requests=requests) if requests else dg.SkipReason("no day is stale")


def _request(
    context: Context,
    landing: Mapping[date, str],
    stale: Mapping[date, tuple[str, str]],
    days: tuple[date, date],
    home: HomeResource,
) -> dg.RunRequest:
    as_of = context.as_of.isoformat()
    start, end = days
    # What the run would be made from, with the neighbours that outcomes read: the same state is asked
    # for once a day, and another late file is another state.
    first, last = start.toordinal() - LOOK_BACK_DAYS, end.toordinal() + LOOK_AHEAD_DAYS
    read = [date.fromordinal(n) for n in range(first, last + 1)]
    receipts = {str(day): rejection_receipt(day, landing, context.versions) for day in read}
    reasons = {str(day): why for day, why in stale.items()}
    state = [str(start), str(end), receipts, reasons, context.versions.code["analysis"], as_of]
    return dg.RunRequest(
        run_key=digest_of(state),
        tags=range_tags(start, end),
        run_config={
            "resources": {"home": {"config": {**home.configured(), "as_of": as_of}}},
            "ops": {"analysis_slices": {"config": {"is_late": True}}},
        },
    )


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
