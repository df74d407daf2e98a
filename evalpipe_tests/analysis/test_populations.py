"""Populations in what is published: names on rows, weights of strata, slices, checks and words."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalpipe import analysis
from evalpipe.console.freeze import block
from evalpipe.criteria import Criteria
from evalpipe.criteria.model import Sampling
from evalpipe_tests.analysis.conftest import AS_OF, FIRST_DAY, Scored

A, B = "acme · m-a", "acme · m-b"
KINDS = {"scenario=coding": 0.25, "scenario=chat": 0.75}
#: Model, scenario, epoch, successes, sessions.
CELLS = (
    ("m-a", "coding", "e1", 80, 160), ("m-b", "coding", "e1", 30, 40), ("m-a", "coding", "e2", 40, 80),
    ("m-b", "coding", "e2", 60, 80), ("m-a", "chat", "e1", 30, 40), ("m-b", "chat", "e1", 48, 80),
)  # fmt: skip


@pytest.fixture
def window(make_outcomes: Callable[..., pl.DataFrame]) -> pl.DataFrame:
    """Two kinds of work, one of them in two epochs; every session of a user of its own."""
    n = [cell[4] for cell in CELLS]
    model, scenario, epoch = (np.repeat([cell[at] for cell in CELLS], n).tolist() for at in range(3))
    success = np.concatenate([np.arange(cell[4]) < cell[3] for cell in CELLS])
    return make_outcomes(
        model, success, scenario=scenario, routing_epoch=epoch, user_id=[f"u{i:04d}" for i in range(len(model))]
    )


def theta(weights: dict[tuple[str, str], float]) -> dict[str, float]:
    """Means by hand under weights of (scenario, epoch)."""
    rate = {(model, scenario, epoch): x / n for model, scenario, epoch, x, n in CELLS}
    return {
        f"acme · {model}": sum(w * rate[model, scenario, epoch] for (scenario, epoch), w in weights.items())
        for model in ("m-a", "m-b")
    }


def checks(tables: Scored, name: str = "population") -> dict[str, dict[str, Any]]:
    found = tables["analysis.diagnostics"].filter(check_name=name)
    return {row["subject"]: row for row in found.iter_rows(named=True)}


@pytest.mark.parametrize("population", ["business", "fixed:2026-q1"])
def test_declared_weights_make_the_estimate_and_their_name_stands_on_every_row(
    window: pl.DataFrame, run: Callable[..., Scored], number: Callable[..., dict[str, Any]],
    with_estimand: Callable[..., Criteria], population: str,
) -> None:  # fmt: skip
    tables = run(window, with_estimand(population=population, population_weights=KINDS))
    # Epochs of a kind share its weight by the traffic of the window: 200 and 160 sessions.
    by_hand = theta({("coding", "e1"): 0.25 * 200 / 360, ("coding", "e2"): 0.25 * 160 / 360, ("chat", "e1"): 0.75})
    for version, mean in by_hand.items():
        row = number(tables, version)
        assert row["theta"] == pytest.approx(mean, abs=1e-12)
        assert row["estimate"] == pytest.approx(mean - sum(by_hand.values()) / 2, abs=1e-12)
        assert (row["population"], row["support_share"], row["rank_lo"] is None) == (population, 1.0, False)
    assert set(tables["analysis.net_improvement"]["population"]) == {population}
    own = tables["analysis.estimators"].filter(pl.col("estimator") == "user_bootstrap")
    assert set(own["population"]) == {population}
    weights = tables["analysis.strata"].filter(version=A).sort("stratum")
    assert weights["weight"].drop_nulls().sum() == pytest.approx(1.0)
    # In a slice of one kind its epochs weigh as the traffic does.
    inside = theta({("coding", "e1"): 200 / 360, ("coding", "e2"): 160 / 360})
    assert number(tables, A, slice_name="scenario=coding")["theta"] == pytest.approx(inside[A], abs=1e-12)
    told = checks(tables)
    assert told["outside"]["value"] == told["absent"]["value"] == 0.0
    assert told["distance"]["value"] == pytest.approx(0.75 - 120 / 480)
    plan = checks(tables, "plan")
    assert "shares of work that the criteria" in plan["estimate"]["detail"]
    assert "its mix is not the one that is weighed" in plan["claims"]["detail"]
    assert population in checks(tables)["outside"]["detail"]


def test_overlap_weighs_what_all_versions_serve(
    window: pl.DataFrame, run: Callable[..., Scored], number: Callable[..., dict[str, Any]],
    with_estimand: Callable[..., Criteria],
) -> None:  # fmt: skip
    tables = run(window, with_estimand(population="overlap"))
    tilt = np.array([1 / (1 / 160 + 1 / 40), 1 / (1 / 80 + 1 / 80), 1 / (1 / 40 + 1 / 80)])
    w = tilt / tilt.sum()
    by_hand = theta({("coding", "e1"): w[0], ("coding", "e2"): w[1], ("chat", "e1"): w[2]})
    assert number(tables, B)["theta"] == pytest.approx(by_hand[B], abs=1e-12)
    assert number(tables, B)["population"] == "overlap"
    traffic = np.array([200, 160, 120]) / 480
    assert set(checks(tables)) == {"distance"}
    assert checks(tables)["distance"]["value"] == pytest.approx(np.abs(w - traffic).sum() / 2)
    assert "rarely serves counts less" in checks(tables, "plan")["claims"]["detail"]


def test_work_without_a_weight_is_in_no_number_over_all_traffic(
    window: pl.DataFrame, run: Callable[..., Scored], number: Callable[..., dict[str, Any]],
    with_estimand: Callable[..., Criteria],
) -> None:  # fmt: skip
    tables = run(window, with_estimand(population="business", population_weights={"scenario=coding": 1.0}))
    inside = theta({("coding", "e1"): 200 / 360, ("coding", "e2"): 160 / 360})
    assert number(tables, A)["theta"] == pytest.approx(inside[A], abs=1e-12)
    assert number(tables, A)["n_sessions"] == 280, "sessions are counted, whatever they weigh"
    chat = number(tables, A, slice_name="scenario=chat")
    assert (chat["status"], chat["reasons"]) == ("unavailable", ["outside_population"])
    assert chat["estimate"] is None
    outside = checks(tables)["outside"]
    assert (outside["value"], outside["status"]) == (120 / 480, "inconclusive")
    strata = tables["analysis.strata"].filter(stratum="scenario=chat|routing_epoch=e1")
    assert strata["is_kept"].to_list() == [False, False]
    assert strata["weight"].null_count() == 2


def test_weight_that_the_window_does_not_meet_is_told_and_withholds_ranks(
    window: pl.DataFrame, run: Callable[..., Scored], number: Callable[..., dict[str, Any]],
    with_estimand: Callable[..., Criteria],
) -> None:  # fmt: skip
    weights = {"scenario=coding": 0.5, "scenario=chat": 0.2, "scenario=office": 0.3}
    tables = run(window, with_estimand(population="fixed:1", population_weights=weights))
    row = number(tables, A)
    assert row["support_share"] == pytest.approx(0.7)
    assert (row["status"], row["reasons"][0], row["rank_lo"]) == ("inconclusive", "low_support", None)
    mix = {("coding", "e1"): 5 * 200 / 360, ("coding", "e2"): 5 * 160 / 360, ("chat", "e1"): 2.0}
    assert row["theta"] == pytest.approx(theta({k: v / 7 for k, v in mix.items()})[A], abs=1e-12)
    assert checks(tables)["absent"]["value"] == pytest.approx(0.3)
    assert number(tables, A, slice_name="scenario=chat")["support_share"] == 1.0
    support = checks(tables, "support_share")["positive_outcome"]
    assert support["detail"].startswith("70.0% of the weight")


def test_weights_of_nothing_in_the_window_leave_no_comparison(
    window: pl.DataFrame, run: Callable[..., Scored], number: Callable[..., dict[str, Any]],
    with_estimand: Callable[..., Criteria],
) -> None:  # fmt: skip
    tables = run(window, with_estimand(population="business", population_weights={"scenario=office": 1.0}))
    assert number(tables, A)["reasons"] == ["no_common_support"]
    assert checks(tables)["outside"]["value"] == 1.0
    assert checks(tables)["distance"]["status"] == "unavailable"


def test_weights_of_epochs_are_taken_as_they_stand(
    window: pl.DataFrame, run: Callable[..., Scored], number: Callable[..., dict[str, Any]],
    with_estimand: Callable[..., Criteria],
) -> None:  # fmt: skip
    cells = {("coding", "e1"): 0.1, ("coding", "e2"): 0.2, ("chat", "e1"): 0.7}
    weights = {f"scenario={kind}|routing_epoch={epoch}": w for (kind, epoch), w in cells.items()}
    tables = run(window, with_estimand(population="business", population_weights=weights))
    assert number(tables, B)["theta"] == pytest.approx(theta(cells)[B], abs=1e-12)


def test_the_window_s_own_mix_as_weights_says_what_traffic_says(
    window: pl.DataFrame, run: Callable[..., Scored], with_estimand: Callable[..., Criteria]
) -> None:
    kinds = analysis.frozen_weights(window, with_estimand())
    assert kinds == {"scenario=chat": 0.25, "scenario=coding": 0.75}
    frozen = run(window, with_estimand(population="fixed:1", population_weights=kinds))
    plain = run(window, with_estimand())
    # Draws follow from the measurement, so what is drawn differs.
    columns = {
        "net_improvement": ("estimate", "lo", "hi", "theta"),
        "pairs": ("difference", "se"),
        "nights": ("so_far",),
    }
    for name, numbers in columns.items():
        one, other = (tables[f"analysis.{name}"].select(numbers).to_numpy() for tables in (frozen, plain))
        np.testing.assert_allclose(one, other, atol=1e-12, err_msg=name)
    assert checks(plain) == {}


def test_frozen_weights_sum_to_one_however_they_are_rounded(
    make_outcomes: Callable[..., pl.DataFrame], with_estimand: Callable[..., Criteria]
) -> None:
    rows = make_outcomes(["m-a"] * 7, np.ones(7), scenario=["a", "b", "c", "a", "b", "c", 'd "q"'])
    weights = analysis.frozen_weights(rows, with_estimand())
    assert list(weights) == ["scenario=a", "scenario=b", "scenario=c", 'scenario=d "q"']
    assert sum(round(w * 10**6) for w in weights.values()) == 10**6
    assert weights["scenario=a"] == pytest.approx(2 / 7, abs=1e-6)
    text = block("q1", date(2026, 1, 1), date(2026, 3, 31), weights)
    assert tomllib.loads("[estimand]\n" + text)["estimand"] == {
        "population": "fixed:q1", "population_weights": weights
    }  # fmt: skip
    assert analysis.frozen_weights(rows, with_estimand(strata=("routing_epoch",))) == {}
    assert analysis.frozen_weights(rows.clear(), with_estimand()) == {}


def test_a_drawn_baseline_is_counted_for_all_that_it_stands_for(
    window: pl.DataFrame, with_estimand: Callable[..., Criteria]
) -> None:
    drawn = with_estimand(sampling=(Sampling(0.25, "scenario", "chat"),))
    n = {kind: sum(cell[4] for cell in CELLS if cell[1] == kind) for kind in ("coding", "chat")}
    share = 4 * n["chat"] / (4 * n["chat"] + n["coding"])
    weights = analysis.frozen_weights(window, drawn)
    assert weights["scenario=chat"] == pytest.approx(share, abs=1e-6)
    assert sum(weights.values()) == pytest.approx(1.0, abs=1e-12)
    without = with_estimand(sampling=(Sampling(0.0, "scenario", "chat"),))
    assert analysis.frozen_weights(window, without) == {"scenario=coding": 1.0}


def test_a_bridge_weighs_both_sides_as_declared(window: pl.DataFrame, with_estimand: Callable[..., Criteria]) -> None:
    criteria = with_estimand(population="business", population_weights=KINDS)
    stamp = analysis.Stamp.of(criteria, as_of=AS_OF, window="28d", start=FIRST_DAY, end=date(2026, 2, 1))
    new = window.with_columns(measurement=pl.lit(criteria.measurement))
    old = window.with_columns(measurement=pl.lit("before"), positive_outcome_num=1.0 - pl.col("positive_outcome_num"))
    found = analysis.bridged(old, new, criteria, stamp).sort("version")
    by_hand = theta({("coding", "e1"): 0.25 * 200 / 360, ("coding", "e2"): 0.25 * 160 / 360, ("chat", "e1"): 0.75})
    assert found["new_level"].to_list() == pytest.approx([by_hand[A], by_hand[B]])
    assert found["old_level"].to_list() == pytest.approx([1 - by_hand[A], 1 - by_hand[B]])


def test_ablation_weighs_as_declared(window: pl.DataFrame, with_estimand: Callable[..., Criteria]) -> None:
    criteria = with_estimand(population="business", population_weights=KINDS)
    stamp = analysis.Stamp.of(criteria, as_of=AS_OF, window="28d", start=FIRST_DAY, end=date(2026, 2, 1))
    scores = window.select("session_id", hard_score=pl.lit(0.0), semantic_score=pl.col("positive_outcome_num"))
    arms = pl.DataFrame(schema={})
    found = analysis.ablation(window, scores, replace(criteria), stamp, arms=arms).filter(mask="semantic", version=A)
    by_hand = theta({("coding", "e1"): 0.25 * 200 / 360, ("coding", "e2"): 0.25 * 160 / 360, ("chat", "e1"): 0.75})
    assert found["estimate"].item() == pytest.approx(by_hand[A] - sum(by_hand.values()) / 2, abs=1e-12)
