"""What moved between the halves of a window, for every population that criteria can name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalpipe.analysis.evidence.headline import Headline
from evalpipe.analysis.evidence.movement import movement_checks
from evalpipe.criteria import Criteria
from evalpipe_tests.analysis.conftest import FIRST_DAY

Run = Callable[..., dict[str, pl.DataFrame]]
A, B = "acme · a", "acme · b"
WEIGHTS = {"scenario=chat": 0.9, "scenario=coding": 0.1}


@pytest.fixture
def window(make_outcomes: Callable[..., pl.DataFrame]) -> pl.DataFrame:
    """28 days: b gets better at chat and worse at coding, while work moves from the one to the other."""
    rng = np.random.default_rng(3)
    n = 28 * 80
    day = np.arange(n) % 28
    late = day >= 14
    is_chat = rng.random(n) < np.where(late, 0.3, 0.7)
    is_b = rng.random(n) < np.where(is_chat, 0.5, 0.25)
    success = rng.random(n) < 0.5 + np.where(is_b & late, np.where(is_chat, 0.3, -0.2), 0.0)
    return make_outcomes(
        np.where(is_b, "b", "a").tolist(),
        success,
        day=[FIRST_DAY + timedelta(days=int(d)) for d in day],
        scenario=np.where(is_chat, "chat", "coding").tolist(),
        language=np.where(rng.random(n) < 0.5, "de", "en").tolist(),
        user_id=[f"u{i:04d}" for i in range(n)],
    )


def under(criteria: Criteria, population: str) -> Criteria:
    weights = WEIGHTS if population.startswith("fixed:") else {}
    strata = ("scenario", "language", "routing_epoch")
    return replace(
        criteria,
        estimand=replace(criteria.estimand, population=population, population_weights=weights, strata=strata),
    )


@pytest.mark.parametrize("population", ["traffic", "equal", "overlap", "fixed:spring"])
def test_what_moved_is_the_difference_of_the_numbers_of_two_windows(
    window: pl.DataFrame, run: Run, criteria: Criteria, population: str
) -> None:
    rules = under(criteria, population)
    start = FIRST_DAY + timedelta(days=14)

    def number(outcomes: pl.DataFrame) -> float:
        found = run(outcomes, rules)["analysis.net_improvement"].filter(
            metric="positive_outcome", slice="all", version=B
        )
        return float(found["estimate"][0])

    rows = run(window, rules)["analysis.movement"].filter(version=B).to_dicts()
    gap = number(window.filter(pl.col("day") >= start)) - number(window.filter(pl.col("day") < start))
    assert rows[0]["total"] == pytest.approx(gap)
    assert sum(row["own"] + row["reference"] + row["mix"] + row["entry_exit"] for row in rows) == pytest.approx(gap)
    assert rows[0]["total_lo"] < gap < rows[0]["total_hi"]
    by_kind = {
        kind: sum(row["mix"] for row in rows if f"scenario={kind}" in row["stratum"]) for kind in ("chat", "coding")
    }
    if population == "equal":
        assert by_kind == {"chat": pytest.approx(0.0), "coding": pytest.approx(0.0)}
    elif population == "traffic":
        assert by_kind["chat"] < -0.01
    elif population == "fixed:spring":
        # The weight of a kind stands still; what is left is the mix of languages inside it.
        assert abs(by_kind["chat"]) < 0.01


def test_a_number_that_has_no_movement_says_why(
    window: pl.DataFrame, run: Run, headline_of: Callable[..., Headline], criteria: Criteria, check: Any
) -> None:
    tables = run(window, under(criteria, "own_share"))
    assert tables["analysis.movement"].is_empty()
    row = check(tables, "movement")
    assert row["status"] == "unavailable"
    assert "own mix of work" in row["detail"]
    pooled = replace(criteria, estimand=replace(criteria.estimand, reference="stratum_mean"))
    (told,) = movement_checks(headline_of(window, pooled))
    assert "reference" in told.detail
    assert movement_checks(headline_of(window, criteria)) == []


def test_declared_weights_share_a_group_over_all_its_work_also_over_what_is_dropped(
    make_outcomes: Callable[..., pl.DataFrame], run: Callable[..., dict[str, pl.DataFrame]], criteria: Criteria
) -> None:
    rng = np.random.default_rng(3)
    n = 28 * 100
    day = np.arange(n) % 28
    is_late, is_chat, is_de = day >= 14, rng.random(n) < 0.5, rng.random(n) < 0.3
    # Coding in English is most of coding, and only a serves it.
    is_b = (rng.random(n) < 0.5) & (is_chat | is_de)
    success = rng.random(n) < 0.5 + np.where(is_b & is_late, np.where(is_chat, 0.3, -0.3), 0.0)
    outcomes = make_outcomes(
        np.where(is_b, "b", "a").tolist(), success, day=[FIRST_DAY + timedelta(days=int(d)) for d in day],
        scenario=np.where(is_chat, "chat", "coding").tolist(), language=np.where(is_de, "de", "en").tolist(),
        user_id=[f"u{i:04d}" for i in range(n)],
    )  # fmt: skip
    estimand = replace(
        criteria.estimand, population="fixed:spring", strata=("scenario", "language", "routing_epoch"),
        population_weights={"scenario=chat": 0.5, "scenario=coding": 0.5}, min_support_share=0.3,
    )  # fmt: skip

    def by_hand(inside: Any) -> float:
        kinds = [(chat, de) for chat in (True, False) for de in (True, False) if chat or de]
        cells = [(inside & (is_chat == chat), is_de == de) for chat, de in kinds]
        weight = np.array([0.5 * (group & of).sum() / group.sum() for group, of in cells])
        gap = [success[g & of & is_b].mean() - success[g & of & ~is_b].mean() for g, of in cells]
        return float(weight @ gap / weight.sum() / 2)

    moved = run(outcomes, replace(criteria, estimand=estimand))["analysis.movement"].filter(version="acme · b")
    assert moved["total"][0] == pytest.approx(by_hand(is_late) - by_hand(~is_late))


def test_a_version_of_one_half_only_is_told(
    make_outcomes: Callable[..., pl.DataFrame], run: Callable[..., dict[str, pl.DataFrame]], criteria: Criteria
) -> None:
    rng = np.random.default_rng(3)
    n = 28 * 40
    day = np.arange(n) % 28
    is_b = (rng.random(n) < 0.5) & (day < 14)
    outcomes = make_outcomes(
        np.where(is_b, "b", "a").tolist(), rng.random(n) < 0.5,
        day=[FIRST_DAY + timedelta(days=int(d)) for d in day], user_id=[f"u{i:04d}" for i in range(n)],
    )  # fmt: skip
    tables = run(outcomes, criteria)
    assert tables["analysis.movement"].is_empty()
    assert "both halves" in tables["analysis.diagnostics"].filter(check_name="movement")["detail"].item()
