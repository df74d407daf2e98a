"""What tables of evidence must not claim: numbers of a failed design, intervals of nothing, errors of clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from evalpipe.analysis.evidence import evidence_tables
from evalpipe.analysis.evidence.headline import Headline
from evalpipe.criteria import Criteria
from evalpipe.inference.causal.rosenbaum import sensitivity
from evalpipe.inference.proportions import wilson

Trial = Callable[..., pl.DataFrame]
Run = Callable[..., dict[str, pl.DataFrame]]
HeadlineOf = Callable[..., Headline]
A, B = "acme · a", "acme · b"
COMPARING = ("estimators", "sensitivity", "durations", "nights", "movement")


def rows(tables: dict[str, pl.DataFrame], table: str, **where: Any) -> list[dict[str, Any]]:
    found = tables[f"analysis.{table}"]
    for name, value in where.items():
        found = found.filter(pl.col(name) == value)
    return found.to_dicts()


def test_a_failed_design_is_told_on_every_row_that_compares(
    trial: Trial, headline_of: HeadlineOf, criteria: Criteria
) -> None:
    headline = headline_of(trial({"a": 0.4, "b": 0.6}), criteria)
    failed = evidence_tables(replace(headline, failed=("srm",)), headline.stamp)
    for name in COMPARING:
        known = [row for row in rows(failed, name) if row["status"] != "unavailable"]
        assert known
        assert {row["status"] for row in known} == {"suspect"}
        assert all("srm" in row["reasons"] for row in known)
    # Counting sessions asks for no design.
    assert {row["status"] for row in rows(failed, "attempts")} == {"ok"}
    noted = evidence_tables(replace(headline, noted=("balance",)), headline.stamp)
    own = evidence_tables(headline, headline.stamp)
    for name in COMPARING:
        assert [row["status"] for row in rows(noted, name)] == [row["status"] for row in rows(own, name)]
        assert all("balance" in row["reasons"] for row in rows(noted, name) if row["status"] != "unavailable")


def test_little_common_traffic_decides_nothing_in_evidence(
    make_outcomes: Any, headline_of: HeadlineOf, criteria: Criteria
) -> None:
    rng = np.random.default_rng(6)
    n = 1_200
    # Either version does most of its work where the other was never seen.
    model = np.array(["a", "b"])[rng.integers(0, 2, n)]
    apart = rng.random(n) < 0.7
    scenario = [f"only-{one}" if alone else "coding" for one, alone in zip(model, apart, strict=True)]
    headline = headline_of(make_outcomes(list(model), rng.random(n) < 0.5, scenario=scenario), criteria)
    assert "low_support" in headline.found.reasons[0]
    tables = evidence_tables(headline, headline.stamp)
    for name in COMPARING:
        known = [row for row in rows(tables, name) if row["status"] != "unavailable"]
        assert known
        assert {row["status"] for row in known} == {"inconclusive"}
        assert all("low_support" in row["reasons"] for row in known)


def test_a_movement_has_the_error_of_leaving_users_out(
    trial: Trial, headline_of: HeadlineOf, criteria: Criteria
) -> None:
    headline = headline_of(trial({"a": 0.4, "b": 0.6}, n=400), criteria)
    found = rows(evidence_tables(headline, headline.stamp), "movement", version=B)[0]
    # One stratum, two versions: half the difference, later minus earlier; CR3 is the jackknife.
    sample, later = headline.sample, headline.days() >= 14
    is_b = sample.version == 1

    def moved(keep: np.ndarray) -> tuple[float, float]:
        rate = {
            (late, b): sample.y[keep & (later == late) & (is_b == b)].mean()
            for late in (False, True)
            for b in (False, True)
        }
        own = rate[True, True] - rate[False, True]
        return (own - rate[True, False] + rate[False, False]) / 2, own

    whole = moved(np.ones(len(sample.y), dtype=bool))
    without = np.array([moved(sample.user != user) for user in np.unique(sample.user)])
    se = np.sqrt(((without - np.array(whole)) ** 2).sum(axis=0))
    assert (found["total"], found["own"]) == (pytest.approx(whole[0]), pytest.approx(whole[1]))
    assert (found["total_se"], found["own_se"]) == (pytest.approx(se[0]), pytest.approx(se[1]))
    assert found["total_hi"] - found["total"] == pytest.approx(found["total"] - found["total_lo"])
    assert 1.9 < (found["own_hi"] - found["own"]) / found["own_se"] < 2.1


@pytest.mark.parametrize("kind", ["all outcomes alike", "each version alike", "one user"])
def test_where_the_headline_has_no_interval_nothing_beside_it_has_one(
    kind: str, make_outcomes: Any, run: Run, criteria: Criteria
) -> None:
    rng = np.random.default_rng(7)
    n = 400
    model = np.array(["a", "b"])[rng.integers(0, 2, n)]
    success = {
        "all outcomes alike": np.ones(n),
        "each version alike": model == "b",
        "one user": rng.random(n) < 0.5,
    }[kind]
    user = ["u"] * n if kind == "one user" else [f"u{i:03d}" for i in rng.integers(0, 100, n)]
    tables = run(make_outcomes(list(model), success, user_id=user), criteria)
    own = rows(tables, "net_improvement", metric="positive_outcome", slice="all")
    assert {(row["lo"], row["hi"]) for row in own} == {(None, None)}
    found = rows(tables, "estimators")
    assert found
    why = "one_user" if kind == "one user" else "no_variation"
    for row in found:
        assert (row["lo"], row["hi"]) == (None, None)
        assert row["status"] == "inconclusive"
        assert why in row["reasons"]
    for row in rows(tables, "sensitivity"):
        assert row["status"] != "ok"
        assert row["e_value_limit"] is row["gamma"] is None
    for name, limits in (("movement", ("total_lo", "own_lo")), ("nights", ("so_far_lo", "evidence")), ("durations", ("shift_lo_s",))):  # fmt: skip
        assert all(row[limit] is None for row in rows(tables, name) for limit in limits)


def test_strata_are_held_against_each_other_with_users_counted_once(
    make_outcomes: Any, run: Run, criteria: Criteria
) -> None:
    rng = np.random.default_rng(2)
    n, luck = 1_600, rng.beta(0.5, 0.5, (80, 4))
    user, kind = rng.integers(0, 80, n), rng.integers(0, 4, n)
    outcomes = make_outcomes(
        ["ab"[one % 2] for one in user],
        rng.random(n) < luck[user, kind],
        user_id=[f"u{one:02d}" for one in user],
        scenario=[f"kind-{one}" for one in kind],
    )
    kept = replace(criteria, estimand=replace(criteria.estimand, design="randomized_user"))
    found = rows(run(outcomes, kept), "sensitivity", version=B)[0]
    # With sessions taken for independent the first is 0.009.
    assert found["heterogeneity_p"] > 0.05
    assert found["interaction_p"] > 0.05


def test_hidden_routing_is_bounded_for_the_declared_contrast(trial: Trial, run: Run, criteria: Criteria) -> None:
    outcomes = trial({"a": 0.3, "b": 0.5, "c": 0.7}, n=1_500, scenarios={"coding": 0.0, "chat": 0.1})
    averaged = rows(run(outcomes, criteria), "sensitivity")
    assert {row["gamma"] for row in averaged} == {None}
    assert all("several_controls" in row["reasons"] for row in averaged)
    against_a = replace(criteria, estimand=replace(criteria.estimand, reference=f"model:{A}"))
    found = {row["version"]: row for row in rows(run(outcomes, against_a), "sensitivity")}
    cells = outcomes.group_by("scenario", "model").agg(
        pl.col("positive_outcome_num").sum().alias("x"), pl.len().cast(pl.Float64).alias("n")
    )  # fmt: skip
    x, n = ({m: cells.filter(model=m).sort("scenario")[part].to_numpy() for m in "abc"} for part in ("x", "n"))
    expected = sensitivity(x["b"], n["b"], x["a"], n["a"], alpha=0.025).gamma
    assert found[B]["gamma"] == expected
    assert found[A]["gamma"] is None
    assert found["acme · c"]["gamma"] > expected > 1


def test_users_who_keep_a_version_are_not_routed_session_by_session(trial: Trial, run: Run, criteria: Criteria) -> None:
    outcomes = trial({"a": 0.3, "b": 0.7}, n=900)
    # The user of a session is drawn from those of its model.
    user = [f"{m}{i % 60:02d}" for i, m in enumerate(outcomes["model"])]
    outcomes = outcomes.with_columns(user_id=pl.Series(user))
    seen = replace(criteria, estimand=replace(criteria.estimand, design="observational"))
    for one in (seen, replace(criteria, estimand=replace(criteria.estimand, design="randomized_user"))):
        found = rows(run(outcomes, one), "sensitivity", version=B)[0]
        assert found["gamma"] is None
        assert "not_clustered" in found["reasons"]


def test_the_side_of_a_bound_is_that_of_the_claim() -> None:
    x, n, other, m = (np.array([value]) for value in (60.0, 100.0, 30.0, 100.0))
    assert sensitivity(x, n, other, m, is_more=True).gamma == sensitivity(x, n, other, m).gamma > 2
    assert sensitivity(x, n, other, m, is_more=False).gamma == 1.0


def timed(trial: Trial, n: int = 900) -> pl.DataFrame:
    """A trial whose sessions take 10 to 100 seconds, in either version."""
    seconds = np.random.default_rng(2).integers(10, 100, n)
    return trial({"a": 0.5, "b": 0.5}, n=n).with_columns(duration_ms=pl.Series((seconds * 1000).tolist()))


def test_an_outcome_that_is_not_known_is_no_failure(trial: Trial, run: Run, criteria: Criteria) -> None:
    is_hidden = pl.int_range(900) % 3 == 0
    outcomes = timed(trial).with_columns(
        pl.when(is_hidden).then(None).otherwise(pl.col(f"positive_outcome_{part}")).alias(f"positive_outcome_{part}")
        for part in ("num", "den")
    )  # fmt: skip
    for row in rows(run(outcomes, criteria), "durations", population="all_attempts"):
        # Every session has ended by the horizon.
        assert row["unresolved"] == pytest.approx(1 / 3, abs=0.05)
        assert row["failed"] == pytest.approx(1 / 3, abs=0.06)
        assert row["succeeded"] + row["failed"] + row["unresolved"] == pytest.approx(1.0, abs=0.01)
        assert "unknown_outcomes" in row["reasons"]
    assert all(
        row["unresolved"] == 0 for row in rows(run(timed(trial), criteria), "durations", population="all_attempts")
    )


def test_times_of_users_who_keep_a_version_are_not_taken_for_independent(
    trial: Trial, run: Run, criteria: Criteria
) -> None:
    outcomes = timed(trial)
    # The same user's sessions take the same time, so that a few users make versions differ.
    user = [f"{m}{i % 8}" for i, m in enumerate(outcomes["model"])]
    place = {name: at for at, name in enumerate(sorted(set(user)))}
    seconds = np.random.default_rng(1).integers(10, 100, len(place))
    took = (seconds[[place[one] for one in user]] * 1000).tolist()
    outcomes = outcomes.with_columns(user_id=pl.Series(user), duration_ms=pl.Series(took))
    for row in rows(run(outcomes, criteria), "durations"):
        assert row["median_s"] > 0
        assert row["equal_times_p"] is None
        assert "not_clustered" in row["reasons"]
        # Eight users make eight draws: their median lies between those of a few, not within seconds of itself.
        assert row["median_lo_s"] < row["median_s"] < row["median_hi_s"]
        mine = seconds[[place[one] for one in set(user) if one.startswith(row["version"][-1])]]
        assert {row["median_lo_s"], row["median_hi_s"], row["p90_hi_s"]} <= set(mine.astype(float))
    alone = rows(run(timed(trial), criteria), "durations", population="all_attempts")
    assert all(row["equal_times_p"] > 0.01 and row["median_lo_s"] < row["median_s"] for row in alone)


def test_rates_of_attempts_count_users_not_sessions(make_outcomes: Any, run: Run, criteria: Criteria) -> None:
    n = 400
    # Twenty users of a version, each of whom always succeeds or never does: 20 trials, not 200.
    user = np.arange(n) % 40
    outcomes = make_outcomes(
        ["ab"[one % 2] for one in user], user // 2 % 2 == 0, user_id=[f"u{one:02d}" for one in user], correction_num=[0.0] * n
    )  # fmt: skip
    found = rows(run(outcomes, criteria), "attempts", version=A)[0]
    lo, hi = wilson(10, 20, crit=stats.t.ppf(0.975, 19))
    assert (found["autonomous_lo"], found["autonomous_hi"]) == (
        pytest.approx(float(lo), abs=0.02),
        pytest.approx(float(hi), abs=0.02),
    )
    assert found["non_completion_lo"] == pytest.approx(1 - found["autonomous_hi"])
    # None was assisted, of 20 users.
    nothing = wilson(0, 20, crit=stats.t.ppf(0.975, 19))
    assert (found["assisted_lo"], found["assisted_hi"]) == (0.0, pytest.approx(float(nothing[1])))
    assert found["invalid_rate_hi"] == pytest.approx(found["assisted_hi"])
    assert found["first_attempt_lo"] is None
    alone = rows(run(outcomes.with_columns(user_id=pl.lit("u")), criteria), "attempts", version=A)[0]
    assert alone["autonomous"] == 0.5
    assert {
        alone[f"{rate}_{end}"]
        for rate in ("autonomous", "assisted", "non_completion", "invalid_rate")
        for end in ("lo", "hi")
    } == {None}
    assert (alone["status"], alone["reasons"]) == ("inconclusive", ["one_user"])
