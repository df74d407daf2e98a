from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from evalpipe.analysis.score import SIDE_PERMUTATIONS, SIDE_SLICE_PERMUTATIONS, replicates
from evalpipe.contracts import render
from evalpipe.contracts.tables import TABLES
from evalpipe.criteria import Criteria, load
from evalpipe.inference import newcombe
from evalpipe.store.manifest import STEP_TABLES

Trial = Callable[..., pl.DataFrame]
Run = Callable[..., dict[str, pl.DataFrame]]
Number = Callable[..., dict[str, Any]]
A, B, C = "acme · a", "acme · b", "acme · c"


def test_planted_effects_are_inside_their_intervals(
    trial: Trial, run: Run, number: Number, with_estimand: Callable[..., Criteria]
) -> None:
    """30 trials of 3 versions: of 90 intervals of 95 %, some 4 miss; 12 or more would be 1 in 1,000."""
    criteria = with_estimand(metrics=("positive_outcome",), slices=())
    truth = {A: -0.10, B: 0.02, C: 0.08}
    missed = 0
    for seed in range(30):
        tables = run(trial({"a": 0.5, "b": 0.62, "c": 0.68}, n=450, seed=seed), criteria)
        for version, effect in truth.items():
            row = number(tables, version)
            missed += not row["lo"] <= effect <= row["hi"]
    assert missed < 12


def test_equal_versions_are_seldom_told_apart(trial: Trial, run: Run, with_estimand: Callable[..., Criteria]) -> None:
    """30 trials without any effect: a pair is told apart in 5 % of them; 6 would be 1 in 300."""
    criteria = with_estimand(metrics=("positive_outcome",), slices=())
    false_alarms = 0
    for seed in range(30):
        tables = run(trial({"a": 0.6, "b": 0.6, "c": 0.6}, n=450, seed=seed), criteria)
        false_alarms += bool(tables["analysis.pairs"]["is_better"].any())
    assert false_alarms < 6


def test_a_large_effect_is_found(trial: Trial, run: Run, criteria: Criteria, number: Number) -> None:
    tables = run(trial({"a": 0.4, "b": 0.8}, n=900), criteria)
    best, worst = number(tables, B), number(tables, A)
    assert (best["rank_lo"], best["rank_hi"], worst["rank_lo"], worst["rank_hi"]) == (1, 1, 2, 2)
    assert best["letters"] != worst["letters"]
    assert best["p_perm"] == pytest.approx(1 / 200)
    pair = tables["analysis.pairs"].filter((pl.col("version") == B) & (pl.col("metric") == "positive_outcome"))
    assert pair.filter(pl.col("slice") == "all")["is_better"].to_list() == [True]


def test_strata_turn_a_reversal_right(make_outcomes: Trial, run: Run, criteria: Criteria, number: Number) -> None:
    """Simpson: a is better at both kinds of work and looks worse, because it gets the hard work."""
    rng = np.random.default_rng(7)
    model, scenario, p = [], [], []
    for name, kind, n, rate in (
        ("a", "hard", 400, 0.45),
        ("a", "easy", 100, 0.90),
        ("b", "hard", 100, 0.30),
        ("b", "easy", 400, 0.75),
    ):
        model += [name] * n
        scenario += [kind] * n
        p += [rate] * n
    users = [f"u{i}" for i in rng.integers(0, 400, 1000)]
    tables = run(make_outcomes(model, rng.random(1000) < np.array(p), scenario=scenario, user_id=users), criteria)
    a, b = number(tables, A), number(tables, B)
    assert a["raw_rate"] < b["raw_rate"]
    assert (a["raw_rank"], b["raw_rank"]) == (2, 1)
    assert (a["rank_hi"], b["rank_lo"]) == (1, 2)
    assert a["lo"] > 0 > b["hi"]


def test_a_metric_where_fewer_is_better_is_ranked_the_other_way(
    trial: Trial, run: Run, criteria: Criteria, number: Number
) -> None:
    """Corrections are the complement of successes here: same ranks and letters, opposite signs."""
    tables = run(trial({"a": 0.4, "b": 0.6, "c": 0.8}), criteria)
    for version in (A, B, C):
        good, bad = number(tables, version), number(tables, version, "correction")
        assert bad["estimate"] == pytest.approx(-good["estimate"])
        assert [bad[name] for name in ("rank_lo", "rank_hi", "letters", "raw_rank")] == [
            good[name] for name in ("rank_lo", "rank_hi", "letters", "raw_rank")
        ]


def test_every_table_keeps_its_contract_and_order(trial: Trial, run: Run, criteria: Criteria) -> None:
    tables = run(trial({"a": 0.5, "b": 0.6}, scenarios={"coding": 0.0, "chat": 0.1}), criteria)
    # These read more of a session than its outcome, which the step gives them.
    assert sorted(tables) == sorted(
        set(STEP_TABLES["analysis"])
        - {"analysis.ablation", "analysis.bridges", "analysis.corrected_rates", "analysis.recovery_curves"}
        - {"analysis.concordance", "analysis.layer_agreement"}
    )
    for name, table in tables.items():
        # Tasks that two versions share need a controlled task set, rates of all traffic a drawn sample.
        assert table.is_empty() == (name in ("analysis.paired_tasks", "analysis.drawn_rates"))
        assert_frame_equal(render.conform(TABLES[name], table).sort(TABLES[name].sort), table)
        assert set(table["measurement"]) <= {criteria.measurement}


def test_there_is_a_row_for_every_metric_slice_and_version(trial: Trial, run: Run, criteria: Criteria) -> None:
    rows = run(trial({"a": 0.5, "b": 0.6}, scenarios={"coding": 0.0, "chat": 0.1}), criteria)[
        "analysis.net_improvement"
    ]
    assert set(rows["slice"]) == {"all", "scenario=coding", "scenario=chat"}
    assert rows.height == 2 * 3 * 2


def test_a_slice_is_scored_on_its_own_sessions(trial: Trial, run: Run, criteria: Criteria, number: Number) -> None:
    outcomes = trial({"a": 0.3, "b": 0.6}, scenarios={"coding": 0.0, "chat": 0.3}, n=1200)
    tables = run(outcomes, criteria)
    only = run(outcomes.filter(pl.col("scenario") == "chat"), criteria)
    names = ("estimate", "lo", "hi", "se", "theta", "n_sessions")
    for version in (A, B):
        inside, alone = number(tables, version, slice_name="scenario=chat"), number(only, version)
        assert [inside[name] for name in names] == pytest.approx([alone[name] for name in names])


def test_strata_rows_add_up(trial: Trial, run: Run, criteria: Criteria, number: Number) -> None:
    tables = run(trial({"a": 0.5, "b": 0.6}, scenarios={"coding": 0.0, "chat": 0.1}), criteria)
    strata = tables["analysis.strata"]
    assert strata["stratum"].unique().sort().to_list() == [
        "scenario=chat|routing_epoch=e1", "scenario=coding|routing_epoch=e1",
    ]  # fmt: skip
    for version in (A, B):
        mine = strata.filter(pl.col("version") == version)
        assert mine["weight"].sum() == pytest.approx(1.0)
        assert (mine["weight"] * mine["mean"]).sum() == pytest.approx(number(tables, version)["theta"])
        assert mine["n_sessions"].sum() == number(tables, version)["n_sessions"]
    assert strata.group_by("stratum").agg(pl.col("share").sum())["share"].to_list() == pytest.approx([1.0, 1.0])


def test_the_interval_of_a_share_stays_a_share(trial: Trial, run: Run, criteria: Criteria, number: Number) -> None:
    tables = run(trial({"a": 0.02, "b": 0.98}, n=200), criteria)
    low, high = number(tables, A), number(tables, B)
    assert 0 <= low["theta_lo"] < low["theta"] < 0.1
    assert 0.9 < high["theta"] < high["theta_hi"] <= 1


def test_a_named_version_may_be_the_reference(
    trial: Trial, run: Run, with_estimand: Callable[..., Criteria], number: Number
) -> None:
    criteria = with_estimand(reference=f"model:{A}")
    tables = run(trial({"a": 0.4, "b": 0.6}), criteria)
    assert number(tables, A)["estimate"] == 0
    pair = tables["analysis.pairs"].filter(
        (pl.col("version") == B) & (pl.col("metric") == "positive_outcome") & (pl.col("slice") == "all")
    )
    assert number(tables, B)["estimate"] == pytest.approx(pair["difference"].item())
    assert number(tables, B)["reference"] == f"model:{A}"


def test_versions_scored_on_their_own_mix_are_not_ranked(
    trial: Trial, run: Run, with_estimand: Callable[..., Criteria]
) -> None:
    criteria = with_estimand(population="own_share")
    tables = run(trial({"a": 0.3, "b": 0.8}), criteria)
    rows = tables["analysis.net_improvement"]
    assert rows["estimate"].is_not_null().all()
    assert rows["rank_lo"].is_null().all()
    assert tables["analysis.pairs"].is_empty()


def test_the_input_order_changes_nothing(trial: Trial, run: Run, criteria: Criteria) -> None:
    outcomes = trial({"a": 0.5, "b": 0.6}, scenarios={"coding": 0.0, "chat": 0.1})
    first, second = run(outcomes, criteria), run(outcomes.sample(fraction=1.0, shuffle=True, seed=3), criteria)
    for name, table in first.items():
        assert_frame_equal(table, second[name], check_exact=True)


def test_a_seed_depends_on_the_question_only(trial: Trial, run: Run, criteria: Criteria, number: Number) -> None:
    rows = run(trial({"a": 0.5, "b": 0.6}), criteria)
    other = run(trial({"a": 0.5, "b": 0.6}, seed=2), criteria)
    assert number(rows, A)["seed"] == number(other, A)["seed"] == number(rows, B)["seed"]
    assert number(rows, A)["seed"] != number(rows, A, "correction")["seed"]
    assert number(rows, A)["seed"] != number(rows, A, slice_name="scenario=coding")["seed"]
    assert number(rows, A)["seed"] >= 0


def test_the_headline_gets_the_replicates_that_criteria_ask_for(trial: Trial, run: Run, number: Number) -> None:
    criteria = load("default", extractors="x")
    assert replicates("positive_outcome", "scenario=x", criteria) == criteria.estimand.permutations
    assert replicates("correction", "all", criteria) == SIDE_PERMUTATIONS
    assert replicates("correction", "scenario=x", criteria) == SIDE_SLICE_PERMUTATIONS
    changes = {"permutations": 99, "metrics": ("positive_outcome",), "design": "randomized_session"}
    few = replace(criteria, estimand=replace(criteria.estimand, **changes))
    assert replicates("correction", "all", few) == 99
    assert number(run(trial({"a": 0.5, "b": 0.6}), few), A)["n_permutations"] == 99


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_legal_outcomes_give_legal_rows(
    make_outcomes: Trial, run: Run, with_estimand: Callable[..., Criteria], data: st.DataObject
) -> None:
    """Whatever is sparse, absent or constant: rows keep their contract, and net improvements sum to 0."""
    criteria = with_estimand(metrics=("positive_outcome",), min_sessions_per_version=3, permutations=99)
    n = data.draw(st.integers(0, 60))
    pick = lambda values: data.draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))  # noqa: E731
    known = pick([1.0, 1.0, None])
    success = np.array(pick([0.0, 1.0]))
    outcomes = make_outcomes(
        pick(["a", "b", "c", None]),
        success,
        user_id=pick(["u1", "u2", "u3", "u4", "u5", None]),
        scenario=pick(["coding", "chat"]),
        routing_epoch=pick(["e1", "e2"]),
        language=pick(["en", "zh", "und"]),
        positive_outcome_num=[None if k is None else s for k, s in zip(known, success, strict=True)],
        positive_outcome_den=known,
    )
    rows = run(outcomes, criteria)["analysis.net_improvement"]
    shown = rows.filter(pl.col("estimate").is_not_null())
    for total in shown.group_by("slice").agg(pl.col("estimate").sum())["estimate"]:
        assert total == pytest.approx(0.0, abs=1e-9)
    assert (shown["lo"].is_null() | (shown["lo"] <= shown["estimate"])).all()
    assert (rows.filter(pl.col("estimate").is_null())["reasons"].list.len() > 0).all()
    assert shown["theta"].is_between(0, 1).all()


def test_small_pairs_of_single_sessions_have_a_score_interval(make_outcomes: Any, run: Run, criteria: Criteria) -> None:
    success = np.repeat([1, 0, 1, 0], [28, 2, 18, 12])
    outcomes = make_outcomes(["a"] * 30 + ["b"] * 30, success, user_id=[f"u{i}" for i in range(60)])
    pairs = run(outcomes, criteria)["analysis.pairs"].filter(
        pl.col("slice") == "all", pl.col("metric") == "positive_outcome", pl.col("version") == A
    )
    assert (pairs["newcombe_lo"][0], pairs["newcombe_hi"][0]) == newcombe(28, 30, 18, 30)
    # Users who come again leave the clustered interval alone.
    again = run(outcomes.with_columns(user_id=pl.lit("u") + (pl.int_range(60) % 20).cast(pl.String)), criteria)
    assert again["analysis.pairs"]["newcombe_lo"].is_null().all()
