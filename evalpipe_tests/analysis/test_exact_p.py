"""How a p-value was found, and exact ones against all arrangements written out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalpipe.criteria import Criteria

Run = Callable[..., dict[str, pl.DataFrame]]
B = "acme · b"
#: Outcomes and versions in two strata of six sessions.
Y = np.array([1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 0])
IS_B = np.array([1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0], dtype=bool)


@pytest.fixture
def small(make_outcomes: Callable[..., pl.DataFrame]) -> pl.DataFrame:
    return make_outcomes(
        np.where(IS_B, "b", "a").tolist(), Y, scenario=["chat"] * 6 + ["coding"] * 6,
        user_id=[f"u{i}" for i in range(12)],
    )  # fmt: skip


def arrangements() -> np.ndarray:
    """All ways to give three of six sessions of each stratum to b, (400, 12)."""
    halves = [np.isin(np.arange(6), chosen) for chosen in combinations(range(6), 3)]
    return np.array([np.concatenate(pair) for pair in product(halves, halves)])


def gap(is_b: np.ndarray) -> float:
    """Half the mean difference of the two strata, which have half the traffic each."""
    parts = [slice(0, 6), slice(6, 12)]
    return float(np.mean([Y[part][is_b[part]].mean() - Y[part][~is_b[part]].mean() for part in parts]) / 2)


def test_all_arrangements_of_a_small_window_are_listed(
    small: pl.DataFrame, run: Run, with_estimand: Callable[..., Criteria]
) -> None:
    tables = run(small, with_estimand(min_sessions_per_version=2))
    every = np.array([gap(one) for one in arrangements()])
    found = tables["analysis.net_improvement"].filter(
        pl.col("version") == B, pl.col("slice") == "all", pl.col("metric") == "positive_outcome"
    )
    assert (found["p_method"][0], found["n_permutations"][0]) == ("exact", 400)
    listed = tables["analysis.estimators"].filter(estimator="exact_permutation", version=B).row(0, named=True)
    assert listed["estimate"] == pytest.approx(gap(IS_B)) == pytest.approx(found["estimate"][0])
    p = float((np.abs(every) >= abs(gap(IS_B)) - 1e-12).mean())
    assert listed["p"] == pytest.approx(p)
    # Of two versions the one is as far from the average as the other.
    assert listed["p_adj"] == pytest.approx(p)
    assert (listed["lo"], listed["status"], listed["reasons"]) == (None, "ok", ["descriptive"])
    totals = np.array([Y[one].sum() for one in arrangements()])
    recipe = tables["analysis.estimators"].filter(estimator="seed004.net_improvement", version=B)
    away = np.abs(totals - totals.mean()) >= abs(Y[IS_B].sum() - totals.mean()) - 1e-12
    assert recipe["p"][0] == pytest.approx(away.mean())


def test_listed_arrangements_are_weighed_as_the_criteria_weigh(
    small: pl.DataFrame, run: Run, with_estimand: Callable[..., Criteria]
) -> None:
    weights = {"scenario=chat": 0.9, "scenario=coding": 0.1}
    weighed = with_estimand(
        min_sessions_per_version=2, population="fixed:spring", population_weights=weights, min_support_share=0.0
    )
    tables = run(small, weighed)

    def gap_weighed(is_b: np.ndarray) -> float:
        parts = [slice(0, 6), slice(6, 12)]
        return float(
            sum(
                w * (Y[part][is_b[part]].mean() - Y[part][~is_b[part]].mean())
                for w, part in zip((0.9, 0.1), parts, strict=True)
            )
            / 2
        )

    every, own = np.array([gap_weighed(one) for one in arrangements()]), gap_weighed(IS_B)
    assert own != pytest.approx(gap(IS_B))
    listed = tables["analysis.estimators"].filter(estimator="exact_permutation", version=B).row(0, named=True)
    assert listed["population"] == "fixed:spring"
    assert listed["estimate"] == pytest.approx(own)
    assert listed["p"] == pytest.approx(float((np.abs(every) >= abs(own) - 1e-12).mean()))


@pytest.mark.parametrize(("design", "method"), [("randomized_session", "table"), ("observational", None)])
def test_a_p_value_says_how_it_was_found(
    trial: Callable[..., pl.DataFrame], run: Run, with_estimand: Callable[..., Criteria], design: str, method: Any
) -> None:
    tables = run(trial({"a": 0.5, "b": 0.6}, n=300), with_estimand(design=design, slices=()))
    rows = tables["analysis.net_improvement"]
    assert set(rows["p_method"]) == {method}
    assert rows["p_perm"].is_null().to_list() == rows["p_method"].is_null().to_list()
    other = tables["analysis.estimators"]
    assert other.filter(estimator="exact_permutation").is_empty()
    assert other.filter(estimator="seed004.net_improvement")["p"].is_null().all() == (method is None)
