from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from evalpipe.analysis import decide_gates
from evalpipe.criteria import Criteria

Trial = Callable[..., pl.DataFrame]
Run = Callable[..., dict[str, pl.DataFrame]]
Number = Callable[..., dict[str, Any]]
Check = Callable[..., dict[str, Any]]
A, B, C = "acme · a", "acme · b", "acme · c"
N = 900


def test_a_declared_design_without_a_log_says_so(trial: Trial, run: Run, criteria: Criteria, check: Check) -> None:
    row = check(run(trial({"a": 0.5, "b": 0.5}), criteria), "assignment")
    assert (row["value"], row["status"]) == (0.0, "ok")
    assert "declared in the criteria, not logged" in row["detail"]


def test_logged_shares_are_held_against_the_counts(
    trial: Trial, run: Run, criteria: Criteria, check: Check, number: Number
) -> None:
    fair = run(trial({"a": 0.5, "b": 0.5}, n=N, assignment_probability=[0.5] * N), criteria)
    assert check(fair, "srm")["status"] == "ok"
    assert check(fair, "assignment")["value"] == 1.0
    base = trial({"a": 0.5, "b": 0.5}, n=N)
    claimed = pl.when(pl.col("model") == "a").then(0.8).otherwise(0.2).alias("assignment_probability")
    wrong = run(base.with_columns(claimed), criteria)
    assert check(wrong, "srm")["status"] == "suspect"
    row = number(wrong, A)
    assert (row["status"], row["design"], row["reasons"]) == ("suspect", "observational", ["srm", "not_randomized"])
    assert row["estimate"] is not None
    assert row["p_perm"] is None
    assert wrong["analysis.net_improvement"]["status"].unique().to_list() == ["suspect"]


def test_shares_of_a_lottery_over_more_than_the_label_are_not_checked(
    trial: Trial, run: Run, criteria: Criteria, check: Check
) -> None:
    """Four arms of a quarter each, of which b holds three: 0.25 and 0.25 are not the shares of a and b."""
    base = trial({"a": 0.5, "b": 0.5}, n=N)
    uneven = base.filter((pl.col("model") == "b") | (pl.int_range(pl.len()) % 3 == 0))
    tables = run(uneven.with_columns(assignment_probability=pl.lit(0.25)), criteria)
    assert check(tables, "srm")["status"] == "unavailable"
    assert "do not sum to 1" in check(tables, "assignment")["detail"]


def test_probabilities_that_vary_are_no_shares(trial: Trial, run: Run, criteria: Criteria, check: Check) -> None:
    probability = [0.4, 0.6] * (N // 2)
    tables = run(trial({"a": 0.5, "b": 0.5}, n=N, assignment_probability=probability), criteria)
    assert check(tables, "srm")["status"] == "unavailable"
    assert "vary" in check(tables, "assignment")["detail"]


def test_a_version_with_few_sessions_is_no_mismatch(trial: Trial, run: Run, criteria: Criteria, check: Check) -> None:
    """c was all but switched off: it leaves the comparison, and the others are held to their own odds."""
    base = trial({"a": 0.5, "b": 0.5, "c": 0.5}, n=N)
    rare = base.filter((pl.col("model") != "c") | ((pl.col("model") == "c").cum_sum() <= 5))
    tables = run(rare.with_columns(assignment_probability=pl.lit(1 / 3)), criteria)
    assert check(tables, "srm")["status"] == "ok"


def test_language_that_follows_the_version_makes_rows_suspect(
    trial: Trial, run: Run, criteria: Criteria, check: Check, number: Number
) -> None:
    base = trial({"a": 0.5, "b": 0.5}, n=N)
    skewed = pl.when((pl.col("model") == "a") & (pl.int_range(pl.len()) % 2 == 0)).then(pl.lit("pt"))
    tables = run(base.with_columns(skewed.otherwise(pl.col("language")).alias("language")), criteria)
    assert check(tables, "balance")["status"] == "suspect"
    assert number(tables, B, "correction")["reasons"] == ["balance", "not_randomized"]
    assert number(tables, B)["design"] == "observational"


def test_a_language_stratum_is_no_covariate(
    trial: Trial, run: Run, with_estimand: Callable[..., Criteria], check: Check
) -> None:
    criteria = with_estimand(strata=("scenario", "language", "routing_epoch"))
    tables = run(trial({"a": 0.5, "b": 0.5}, n=N), criteria)
    assert check(tables, "balance")["status"] == "unavailable"
    assert "scenario=coding|language=en|routing_epoch=e1" in tables["analysis.strata"]["stratum"].to_list()


def test_users_who_stay_with_one_version_are_permuted_whole(
    trial: Trial, run: Run, criteria: Criteria, check: Check, number: Number
) -> None:
    base = trial({"a": 0.5, "b": 0.5}, n=N)
    sticky = base.with_columns(user_id=pl.concat_str(pl.col("model"), pl.int_range(pl.len()) % 90))
    tables = run(sticky, criteria)
    assert number(tables, A)["design"] == "randomized_user"
    assert number(tables, A)["status"] == "ok"


def test_a_log_that_says_users_were_assigned_overrules_criteria(
    trial: Trial, run: Run, criteria: Criteria, check: Check, number: Number
) -> None:
    tables = run(trial({"a": 0.5, "b": 0.5}, n=N, assignment_unit=["user"] * N, assignment_policy=["p"] * N), criteria)
    assert number(tables, A)["design"] == "randomized_user"
    assert "users were assigned" in check(tables, "assignment")["detail"]


def test_an_observational_design_has_numbers_and_no_test(
    trial: Trial, run: Run, with_estimand: Callable[..., Criteria], number: Number, check: Check
) -> None:
    tables = run(trial({"a": 0.4, "b": 0.7}, n=N), with_estimand(design="observational"))
    row = number(tables, A)
    assert (row["status"], row["p_perm"], row["n_permutations"]) == ("ok", None, None)
    assert row["hi"] < 0
    assert row["reasons"] == ["not_randomized"]
    assert "not random" in check(tables, "assignment")["detail"]


def test_imbalance_of_observed_traffic_leaves_numbers_and_bars_gates(
    trial: Trial, run: Run, with_estimand: Callable[..., Criteria], number: Number, check: Check
) -> None:
    """Most archives are such: nobody assigned anything, and versions met people of other languages."""
    criteria = with_estimand(design="observational")
    base = trial({"a": 0.4, "b": 0.75}, n=1500)
    skewed = pl.when((pl.col("model") == "a") & (pl.int_range(pl.len()) % 2 == 0)).then(pl.lit("pt"))
    tables = run(base.with_columns(language=skewed.otherwise(pl.col("language"))), criteria)
    row = number(tables, B)
    assert (row["status"], row["design"], row["reasons"]) == (
        "inconclusive",
        "observational",
        ["balance", "not_randomized"],
    )
    assert check(tables, "balance")["status"] == "inconclusive"
    # The languages might order the versions as well: the estimate stands, and nobody is put first.
    assert row["estimate"] > 0.1
    assert (row["rank_lo"], row["letters"]) == (None, None)
    assert not tables["analysis.pairs"]["is_better"].any()
    said = {
        row["subject"]: row["detail"]
        for row in tables["analysis.diagnostics"].to_dicts()
        if row["check_name"] == "plan"
    }
    assert "none is put first" in said["order"]
    assert "that one version is better than another" in said["claims"]
    assert number(run(base, criteria), B)["rank_lo"] == 1
    barred = decide_gates(tables, criteria, B, A)
    assert set(barred["verdict"]) == {"inconclusive"}
    assert barred["reasons"].to_list() == [["balance"]] * 2
    assert set(decide_gates(run(base, criteria), criteria, B, A)["verdict"]) == {"pass"}


def test_sessions_without_a_user_are_their_own_cluster(
    trial: Trial, run: Run, criteria: Criteria, number: Number, check: Check
) -> None:
    base = trial({"a": 0.5, "b": 0.5}, n=N)
    tables = run(base.with_columns(user_id=pl.lit(None, dtype=pl.String)), criteria)
    row = number(tables, A)
    assert row["n_users"] == row["n_sessions"]
    assert (check(tables, "missing_user")["value"], check(tables, "missing_user")["status"]) == (1.0, "suspect")
    assert row["status"] == "ok"
    few = base.with_columns(pl.when(pl.int_range(pl.len()) % 50 > 0).then(pl.col("user_id")).alias("user_id"))
    assert check(run(few, criteria), "missing_user")["status"] == "ok"


def test_repeats_of_a_task_are_one_cluster(
    trial: Trial, run: Run, criteria: Criteria, number: Number, check: Check
) -> None:
    tasks = [f"t{i // 6}" for i in range(N)]
    base = trial({"a": 0.5, "b": 0.5}, n=N, task_id=tasks)
    tables = run(base.with_columns(user_id=pl.lit(None, dtype=pl.String)), criteria)
    assert number(tables, A)["n_users"] <= 150 < number(tables, A)["n_sessions"]
    assert "900 of them are clustered by task" in check(tables, "missing_user")["detail"]


def test_strata_that_are_sparse_by_chance_merge_within_their_epoch(
    trial: Trial, run: Run, criteria: Criteria, check: Check
) -> None:
    """Two rare kinds of work in e2, each seen by one version only: pooled, and never with those of e1."""
    rare = ["rare1"] * 4 + ["rare2"] * 4
    kinds = rare + ["coding"] * 592 + rare + ["coding"] * 592
    models = ["a"] * 4 + ["b"] * 4 + ["a", "b"] * 296 + ["a", "b"] * 4 + ["a", "b"] * 296
    base = trial({"a": 0.5, "b": 0.5}, n=1200, scenario=kinds, routing_epoch=["e2"] * 600 + ["e1"] * 600)
    tables = run(base.with_columns(model=pl.Series(models)), criteria)
    strata = tables["analysis.strata"].filter(pl.col("version") == A)
    merged = strata.filter(pl.col("merged_into").is_not_null())
    assert merged["stratum"].to_list() == ["scenario=rare1|routing_epoch=e2", "scenario=rare2|routing_epoch=e2"]
    assert merged["merged_into"].to_list() == ["routing_epoch=e2"] * 2
    assert strata["is_kept"].all()
    assert check(tables, "support_share")["value"] == 1.0


def test_work_that_a_version_never_does_is_no_common_support(
    trial: Trial, run: Run, criteria: Criteria, number: Number
) -> None:
    """a codes and b chats. Pooling both would compare one's coding with the other's chat."""
    base = trial({"a": 0.2, "b": 0.9}, n=600)
    apart = base.with_columns(scenario=pl.when(pl.col("model") == "a").then(pl.lit("coding")).otherwise(pl.lit("chat")))
    row = number(run(apart, criteria), A)
    assert (row["status"], row["estimate"]) == ("unavailable", None)
    assert row["raw_rate"] is not None
    # A third version that both kinds of work lack in one epoch does not open the door again.
    third = apart.head(60).with_columns(
        model=pl.lit("c"), routing_epoch=pl.lit("e0"), session_id=pl.concat_str(pl.lit("x"), "session_id")
    )
    assert number(run(pl.concat([apart, third]), criteria), A)["estimate"] is None


def test_a_version_is_never_compared_with_the_traffic_of_another_period(
    trial: Trial, run: Run, criteria: Criteria, check: Check, number: Number
) -> None:
    """b was not served in e2: half of the traffic has no counterpart, and nothing is decided."""
    base = trial({"a": 0.5, "b": 0.5}, n=1200, routing_epoch=["e1", "e2"] * 600)
    tables = run(base.filter((pl.col("model") == "a") | (pl.col("routing_epoch") == "e1")), criteria)
    strata = tables["analysis.strata"].filter(pl.col("version") == A)
    assert dict(strata.select("stratum", "is_kept").rows()) == {
        "scenario=coding|routing_epoch=e1": True,
        "scenario=coding|routing_epoch=e2": False,
    }
    assert check(tables, "support_share")["status"] == "inconclusive"
    assert number(tables, A)["status"] == "inconclusive"
    assert "low_support" in number(tables, A)["reasons"]


def test_nothing_is_random_that_neither_log_nor_criteria_call_so(
    trial: Trial, run: Run, with_estimand: Callable[..., Criteria], number: Number, check: Check
) -> None:
    """The default: what the log states of every session, else observational."""
    as_logged = with_estimand(design="as_logged")
    base = trial({"a": 0.5, "b": 0.5}, n=N)
    silent = run(base, as_logged)
    assert number(silent, A)["design"] == "observational"
    assert number(silent, A)["p_perm"] is None
    assert "No session logs" in check(silent, "assignment")["detail"]
    logged = run(base.with_columns(assignment_policy=pl.lit("p"), assignment_probability=pl.lit(0.5)), as_logged)
    assert number(logged, A)["design"] == "randomized_session"
    assert "logged, not verified" in check(logged, "assignment")["detail"]
    half = pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("p")).alias("assignment_policy")
    part = run(base.with_columns(half), as_logged)
    assert number(part, A)["design"] == "observational"
    assert "Only 450 of 900 sessions log" in check(part, "assignment")["detail"]
    certain = base.with_columns(assignment_policy=pl.lit("p"), assignment_probability=pl.lit(1.0))
    assert number(run(certain, as_logged), A)["design"] == "observational"
    users = base.with_columns(assignment_policy=pl.lit("p"), assignment_unit=pl.lit("user"))
    assert number(run(users, as_logged), A)["design"] == "randomized_user"


def test_no_check_passes_beyond_its_limit(
    trial: Trial, run: Run, with_estimand: Callable[..., Criteria], check: Check
) -> None:
    """Users who stay with one version, under each design: the check is open, or has no limit."""
    base = trial({"a": 0.5, "b": 0.5}, n=N)
    sticky = base.with_columns(user_id=pl.concat_str(pl.col("model"), pl.int_range(pl.len()) % 90))
    skewed = sticky.with_columns(
        language=pl.when(pl.int_range(pl.len()) % 5 == 0).then(pl.lit("pt")).otherwise("language")
    )
    open_ones = set()
    for design in ("as_logged", "randomized_session", "randomized_user", "observational"):
        rows = run(skewed, with_estimand(design=design))["analysis.diagnostics"]
        for name, value, bound, status in rows.select("check_name", "value", "bound", "status").iter_rows():
            if status != "ok" or value is None or bound is None:
                open_ones.add((design, name))
                continue
            below = name in {"srm", "balance", "positivity", "support_share"}
            assert value >= bound if below else value <= bound, (design, name, value, bound)
    assert ("randomized_session", "stickiness") in open_ones
