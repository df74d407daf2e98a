"""Split, exposure and compliance against the assignment ledger: known numbers, and what a failure does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from evalpipe.analysis import decide_gates
from evalpipe.contracts import render
from evalpipe.contracts.tables.signals import ROUTING_ARMS
from evalpipe.criteria import Criteria
from evalpipe.inference import sample_ratio
from evalpipe_tests.analysis.conftest import FIRST_DAY

Trial = Callable[..., pl.DataFrame]
Run = Callable[..., dict[str, pl.DataFrame]]
Check = Callable[..., dict[str, Any]]
A, B = "acme · a", "acme · b"
N = 600


def arms(
    shares: dict[str, float | tuple[float, float] | None], epoch: str = "e1", unit: str = "session"
) -> pl.DataFrame:
    ends = {model: share if isinstance(share, tuple) else (share, share) for model, share in shares.items()}
    rows = [
        {
            "day": FIRST_DAY + timedelta(days=day), "policy": "ab", "routing_epoch": epoch, "unit": unit,
            "arm": f"* · * · {model}", "agent": None, "agent_release": None, "model": model,
            "probability_low": low, "probability_high": high,
        }
        for model, (low, high) in ends.items()
        for day in range(2)  # the table repeats an arm every day
    ]  # fmt: skip
    return render.conform(ROUTING_ARMS, pl.DataFrame(rows, schema=render.polars_schema(ROUTING_ARMS)))


def assigned(base: pl.DataFrame, unit: str = "session") -> pl.DataFrame:
    """Every session as the ledger assigned it."""
    return base.with_columns(
        assignment_source=pl.lit("ledger"),
        assignment_policy=pl.lit("ab"),
        assignment_unit=pl.lit(unit),
        assignment_probability=pl.lit(0.5),
        assigned_arm=pl.concat_str(pl.lit("* · * · "), "model"),
        is_as_assigned=pl.lit(value=True),
    )


def rows_of(tables: dict[str, pl.DataFrame], name: str) -> dict[str, dict[str, Any]]:
    found = tables["analysis.diagnostics"].filter(pl.col("check_name") == name)
    return {row["subject"]: row for row in found.iter_rows(named=True)}


def counted(tables: dict[str, pl.DataFrame]) -> list[int]:
    every = tables["analysis.net_improvement"].filter(pl.col("slice") == "all", metric="positive_outcome")
    return every.sort("version")["n_sessions"].to_list()


def test_the_split_is_that_of_scipy(trial: Trial, run: Run, criteria: Criteria, check: Check) -> None:
    tables = run(assigned(trial({"a": 0.5, "b": 0.5}, n=N)), criteria, arms=arms({"a": 0.5, "b": 0.5}))
    row = check(tables, "srm")
    assert row["value"] == pytest.approx(stats.chisquare(counted(tables)).pvalue)
    assert (row["status"], row["subject"]) == ("ok", "sessions in ab, e1")
    assert f"a {counted(tables)[0]} of 300.0 expected" in row["detail"]
    uneven = run(assigned(trial({"a": 0.5, "b": 0.5}, n=N)), criteria, arms=arms({"a": 0.6, "b": 0.4}))
    expected = stats.chisquare(counted(uneven), [360, 240]).pvalue
    assert check(uneven, "srm")["value"] == pytest.approx(expected)


def test_an_arm_that_served_nobody_is_a_mismatch(
    trial: Trial, run: Run, criteria: Criteria, check: Check, number: Callable[..., dict[str, Any]]
) -> None:
    """From the counts alone it could not be seen: the versions that served split fairly."""
    base = assigned(trial({"a": 0.4, "b": 0.75}, n=N))
    tables = run(base, criteria, arms=arms({"a": 0.4, "b": 0.4, "c": 0.2}))
    row = check(tables, "srm")
    assert row["status"] == "suspect"
    assert "c 0 of 120.0 expected" in row["detail"]
    assert (number(tables, B)["status"], number(tables, B)["design"]) == ("suspect", "observational")
    assert number(tables, B)["reasons"] == ["srm", "not_randomized"]
    assert set(decide_gates(tables, criteria, B, A)["verdict"]) == {"inconclusive"}


def test_each_epoch_is_held_to_its_own_probabilities(trial: Trial, run: Run, criteria: Criteria) -> None:
    base = trial({"a": 0.5, "b": 0.5}, n=1200)
    # Over both epochs a and b split evenly; within each 3 to 1.
    epoch = (
        pl.when((pl.col("model") == "a") == (pl.int_range(pl.len()) % 4 > 0)).then(pl.lit("e1")).otherwise(pl.lit("e2"))
    )
    base = assigned(base.with_columns(routing_epoch=epoch))
    half = {"a": 0.5, "b": 0.5}
    wrong = rows_of(run(base, criteria, arms=pl.concat([arms(half), arms(half, "e2")])), "srm")
    assert {subject: row["status"] for subject, row in wrong.items()} == {
        "sessions in ab, e1": "suspect", "sessions in ab, e2": "suspect", "all epochs": "suspect",
    }  # fmt: skip
    told = pl.concat([arms({"a": 0.75, "b": 0.25}), arms({"a": 0.25, "b": 0.75}, "e2")])
    right = rows_of(run(base, criteria, arms=told), "srm")
    assert {row["status"] for row in right.values()} == {"ok"}
    counts = dict(
        base.group_by("routing_epoch", "model").len().select(pl.concat_str("routing_epoch", "model"), "len").rows()
    )
    found = [
        stats.chisquare([counts[f"{e}a"], counts[f"{e}b"]], [share * (counts[f"{e}a"] + counts[f"{e}b"]) for share in shares])
        for e, shares in (("e1", (0.75, 0.25)), ("e2", (0.25, 0.75)))
    ]  # fmt: skip
    holm = min(1.0, 2 * min(one.pvalue for one in found))
    assert min(right[f"sessions in ab, {e}"]["value"] for e in ("e1", "e2")) == pytest.approx(holm)
    pooled = stats.chi2.sf(sum(one.statistic for one in found), 2)
    assert right["all epochs"]["value"] == pytest.approx(pooled)


def test_users_count_once(trial: Trial, run: Run, criteria: Criteria, check: Check) -> None:
    """One user with many sessions is one draw of the lottery."""
    base = trial({"a": 0.5, "b": 0.5}, n=N)
    own = base.with_columns(user_id=pl.concat_str("model", pl.int_range(pl.len()) % 50))
    tables = run(assigned(own, "user"), criteria, arms=arms({"a": 0.5, "b": 0.5}, unit="user"))
    row = check(tables, "srm")
    assert row["value"] == pytest.approx(1.0)
    assert "100 users by assigned arm" in row["detail"]
    assert check(tables, "multiple_exposure")["value"] == 0.0


@pytest.mark.parametrize(
    ("shares", "why"),
    [
        ({"a": 0.5, "b": 0.3}, "sum to 0.8"),
        ({"a": 0.5, "b": None}, "no probability"),
        ({"a": (0.4, 0.6), "b": 0.5}, "or several"),
    ],
)
def test_shares_that_are_not_known_are_not_checked(
    trial: Trial, run: Run, criteria: Criteria, check: Check, shares: Any, why: str
) -> None:
    row = check(run(assigned(trial({"a": 0.5, "b": 0.5}, n=N)), criteria, arms=arms(shares)), "srm")
    assert (row["status"], row["value"]) == ("unavailable", None)
    assert why in row["detail"]


@pytest.mark.parametrize(("n_both", "status"), [(3, "ok"), (30, "suspect")])
def test_users_who_met_several_versions_are_told_and_stay(
    trial: Trial, run: Run, criteria: Criteria, check: Check, n_both: int, status: str,
    number: Callable[..., dict[str, Any]],
) -> None:  # fmt: skip
    base = trial({"a": 0.5, "b": 0.5}, n=N)
    user = pl.concat_str("model", pl.int_range(pl.len()) % 100)
    both = pl.int_range(pl.len()) % 100 < n_both
    mixed = base.with_columns(
        user_id=pl.when(both).then(pl.concat_str(pl.lit("x"), pl.int_range(pl.len()) % 100)).otherwise(user)
    )
    tables = run(assigned(mixed, "user"), criteria, arms=arms({"a": 0.5, "b": 0.5}, unit="user"))
    row = check(tables, "multiple_exposure")
    met = mixed.group_by("user_id").agg(n=pl.col("model").n_unique())["n"]
    assert row["value"] == pytest.approx((met > 1).mean())
    assert f"{(met > 1).sum()} of {met.len()} users" in row["detail"]
    assert (row["status"], row["bound"]) == (status, 0.05)
    assert number(tables, A)["n_sessions"] + number(tables, B)["n_sessions"] == N
    assert ("multiple_exposure" in number(tables, A)["reasons"]) is (status == "suspect")


@pytest.mark.parametrize(("every", "status"), [(50, "ok"), (5, "suspect")])
def test_sessions_that_another_version_served(
    trial: Trial, run: Run, criteria: Criteria, check: Check, every: int, status: str,
    number: Callable[..., dict[str, Any]],
) -> None:  # fmt: skip
    base = assigned(trial({"a": 0.4, "b": 0.8}, n=N))
    # Assigned to b and served by a: some outage of b.
    fell = (pl.col("model") == "a") & (pl.int_range(pl.len()) % every == 0)
    moved = base.with_columns(
        assigned_arm=pl.when(fell).then(pl.lit("* · * · b")).otherwise("assigned_arm"), is_as_assigned=~fell
    )
    tables = run(moved, criteria, arms=arms({"a": 0.5, "b": 0.5}))
    n = int((~moved["is_as_assigned"]).sum())
    row = check(tables, "non_compliance")
    assert row["value"] == pytest.approx(n / N)
    assert row["status"] == status
    assert ("non_compliance" in number(tables, A)["reasons"]) is (status == "suspect")
    by_told = rows_of(tables, "intention_to_treat")
    assigned_b = moved.filter(pl.col("assigned_arm") == "* · * · b")["positive_outcome_num"]
    assert by_told[B]["value"] == pytest.approx(assigned_b.mean())
    assert f"of {assigned_b.len()} sessions assigned to it" in by_told[B]["detail"]
    assert "intention_to_treat" not in set(
        run(base, criteria, arms=arms({"a": 0.5, "b": 0.5}))["analysis.diagnostics"]["check_name"]
    )


def test_without_a_ledger_nothing_is_said(trial: Trial, run: Run, criteria: Criteria, check: Check) -> None:
    tables = run(trial({"a": 0.5, "b": 0.5}, n=N), criteria)
    assert check(tables, "srm")["status"] == "unavailable"
    assert not {"multiple_exposure", "non_compliance"} & set(tables["analysis.diagnostics"]["check_name"])


def test_small_cells_are_drawn_and_not_looked_up() -> None:
    """One unit in an arm of 1 in 2,000 is no mismatch among 20; the chi-square limit says p = 1e-22."""
    rare = sample_ratio([[19.0, 1.0]], [[0.9995, 0.0005]], seed=1)
    exact = stats.binomtest(1, 20, 0.0005, alternative="greater").pvalue
    assert rare.pooled[2] == pytest.approx(exact, abs=0.004)
    assert stats.chi2.sf(rare.statistic[0], 1) < 1e-20
    small = sample_ratio([[4.0, 4.0], [1.0, 7.0]], [[0.5, 0.5], [0.5, 0.5]], seed=1)
    assert small.p[1] == pytest.approx(2 * stats.binomtest(1, 8, 0.5).pvalue, abs=0.02)
    gone = sample_ratio([[0.0, 20.0]], [[1.0, 0.0]], seed=1)
    assert (gone.p[0], gone.pooled[2]) == (0.0, 0.0)


def test_a_rare_arm_hides_no_mismatch_of_one_epoch_among_many() -> None:
    shares = np.tile([0.499, 0.499, 0.002], (30, 1))
    counts = shares * 1_000
    counts[7] = [800.0, 198.0, 2.0]
    p = sample_ratio(counts, shares, seed=1).p
    assert p[7] < 0.001
    assert (np.delete(p, 7) > 0.5).all()
