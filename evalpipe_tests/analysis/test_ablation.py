"""Ablation: families of signals held against each other on sessions whose scores are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalpipe import analysis
from evalpipe.contracts import render
from evalpipe.contracts.tables.signals import ROUTING_ARMS, SESSION_SCORES
from evalpipe.criteria import Criteria
from evalpipe_tests.analysis.conftest import AS_OF, FIRST_DAY

#: Mean score of each model by the environment and by words: they order the models the other way round.
TRUTH = {"m-1": (0.0, 1.0), "m-2": (0.3, 0.5), "m-3": (0.6, 0.0), "m-4": (0.9, -0.5)}


def made(criteria: Criteria, make_outcomes: Callable[..., pl.DataFrame], **columns: list[Any]) -> pl.DataFrame:
    models = [f"m-{1 + i % 4}" for i in range(800)]
    outcomes = make_outcomes(models, np.zeros(800), **columns)
    rng = np.random.default_rng(2)
    hard, said = (np.array([TRUTH[m][side] for m in models]) + rng.normal(0, 0.1, 800) for side in (0, 1))
    scores = pl.DataFrame(
        {"session_id": outcomes["session_id"], "measurement": outcomes["measurement"], "hard_score": hard, "semantic_score": said},
        schema=render.polars_schema(SESSION_SCORES),
    )  # fmt: skip
    stamp = analysis.Stamp.of(criteria, as_of=AS_OF, window="28d", start=FIRST_DAY, end=AS_OF)
    return analysis.ablation(outcomes, scores, criteria, stamp, arms=render.empty(ROUTING_ARMS))


@pytest.fixture
def rows(criteria: Criteria, make_outcomes: Callable[..., pl.DataFrame]) -> pl.DataFrame:
    return made(criteria, make_outcomes)


def of(rows: pl.DataFrame, mask: str) -> list[dict[str, Any]]:
    return rows.filter(mask=mask).sort("place").to_dicts()


def test_each_family_has_its_order_and_its_agreement_with_all(rows: pl.DataFrame) -> None:
    assert [row["version"][-3:] for row in of(rows, "hard")] == ["m-4", "m-3", "m-2", "m-1"]
    assert [row["version"][-3:] for row in of(rows, "semantic")] == ["m-1", "m-2", "m-3", "m-4"]
    # Words weigh more here, so that all signals order as words do.
    assert {mask: of(rows, mask)[0]["kendall_tau"] for mask in ("all", "hard", "semantic")} == {
        "all": pytest.approx(1.0), "hard": pytest.approx(-1.0), "semantic": pytest.approx(1.0),
    }  # fmt: skip
    assert of(rows, "hard")[0]["top_overlap"] == pytest.approx(2 / 3)
    best = of(rows, "semantic")[0]
    assert best["lo"] < 0.75 < best["hi"]


def test_parts_of_a_shift_add_up(rows: pl.DataFrame) -> None:
    wide = rows.pivot("mask", index="version", values=["estimate", "share_of_shift"])
    total = wide["estimate_hard"] + wide["estimate_semantic"]
    assert np.allclose(total, wide["estimate_all"], atol=1e-9)
    assert np.allclose(wide["share_of_shift_hard"] + wide["share_of_shift_semantic"], 1.0)


def test_an_order_needs_common_traffic_and_a_row_its_status(
    rows: pl.DataFrame, criteria: Criteria, make_outcomes: Callable[..., pl.DataFrame]
) -> None:
    assert set(rows["status"]) == {"ok"}
    # Three of four sessions of a version are of work that no other does.
    apart = [f"only-{i % 4}" if i // 4 % 4 else "coding" for i in range(800)]
    thin = made(criteria, make_outcomes, scenario=apart)
    assert thin["estimate"].null_count() == 0
    assert set(thin["status"]) == {"inconclusive"}
    assert set(thin["reasons"].explode()) == {"low_support"}
    for column in ("place", "share_of_shift", "kendall_tau", "top_overlap"):
        assert thin[column].null_count() == thin.height


def test_a_failed_design_is_told(criteria: Criteria, make_outcomes: Callable[..., pl.DataFrame]) -> None:
    # Who writes Chinese is served by two versions only: that was no lottery.
    found = made(criteria, make_outcomes, language=["zh" if i % 4 < 2 else "en" for i in range(800)])
    assert set(found["status"]) == {"suspect"}
    assert set(found["reasons"].explode()) == {"balance"}
