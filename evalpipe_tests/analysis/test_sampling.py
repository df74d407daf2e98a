"""Sessions that were drawn from all traffic with declared chances, against computation by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalpipe.criteria import Criteria
from evalpipe.criteria.model import Sampling

Run = Callable[..., dict[str, pl.DataFrame]]
Make = Callable[..., pl.DataFrame]
A, B = "acme · a", "acme · b"
CHAT = Sampling(0.1, "scenario", "chat")
GERMAN = Sampling(0.25, "language", "de")


def drawn(criteria: Criteria, *rules: Sampling, **changes: Any) -> Criteria:
    return replace(criteria, estimand=replace(criteria.estimand, sampling=rules, **changes))


@pytest.fixture
def window(make_outcomes: Make) -> pl.DataFrame:
    """400 sessions of 60 users; one chat of ten was kept, and coding, where version b is better, whole."""
    rng = np.random.default_rng(4)
    n = 400
    is_b, is_chat = rng.random(n) < 0.5, rng.random(n) < 0.4
    success = rng.random(n) < 0.3 + 0.4 * is_chat + np.where(is_b, np.where(is_chat, -0.2, 0.3), 0.0)
    return make_outcomes(
        np.where(is_b, "b", "a").tolist(),
        success,
        scenario=np.where(is_chat, "chat", "coding").tolist(),
        language=np.where(rng.random(n) < 0.5, "de", "en").tolist(),
        user_id=[f"u{i:03d}" for i in rng.integers(0, 60, n)],
    )


def arrays(window: pl.DataFrame) -> tuple[np.ndarray, ...]:
    rows = window.sort("session_id")
    y = rows["positive_outcome_num"].to_numpy()
    names = ("model", "scenario", "language", "user_id")
    return (y, *(rows[name].to_numpy() for name in names))


def level(
    y: np.ndarray, v: np.ndarray, model: np.ndarray, kind: np.ndarray, share: dict[str, float], which: str
) -> float:
    """Mean of a version if all traffic were its: weighted means of cells, weighted by the mix given."""
    total = 0.0
    for name, weight in share.items():
        cell = (model == which) & (kind == name)
        total += weight * (v[cell] * y[cell]).sum() / v[cell].sum()
    return total


@pytest.mark.parametrize("rule", [CHAT, GERMAN], ids=["constant in a stratum", "several weights in a cell"])
def test_estimate_and_error_are_those_computed_by_hand(
    window: pl.DataFrame, run: Run, criteria: Criteria, rule: Sampling
) -> None:
    y, model, kind, language, user = arrays(window)
    v = np.where((kind if rule is CHAT else language) == rule.value, 1 / rule.kept, 1.0)
    share = {name: float(v[kind == name].sum() / v.sum()) for name in ("chat", "coding")}
    levels = {name: level(y, v, model, kind, share, name) for name in "ab"}
    gap = levels["b"] - levels["a"]
    # The jackknife over users with the mix held fixed, which CR3 is in closed form.
    without = [
        level(y[stay], v[stay], model[stay], kind[stay], share, "b")
        - level(y[stay], v[stay], model[stay], kind[stay], share, "a")
        for stay in (user != one for one in np.unique(user))
    ]
    tables = run(window, drawn(criteria, rule))
    found = tables["analysis.net_improvement"].filter(
        pl.col("metric") == "positive_outcome", pl.col("slice") == "all", pl.col("version") == B
    ).row(0, named=True)  # fmt: skip
    assert found["estimate"] == pytest.approx(gap / 2)
    assert found["theta"] == pytest.approx(levels["b"])
    assert found["se"] == pytest.approx(np.sqrt(((np.array(without) - gap) ** 2).sum()) / 2)
    assert found["raw_rate"] == pytest.approx((v * y)[model == "b"].sum() / v[model == "b"].sum())
    assert 0.0 < found["p_perm"] <= 1.0
    pair = tables["analysis.pairs"].filter(
        pl.col("slice") == "all", pl.col("version") == B, pl.col("metric") == "positive_outcome"
    )
    assert pair["difference"][0] == pytest.approx(gap)
    strata = tables["analysis.strata"].filter(pl.col("version") == B)
    assert dict(
        zip(strata["stratum"].str.extract("scenario=([a-z]+)"), strata["weight"], strict=True)
    ) == pytest.approx(share)


def test_weights_bring_back_what_all_traffic_would_have_said(make_outcomes: Make, run: Run, criteria: Criteria) -> None:
    """Version b is worse at chat, which is nine tenths of the work and a small part of what was kept."""
    rng = np.random.default_rng(11)
    n = 20_000
    is_b, is_chat = rng.random(n) < 0.5, rng.random(n) < 0.9
    success = rng.random(n) < np.where(is_b, np.where(is_chat, 0.4, 0.9), 0.6)
    whole = make_outcomes(
        np.where(is_b, "b", "a").tolist(), success, scenario=np.where(is_chat, "chat", "coding").tolist()
    )
    kept = whole.filter(pl.Series(~is_chat | (rng.random(n) < 0.1)))

    def estimate(outcomes: pl.DataFrame, under: Criteria) -> tuple[float, float]:
        rows = run(outcomes, under)["analysis.net_improvement"]
        row = rows.filter(pl.col("metric") == "positive_outcome", pl.col("slice") == "all", pl.col("version") == B)
        return row["estimate"][0], row["se"][0]

    truth, plain, weighted = (
        estimate(whole, criteria)[0],
        estimate(kept, criteria)[0],
        estimate(kept, drawn(criteria, CHAT)),
    )
    assert plain > 0.02 > 0 > truth
    assert weighted[0] == pytest.approx(truth, abs=2.5 * weighted[1])


def test_rates_and_totals_of_all_traffic(window: pl.DataFrame, run: Run, criteria: Criteria) -> None:
    y, model, kind, _, user = arrays(window)
    tables = run(window, drawn(criteria, CHAT))
    rows = {(row["version"], row["kind"]): row for row in tables["analysis.drawn_rates"].iter_rows(named=True)}
    assert set(rows) == {(version, kind) for version in (A, B) for kind in ("all", "scenario=chat", "other kinds")}
    mine = model == "b"
    y, kind, user = y[mine], kind[mine], user[mine]
    v = np.where(kind == "chat", 10.0, 1.0)
    found, names = rows[B, "all"], np.unique(user)
    g = len(names)
    mean = (v * y).sum() / v.sum()
    by_user = np.array([(v * (y - mean))[user == one].sum() / v.sum() for one in names])
    se = np.sqrt(g / (g - 1) * ((by_user - by_user.mean()) ** 2).sum())
    assert (found["n_sessions"], found["n_users"]) == (int(mine.sum()), g)
    assert found["rate"] == pytest.approx(mean)
    assert found["ess"] == pytest.approx(v.sum() ** 2 / (v**2).sum())
    assert (found["sessions"], found["total"]) == pytest.approx((v.sum(), (v * y).sum()))
    sums = np.array([(v * y)[user == one].sum() for one in names])
    error = np.sqrt(g / (g - 1) * ((sums - sums.mean()) ** 2).sum())
    crit = (found["total_hi"] - found["total"]) / error
    assert 1.96 < crit < 2.1
    # Wilson's interval on as many trials as have this variance, and no more than sessions weigh as much as.
    trials = min(mean * (1 - mean) / se**2, found["ess"])
    centre = (mean + crit**2 / (2 * trials)) / (1 + crit**2 / trials)
    half = crit / (1 + crit**2 / trials) * np.sqrt(mean * (1 - mean) / trials + crit**2 / (4 * trials**2))
    assert (found["rate_lo"], found["rate_hi"]) == pytest.approx((centre - half, centre + half), rel=1e-6)
    chat = rows[B, "scenario=chat"]
    assert (chat["kept"], chat["rate"]) == (0.1, pytest.approx(y[kind == "chat"].mean()))
    assert chat["sessions"] + rows[B, "other kinds"]["sessions"] == pytest.approx(found["sessions"])


def test_what_was_drawn_is_said_in_words(window: pl.DataFrame, run: Run, criteria: Criteria) -> None:
    rows = run(window, drawn(criteria, CHAT))["analysis.diagnostics"]
    n_chat = window.filter(scenario="chat").height
    said = {row["subject"]: row for row in rows.filter(check_name="sampling").iter_rows(named=True)}
    assert said["scenario=chat"]["value"] == 0.1
    assert f"{n_chat} sessions stand for {10 * n_chat}." in said["scenario=chat"]["detail"]
    assert f"{400 - n_chat} sessions" in said["other kinds"]["detail"]
    ess = {row["subject"]: row["value"] for row in rows.filter(check_name="effective_sessions").iter_rows(named=True)}
    mine = window.filter(model="a")["scenario"] == "chat"
    v = np.where(mine, 10.0, 1.0)
    assert ess[A] == pytest.approx(v.sum() ** 2 / (v**2).sum())
    plan = rows.filter(check_name="plan", subject="estimate")["detail"][0]
    assert "each session for as many as it was drawn from" in plan


def test_a_kind_of_which_nothing_was_kept_is_outside_the_population(
    window: pl.DataFrame, run: Run, criteria: Criteria
) -> None:
    tables = run(window, drawn(criteria, replace(CHAT, kept=0.0)))
    alone = run(window.filter(scenario="coding"), criteria)
    names = ("version", "estimate", "se", "theta", "n_sessions", "n_users", "raw_rate")
    overall = pl.col("slice") == "all"
    inside, only = (one["analysis.net_improvement"].filter(overall).select(names) for one in (tables, alone))
    assert inside.equals(only)
    rows = tables["analysis.diagnostics"]
    (said,) = rows.filter(check_name="sampling", subject="scenario=chat").iter_rows(named=True)
    assert said["status"] == "suspect"
    assert "outside the population" in said["detail"]
    assert f"{window.filter(scenario='chat').height} sessions of it are there all the same" in said["detail"]
    assert "anything about scenario=chat" in rows.filter(check_name="plan", subject="claims")["detail"][0]


def test_what_cannot_be_weighted_says_so(window: pl.DataFrame, run: Run, criteria: Criteria) -> None:
    tables = run(window, drawn(criteria, CHAT, permutations=99))
    other = tables["analysis.estimators"]
    for name in ("ipw", "aipw", "overlap"):
        row = other.filter(estimator=name, version=B).row(0, named=True)
        assert (row["estimate"], row["status"], row["reasons"]) == (None, "unavailable", ["unweighted"])
    assert "unweighted" in other.filter(estimator="mantel_haenszel", version=B)["reasons"][0]
    assert "unweighted" not in other.filter(estimator="user_bootstrap", version=B)["reasons"][0]
    for name in ("durations", "attempts"):
        rows = tables[f"analysis.{name}"]
        assert set(rows["status"]) <= {"suspect", "unavailable"}
        assert all("unweighted" in reasons for reasons in rows["reasons"])
    assert tables["analysis.sensitivity"].filter(version=B)["gamma"][0] is None


def test_equal_chances_change_no_comparison(window: pl.DataFrame, run: Run, criteria: Criteria) -> None:
    """One session of five of everything: shares of the traffic and means are what they were."""
    plain, fifth = run(window, criteria), run(window, drawn(criteria, Sampling(0.2)))
    for name in ("net_improvement", "nights", "movement", "sensitivity"):
        table = plain[f"analysis.{name}"]
        # Draws come from a seed that the measurement is part of, and no rows of another measurement are alike.
        drawn_numbers = {"lo_sim", "hi_sim", "p_perm", "p_adj", "seed", "gamma", "measurement", "criteria_hash"}
        for column in table.columns:
            one, other = table[column], fifth[f"analysis.{name}"][column]
            if column not in drawn_numbers and one.dtype == pl.Float64:
                assert one.is_null().to_list() == other.is_null().to_list()
                np.testing.assert_allclose(one.drop_nulls(), other.drop_nulls(), rtol=1e-9, atol=1e-12)
    twice = plain["analysis.net_improvement"].filter(pl.col("slice") == "all")["n_sessions"].sum()
    assert twice == 2 * window.height


@pytest.mark.parametrize(("column", "value"), [("scenario", "chat"), ("language", "de")])
def test_a_session_that_stands_for_three_is_one_that_is_there_thrice(
    window: pl.DataFrame, run: Run, criteria: Criteria, column: str, value: str
) -> None:
    """Every estimate but its error: in nights, in movement and at worst too, where some outcomes are unknown."""
    unknown = pl.int_range(pl.len()) % 9 == 0
    window = window.with_columns(
        pl.when(unknown).then(None).otherwise(pl.col(name)).alias(name)
        for name in ("positive_outcome_num", "positive_outcome_den")
    )
    kind = window.filter(pl.col(column) == value)
    copies = [kind.with_columns(session_id=pl.col("session_id") + f"-{i}") for i in (1, 2)]
    third = run(window, drawn(criteria, Sampling(1 / 3, column, value)))
    thrice = run(pl.concat([window, *copies]), criteria)
    said = {
        "net_improvement": ("estimate", "theta", "raw_rate"),
        "nights": ("estimate", "so_far", "change"),
        "movement": ("own", "reference", "mix", "total"),
        "sensitivity": ("worst_lo", "worst_hi"),
    }
    for table, columns in said.items():
        for number in columns:
            one, other = (tables[f"analysis.{table}"] for tables in (third, thrice))
            if table == "net_improvement":
                one, other = (rows.filter(slice="all", metric="positive_outcome") for rows in (one, other))
            assert one[number].is_null().to_list() == other[number].is_null().to_list()
            assert one[number].is_not_null().any(), (table, number)
            np.testing.assert_allclose(one[number].drop_nulls(), other[number].drop_nulls(), rtol=1e-9, atol=1e-12)
