"""What rings an alarm and what does not: a version's own loss, and neither competitors nor the mix of work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalpipe.criteria import Criteria
from evalpipe_tests.analysis.conftest import FIRST_DAY

Run = Callable[..., dict[str, pl.DataFrame]]
Make = Callable[..., pl.DataFrame]
A, B = "acme · a", "acme · b"
N_DAYS, CHANGE = 28, 16


@pytest.fixture
def nights(make_outcomes: Make, run: Run, criteria: Criteria) -> Callable[..., dict[str, list[dict[str, Any]]]]:
    """Rows by version of 28 days of some 60 sessions each of a and b; the later 12 days may differ."""

    def make(
        later: dict[str, float],
        hard: tuple[float, float] = (0.5, 0.5),
        *,
        users: Callable[[np.ndarray], np.ndarray] | None = None,
        **declared: Any,
    ) -> dict[str, list[dict[str, Any]]]:
        rng = np.random.default_rng(9)
        n = N_DAYS * 120
        day = np.arange(n) % N_DAYS
        is_late = day >= CHANGE
        names = np.array(sorted({"a", "b", *later}))
        model = np.array(["a", "b"])[rng.integers(0, 2, n)]
        model = np.where(is_late, names[rng.integers(0, len(names), n)], model)
        is_hard = rng.random(n) < np.where(is_late, hard[1], hard[0])
        gain = np.array([later.get(one, 0.0) if late else 0.0 for one, late in zip(model, is_late, strict=True)])
        success = rng.random(n) < np.where(is_hard, 0.3, 0.7) + gain
        user = rng.integers(0, 900, n) if users is None else users(model)
        outcomes = make_outcomes(
            list(model),
            success,
            scenario=["coding" if one else "chat" for one in is_hard],
            user_id=[f"u{one}" for one in user],
        ).with_columns(day=pl.Series([FIRST_DAY + timedelta(days=int(one)) for one in day]))
        used = replace(criteria, estimand=replace(criteria.estimand, **declared))
        found = run(outcomes, used)["analysis.nights"]
        return {name: found.filter(version=name).to_dicts() for name in found["version"].unique().sort()}

    return make


def rings(rows: list[dict[str, Any]]) -> bool:
    return any(row["is_alarm"] for row in rows)


def test_a_competitor_that_improves_rings_no_alarm(nights: Any) -> None:
    found = nights({"b": 0.25})
    assert not rings(found[A])
    assert not rings(found[B])
    # The number of each night moved all the same.
    late = [row["estimate"] for row in found[A][CHANGE:]]
    assert np.mean(late) < -0.08


def test_harder_work_rings_no_alarm_and_a_loss_does(nights: Any) -> None:
    harder = nights({}, hard=(0.2, 0.8))
    assert not rings(harder[A])
    assert all(abs(row["change"]) < 0.3 for row in harder[A][CHANGE:] if row["change"] is not None)
    lost = nights({"b": -0.25}, hard=(0.2, 0.8))
    assert rings(lost[B])
    assert not rings(lost[A])


def test_a_version_that_enters_leaves_the_others_where_they_were(nights: Any) -> None:
    found = nights({"c": 0.25})
    assert not rings(found[A])
    assert not rings(found[B])
    told = [row for row in found[A][CHANGE:] if row["change"] is not None]
    assert len(told) == N_DAYS - CHANGE
    # Before the third entered, other versions were compared than in the window.
    assert all("version_set_changed" in row["reasons"] and row["so_far_lo"] is None for row in found[A][:CHANGE])
    assert not any("version_set_changed" in row["reasons"] for row in found[A][CHANGE:])
    assert all(row["evidence"] is None for row in found["acme · c"])


def test_users_who_are_seen_to_stay_are_watched_by_week_whatever_was_declared(nights: Any) -> None:
    stay = nights({}, users=lambda model: np.arange(len(model)) // 2 % 300 * 2 + (model == "b"), design="observational")
    assert [row["night"] for row in stay[A]] == [FIRST_DAY + timedelta(days=7 * i) for i in range(4)]
