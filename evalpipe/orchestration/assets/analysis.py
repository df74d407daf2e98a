"""Assets of layer 4: estimates by as-of day, and scorecards by agent version.

Belongs here: partitions and metadata of analysis. Does not belong here: estimates.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import dagster as dg
import polars as pl

from evalpipe.contracts.tables import TABLES
from evalpipe.orchestration.assets.layers import asset_key
from evalpipe.orchestration.metadata import definition_metadata, markdown_table, picture, slice_metadata
from evalpipe.orchestration.partitions import RELEASES, SINGLE_RUN, days_of
from evalpipe.orchestration.resources import HomeResource
from evalpipe.report import format as fmt
from evalpipe.report.picture import forest_picture
from evalpipe.steps.analysis import (
    AS_OF_DAYS_BACK,
    latest,
    make_analysis,
    stale_as_of_days,
    tables_of,
    trailing_name,
)
from evalpipe.steps.context import Context
from evalpipe.steps.decisions import make_scorecard
from evalpipe.steps.slices import StepResult
from evalpipe.store.manifest import STEP_TABLES, Manifest

_KINDS = {"polars", "parquet", "scipy"}
_NUMBERS = "analysis.net_improvement"


class AnalysisConfig(dg.Config):
    """Which window an as-of day scores.

    Attributes:
        window: ``all``, or a number of days such as ``28d``; the criteria decide where it is empty.
        is_late: Leave as-of days out that lie further back than a late file is followed up; they wait
            for a backfill.
    """

    window: str = ""
    is_late: bool = False


def analysis_assets(days: dg.DailyPartitionsDefinition, code_versions: Mapping[str, str]) -> list[dg.AssetsDefinition]:
    """The multi-asset of estimates.

    Beside the as-of days of the run it makes those of the last weeks anew whose window a late file
    changed.

    Args:
        days: Daily partitions; here a day is an as-of day.
        code_versions: Code version of each step.
    """
    tables = STEP_TABLES["analysis"]

    @dg.multi_asset(
        name="analysis_slices",
        specs=[
            dg.AssetSpec(
                asset_key(table),
                deps=[asset_key("signals.session_outcomes")],
                description=TABLES[table].meaning,
                group_name="analysis",
                code_version=code_versions["analysis"],
                kinds=_KINDS,
                metadata=definition_metadata(TABLES[table]),
            )
            for table in tables
        ],
        check_specs=[
            dg.AssetCheckSpec(
                "estimates_are_coherent",
                asset=asset_key(_NUMBERS),
                blocking=True,
                description="Of every as-of day of the run: every estimate lies inside its interval, the "
                "simultaneous one contains the pointwise one, and estimates against the uniform reference sum "
                "to zero. An analysis that fails is not committed.",
            )
        ],
        partitions_def=days,
        backfill_policy=SINGLE_RUN,
    )
    def slices(context: dg.AssetExecutionContext, config: AnalysisConfig, home: HomeResource) -> Iterator[Any]:
        with home.open() as opened:
            asked, trailing = days_of(context), trailing_name(opened)
            if config.is_late:
                asked = [day for day in asked if day >= opened.as_of - timedelta(days=AS_OF_DAYS_BACK)]
            window = config.window or trailing
            result = make_analysis(opened, asked, window)
            follow_up = make_analysis(opened, set(stale_as_of_days(opened)) - set(result.red), trailing)
            yield _coherent(result, follow_up)
            for error in [*result.red.values(), *follow_up.red.values()]:
                raise error  # nothing is published that an estimate contradicts
            for table in tables:
                for day in days_of(context):
                    manifest = result.manifests.get(day)
                    metadata = slice_metadata(opened, manifest, table)
                    if table == _NUMBERS and manifest is not None:
                        metadata |= leaderboard_metadata(opened, manifest)
                    context.add_asset_metadata(metadata, asset_key=asset_key(table), partition_key=day.isoformat())
                yield dg.MaterializeResult(asset_key=asset_key(table))

    return [slices]


def _coherent(*results: StepResult) -> dg.AssetCheckResult:
    """The check over every analysis that a run made or found fresh."""
    red = {f"{day}": error.code for result in results for day, error in result.red.items()}
    seen = [m.stats["coherence"] for result in results for m in result.manifests.values() if "coherence" in m.stats]
    return dg.AssetCheckResult(
        check_name="estimates_are_coherent",
        asset_key=asset_key(_NUMBERS),
        passed=not red,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata={
            "analyses": len(seen),
            "rows": sum(stats["rows"] for stats in seen),
            "largest_sum": max((float(stats["largest_sum"]) for stats in seen), default=0.0),
            "refused": red,
        },
    )


def leaderboard_metadata(context: Context, manifest: Manifest) -> dict[str, Any]:
    """The headline comparison as a table and a picture."""
    rows = context.lake.read(_NUMBERS, [manifest])
    headline = context.criteria.outcomes.headline
    rows = rows.filter((pl.col("metric") == headline) & (pl.col("slice") == "all"))
    rows = rows.sort("estimate", descending=True, nulls_last=True)
    if rows.is_empty():
        return {}
    shown = [
        {
            "version": row["version"].replace("|", "/"),
            "shift, 95 % interval": fmt.estimate(row["estimate"], row["lo"], row["hi"], fmt.unit_of(headline)),
            "ranks": f"{row['rank_lo']}-{row['rank_hi']}" if row["rank_lo"] else "unavailable",
            "sessions": row["n_sessions"],
            "status": row["status"],
        }
        for row in rows.iter_rows(named=True)
    ]
    return {
        "metric": headline,
        "window": f"{rows['window_start'][0]} to {rows['window_end'][0]}",
        "comparison": markdown_table(shown),
        "picture": picture(forest_picture(rows)),
    }


@dg.asset(
    key=dg.AssetKey(["analysis", "scorecard"]),
    group_name="releases",
    partitions_def=RELEASES,
    backfill_policy=SINGLE_RUN,
    deps=[asset_key(_NUMBERS), asset_key("analysis.pairs")],
    kinds=_KINDS,
    description=TABLES["analysis.scorecard"].meaning,
    metadata=definition_metadata(TABLES["analysis.scorecard"]),
)
def scorecard(context: dg.AssetExecutionContext, home: HomeResource) -> Iterator[Any]:
    """Scorecards of the chosen versions, from the newest analysis."""
    with home.open() as opened:
        for version in sorted(context.partition_keys):
            manifest = make_scorecard(opened, version)
            card = opened.lake.read("analysis.scorecard", [manifest])
            rows = [
                {
                    "metric": row["metric"],
                    "shift, 95 % interval": fmt.estimate(
                        row["estimate"], row["lo"], row["hi"], fmt.unit_of(row["metric"])
                    ),
                    "better than": row["n_better_than"],
                    "worse than": row["n_worse_than"],
                    "status": row["status"],
                }
                for row in card.filter(pl.col("slice") == "all").iter_rows(named=True)
            ]
            context.add_asset_metadata(
                {"dagster/partition_row_count": card.height, "scorecard": markdown_table(rows)}, partition_key=version
            )
    yield dg.MaterializeResult()


def versions_seen(context: Context) -> list[str]:
    """Versions in the newest analysis; a partition key may not hold some characters, and then the
    version has no partition and is reached by the command line only.
    """
    manifest = latest(context)
    if manifest is None:
        return []
    labels = tables_of(context, manifest)[_NUMBERS]["version"].unique().sort().to_list()
    return [label for label in labels if is_partition_key(label)]


def is_partition_key(version: str) -> bool:
    """Whether a version label can be a partition key."""
    return not any(part in version for part in ("|", ",", "...", "/", "\n"))
