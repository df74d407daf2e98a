"""The same verdicts from Great Expectations, for who reads its results elsewhere too.

Belongs here: everything that knows Great Expectations, and nothing else does. It is imported inside
the function: it takes seconds and hundreds of megabytes, which only a check should pay. It judges the
one-row profile, never a table, because it reads neither Polars nor DuckDB and quotes the values that
it finds unexpected.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from evalpipe.quality.judge import Verdict, measured, verdict
from evalpipe.quality.rules import Rule


def judge_with_gx(profile: pl.DataFrame, rules: Sequence[Rule]) -> list[Verdict]:
    """Judge a profile by Great Expectations.

    Args:
        profile: One row, as :func:`evalpipe.quality.profiles.profile` makes it.
        rules: Rules, of which those of the profile's table are judged.

    Returns:
        One verdict a rule, in order; equal to what :func:`evalpipe.quality.judge.judge` says.
    """
    # Releases that still report usage read this when a context is made.
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig
    from great_expectations.expectations.core.expect_column_values_to_be_between import ExpectColumnValuesToBeBetween

    values = measured(profile, rules)
    # A rule on a null is not asked: Great Expectations skips nulls and would call it a success.
    asked = [rule for rule, value in values if value is not None or rule.column not in profile.columns]
    context = gx.get_context(mode="ephemeral")
    context.enable_analytics(enable=False)
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    asset = context.data_sources.add_pandas("profiles").add_dataframe_asset("profile")
    batch = asset.add_batch_definition_whole_dataframe("row").get_batch({"dataframe": profile.to_pandas()})
    expectations = [
        ExpectColumnValuesToBeBetween(column=rule.column, min_value=rule.low, max_value=rule.high) for rule in asked
    ]
    suite = gx.ExpectationSuite(name="profile", expectations=expectations)
    results = batch.validate(suite, result_format="BOOLEAN_ONLY").results if asked else []
    # Results come back in an order of their own.
    by_column = {r.expectation_config.kwargs["column"]: r for r in results if r.expectation_config is not None}
    out = []
    for rule, value in values:
        result = by_column.get(rule.column)
        could_run = result is not None and not _raised(result.exception_info)
        passed = result is not None and bool(result.success)
        out.append(verdict(rule, value, passed=passed, could_run=could_run))
    return out


def _raised(info: Mapping[str, Any]) -> bool:
    """Whether an expectation failed to run: a flat record if it did run, else one record a metric."""
    records = [info, *(record for record in info.values() if isinstance(record, Mapping))]
    return any(bool(record.get("raised_exception")) for record in records)
