"""Input that no number can be made of: a status word and a reason in every table, and never a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria import Criteria
from evalpipe.inference import Options, Sample, compare

Make = Callable[..., pl.DataFrame]
Run = Callable[..., dict[str, pl.DataFrame]]

N = 240
TWO = [f"m-{i % 2}" for i in range(N)]
HALF = (np.arange(N) // 2 % 2).astype(float)
NONE: list[float | None] = [None] * N

#: Numbers that a row must not have when its status is ``unavailable``.
NUMBERS = {
    "analysis.net_improvement": (
        "estimate", "lo", "hi", "lo_sim", "hi_sim", "se", "df", "gstar", "p_perm", "p_adj", "rank_lo", "rank_hi",
        "letters", "theta", "theta_lo", "theta_hi", "deff", "mde",
    ),
    "analysis.estimators": ("estimate", "lo", "hi"),
    "analysis.sensitivity": ("error_rate_gap", "e_value", "e_value_limit", "gamma", "heterogeneity_p", "interaction_p"),
    "analysis.durations": ("median_s", "mean_s"),
    "analysis.nights": ("estimate", "se"),
    "analysis.attempts": ("autonomous", "autonomous_lo", "autonomous_hi", "assisted", "non_completion"),
    "analysis.paired_tasks": ("lo", "hi", "p"),
}  # fmt: skip


def models(n: int) -> list[str]:
    return [f"m-{i % n}" for i in range(N)]


CASES: dict[str, tuple[list[str], Any, dict[str, list[Any]], str, str]] = {
    # name: models, successes, columns, status of the headline, a reason of it
    "one version": (models(1), HALF, {}, "unavailable", "no_comparator"),
    "one user": (TWO, HALF, {"user_id": ["u"] * N}, "unavailable", "too_few_users"),
    "two users of one version each": (
        TWO,
        HALF,
        {"user_id": [f"u{i % 2}" for i in range(N)]},
        "unavailable",
        "too_few_users",
    ),
    "all failed": (TWO, np.zeros(N), {}, "inconclusive", "no_variation"),
    "all succeeded": (TWO, np.ones(N), {}, "inconclusive", "no_variation"),
    "all unknown": (
        TWO,
        HALF,
        {"positive_outcome_num": NONE, "positive_outcome_den": NONE},
        "unavailable",
        "no_outcome",
    ),
    "no denominators": (
        TWO,
        HALF,
        {"positive_outcome_num": [0.0] * N, "positive_outcome_den": [0.0] * N},
        "unavailable",
        "zero_denominator",
    ),
    "work that no two versions share": (
        TWO,
        HALF,
        {"scenario": [f"work-{i % 2}" for i in range(N)]},
        "unavailable",
        "no_common_support",
    ),
    "a session of each version": (
        [f"m-{i:03d}" for i in range(N)],
        HALF,
        {"user_id": [f"u{i}" for i in range(N)]},
        "unavailable",
        "too_few_sessions",
    ),
    "three users": (
        TWO,
        (np.arange(N) % 7 < 3).astype(float),
        {"user_id": [f"u{i % 3}" for i in range(N)]},
        "inconclusive",
        "few_degrees_of_freedom",
    ),
    "times of zero": (TWO, HALF, {"duration_ms": [0] * N}, "ok", ""),
    "all still open": (TWO, HALF, {"end_status": ["open"] * N}, "ok", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_status_word_and_never_a_number(case: str, make_outcomes: Make, run: Run, criteria: Criteria) -> None:
    model, success, columns, status, reason = CASES[case]
    tables = run(make_outcomes(model, success, **columns), criteria)
    for name, table in tables.items():
        floats = [column for column, dtype in table.schema.items() if dtype == pl.Float64]
        for column in floats:
            assert table[column].drop_nulls().is_finite().all(), f"{name}.{column}"
        if "status" in table.columns and name != "analysis.diagnostics":
            without = table.filter(status="unavailable")
            assert (without["reasons"].list.len() > 0).all(), f"{name}: unavailable without a reason"
            for column in NUMBERS.get(name, ()):
                assert without[column].is_null().all(), f"{name}.{column} of an unavailable row"
    headline = tables["analysis.net_improvement"].filter(metric="positive_outcome", slice="all")
    assert not headline.is_empty()
    assert set(headline["status"]) == {status}
    if reason:
        assert all(reason in reasons for reasons in headline["reasons"].to_list())
    if reason == "no_variation":
        assert headline["estimate"].to_list() == [0.0, 0.0], "the estimate is shown"
        assert headline.select("lo", "hi", "p_perm", "p_adj").null_count().row(0) == (2, 2, 2, 2)
    if status != "ok":
        claims = tables["analysis.diagnostics"].filter(check_name="plan", subject="claims")["detail"].to_list()
        assert len(claims) == 1
        assert "concluded" in claims[0]


def test_no_session_at_all(make_outcomes: Make, run: Run, criteria: Criteria) -> None:
    tables = run(make_outcomes(TWO, HALF).clear(), criteria)
    assert {name for name, table in tables.items() if not table.is_empty()} == {"analysis.diagnostics"}
    assert set(tables["analysis.diagnostics"]["status"]) <= {"unavailable", "ok", "inconclusive"}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_no_number_stops_everything(
    value: float, make_outcomes: Make, run: Run, criteria: Criteria
) -> None:
    spoiled = pl.when(pl.col("session_id") == "s000007").then(value).otherwise("positive_outcome_num")
    outcomes = make_outcomes(TWO, HALF).with_columns(positive_outcome_num=spoiled)
    with pytest.raises(EvalpipeError, match="INVALID_OUTCOMES") as caught:
        run(outcomes, criteria)
    assert "s000007" in caught.value.what


def test_a_million_users_are_no_special_case() -> None:
    n = 1_000_000
    rng = np.random.default_rng(1)
    version = rng.integers(0, 4, n).astype(np.int32)
    y = (rng.random(n) < 0.5 + 0.01 * (version == 0)).astype(float)
    zero = np.zeros(n, dtype=np.int32)
    sample = Sample(y, np.ones(n), version, zero, np.arange(n, dtype=np.int32), zero, 4, 1)
    found = compare(sample, Options(permutations=99, draws=1_000))
    assert set(found.status) == {"ok"}
    assert found.rank_lo[0] == found.rank_hi[0] == 1
    assert abs(found.estimate[0] - 0.0075) < 4 * found.se[0] < 0.005
    assert (found.gstar > 400_000).all()
