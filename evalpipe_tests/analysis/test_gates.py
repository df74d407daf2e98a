from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

from evalpipe.analysis import DECIDED, decide_gates
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria import Criteria
from evalpipe.criteria.model import GateCriterion

Trial = Callable[..., pl.DataFrame]
Run = Callable[..., dict[str, pl.DataFrame]]
A, B = "acme · a", "acme · b"


def verdicts(gates: pl.DataFrame) -> dict[str, str]:
    return dict(gates.select("criterion", "verdict").rows())


def test_a_better_candidate_passes_and_a_worse_one_fails(trial: Trial, run: Run, criteria: Criteria) -> None:
    tables = run(trial({"a": 0.4, "b": 0.75}, n=1500), criteria)
    better = decide_gates(tables, criteria, B, A)
    assert verdicts(better) == {"outcome_no_worse": "pass", "corrections_no_worse": "pass"}
    assert better["reasons"].list.len().sum() == 0
    worse = decide_gates(tables, criteria, A, B)
    assert verdicts(worse) == {"outcome_no_worse": "fail", "corrections_no_worse": "fail"}
    assert better["decision_id"].n_unique() == 1
    assert better["decision_id"][0] != worse["decision_id"][0]


def test_estimates_are_signed_so_that_positive_is_better(trial: Trial, run: Run, criteria: Criteria) -> None:
    """Fewer corrections are better: b's lead has one sign in both metrics."""
    tables = run(trial({"a": 0.4, "b": 0.75}, n=1500), criteria)
    gates = decide_gates(tables, criteria, B, A)
    assert gates["estimate"].to_list() == pytest.approx([0.35, 0.35], abs=0.08)
    assert (gates["lower"] < gates["estimate"]).all()
    assert (gates["estimate"] < gates["upper"]).all()
    mirrored = decide_gates(tables, criteria, A, B)
    assert mirrored["estimate"].to_list() == pytest.approx((-gates["estimate"]).to_list())
    assert mirrored["upper"].to_list() == pytest.approx((-gates["lower"]).to_list())


def test_a_small_canary_is_inconclusive_not_a_pass(trial: Trial, run: Run, criteria: Criteria) -> None:
    gates = decide_gates(run(trial({"a": 0.6, "b": 0.6}, n=120), criteria), criteria, B, A)
    assert set(gates["verdict"]) == {"inconclusive"}
    assert gates["reasons"].to_list() == [["interval_crosses_margin"]] * 2


def test_superiority_asks_for_more_than_non_inferiority(trial: Trial, run: Run, criteria: Criteria) -> None:
    tables = run(trial({"a": 0.6, "b": 0.6}, n=6000), criteria)
    kinds = (
        GateCriterion("no_worse", "positive_outcome", "non_inferiority", 0.05),
        GateCriterion("better", "positive_outcome", "superiority", 0.0),
        GateCriterion("much_better", "positive_outcome", "superiority", 0.10),
    )
    decided = verdicts(decide_gates(tables, replace(criteria, gates=kinds), B, A))
    assert decided == {"no_worse": "pass", "better": "inconclusive", "much_better": "fail"}


def test_suspect_numbers_decide_nothing(trial: Trial, run: Run, criteria: Criteria) -> None:
    base = trial({"a": 0.3, "b": 0.9}, n=900)
    claimed = pl.when(pl.col("model") == "a").then(0.8).otherwise(0.2).alias("assignment_probability")
    gates = decide_gates(run(base.with_columns(claimed), criteria), criteria, B, A)
    assert set(gates["verdict"]) == {"inconclusive"}
    assert gates["reasons"].to_list() == [["suspect", "srm", "not_randomized"]] * 2
    assert gates["estimate"].is_not_null().all()


def test_a_version_with_too_few_sessions_decides_nothing(trial: Trial, run: Run, criteria: Criteria) -> None:
    base = trial({"a": 0.5, "b": 0.6, "c": 0.6})
    few = base.filter((pl.col("model") != "c") | ((pl.col("model") == "c").cum_sum() <= 10))
    gates = decide_gates(run(few, criteria), criteria, "acme · c", A)
    assert set(gates["verdict"]) == {"inconclusive"}
    assert gates["estimate"].to_list() == [None, None]
    assert "too_few_sessions" in gates["reasons"][0]


def test_little_common_traffic_decides_nothing(trial: Trial, run: Run, criteria: Criteria) -> None:
    base = trial({"a": 0.2, "b": 0.9}, n=1200, routing_epoch=["e1", "e2"] * 600)
    gap = (pl.col("model") == "b") & (pl.col("routing_epoch") == "e2")
    gates = decide_gates(run(base.filter(~gap), criteria), criteria, B, A)
    assert set(gates["verdict"]) == {"inconclusive"}
    assert all("low_support" in reasons for reasons in gates["reasons"].to_list())


def test_the_same_inputs_make_the_same_decision(trial: Trial, run: Run, criteria: Criteria) -> None:
    tables = run(trial({"a": 0.4, "b": 0.75}), criteria)
    first = decide_gates(tables, criteria, B, A)
    assert_frame_equal(first, decide_gates(tables, criteria, B, A))
    other = decide_gates(run(trial({"a": 0.4, "b": 0.75}, seed=2), criteria), criteria, B, A)
    stricter = replace(criteria, gates=(replace(criteria.gates[0], margin=0.01),))
    ids = {first["decision_id"][0], other["decision_id"][0], decide_gates(tables, stricter, B, A)["decision_id"][0]}
    assert len(ids) == 3


def test_no_gates_make_no_rows(trial: Trial, run: Run, criteria: Criteria) -> None:
    tables = run(trial({"a": 0.5, "b": 0.5}), criteria)
    assert decide_gates(tables, replace(criteria, gates=()), B, A).is_empty()


def test_an_unknown_version_lists_those_that_exist(trial: Trial, run: Run, criteria: Criteria) -> None:
    tables = run(trial({"a": 0.5, "b": 0.5}), criteria)
    with pytest.raises(EvalpipeError) as error:
        decide_gates(tables, criteria, "acme · z", A)
    assert error.value.code == "UNKNOWN_VERSION"
    assert f"'{A}', '{B}'" in error.value.what


def test_what_cannot_be_decided_is_refused(
    trial: Trial, run: Run, criteria: Criteria, with_estimand: Callable[..., Any]
) -> None:
    tables = run(trial({"a": 0.5, "b": 0.5}), criteria)
    with pytest.raises(EvalpipeError) as error:
        decide_gates(tables, criteria, A, A)
    assert error.value.code == "BAD_ARGUMENT"
    with pytest.raises(EvalpipeError) as error:
        decide_gates(tables, with_estimand(population="equal"), A, B)
    assert error.value.code == "MIXED_MEASUREMENTS"
    numbers = tables["analysis.net_improvement"]
    two = {**tables, "analysis.net_improvement": pl.concat([numbers, numbers.with_columns(window_name=pl.lit("all"))])}
    with pytest.raises(EvalpipeError) as error:
        decide_gates(two, criteria, A, B)
    assert error.value.code == "BAD_ARGUMENT"


def test_a_question_decided_on_another_day_is_decided_by_wider_bounds(
    trial: Trial, run: Run, criteria: Criteria
) -> None:
    tables = run(trial({"a": 0.6, "b": 0.6}, n=2400), criteria)
    first = decide_gates(tables, criteria, B, A)
    # The same day again is the same decision.
    assert_frame_equal(decide_gates(tables, criteria, B, A, decided=first), first)
    other_day = first.with_columns(as_of=pl.col("as_of").dt.offset_by("-1d"))
    again = decide_gates(tables, criteria, B, A, decided=other_day)
    assert (again["lower"] < first["lower"]).all()
    assert (again["upper"] > first["upper"]).all()
    assert again["estimate"].to_list() == first["estimate"].to_list()
    assert all("decided_before" in reasons for reasons in again["reasons"].to_list())
    for elsewhere in ({"candidate": A}, {"baseline": B}, {"measurement": "0" * 12}, {"kind": "superiority"}):
        unlike = other_day.with_columns(pl.lit(value).alias(name) for name, value in elsewhere.items())
        assert_frame_equal(decide_gates(tables, criteria, B, A, decided=unlike), first)
    won = run(trial({"a": 0.4, "b": 0.75}, n=1500), criteria)
    passed = decide_gates(won, criteria, B, A, decided=other_day)
    assert verdicts(passed) == {"outcome_no_worse": "pass", "corrections_no_worse": "pass"}
    assert passed["reasons"].to_list() == [["decided_before"]] * 2


def test_a_small_canary_of_single_sessions_has_a_score_test_beside_its_bounds(
    make_outcomes: Trial, run: Run, criteria: Criteria
) -> None:
    success = np.repeat([1, 0, 1, 0], [27, 3, 55, 5])
    outcomes = make_outcomes(["b"] * 30 + ["a"] * 60, success, user_id=[f"u{i}" for i in range(90)])
    kinds = (
        GateCriterion("no_worse", "positive_outcome", "non_inferiority", 0.1),
        GateCriterion("no_more_corrections", "correction", "non_inferiority", 0.1),
        GateCriterion("better", "positive_outcome", "superiority", 0.0),
    )
    asked = replace(criteria, gates=kinds)
    tables = run(outcomes, asked)
    rows = {row["criterion"]: row for row in decide_gates(tables, asked, B, A).iter_rows(named=True)}
    # The largest likelihood under a loss of 10 points, looked for on a fine grid, gives the variance.
    old = np.linspace(0.1 + 1e-9, 1 - 1e-9, 400_001)
    new = old - 0.1
    fit = 27 * np.log(new) + 3 * np.log(1 - new) + 55 * np.log(old) + 5 * np.log(1 - old)
    p, q = new[fit.argmax()], old[fit.argmax()]
    z = (27 / 30 - 55 / 60 + 0.1) / np.sqrt(p * (1 - p) / 30 + q * (1 - q) / 60)
    assert rows["no_worse"]["p_score"] == pytest.approx(stats.norm.sf(z), abs=1e-5)
    # Corrections are the failures here: the same question, turned so that fewer are better.
    assert rows["no_more_corrections"]["p_score"] == pytest.approx(rows["no_worse"]["p_score"], abs=1e-9)
    assert rows["better"]["p_score"] is None
    lower = rows["no_worse"]["score_lower"]
    assert lower < rows["no_worse"]["estimate"]
    assert [row["score_lower"] for row in rows.values()] == pytest.approx([lower] * 3)
    before = decide_gates(tables, asked, B, A).with_columns(as_of=pl.lit(date(2026, 1, 1)))
    again = decide_gates(tables, asked, B, A, decided=before.select(DECIDED))
    assert again["score_lower"].is_null().all()
    assert again["p_score"].is_null().all()
    crowd = run(outcomes.with_columns(user_id=pl.lit("u") + (pl.int_range(90) % 40).cast(pl.String)), asked)
    assert decide_gates(crowd, asked, B, A)["score_lower"].is_null().all()
