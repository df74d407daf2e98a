from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalpipe.criteria import Criteria
from evalpipe.inference.durations.kaplan_meier import kaplan_meier, quantile
from evalpipe_tests.analysis.conftest import FIRST_DAY

Trial = Callable[..., pl.DataFrame]
Run = Callable[..., dict[str, pl.DataFrame]]
A, B = "acme · a", "acme · b"


def rows(tables: dict[str, pl.DataFrame], table: str, **where: Any) -> list[dict[str, Any]]:
    found = tables[f"analysis.{table}"]
    for name, value in where.items():
        found = found.filter(pl.col(name) == value)
    return found.to_dicts()


def test_other_estimators_stand_beside_the_estimate(trial: Trial, run: Run, criteria: Criteria) -> None:
    tables = run(trial({"a": 0.4, "b": 0.6}, n=1_200), criteria)
    own = {row["version"]: row["estimate"] for row in rows(tables, "net_improvement", metric="positive_outcome")}
    names = {row["estimator"] for row in rows(tables, "estimators")}
    assert names == {
        "aipw", "cuped", "ipw", "mantel_haenszel", "overlap", "user_bootstrap",
        "seed000.net_improvement", "seed000.raw_gap", "seed001.net_improvement", "seed004.net_improvement",
    }  # fmt: skip
    for name in ("aipw", "cuped", "ipw", "overlap", "user_bootstrap"):
        for row in rows(tables, "estimators", estimator=name):
            # Where routing is random they all estimate the same.
            assert row["estimate"] == pytest.approx(own[row["version"]], abs=0.02)
            assert row["lo"] < row["estimate"] < row["hi"]
            assert row["status"] == "ok"
    pool, mean = (rows(tables, "estimators", estimator=f"seed00{i}.net_improvement", version=B)[0] for i in (1, 4))
    # Two versions, half the traffic each: the average is half as far away as the other version.
    assert pool["estimate"] == pytest.approx(2 * mean["estimate"], abs=0.02)
    assert (pool["reference"], mean["reference"]) == ("control_pool", "stratum_mean")


def test_earlier_outcomes_of_a_user_save_variance_where_sessions_are_assigned(
    make_outcomes: Any, run: Run, criteria: Criteria
) -> None:
    rng = np.random.default_rng(5)
    n, n_users = 3_000, 300
    user = rng.integers(0, n_users, n)
    luck = rng.random(n_users) < 0.5
    model = ["b" if one else "a" for one in rng.random(n) < 0.5]
    success = rng.random(n) < np.where(luck[user], 0.85, 0.15) + 0.1 * (np.array(model) == "b")
    outcomes = make_outcomes(model, success, user_id=[f"u{i:04d}" for i in user])
    tables = run(outcomes, criteria)
    own = rows(tables, "net_improvement", metric="positive_outcome", slice="all", version=B)[0]
    found = rows(tables, "estimators", estimator="cuped", version=B)[0]
    assert found["hi"] - found["lo"] < 0.92 * (own["hi"] - own["lo"])
    assert found["lo"] < 0.05 < found["hi"]
    assert found["reasons"] == ["descriptive"]
    icc = rows(tables, "diagnostics", check_name="icc")[0]
    assert icc["value"] > 0.3
    # Where users keep a version, what they met before was that version's doing.
    kept = replace(criteria, estimand=replace(criteria.estimand, design="randomized_user"))
    assert rows(run(outcomes, kept), "estimators", estimator="cuped") == []


def test_pooling_over_strata_is_the_plain_difference_in_one_stratum(trial: Trial, run: Run, criteria: Criteria) -> None:
    outcomes = trial({"a": 0.4, "b": 0.6})
    tables = run(outcomes, criteria)
    rate = dict(outcomes.group_by("model").agg(pl.col("positive_outcome_num").mean()).iter_rows())
    found = rows(tables, "estimators", estimator="mantel_haenszel", version=B)[0]
    assert found["estimate"] == pytest.approx(rate["b"] - rate["a"])
    assert "not_clustered" in found["reasons"]


def test_weighting_undoes_routing_by_what_was_known(make_outcomes: Any, run: Run, criteria: Criteria) -> None:
    rng = np.random.default_rng(4)
    n = 4_000
    hard = rng.random(n) < 0.5
    to_a = rng.random(n) < np.where(hard, 0.8, 0.2)
    # Hard work goes to a, which is as good as b at either kind.
    success = rng.random(n) < np.where(hard, 0.3, 0.7)
    outcomes = make_outcomes(
        ["a" if one else "b" for one in to_a], success, language=["zh" if one else "en" for one in hard]
    )
    tables = run(outcomes, replace(criteria, estimand=replace(criteria.estimand, design="observational")))
    raw = rows(tables, "estimators", estimator="seed000.raw_gap", version=A)[0]
    aipw = rows(tables, "estimators", estimator="aipw", version=A)[0]
    assert raw["estimate"] < -0.08
    assert aipw["lo"] < 0 < aipw["hi"]
    assert 0.0 <= aipw["largest_smd"] < 0.1
    plan = {row["subject"]: row["detail"] for row in rows(tables, "diagnostics", check_name="plan")}
    assert "read aipw" in plan["routing"]
    assert "that a version causes a difference" in plan["claims"]


def test_a_ratio_is_not_weighed(trial: Trial, run: Run, criteria: Criteria) -> None:
    changed = replace(criteria, outcomes=replace(criteria.outcomes, headline="correction"))
    tables = run(trial({"a": 0.4, "b": 0.6}).with_columns(correction_den=pl.lit(2.0)), changed)
    found = rows(tables, "estimators", estimator="aipw")
    assert {(row["status"], tuple(row["reasons"]), row["estimate"]) for row in found} == {
        ("unavailable", ("ratio_metric",), None)
    }


def test_what_could_overturn_a_clear_lead(trial: Trial, run: Run, criteria: Criteria) -> None:
    tables = run(trial({"a": 0.3, "b": 0.7}, n=1_500, scenarios={"coding": 0.0, "chat": 0.1}), criteria)
    found = rows(tables, "sensitivity", version=B)[0]
    own = rows(tables, "net_improvement", metric="positive_outcome", slice="all", version=B)[0]
    # Two versions: the whole effect is a difference of error rates as large as itself.
    assert found["error_rate_gap"] == pytest.approx(own["estimate"])
    ratio = own["theta"] / (own["theta"] - own["estimate"])
    assert found["e_value"] == pytest.approx(ratio + np.sqrt(ratio * (ratio - 1)))
    assert 1 < found["e_value_limit"] < found["e_value"]
    assert found["gamma"] > 2
    assert found["heterogeneity_p"] > 0.001
    assert found["interaction_p"] == 1.0
    assert found["simpson"] is None
    # Every outcome is known: the worst case is the estimate itself.
    assert found["worst_lo"] == pytest.approx(found["worst_hi"]) == pytest.approx(own["estimate"])


def test_what_is_not_told_from_zero_is_not_called_fragile(trial: Trial, run: Run, criteria: Criteria) -> None:
    equal = rows(run(trial({"a": 0.5, "b": 0.5}), criteria), "sensitivity", version=B)[0]
    assert (equal["gamma"], equal["e_value_limit"], equal["reasons"]) == (1.0, 1.0, [])
    slight = rows(run(trial({"a": 0.47, "b": 0.53}, n=2_000), criteria), "sensitivity", version=B)[0]
    assert 1.0 < slight["gamma"] < 1.2
    assert slight["reasons"] == ["fragile"]


def test_unknown_outcomes_widen_the_bounds(trial: Trial, run: Run, criteria: Criteria) -> None:
    outcomes = trial({"a": 0.45, "b": 0.6}, n=1_500)
    hidden = pl.Series(np.random.default_rng(1).random(1_500) < 0.2)
    outcomes = outcomes.with_columns(
        *(pl.when(hidden).then(None).otherwise(pl.col(f"positive_outcome_{part}")).alias(f"positive_outcome_{part}") for part in ("num", "den"))
    )  # fmt: skip
    found = rows(run(outcomes, criteria), "sensitivity", version=B)[0]
    assert found["worst_hi"] - found["worst_lo"] == pytest.approx(0.2, abs=0.03)
    assert found["worst_lo"] < 0 < found["worst_hi"]
    assert "missingness_sensitive" in found["reasons"]


def test_a_reversal_is_named(make_outcomes: Any, run: Run, criteria: Criteria) -> None:
    # b is better at both kinds of work, and is given the hard one.
    rng = np.random.default_rng(3)
    n = 4_000
    model = ["b" if one else "a" for one in rng.random(n) < 0.5]
    is_b = np.array(model) == "b"
    hard = rng.random(n) < np.where(is_b, 0.9, 0.1)
    success = rng.random(n) < np.where(hard, 0.2, 0.7) + 0.1 * is_b
    outcomes = make_outcomes(model, success, scenario=["coding" if one else "chat" for one in hard])
    tables = run(outcomes, criteria)
    found = {row["version"]: row for row in rows(tables, "sensitivity")}
    assert {row["simpson"] for row in found.values()} == {"uniform_reversal"}
    assert found[B]["gamma"] > 1.2


def test_times_of_each_kind_of_end_stay_apart(trial: Trial, run: Run, criteria: Criteria) -> None:
    n = 900
    rng = np.random.default_rng(2)
    outcomes = trial({"a": 0.5, "b": 0.5}, n=n)
    is_b = (outcomes["model"] == "b").to_numpy()
    seconds = rng.integers(10, 100, n) * np.where(is_b, 2, 1)
    is_open = rng.random(n) < 0.1
    outcomes = outcomes.with_columns(
        duration_ms=pl.Series((seconds * 1000).tolist()),
        end_status=pl.Series(["open" if one else "completed" for one in is_open]),
    )
    tables = run(outcomes, criteria)
    every = {row["version"]: row for row in rows(tables, "durations", population="all_attempts")}
    for name, mine in ((A, ~is_b), (B, is_b)):
        expected = quantile(kaplan_meier(seconds[mine].astype(float), ~is_open[mine]), 0.5)
        assert every[name]["median_s"] == expected.value
        assert every[name]["median_lo_s"] <= expected.value <= every[name]["median_hi_s"]
        assert every[name]["n_ended"] == int((mine & ~is_open).sum())
    # a is faster: its mean time lies below the average of the two, up to a horizon both were watched to.
    assert every[A]["shift_hi_s"] < 0 < every[B]["shift_lo_s"]
    assert every[A]["shift_s"] == pytest.approx((every[A]["mean_s"] - every[B]["mean_s"]) / 2, abs=1.0)
    assert every[A]["horizon_s"] == every[B]["horizon_s"] == float(seconds[~is_b].max())
    assert every[A]["equal_times_p"] < 1e-6
    # Nobody is left waiting at the horizon but those who were seen no longer.
    assert every[A]["succeeded"] + every[A]["failed"] == pytest.approx(1.0, abs=0.02)
    assert every[A]["succeeded"] == pytest.approx(0.5, abs=0.1)
    kinds = tables["analysis.durations"].group_by("population").agg(pl.col("n_sessions").sum())
    sizes = dict(kinds.iter_rows())
    assert sizes["all_attempts"] == n
    assert sum(size for name, size in sizes.items() if name != "all_attempts") == n
    assert rows(tables, "durations", population="autonomous_success")[0]["shift_s"] is None


def nightly(trial: Trial, loss_from: int, loss: float) -> pl.DataFrame:
    """28 days of 2 x 60 sessions; from a day on version b succeeds less often."""
    n = 28 * 120
    rng = np.random.default_rng(8)
    outcomes = trial({"a": 0.6, "b": 0.6}, n=n)
    day = np.arange(n) % 28
    is_hit = (outcomes["model"] == "b").to_numpy() & (day >= loss_from) & (rng.random(n) < loss)
    num = np.where(is_hit, 0.0, outcomes["positive_outcome_num"].to_numpy())
    return outcomes.with_columns(
        day=pl.Series([FIRST_DAY + timedelta(days=int(d)) for d in day]), positive_outcome_num=pl.Series(num)
    )


def test_an_alarm_rings_after_a_loss_and_not_without(trial: Trial, run: Run, criteria: Criteria) -> None:
    calm = rows(run(nightly(trial, 28, 0.0), criteria), "nights", version=B)
    assert len(calm) == 28
    assert not any(row["is_alarm"] for row in calm)
    worse = rows(run(nightly(trial, 18, 0.6), criteria), "nights", version=B)
    first = next(row["night"] for row in worse if row["is_alarm"])
    assert FIRST_DAY + timedelta(days=18) <= first
    # What was seen before the loss is what was seen without it.
    assert [row["estimate"] for row in worse[:18]] == [row["estimate"] for row in calm[:18]]
    assert all(row["delta"] is row["evidence"] is None for row in worse[:14])
    assert worse[14]["evidence"] > 0
    assert not any(row["is_alarm"] for row in rows(run(nightly(trial, 18, 0.6), criteria), "nights", version=A))


def test_a_sequence_is_wider_than_an_interval_and_ends_at_the_estimate(
    trial: Trial, run: Run, criteria: Criteria
) -> None:
    tables = run(nightly(trial, 28, 0.0), criteria)
    last = rows(tables, "nights", version=B)[-1]
    own = rows(tables, "net_improvement", metric="positive_outcome", slice="all", version=B)[0]
    assert last["so_far"] == pytest.approx(own["estimate"])
    assert last["so_far_lo"] < own["lo"]
    assert own["hi"] < last["so_far_hi"]


def test_a_short_window_has_no_baseline(trial: Trial, run: Run, criteria: Criteria) -> None:
    outcomes = trial({"a": 0.5, "b": 0.5}).filter(pl.col("day") < FIRST_DAY + timedelta(days=5))
    found = rows(run(outcomes, criteria), "nights", version=A)
    assert len(found) == 5
    assert all("short_baseline" in row["reasons"] and row["evidence"] is None for row in found)


def test_users_who_stay_are_watched_by_week(trial: Trial, run: Run, criteria: Criteria) -> None:
    weekly = replace(criteria, estimand=replace(criteria.estimand, design="randomized_user"))
    found = rows(run(nightly(trial, 28, 0.0), weekly), "nights", version=A)
    assert [row["night"] for row in found] == [FIRST_DAY + timedelta(days=7 * i) for i in range(4)]


def test_movement_tells_own_from_competitors_and_mix(trial: Trial, run: Run, criteria: Criteria) -> None:
    tables = run(nightly(trial, 14, 0.6), criteria)
    moved = rows(tables, "movement", version=A)
    parts = sum(row["own"] + row["reference"] + row["mix"] + row["entry_exit"] for row in moved)
    assert parts == pytest.approx(moved[0]["total"])
    # b lost: a gained against the average without doing anything itself.
    assert moved[0]["total"] > 0.1
    reference = sum(row["reference"] for row in moved)
    assert reference > 2 * abs(sum(row["own"] for row in moved))
    assert {row["later_start"] for row in moved} == {FIRST_DAY + timedelta(days=14)}


def test_every_session_is_one_attempt(trial: Trial, run: Run, criteria: Criteria) -> None:
    outcomes = trial({"a": 0.5, "b": 0.6}, n=400)
    place = pl.Series(np.arange(400))
    outcomes = outcomes.with_columns(
        positive_outcome_num=pl.when(place < 40).then(None).otherwise(pl.col("positive_outcome_num")),
        positive_outcome_den=pl.when(place < 40).then(None).otherwise(1.0),
        correction_num=pl.when(place >= 200).then(1.0).otherwise(0.0),
        end_status=pl.when(place >= 300).then(pl.lit("timeout")).otherwise(pl.lit("completed")),
    )
    found = rows(run(outcomes, criteria), "attempts")
    assert sum(row["n_all"] for row in found) == 400
    assert sum(row["n_invalid"] for row in found) == 40
    for row in found:
        counts = [row[f"n_{name}"] for name in ("autonomous", "assisted", "failure", "timeout", "invalid")]
        assert sum(counts) == row["n_all"]
        assert all(counts)
        assert row["n_eval"] == row["n_all"] - row["n_invalid"]
        assert row["autonomous"] == pytest.approx(row["n_autonomous"] / row["n_eval"])
        assert row["autonomous"] + row["assisted"] + row["non_completion"] == pytest.approx(1.0)
        assert row["autonomous_lo"] < row["autonomous"] < row["autonomous_hi"]
        assert row["t_all"] == 0


def controlled(make_outcomes: Any, trials: int = 1) -> pl.DataFrame:
    """Three tasks: a passes the first two, b the last two; later trials of all are passed."""
    model, success, task, trial_no = [], [], [], []
    for name, passed in (("a", (1, 1, 0)), ("b", (0, 1, 1))):
        for i, one in enumerate(passed):
            for repeat in range(trials):
                model.append(name)
                success.append(bool(one) or repeat > 0)
                task.append(f"t{i}")
                trial_no.append(repeat)
    n = len(model)
    return make_outcomes(
        model, np.array(success), task_id=task, trial=trial_no, user_id=[None] * n, correction_num=[0.0] * n
    )


def test_tasks_that_both_were_given(make_outcomes: Any, run: Run, criteria: Criteria) -> None:
    loose = replace(criteria, estimand=replace(criteria.estimand, min_sessions_per_version=1))
    tables = run(controlled(make_outcomes), loose)
    found = rows(tables, "paired_tasks", version=A, other=B)[0]
    assert (found["n_tasks"], found["n_gained"], found["n_lost"], found["difference"], found["p"]) == (
        3,
        1,
        1,
        0.0,
        1.0,
    )
    turned = rows(tables, "paired_tasks", version=B, other=A)[0]
    assert (turned["n_gained"], turned["lo"]) == (1, pytest.approx(-found["hi"]))
    tries = rows(tables, "attempts", version=A)[0]
    assert (tries["t_all"], tries["first_attempt"], tries["eventual"]) == (
        3,
        pytest.approx(2 / 3),
        pytest.approx(2 / 3),
    )
    # More trials are not more tasks, and repeats are not retries.
    repeated = run(controlled(make_outcomes, trials=3), loose)
    again = rows(repeated, "paired_tasks", version=A, other=B)[0]
    assert (again["n_tasks"], again["n_gained"], again["n_lost"]) == (3, 1, 1)
    tries = rows(repeated, "attempts", version=A)[0]
    assert (tries["t_all"], tries["first_attempt"], tries["eventual"]) == (3, pytest.approx(2 / 3), None)


def test_a_task_is_one_whatever_work_its_attempts_were_taken_for(
    make_outcomes: Any, run: Run, criteria: Criteria
) -> None:
    loose = replace(
        criteria, estimand=replace(criteria.estimand, min_sessions_per_version=1, strata=("routing_epoch",))
    )
    made = controlled(make_outcomes, trials=2)
    # Told from the first message and the tools offered, so that two harnesses differ, and two trials may.
    guessed = pl.when(pl.col("model") == "a", pl.col("trial") == 0).then(pl.lit("data")).otherwise(pl.lit("coding"))
    told = made.with_columns(scenario=guessed, scenario_method=pl.lit("rule"))
    tables = run(told, loose)
    assert rows(tables, "paired_tasks", version=A, other=B)[0]["n_tasks"] == 3
    assert rows(tables, "attempts", version=A)[0]["t_all"] == 3
    number = rows(tables, "net_improvement", metric=loose.outcomes.headline, slice="all", version=A)[0]
    assert number["n_users"] == 3
    # A part that was written before the method was carried keeps the key that it had.
    for method in ("declared", None):
        parted = run(told.with_columns(scenario_method=pl.lit(method, dtype=pl.String)), loose)
        assert rows(parted, "attempts", version=A)[0]["t_all"] == 6


def test_tasks_of_one_name_in_two_domains_are_two_tasks(make_outcomes: Any, run: Run, criteria: Criteria) -> None:
    loose = replace(criteria, estimand=replace(criteria.estimand, min_sessions_per_version=1))
    one = controlled(make_outcomes)
    other = one.with_columns(scenario=pl.lit("retail"), session_id=pl.lit("r") + pl.col("session_id"))
    tables = run(pl.concat([one, other]), loose)
    assert rows(tables, "paired_tasks", version=A, other=B)[0]["n_tasks"] == 6
    assert rows(tables, "attempts", version=A)[0]["t_all"] == 6
    told = rows(tables, "net_improvement", metric=criteria.outcomes.headline, slice="all")
    assert {row["n_users"] for row in told} == {6}, "they are six clusters, not three"


def test_one_version_has_no_number_but_its_own(trial: Trial, run: Run, criteria: Criteria) -> None:
    tables = run(trial({"a": 0.5}), criteria)
    assert rows(tables, "nights") == rows(tables, "movement") == []
    alone = rows(tables, "sensitivity")[0]
    assert (alone["status"], alone["gamma"], alone["e_value"], alone["worst_lo"]) == ("unavailable", None, None, None)
    assert rows(tables, "attempts")[0]["n_all"] == 900
    pool = rows(tables, "estimators", estimator="seed001.net_improvement")[0]
    # The recipe would print 0, which reads as exactly average.
    assert (pool["estimate"], pool["status"], pool["reasons"]) == (None, "unavailable", ["no_comparator"])
    plan = {row["subject"]: row["detail"] for row in rows(tables, "diagnostics", check_name="plan")}
    assert "None" in plan["order"]


def test_without_sessions_there_is_no_evidence(trial: Trial, run: Run, criteria: Criteria) -> None:
    tables = run(trial({"a": 0.5, "b": 0.5}).clear(), criteria)
    names = ("estimators", "sensitivity", "durations", "nights", "movement", "attempts", "paired_tasks")
    assert all(tables[f"analysis.{name}"].is_empty() for name in names)
    assert [row["subject"] for row in rows(tables, "diagnostics", check_name="plan")] == ["claims"]


def test_the_plan_says_what_was_picked(trial: Trial, run: Run, criteria: Criteria) -> None:
    tables = run(trial({"a": 0.5, "b": 0.5}), criteria)
    plan = {row["subject"]: row["detail"] for row in rows(tables, "diagnostics", check_name="plan")}
    assert list(plan) == ["claims", "estimate", "interval", "order", "routing", "test"]
    assert "scenario x routing_epoch" in plan["estimate"]
    assert "within strata" in plan["test"]
    assert "that there is a single leader" in plan["claims"]
    clear = run(trial({"a": 0.2, "b": 0.8}), criteria)
    claims = rows(clear, "diagnostics", check_name="plan", subject="claims")[0]["detail"]
    assert "single leader" not in claims
    own = replace(criteria, estimand=replace(criteria.estimand, population="own_share"))
    claims = rows(run(trial({"a": 0.2, "b": 0.8}), own), "diagnostics", check_name="plan", subject="claims")[0][
        "detail"
    ]
    assert "its own mix of work" in claims


@pytest.mark.parametrize("methods", ["days", "versions", "harnesses"])
def test_a_task_goes_by_one_rule_in_all_its_rows(
    make_outcomes: Callable[..., pl.DataFrame], run: Callable[..., dict[str, pl.DataFrame]], criteria: Criteria,
    methods: str,
) -> None:  # fmt: skip
    estimand = replace(criteria.estimand, min_sessions_per_version=1, strata=("routing_epoch",))
    rows = [(task, model, late) for task in range(30) for model in "ab" for late in (0, 1)]
    solved = [(7 * task) % 30 < (15 if model == "a" else 20) for task, model, _ in rows]
    whole = make_outcomes(
        [model for _, model, _ in rows], solved, task_id=[f"t{task}" for task, _, _ in rows], user_id=[None] * len(rows),
        day=[FIRST_DAY + timedelta(days=20 * late) for *_, late in rows], trial=[late for *_, late in rows],
    )  # fmt: skip
    told = {
        "days": ["rule" if late else None for *_, late in rows],
        "versions": ["rule" if model == "b" else None for _, model, _ in rows],
        "harnesses": ["rule" if model == "b" else "declared" for _, model, _ in rows],
    }
    mixed = whole.with_columns(scenario_method=pl.Series(told[methods], dtype=pl.String))
    rules = replace(criteria, estimand=estimand)
    one, other = (run(rows, rules)["analysis.net_improvement"] for rows in (whole, mixed))
    cell = {"metric": "positive_outcome", "slice": "all", "version": "acme · a"}
    assert one.filter(**cell)["n_users"].item() == 30
    assert other.filter(**cell).select("n_users", "se").rows() == one.filter(**cell).select("n_users", "se").rows()
