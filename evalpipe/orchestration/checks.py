"""Asset checks beside those that the steps carry: profiles, estimates, the publication.

Belongs here: turning verdicts into check results. Unpartitioned on purpose: a check with partitions
loses its partition in a range run, while this one sees every day of the run.
"""

from typing import Any

import dagster as dg
import polars as pl

from evalpipe.orchestration.assets.layers import asset_key
from evalpipe.orchestration.assets.publication import PUBLICATION
from evalpipe.orchestration.partitions import days_of
from evalpipe.orchestration.resources import HomeResource, WarehouseResource
from evalpipe.quality import judge_with_gx, load_rules, profile
from evalpipe.steps.analysis import latest, tables_of
from evalpipe.steps.publish import published_manifests
from evalpipe.steps.slices import read_days

#: Tables whose slices are profiled; rules for them stand in ``data/quality``.
PROFILED = ("masked.sessions", "masked.files", "signals.session_features", "signals.session_outcomes")


def _profile_check(table: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=asset_key(table),
        name="profile_is_within_bounds",
        blocking=True,
        description="Great Expectations judges a one-row profile of the days of the run.",
    )
    def check(context: dg.AssetCheckExecutionContext, home: HomeResource) -> dg.AssetCheckResult:
        with home.open() as opened:
            data = read_days(opened, table, days_of(context))
        return _judged(table, data)

    return check


def _judged(table: str, data: pl.DataFrame) -> dg.AssetCheckResult:
    if data.is_empty():
        return dg.AssetCheckResult(passed=True, metadata={"rows": 0})
    verdicts = judge_with_gx(profile(table, data), load_rules())
    broken = [v for v in verdicts if v.is_broken]
    blocks = any(v.is_blocking for v in verdicts)
    return dg.AssetCheckResult(
        passed=not broken,
        severity=dg.AssetCheckSeverity.ERROR if blocks else dg.AssetCheckSeverity.WARN,
        metadata={
            "rows": data.height,
            "rules": len(verdicts),
            "broken": [f"{v.column}: {v.value} outside [{v.low}, {v.high}]. {v.why}" for v in broken],
            # A rule that could not run is not a rule that failed.
            "could_not_run": [v.column for v in verdicts if not v.could_run],
        },
    )


@dg.asset_check(
    asset=asset_key("analysis.net_improvement"),
    name="estimates_are_coherent",
    blocking=True,
    description="Every estimate lies inside its interval, the simultaneous one contains the pointwise "
    "one, and estimates against the uniform reference sum to zero.",
)
def estimates_are_coherent(home: HomeResource) -> dg.AssetCheckResult:
    """Check the newest analysis."""
    with home.open() as opened:
        manifest = latest(opened)
        if manifest is None:
            return dg.AssetCheckResult(passed=True, metadata={"state": "nothing is analysed yet"})
        rows = tables_of(opened, manifest)["analysis.net_improvement"]
    known = rows.filter(pl.col("lo").is_not_null())
    slack = 1e-9
    outside = known.filter(
        (pl.col("estimate") < pl.col("lo") - slack) | (pl.col("estimate") > pl.col("hi") + slack)
    ).height
    narrow = known.filter(pl.col("lo_sim") > pl.col("lo") + slack).height
    sums = (
        rows.filter((pl.col("reference") == "uniform") & pl.col("estimate").is_not_null())
        .group_by("metric", "slice")
        .agg(pl.col("estimate").sum().abs().alias("total"))
    )
    drift = float(sums["total"].max() or 0.0) if not sums.is_empty() else 0.0  # type: ignore[arg-type]
    return dg.AssetCheckResult(
        passed=not outside and not narrow and drift < 1e-6,
        metadata={"rows": rows.height, "outside": outside, "narrow": narrow, "largest_sum": drift},
    )


@dg.asset_check(
    asset=PUBLICATION,
    name="publication_matches_the_lake",
    description="The published tables have the rows of the slices, no fewer and no more.",
)
def publication_matches_the_lake(home: HomeResource, warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """Compare row counts."""
    with home.open() as opened:
        expected: dict[str, int] = {}
        for manifest in published_manifests(opened):
            for part in manifest.parts:
                expected[part.table] = expected.get(part.table, 0) + part.rows
    with warehouse.get_connection() as connection:
        found: dict[str, Any] = dict(connection.execute("SELECT table_name, n_rows FROM meta.contents").fetchall())
    differing = sorted(name for name, n in expected.items() if found.get(name) != n)
    return dg.AssetCheckResult(passed=not differing, metadata={"tables": len(expected), "differing": differing})


CHECKS = [
    *(_profile_check(table) for table in PROFILED),
    estimates_are_coherent,
    publication_matches_the_lake,
]
