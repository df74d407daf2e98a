from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalpipe import analysis
from evalpipe.analysis.evidence import evidence_tables
from evalpipe.analysis.evidence.headline import Headline
from evalpipe.analysis.stamp import Stamp
from evalpipe.contracts import render
from evalpipe.contracts.metrics import METRICS
from evalpipe.contracts.tables.signals import SESSION_OUTCOMES
from evalpipe.criteria import Criteria, load

FIRST_DAY = date(2026, 1, 5)
AS_OF = date(2026, 2, 4)
METHODS = Path(__file__).resolve().parents[2] / "docs" / "methods.md"
Scored = dict[str, pl.DataFrame]


@pytest.fixture
def criteria() -> Criteria:
    """The default criteria with effort cut down, so that a test takes milliseconds."""
    loaded = load("default", extractors="x")
    estimand = replace(
        loaded.estimand,
        permutations=199,
        simultaneous_draws=1000,
        metrics=("positive_outcome", "correction"),
        design="randomized_session",
    )
    return replace(loaded, estimand=estimand)


@pytest.fixture
def with_estimand(criteria: Criteria) -> Callable[..., Criteria]:
    def make(**changes: Any) -> Criteria:
        return replace(criteria, estimand=replace(criteria.estimand, **changes))

    return make


def outcome_rows(
    model: list[str],
    success: np.ndarray[Any, Any],
    measurement: str,
    **columns: list[Any],
) -> pl.DataFrame:
    """Outcome rows of the contract: a positive outcome as given, a correction where there is none."""
    n = len(model)
    numbers: dict[str, Any] = {}
    for metric in METRICS:
        numbers[f"{metric.name}_num"] = [0.0] * n
        numbers[f"{metric.name}_den"] = [1.0] * n
    numbers["positive_outcome_num"] = success.astype(float).tolist()
    numbers["correction_num"] = (1.0 - success).tolist()
    days = [FIRST_DAY + timedelta(days=i % 20) for i in range(n)]
    data: dict[str, Any] = {
        "session_id": [f"s{i:06d}" for i in range(n)],
        "day": days,
        "measurement": [measurement] * n,
        "is_settled": [True] * n,
        "source": ["made"] * n,
        "agent": ["acme"] * n,
        "agent_release": ["1.0"] * n,
        "model": model,
        "n_models": [1] * n,
        "user_id": [f"u{i % max(2, n // 3):05d}" for i in range(n)],
        "scenario": ["coding"] * n,
        "scenario_method": ["declared"] * n,
        "task_type": [None] * n,
        "language": ["en"] * n,
        "task_id": [None] * n,
        "trial": [None] * n,
        "routing_epoch": ["e1"] * n,
        "assignment_policy": [None] * n,
        "assignment_unit": [None] * n,
        "assignment_probability": [None] * n,
        "assigned_arm": [None] * n,
        "assignment_source": [None] * n,
        "is_as_assigned": [None] * n,
        "started_at": [datetime(d.year, d.month, d.day, 12, tzinfo=UTC) for d in days],
        "duration_ms": [1000] * n,
        "n_human_turns": [3] * n,
        "n_tool_calls": [5] * n,
        "total_tokens": [100] * n,
        "cost_usd": [None] * n,
        "cost_source": [None] * n,
        "end_status": ["completed"] * n,
        "signal_score": [0.0] * n,
        **numbers,
        **columns,
    }
    return render.conform(SESSION_OUTCOMES, pl.DataFrame(data, schema=render.polars_schema(SESSION_OUTCOMES)))


@pytest.fixture
def make_outcomes(criteria: Criteria) -> Callable[..., pl.DataFrame]:
    """Outcome rows from models and successes, under the criteria of the test."""

    def make(model: list[str], success: np.ndarray[Any, Any], **columns: list[Any]) -> pl.DataFrame:
        return outcome_rows(model, np.asarray(success), criteria.measurement, **columns)

    return make


@pytest.fixture
def trial(make_outcomes: Callable[..., pl.DataFrame]) -> Callable[..., pl.DataFrame]:
    """A randomized trial: models drawn per session, success by model and scenario, users at random."""

    def make(
        rates: dict[str, float],
        n: int = 900,
        seed: int = 1,
        *,
        scenarios: dict[str, float] | None = None,
        **columns: list[Any],
    ) -> pl.DataFrame:
        rng = np.random.default_rng(seed)
        names = sorted(rates)
        kinds = scenarios or {"coding": 0.0}
        model = [names[i] for i in rng.integers(0, len(names), n)]
        scenario = [list(kinds)[i] for i in rng.integers(0, len(kinds), n)]
        p = np.array([rates[m] + kinds[s] for m, s in zip(model, scenario, strict=True)])
        success = rng.random(n) < p
        given = {
            "user_id": [f"u{i:05d}" for i in rng.integers(0, n // 3, n)],
            "language": [["en", "zh"][i] for i in rng.integers(0, 2, n)],
            "scenario": scenario,
            **columns,
        }
        return make_outcomes(model, success, **given)

    return make


@pytest.fixture
def run() -> Callable[..., Scored]:
    """Score outcomes as if they had been made under the criteria given.

    Every reason and check that any test meets must be explained on the page for analysts.
    """
    explained = set(re.findall(r"`([a-z_]+)`", METHODS.read_text(encoding="utf-8")))

    def make(outcomes: pl.DataFrame, criteria: Criteria, **over: Any) -> Scored:
        given = {"as_of": AS_OF, "window": "28d", "window_start": FIRST_DAY, "window_end": date(2026, 2, 1), **over}
        tables = analysis.score(outcomes.with_columns(measurement=pl.lit(criteria.measurement)), criteria, **given)
        met = {
            reason
            for table in tables.values()
            if "reasons" in table.columns
            for reason in table["reasons"].explode().drop_nulls()
        }
        assert met | set(tables["analysis.diagnostics"]["check_name"]) <= explained
        return tables

    return make


@pytest.fixture
def headline_of(run: Callable[..., Scored], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Headline]:
    """The headline metric as arrays, as the tables of evidence get it."""

    def find(outcomes: pl.DataFrame, criteria: Criteria, **over: Any) -> Headline:
        met: list[Headline] = []

        def catch(headline: Headline, stamp: Stamp) -> Scored:
            met.append(headline)
            return evidence_tables(headline, stamp)

        with monkeypatch.context() as patch:
            patch.setattr(importlib.import_module("evalpipe.analysis.score"), "evidence_tables", catch)
            run(outcomes, criteria, **over)
        return met[0]

    return find


@pytest.fixture
def number() -> Callable[..., dict[str, Any]]:
    """The one row of net improvement for a version, metric and slice."""

    def find(tables: Scored, version: str, metric: str = "positive_outcome", slice_name: str = "all") -> dict[str, Any]:
        rows = tables["analysis.net_improvement"].filter(
            (pl.col("version") == version) & (pl.col("metric") == metric) & (pl.col("slice") == slice_name)
        )
        assert rows.height == 1
        return rows.row(0, named=True)

    return find


@pytest.fixture
def check() -> Callable[..., dict[str, Any]]:
    """The one diagnostics row of a check."""

    def find(tables: Scored, name: str) -> dict[str, Any]:
        rows = tables["analysis.diagnostics"].filter(pl.col("check_name") == name)
        assert rows.height == 1
        return rows.row(0, named=True)

    return find
