"""Two measurements of one home, held against each other on the sessions that both have scored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from evalpipe import analysis
from evalpipe.criteria import Criteria
from evalpipe.criteria.model import Sampling
from evalpipe_tests.analysis.conftest import AS_OF, FIRST_DAY

Make = Callable[..., pl.DataFrame]
N = 900
LAST_DAY = FIRST_DAY.replace(month=2, day=1)
MODELS = [f"m-{i % 3}" for i in range(N)]
SUCCESS = (np.arange(N) // 3 % 2).astype(float)


@pytest.fixture
def bridged(criteria: Criteria) -> Callable[[pl.DataFrame, pl.DataFrame], pl.DataFrame]:
    def make(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
        stamp = analysis.Stamp.of(criteria, as_of=AS_OF, window="28d", start=FIRST_DAY, end=LAST_DAY)
        return analysis.bridged(old, new, criteria, stamp)

    return make


def measured(make: Make, success: np.ndarray, name: str, **columns: list[object]) -> pl.DataFrame:
    return make(MODELS, success, **columns).with_columns(measurement=pl.lit(name))


def test_a_version_that_the_new_ruler_favours_is_a_break(
    make_outcomes: Make, bridged: Callable[..., pl.DataFrame]
) -> None:
    better = SUCCESS.copy()
    better[(np.arange(N) % 3 == 1) & (np.arange(N) % 5 == 0)] = 1.0
    found = bridged(measured(make_outcomes, SUCCESS, "old"), measured(make_outcomes, better, "new"))
    assert found["version"].to_list() == ["acme · m-0", "acme · m-1", "acme · m-2"]
    assert found["old_measurement"].unique().to_list() == ["old"]
    assert found["shift"].to_list() == pytest.approx([0.0, 0.1, 0.0])
    assert found["mean_shift"].to_list() == pytest.approx([0.1 / 3] * 3)
    assert found["reasons"].to_list() == [["not_equivalent"]] * 3
    assert not found["is_chained"].any()


def test_only_sessions_that_both_know_are_in_the_overlap(
    make_outcomes: Make, bridged: Callable[..., pl.DataFrame]
) -> None:
    old = measured(make_outcomes, SUCCESS, "old")
    new = measured(make_outcomes, SUCCESS, "new", is_settled=[i >= 300 for i in range(N)])
    found = bridged(old, new)
    assert found["n_sessions"].to_list() == [200] * 3
    assert found["is_chained"].all()
    assert found["shift"].to_list() == pytest.approx([0.0] * 3)
    assert bridged(old.clear(), new).is_empty()
    assert bridged(old, new.with_columns(session_id=pl.col("session_id") + "x")).is_empty()
    few = bridged(old.head(100), new.with_columns(is_settled=pl.lit(value=True)))
    assert few["reasons"].to_list() == [["few_sessions"]] * 3
    assert not few["is_chained"].any()


def test_strata_that_another_ruler_names_otherwise_are_its_own(
    make_outcomes: Make, bridged: Callable[..., pl.DataFrame]
) -> None:
    kinds = [["coding", "writing"][i // 3 % 3 == 0] for i in range(N)]
    old = measured(make_outcomes, SUCCESS, "old", scenario=kinds)
    found = bridged(old, measured(make_outcomes, SUCCESS, "new"))
    # Weighted by its own strata each level is the plain mean here: the shares of work are the same.
    assert found["shift"].to_list() == pytest.approx([0.0] * 3, abs=1e-9)
    assert found["n_users"].to_list() == [300] * 3


def test_sessions_that_were_drawn_weigh_alike_under_both(make_outcomes: Make, criteria: Criteria) -> None:
    """How a session was drawn is no matter of measurement, even where the old one calls its kind otherwise."""
    kinds = [["coding", "chat", "other"][i // 3 % 3] for i in range(N)]
    better = SUCCESS.copy()
    is_moved = (np.array(kinds) == "chat") & (np.arange(N) % 4 == 0)
    better[is_moved] = 1.0 - better[is_moved]
    rules = (Sampling(0.1, "scenario", "chat"), Sampling(0.0, "scenario", "other"))
    drawn = replace(criteria, estimand=replace(criteria.estimand, sampling=rules, strata=("routing_epoch",)))
    stamp = analysis.Stamp.of(drawn, as_of=AS_OF, window="28d", start=FIRST_DAY, end=LAST_DAY)
    old = measured(make_outcomes, SUCCESS, "old", scenario=["writing"] * N)
    found = analysis.bridged(old, measured(make_outcomes, better, "new", scenario=kinds), drawn, stamp)
    v = np.select([np.array(kinds) == "chat", np.array(kinds) == "other"], [10.0, 0.0], 1.0)
    models = np.array(MODELS)
    moved = [((v * (better - SUCCESS))[models == k].sum() / v[models == k].sum()) for k in ("m-0", "m-1", "m-2")]
    assert found["shift"].to_list() == pytest.approx(moved)
    assert found["n_sessions"].to_list() == [200] * 3


@pytest.mark.parametrize("method", ["declared", None])
def test_tasks_are_told_apart_as_the_newer_measurement_does(
    make_outcomes: Make, bridged: Callable[..., pl.DataFrame], method: str | None
) -> None:
    """The older one took some work for another kind, or was made before outcomes kept how that was told."""
    tried = {"task_id": [f"t{i // 9}" for i in range(N)], "user_id": [None] * N}
    old = measured(make_outcomes, SUCCESS, "old", scenario=[["data", "coding"][i // 3 % 2] for i in range(N)], **tried)
    old = old.with_columns(scenario_method=pl.lit(method, dtype=pl.String))
    new = measured(make_outcomes, SUCCESS, "new", **tried).with_columns(scenario_method=pl.lit("rule"))
    found = bridged(old, new)
    assert found["n_users"].to_list() == [100] * 3
    assert found["shift"].to_list() == pytest.approx([0.0] * 3)
