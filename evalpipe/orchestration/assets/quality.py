"""Assets of the review loop: how precise signals are, how reviewers agree, whether detectors drift.

Belongs here: their materialisation and checks. Does not belong here: estimates (``review``), or taking a
signal out of outcomes, which the step of outcomes does (``steps/signals.py``).
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import polars as pl

from evalpipe.contracts.tables import TABLES
from evalpipe.orchestration.assets.layers import asset_key
from evalpipe.orchestration.metadata import definition_metadata, markdown_table
from evalpipe.orchestration.partitions import SINGLE_RUN
from evalpipe.orchestration.resources import HomeResource
from evalpipe.steps import quality
from evalpipe.store.lake import read_part

_QUALITY, _, _DRIFT = quality.TABLES
_CHECKS = {
    "signals_are_precise": "No signal is demoted by its reviews, and none is more precise for one model than for "
    "another. A demoted signal is out of outcomes already: this check marks the run and stops nothing.",
    "golden_set_holds": "On the examples that ship with the patterns, every signal keeps its threshold.",
    "detectors_have_not_drifted": "No pattern fires, in its last week, far more or less often than in the weeks "
    "before, and no source is unlike the others (data/review/limits.toml).",
}


@dg.multi_asset(
    name="signal_quality",
    specs=[
        dg.AssetSpec(
            asset_key(table),
            deps=[asset_key(f"signals.{name}") for name in ("hard", "semantic", "session_features")],
            description=TABLES[table].meaning,
            group_name="signals",
            code_version=quality.VERSION,
            kinds={"polars", "parquet"},
            metadata=definition_metadata(TABLES[table]),
        )
        for table in quality.TABLES
    ],
    check_specs=[
        dg.AssetCheckSpec("signals_are_precise", asset=asset_key(_QUALITY), description=_CHECKS["signals_are_precise"]),
        dg.AssetCheckSpec(
            "golden_set_holds", asset=asset_key(_QUALITY), blocking=True, description=_CHECKS["golden_set_holds"]
        ),
        dg.AssetCheckSpec(
            "detectors_have_not_drifted",
            asset=asset_key(_DRIFT),
            description=_CHECKS["detectors_have_not_drifted"],
        ),
    ],
    backfill_policy=SINGLE_RUN,
)
def signal_quality(home: HomeResource) -> Iterator[Any]:
    """Make the tables of the review loop, and judge them."""
    with home.open() as context:
        files = quality.make(context)
    tables = {name: read_part(name, path) for name, path in files.items()}
    for name, data in tables.items():
        yield dg.MaterializeResult(
            asset_key=asset_key(name), metadata={"dagster/row_count": data.height, "rows": _shown(data)}
        )
    found = quality.alarms(tables)
    yield _check("signals_are_precise", _QUALITY, found["demoted"] + found["unequal"], dg.AssetCheckSeverity.WARN)
    yield _check("golden_set_holds", _QUALITY, found["golden"], dg.AssetCheckSeverity.ERROR)
    is_bad = bool(found["drifted"])
    severity = dg.AssetCheckSeverity.ERROR if is_bad else dg.AssetCheckSeverity.WARN
    yield _check("detectors_have_not_drifted", _DRIFT, found["drifted"] + found["drifting"], severity)


def _check(name: str, table: str, found: list[str], severity: dg.AssetCheckSeverity) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=name,
        asset_key=asset_key(table),
        passed=not found,
        severity=severity,
        metadata={"found": found[:50], "n_found": len(found)},
    )


def _shown(data: pl.DataFrame) -> dg.MetadataValue:
    rows = data.select(name for name in data.columns if name not in ("extractor_version", "family")).head(30)
    return markdown_table([{k: "" if v is None else v for k, v in row.items()} for row in rows.to_dicts()])
