"""Checks that warn and stop no number: carry-over between versions, routing that follows earlier numbers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from evalpipe.analysis.carry_over import LIMIT, came_from_another
from evalpipe.analysis.carry_over import _limit as limit_of
from evalpipe.analysis.evidence.headline import Headline
from evalpipe.criteria import Criteria
from evalpipe_tests.analysis.conftest import Scored

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
Check = dict[str, Any]


def rows_of(tables: Scored, name: str) -> list[Check]:
    found = tables["analysis.diagnostics"].filter(check_name=name).sort("subject")
    return list(found.iter_rows(named=True))


def claims(tables: Scored) -> str:
    (row,) = [row for row in rows_of(tables, "plan") if row["subject"] == "claims"]
    return str(row["detail"])


@pytest.fixture
def visits(make_outcomes: Callable[..., pl.DataFrame]) -> Callable[..., pl.DataFrame]:
    """Users of four sessions each, a version drawn for each; ``gain`` for m-0 after another version."""

    def make(gain: float, n_users: int = 250, n_versions: int = 2, seed: int = 1) -> pl.DataFrame:
        rng = np.random.default_rng(seed)
        version = rng.integers(0, n_versions, (n_users, 4))
        came = np.zeros_like(version, dtype=bool)
        came[:, 1:] = version[:, 1:] != version[:, :-1]
        success = rng.random(version.shape) < 0.4 + gain * (came & (version == 0))
        at = [START + timedelta(hours=6 * t, minutes=u % 50) for u in range(n_users) for t in range(4)]
        users = [f"u{u:04d}" for u in range(n_users) for _ in range(4)]
        # Rows come in an order that is not that of time.
        order = rng.permutation(4 * n_users).tolist()
        return make_outcomes(
            [f"m-{version.ravel()[i]}" for i in order],
            success.ravel()[order],
            user_id=[users[i] for i in order],
            started_at=[at[i] for i in order],
            day=[at[i].date() for i in order],
        )

    return make


def test_a_session_comes_from_the_version_of_the_user_s_session_before(
    visits: Callable[..., pl.DataFrame], headline_of: Callable[..., Headline], with_estimand: Callable[..., Criteria]
) -> None:
    headline = headline_of(visits(0.0, n_users=40), with_estimand())
    sessions = headline.population.sessions
    told = came_from_another(headline)
    before: dict[str, str] = {}
    at = {name: place for place, name in enumerate(sessions["session_id"])}
    for row in sessions.sort("started_at").iter_rows(named=True):
        expected = before.get(row["user_id"], row["version"]) != row["version"]
        assert told[at[row["session_id"]]] == expected
        before[row["user_id"]] = row["version"]
    assert 0 < told.sum() < len(told)


def test_what_is_carried_over_is_told_and_stops_no_number(
    visits: Callable[..., pl.DataFrame], run: Callable[..., Scored], with_estimand: Callable[..., Criteria],
    number: Callable[..., dict[str, Any]],
) -> None:  # fmt: skip
    tables = run(visits(0.5), with_estimand())
    one, other = rows_of(tables, "carry_over")
    assert [one["subject"], other["subject"]] == ["acme · m-0", "acme · m-1"]
    assert one["value"] == pytest.approx(other["value"])
    assert one["value"] > one["bound"] == LIMIT
    assert one["status"] == other["status"] == "inconclusive"
    assert "what was met before acts" in one["detail"].lower()
    assert "users who have met no other (carry_over)" in claims(tables)
    assert number(tables, "acme · m-0")["status"] == "ok"
    assert number(tables, "acme · m-0")["rank_lo"] is not None


def test_nothing_carried_over_passes(
    visits: Callable[..., pl.DataFrame], run: Callable[..., Scored], with_estimand: Callable[..., Criteria]
) -> None:
    tables = run(visits(0.0), with_estimand())
    assert [row["status"] for row in rows_of(tables, "carry_over")] == ["ok", "ok"]
    assert "carry_over" not in claims(tables)


def test_without_users_who_changed_there_is_nothing_to_carry(
    visits: Callable[..., pl.DataFrame], run: Callable[..., Scored], with_estimand: Callable[..., Criteria]
) -> None:
    rows = visits(0.0)
    nobody = rows.with_columns(user_id=pl.lit(None, dtype=pl.String))
    (row,) = rows_of(run(nobody, with_estimand()), "carry_over")
    assert (row["status"], row["value"], row["subject"]) == ("unavailable", None, "users")
    sticky = rows.with_columns(user_id=pl.concat_str("user_id", "model"))
    (row,) = rows_of(run(sticky, with_estimand()), "carry_over")
    assert (row["status"], row["value"]) == ("ok", None)
    hardly = rows.with_columns(
        user_id=pl.when(pl.col("user_id") < "u0004").then("user_id").otherwise(pl.concat_str("user_id", "model"))
    )
    (row,) = rows_of(run(hardly, with_estimand()), "carry_over")
    assert (row["status"], row["detail"][:7]) == ("unavailable", "Too few")


def test_more_versions_raise_the_limit_so_that_chance_is_as_rare() -> None:
    assert limit_of(1) == limit_of(2) == pytest.approx(LIMIT)
    # Nine contrasts: the chance that one of them exceeds the limit is what it is for one.
    assert 1 - (1 - 2 * stats.norm.sf(limit_of(10))) ** 9 == pytest.approx(2 * stats.norm.sf(2.6))


@pytest.fixture
def epochs(make_outcomes: Callable[..., pl.DataFrame]) -> Callable[..., pl.DataFrame]:
    """Weeks of routing among four versions, m-3 the best; shares by epoch as given."""

    def make(shares: list[list[float]], n: int = 800, *, names: list[str] | None = None, days: int = 4) -> pl.DataFrame:
        rng = np.random.default_rng(7)
        names = names or [f"e{at}" for at in range(len(shares))]
        rate = np.array([0.2, 0.4, 0.6, 0.8])
        version = np.concatenate([np.repeat(np.arange(4), np.round(np.array(s) * n).astype(int)) for s in shares])
        epoch = np.repeat(np.arange(len(shares)), [int(np.round(np.array(s) * n).sum()) for s in shares])
        at = [START + timedelta(days=days * int(e), minutes=int(m)) for e, m in zip(epoch, rng.integers(0, 4000, len(epoch)), strict=True)]  # fmt: skip
        return make_outcomes(
            [f"m-{v}" for v in version],
            rng.random(len(version)) < rate[version],
            routing_epoch=[names[e] for e in epoch],
            started_at=at,
            day=[one.date() for one in at],
            user_id=[f"u{i}" for i in range(len(version))],
        )

    return make


FOLLOWED = [[0.25] * 4, [0.15, 0.2, 0.3, 0.35], [0.1, 0.15, 0.3, 0.45], [0.05, 0.1, 0.3, 0.55]]
#: The same changes dealt to the versions without a look at how good they are.
SHUFFLED = [[0.25] * 4, [0.30, 0.15, 0.35, 0.2], [0.20, 0.3, 0.2, 0.3], [0.3, 0.2, 0.2, 0.3]]


def test_routing_that_follows_the_numbers_is_told(
    epochs: Callable[..., pl.DataFrame], run: Callable[..., Scored], with_estimand: Callable[..., Criteria],
    number: Callable[..., dict[str, Any]],
) -> None:  # fmt: skip
    rows = epochs(FOLLOWED)
    tables = run(rows, with_estimand())
    (row,) = rows_of(tables, "feedback_loop")
    assert (row["status"], row["bound"]) == ("inconclusive", 0.5)
    assert "12 pairs" in row["detail"]
    assert "to the better numbers" in row["detail"]
    assert "follow earlier numbers (feedback_loop)" in claims(tables)
    assert number(tables, "acme · m-3")["status"] == "ok"
    # By hand: means before each epoch, in strata that are epochs, weighed by traffic, less their plain average.
    change: list[float] = []
    earlier: list[float] = []
    for at in range(1, 4):
        before = rows.filter(pl.col("routing_epoch") < f"e{at}")
        cells = before.group_by("routing_epoch", "model").agg(rate=pl.col("positive_outcome_num").mean())
        sizes = before.group_by("routing_epoch").agg(w=pl.len() / before.height)
        theta = cells.join(sizes, on="routing_epoch").group_by("model").agg(m=(pl.col("w") * pl.col("rate")).sum())
        level = theta.sort("model")["m"].to_numpy()
        earlier.extend(level - level.mean())
        change.extend(np.subtract(FOLLOWED[at], FOLLOWED[at - 1]))
    assert row["value"] == pytest.approx(stats.spearmanr(np.round(change, 9), earlier).statistic, abs=1e-9)


def test_routing_that_does_not_follow_passes(
    epochs: Callable[..., pl.DataFrame], run: Callable[..., Scored], with_estimand: Callable[..., Criteria]
) -> None:
    tables = run(epochs(SHUFFLED), with_estimand())
    (row,) = rows_of(tables, "feedback_loop")
    assert row["status"] == "ok"
    assert row["value"] is not None
    assert "feedback_loop" not in claims(tables)


def test_epochs_that_do_not_follow_each_other_are_no_changes(
    epochs: Callable[..., pl.DataFrame], run: Callable[..., Scored], with_estimand: Callable[..., Criteria]
) -> None:
    (row,) = rows_of(run(epochs(FOLLOWED, days=0), with_estimand()), "feedback_loop")
    assert (row["status"], row["value"]) == ("ok", None), "experiments side by side"
    (row,) = rows_of(run(epochs(FOLLOWED[:1]), with_estimand()), "feedback_loop")
    assert (row["status"], row["value"]) == ("ok", None)
    (row,) = rows_of(run(epochs(FOLLOWED[:2]), with_estimand()), "feedback_loop")
    assert (row["status"], row["value"]) == ("unavailable", None), "four pairs"
    (row,) = rows_of(run(epochs(FOLLOWED[:1], names=["all"]), with_estimand()), "feedback_loop")
    assert (row["status"], row["detail"][:25]) == ("unavailable", "No routing epoch is logge")
