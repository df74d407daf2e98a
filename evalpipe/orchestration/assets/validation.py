"""The asset of validation: how often intervals cover, and tests and gates err.

Belongs here: running the step and judging its table. Does not belong here: worlds or targets
(``validation``). It has a job of its own, since it takes minutes and changes only with the estimates or
with the traffic.
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
from evalpipe.steps import validation

VALIDATION = asset_key(validation.TABLE)
_CHECK = "validation_meets_its_targets"


class ValidationConfig(dg.Config):
    """How long to validate.

    Attributes:
        replications: Replications of a scenario.
        seed: Seed; equal seeds give equal rows.
    """

    replications: int = validation.REPLICATIONS
    seed: int = 1


@dg.multi_asset(
    name="validate_estimates",
    specs=[
        dg.AssetSpec(
            VALIDATION,
            deps=[asset_key("analysis.net_improvement")],
            description=TABLES[validation.TABLE].meaning,
            group_name="analysis",
            code_version=validation.code_version(),
            kinds={"scipy", "parquet"},
            metadata=definition_metadata(TABLES[validation.TABLE]),
        )
    ],
    check_specs=[
        dg.AssetCheckSpec(
            _CHECK,
            asset=VALIDATION,
            description="No quantity is shown to miss its target, known limits aside: coverage of 95 % intervals, "
            "error of tests, orders and gates, what must be refused or counted, and the gate's false alarms on the "
            "home's own sessions.",
        )
    ],
    backfill_policy=SINGLE_RUN,
)
def validate_estimates(config: ValidationConfig, home: HomeResource) -> Iterator[Any]:
    """Validate, and keep the table for the publish that follows."""
    with home.open() as context:
        rows = validation.make_validation(context, config.replications, config.seed)
    missed = rows.filter(~pl.col("is_met") & ~pl.col("is_known"))
    names = ("part", "scenario", "quantity", "estimate", "lo", "hi", "target_lo", "target_hi", "is_met")
    shown = [{k: "" if v is None else v for k, v in row.items()} for row in rows.select(names).to_dicts()]
    yield dg.MaterializeResult(
        asset_key=VALIDATION,
        metadata={
            "dagster/row_count": rows.height,
            "replications": config.replications,
            "seed": config.seed,
            "rows": markdown_table(shown),
        },
    )
    yield dg.AssetCheckResult(
        check_name=_CHECK,
        asset_key=VALIDATION,
        passed=missed.is_empty(),
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "missed": [f"{one['scenario']}: {one['quantity']} {one['estimate']:.4f}" for one in missed.to_dicts()],
            "n_open": rows.filter(pl.col("target_lo").is_not_null() & pl.col("is_met").is_null()).height,
        },
    )
