"""A/A replay on outcome rows, and sessions that people gave up on."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalpipe.criteria import Criteria, load
from evalpipe.criteria.model import GateCriterion
from evalpipe.validation import n_replays, replay
from evalpipe.validation.guards import abandonment
from evalpipe.validation.replay import largest_version
from evalpipe.validation.stream import stream
from evalpipe_tests.analysis.conftest import outcome_rows


def rows(criteria: Criteria, n: int = 600, seed: int = 1, **columns: list[Any]) -> pl.DataFrame:
    """Two versions, of which m-1 has four of five users; users differ."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, n // 3, n)
    model = np.where(user % 5 == 0, "m-2", "m-1").tolist()
    success = rng.random(n) < np.where(rng.random(n // 3) < 0.5, 0.3, 0.7)[user]
    given = {"user_id": [f"u{i:04d}" for i in user], **columns}
    return outcome_rows(model, success, criteria.measurement, **given)


@pytest.fixture
def criteria() -> Criteria:
    loaded = load("default", extractors="x")
    return replace(loaded, estimand=replace(loaded.estimand, simultaneous_draws=1_000))


def test_halves_of_one_version_are_judged_by_the_gates(criteria: Criteria) -> None:
    outcomes, done = rows(criteria), list[int]()
    found = replay(outcomes, criteria, 80, 1, done.append)
    assert [one.quantity for one in found] == [
        "false_fail, outcome_no_worse", "inconclusive, outcome_no_worse",
        "false_fail, corrections_no_worse", "inconclusive, corrections_no_worse", "false_fail, any gate",
    ]  # fmt: skip
    assert all(one.replications == 20 for one in found)
    assert sum(done) == 20
    # 480 sessions cannot show that a loss stays under 5 points: the gate mostly says so, and hardly ever fails.
    by_name = {one.quantity: one for one in found}
    assert by_name["inconclusive, outcome_no_worse"].estimate > 0.5
    assert by_name["false_fail, any gate"].estimate <= 0.1
    n_users = outcomes.filter(model="m-1")["user_id"].n_unique()
    assert found[0].note == f"acme · m-1: {n_users} users, {outcomes.filter(model='m-1').height} sessions"
    assert replay(outcomes, criteria, 80, 1) == found
    assert replay(outcomes.sample(fraction=1.0, shuffle=True, seed=3), criteria, 80, 1) == found


def test_a_gate_that_fails_at_random_is_seen(criteria: Criteria, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("evalpipe.validation.replay")
    real = module.decide_gates
    calls = iter(range(1_000))

    def careless(*args: Any) -> pl.DataFrame:
        verdict = "fail" if next(calls) % 4 == 0 else "pass"
        decided: pl.DataFrame = real(*args)
        return decided.with_columns(verdict=pl.lit(verdict))

    monkeypatch.setattr(module, "decide_gates", careless)
    found = {one.quantity: one for one in replay(rows(criteria), criteria, 160, 1)}
    assert found["false_fail, any gate"].estimate == pytest.approx(0.25)
    assert found["false_fail, any gate"].is_met is False


def test_superiority_errs_by_passing(criteria: Criteria) -> None:
    better = (GateCriterion("better", "positive_outcome", "superiority", 0.0),)
    found = replay(rows(criteria), replace(criteria, gates=better), 200, 1)
    assert [one.quantity for one in found] == ["false_pass, better", "inconclusive, better"]
    assert found[0].estimate < 0.25


def test_unsettled_sessions_are_no_evidence(criteria: Criteria) -> None:
    outcomes = rows(criteria).with_columns(is_settled=pl.lit(value=False))
    (found,) = replay(outcomes, criteria, 80, 1)
    assert (found.is_met, found.replications, found.note) == (None, 0, "no settled session has a version")


@pytest.mark.parametrize(("n", "words"), [(30, "20 and 40 are needed"), (0, "no settled session has a version")])
def test_too_few_users_say_so(criteria: Criteria, n: int, words: str) -> None:
    (found,) = replay(rows(criteria).head(n), criteria, 80, 1)
    assert np.isnan(found.estimate)
    assert words in found.note


def test_without_gates_there_is_nothing_to_replay(criteria: Criteria) -> None:
    (found,) = replay(rows(criteria), replace(criteria, gates=()), 80, 1)
    assert found.note == "the criteria declare no gate"


def test_a_reference_that_is_named_does_not_hinder(criteria: Criteria) -> None:
    named = replace(criteria, estimand=replace(criteria.estimand, reference="model:acme · m-2"))
    found = replay(rows(named), named, 80, 1)
    assert found == replay(rows(criteria), criteria, 80, 1)


def test_the_largest_version_is_the_one_with_most_users(criteria: Criteria) -> None:
    chosen = largest_version(rows(criteria), criteria)
    assert chosen is not None
    assert chosen.label == "acme · m-1"
    assert chosen.population.n == rows(criteria).filter(model="m-1").height


def test_many_sessions_are_replayed_less_often() -> None:
    assert n_replays(2_000, 1_000) == 500
    assert n_replays(2_000, 1_000_000) == 20
    assert n_replays(20, 0) == 5


def test_abandoned_sessions_stay_in_the_denominator() -> None:
    kept, dropped = abandonment(4, stream(1, "abandonment"))
    assert abs(kept.estimate) < 0.04
    assert abs(dropped.estimate) > 0.1, "the mistake must be there to be avoided"
    assert dropped.is_met is None
