"""Assets of layers 1 to 3: landing, and one multi-asset a step over the daily partitions.

Belongs here: which tables a step writes and what it depends on. All days of a range run go through
a step in one call, so that small days share the workers.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any

import dagster as dg

from evalpipe.contracts.tables import TABLES
from evalpipe.orchestration.carry import coded, kept_sources
from evalpipe.orchestration.metadata import definition_metadata, slice_metadata
from evalpipe.orchestration.partitions import SINGLE_RUN, days_of
from evalpipe.orchestration.resources import HomeResource
from evalpipe.steps import erase, retention
from evalpipe.steps.context import Context
from evalpipe.steps.land import land, parse_day
from evalpipe.steps.masked import make_masked
from evalpipe.steps.raw import make_raw
from evalpipe.steps.signals import make_outcomes, make_signals
from evalpipe.steps.slices import StepResult
from evalpipe.store.day_input import DayInput
from evalpipe.store.manifest import STEP_TABLES

Make = Callable[[Context, list[date], Mapping[date, DayInput]], StepResult]

LANDING = dg.AssetKey(["raw", "landing"])
RETENTION = dg.AssetKey(["raw", "retention"])

_KINDS = {"polars", "parquet"}


def asset_key(table: str) -> dg.AssetKey:
    """Asset key of a table: its layer and its name."""
    return dg.AssetKey(table.split("."))


class LandingConfig(dg.Config):
    """What to land.

    Attributes:
        sources: Label of the paths that the command gave (:mod:`evalpipe.orchestration.carry`); the
            ``sources`` setting decides where it is empty. Paths themselves would stay in the history.
        undated_as: Day (ISO) for sessions without a date; today where it is empty.
    """

    sources: str = ""
    undated_as: str = ""


@dg.asset(
    key=LANDING,
    group_name="raw",
    kinds=_KINDS,
    backfill_policy=SINGLE_RUN,  # a range of a group is refused if one asset in it has no policy
    description="Files that were not seen before, parsed once; their sessions wait by day for their slices.",
)
def raw_landing(config: LandingConfig, home: HomeResource) -> dg.MaterializeResult[Any]:
    """Land new files, behind an erasure that was begun and killed."""
    with coded():
        erase.resume(home.settings())
    with home.open() as context:
        named = kept_sources(config.sources) if config.sources else context.settings.sources
        undated_as = parse_day(config.undated_as) if config.undated_as else None
        result = land(context, named, undated_as=undated_as)
    return dg.MaterializeResult(
        metadata={
            "files": result.n_files,
            "new_files": result.n_new_files,
            "bytes": result.n_bytes,
            "sessions": result.rows["sessions"],
            "steps": result.rows["steps"],
            "quarantined": result.rows["quarantine"],
            "days": len(result.days),
        }
    )


@dg.asset(
    key=RETENTION,
    group_name="raw",
    kinds={"parquet"},
    backfill_policy=SINGLE_RUN,
    description="Raw rows, masked text and snippets that have been kept for long enough (data/retention.toml) go.",
)
def raw_retention(home: HomeResource) -> dg.MaterializeResult[Any]:
    """Take away what has expired, in every layer, behind an erasure that was begun and killed."""
    with coded():
        settings = home.settings()
        erase.resume(settings)
        done = retention.enforce(settings)
    if done is None:
        return dg.MaterializeResult(metadata={"state": "nothing is due", "batches": 0})
    return dg.MaterializeResult(
        metadata={"batches": done.n_batches, "days": len(done.days), "files_deleted": done.n_deleted}
    )


def layer_assets(days: dg.DailyPartitionsDefinition, code_versions: Mapping[str, str]) -> list[dg.AssetsDefinition]:
    """The multi-assets of layers 1 to 3.

    Args:
        days: Daily partitions.
        code_versions: Code version of each step.
    """

    def build(step: str, make: Make, deps: list[dg.AssetKey], check: str | None = None) -> dg.AssetsDefinition:
        return _step_asset(days, step, make, deps, code_versions[step], check)

    raw = build("raw", make_raw, [LANDING], "rows_are_accounted_for")
    masked = build("masked", make_masked, _keys("raw"), "leak_check")
    signals = build("signals", make_signals, [asset_key("masked.sessions"), asset_key("masked.steps")])
    outcomes = build("outcomes", make_outcomes, [asset_key("masked.sessions"), *_keys("signals")])
    return [raw, masked, signals, outcomes]


#: Table whose materialisation carries the step's own check. It blocks by not committing the day that it
#: refuses; a check that blocks in Dagster's sense would stop every other day of the run too.
CHECKED = {"raw": "raw.files", "masked": "masked.steps"}

_CHECK_TEXT = {
    "rows_are_accounted_for": "In every file: rows read = rows kept + declared noise + rows quarantined.",
    "leak_check": "An independent detector finds nothing, no canary survives, every canary was counted.",
}


def _keys(step: str) -> list[dg.AssetKey]:
    return [asset_key(table) for table in STEP_TABLES[step]]


def _step_asset(
    days: dg.DailyPartitionsDefinition,
    step: str,
    make: Make,
    deps: list[dg.AssetKey],
    code_version: str,
    check: str | None,
) -> dg.AssetsDefinition:
    tables = STEP_TABLES[step]
    layer = tables[0].split(".")[0]
    specs = [
        dg.AssetSpec(
            asset_key(table),
            deps=deps,
            description=TABLES[table].meaning,
            group_name=layer,
            code_version=code_version,
            kinds=_KINDS,
            metadata=definition_metadata(TABLES[table]),
        )
        for table in tables
    ]
    checks = [dg.AssetCheckSpec(check, asset=asset_key(CHECKED[step]), description=_CHECK_TEXT[check])] if check else []

    @dg.multi_asset(
        name=f"{step}_slices", specs=specs, check_specs=checks, partitions_def=days, backfill_policy=SINGLE_RUN
    )
    def slices(context: dg.AssetExecutionContext, home: HomeResource) -> Iterator[Any]:
        with home.open() as opened:
            result = make(opened, days_of(context), opened.landing.day_inputs())
            if check:
                yield check_result(check, step, result)
            # A refused day kept its old version; the others go on, and the run ends red (``refused_days``).
            for table in tables:
                for day in days_of(context):
                    metadata = slice_metadata(opened, result.manifests.get(day), table)
                    if day in result.red:
                        metadata = {"state": f"refused: {result.red[day].code}", "dagster/partition_row_count": 0}
                    context.add_asset_metadata(metadata, asset_key=asset_key(table), partition_key=day.isoformat())
                yield dg.MaterializeResult(asset_key=asset_key(table))

    return slices


def red_metadata(result: StepResult) -> dict[str, str]:
    """Refused days and their codes; never a value."""
    return {day.isoformat(): error.code for day, error in sorted(result.red.items())}


def check_result(check: str, step: str, result: StepResult) -> dg.AssetCheckResult:
    """The check of a step over all days of a run."""
    stats = {day.isoformat(): manifest.stats for day, manifest in result.manifests.items()}
    metadata: dict[str, Any] = {"slices": len(stats), "made": len(result.made), "failing": red_metadata(result)}
    if step == "masked":
        leaks = [s["leak"] for s in stats.values()]
        metadata["canaries_planted"] = sum(leak["canaries_planted"] for leak in leaks)
        metadata["canaries_counted"] = sum(leak["canaries_counted"] for leak in leaks)
        states = [leak.get("rate_state", "unavailable") for leak in leaks]
        metadata["rates"] = {state: states.count(state) for state in sorted(set(states))}
    else:
        balances = [s["balance"] for s in stats.values() if s["balance"]]
        for name in ("files", "rows_read", "rows_kept", "rows_noise", "rows_quarantined"):
            metadata[name] = sum(balance[name] for balance in balances)
    return dg.AssetCheckResult(
        check_name=check,
        asset_key=asset_key(CHECKED[step]),
        # A profile out of bounds has a check of its own.
        passed=all(error.code == "PROFILE_OUT_OF_BOUNDS" for error in result.red.values()),
        severity=dg.AssetCheckSeverity.ERROR,
        metadata=metadata,
    )
