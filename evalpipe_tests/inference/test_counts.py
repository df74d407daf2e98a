"""Rates of attempts and pairs, surveys, two proportions, and movement between windows."""

from __future__ import annotations

from math import isnan, nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from evalpipe.inference import adjust, agresti_coull, sessions_per_arm_proportions
from evalpipe.inference.attempts import attempt_rates, task_rates
from evalpipe.inference.gates import gate, margin_p_values
from evalpipe.inference.movement import kitagawa, simpson_flag, split_rate
from evalpipe.inference.paired import paired_difference
from evalpipe.inference.power import sessions_per_arm_arcsine
from evalpipe.inference.simultaneous import single_step_adjusted, stepdown_adjusted
from evalpipe.inference.survey import hajek_ratio, horvitz_thompson_total, inclusion_weights
from evalpipe.inference.two_proportions import margin_test, miettinen_nurminen, restricted_variance

ATTEMPTS = ["failure", "assisted_success", "invalid", "autonomous_success", "timeout"]
TASK, INDEX, PARENT = np.array([0, 0, 1, 2, 3]), np.array([0, 1, 0, 0, 0]), np.array([-1, 0, -1, -1, -1])


def test_attempts_by_hand() -> None:
    found = attempt_rates(ATTEMPTS)
    assert (found.n_all, found.n_eval) == (5, 4)
    assert sum(found.counts.values()) == found.n_all
    assert (found.autonomous, found.assisted, found.non_completion, found.invalid_rate) == (0.25, 0.25, 0.5, 0.2)
    assert isnan(attempt_rates(["invalid"]).autonomous)
    assert isnan(attempt_rates([]).invalid_rate)
    with pytest.raises(ValueError, match="got success"):
        attempt_rates(["success"])


def test_tasks_by_hand() -> None:
    found = task_rates(TASK, INDEX, PARENT, ATTEMPTS)
    assert (found.t_all, found.t_eval, found.t_first, found.t_eventual) == (4, 3, 1, 2)
    assert (found.first_attempt, found.eventual, found.operational) == (0.25, pytest.approx(2 / 3), 0.5)
    assert (found.attempts_per_task, found.retry_rate) == (1.25, 0.2)


@pytest.mark.parametrize(
    ("index", "parent"),
    [
        ([0, 1, 0, 0, 0], [-1, -1, -1, -1, -1]),
        ([0, 2, 0, 0, 0], [-1, 0, -1, -1, -1]),
        ([0, 1, 0, 0, 0], [-1, 2, -1, -1, -1]),
        ([0, 0, 0, 0, 0], [-1, -1, -1, -1, -1]),
        ([0, 1, 0, 0, 0], [1, 0, -1, -1, -1]),
    ],
    ids=["no parent", "a retry is missing", "parent of another task", "two firsts", "a first with a parent"],
)
def test_a_broken_lineage_has_no_eventual_rate(index: list[int], parent: list[int]) -> None:
    found = task_rates(TASK, np.array(index), np.array(parent), ATTEMPTS)
    assert (found.status, found.reason) == ("unavailable", "unknown_lineage")
    assert isnan(found.eventual)
    assert found.t_all == 4


def test_no_tasks() -> None:
    none = np.zeros(0, dtype=int)
    assert task_rates(none, none, none, []).reason == "no_tasks"
    with pytest.raises(ValueError, match="one length"):
        task_rates(TASK, INDEX, PARENT[:2], ATTEMPTS)
    with pytest.raises(ValueError, match="place below 5"):
        task_rates(TASK, INDEX, np.array([-1, 9, -1, -1, -1]), ATTEMPTS)


def test_pairs_by_hand() -> None:
    old = np.array([1, 1, 0, 0, 0, 1], dtype=bool)
    new = np.array([1, 0, 1, 1, 1, 1], dtype=bool)
    found = paired_difference(old, new)
    assert found.fail_to_pass.tolist() == [2, 3, 4]
    assert found.pass_to_fail.tolist() == [1]
    assert found.p == pytest.approx(2 * (1 + 4) / 16)
    assert found.estimate == pytest.approx(2 / 6)
    assert found.se == pytest.approx(sqrt(4 - 4 / 6) / 6)
    same = paired_difference(old, old)
    assert (same.status, same.reason, same.p) == ("unavailable", "no_variation", 1.0)
    assert isnan(same.lo)
    empty = paired_difference(old[:0], old[:0])
    assert (empty.reason, empty.n) == ("no_tasks", 0)
    assert isnan(empty.p)
    with pytest.raises(ValueError, match="shape"):
        paired_difference(old, new[:3])


def test_survey_by_hand() -> None:
    y, user = np.array([1.0, 0.0, 1.0]), np.array([0, 0, 1])
    w = inclusion_weights(np.array([0.5, 0.5, 0.25]))
    mean = hajek_ratio(y, w, user)
    assert mean.estimate == pytest.approx(6 / 8)
    # User sums 2 (1 - 3/4) + 2 (0 - 3/4) = -1 and 1, over 8.
    assert mean.se == pytest.approx(sqrt(2 * (1 + 1)) / 8)
    assert mean.ess == pytest.approx(64 / 24)
    total = horvitz_thompson_total(y, w, user)
    assert (total.estimate, total.se) == (6.0, pytest.approx(sqrt(2 * ((2 - 3) ** 2 + (4 - 3) ** 2))))
    ratio = hajek_ratio(y, w, user, np.array([2.0, 2.0, 1.0]))
    assert ratio.estimate == pytest.approx(6 / 12)
    part = hajek_ratio(y, w, user, inside=np.array([True, True, False]))
    assert part.estimate == 0.5


def test_survey_says_why_not() -> None:
    y, w = np.array([1.0, 0.0]), np.ones(2)
    one = hajek_ratio(y, w, np.zeros(2, dtype=int))
    assert (one.status, one.reason, one.estimate) == ("unavailable", "one_user", 0.5)
    assert isnan(one.se)
    assert hajek_ratio(y, w, np.arange(2), inside=np.zeros(2, dtype=bool)).reason == "no_sessions"
    assert hajek_ratio(y, w, np.arange(2), np.zeros(2)).reason == "zero_denominator"
    assert horvitz_thompson_total(y[:0], w[:0], np.zeros(0, dtype=int)).reason == "no_sessions"
    for bad in (0.0, -0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match=r"\(0, 1\]"):
            inclusion_weights(np.array([bad]))


@given(st.integers(0, 40), st.integers(1, 40), st.integers(0, 40), st.integers(1, 40), st.floats(-0.9, 0.9))
def test_restricted_rates_are_the_likeliest(x1: int, n1: int, x2: int, n2: int, difference: float) -> None:
    x1, x2 = min(x1, n1), min(x2, n2)

    def variance(q2: float) -> float:
        q1 = q2 + difference
        return q1 * (1 - q1) / n1 + q2 * (1 - q2) / n2

    def loss(q2: float) -> float:
        q1 = q2 + difference
        terms = ((x1, q1), (n1 - x1, 1 - q1), (x2, q2), (n2 - x2, 1 - q2))
        return -sum(x * np.log(max(q, 1e-300)) for x, q in terms if x)

    low, high = max(0.0, -difference), min(1.0, 1.0 - difference)
    grid = np.linspace(low, high, 400)
    start = grid[np.argmin([loss(q) for q in grid])]
    step = (high - low) / 400
    best = optimize.minimize_scalar(loss, bounds=(max(low, start - step), min(high, start + step)), method="bounded")
    assert restricted_variance(x1, n1, x2, n2, difference) == pytest.approx(variance(float(best.x)), abs=2e-5)


def test_margin_by_hand() -> None:
    found = margin_test(80, 100, 80, 100, 0.1)
    assert found.difference == 0.0
    assert found.se == pytest.approx(sqrt(2 * 0.16 / 100))
    z = 0.1 / found.se
    assert found.p_wald == found.p_equivalence == pytest.approx(stats.norm.sf(z))
    assert found.lo == pytest.approx(-1.644854 * found.se, rel=1e-6)
    assert margin_test(0, 0, 1, 2, 0.1).reason == "no_sessions"
    assert margin_test(9, 9, 9, 9, 0.1).reason == "no_variation"
    with pytest.raises(ValueError, match="margin"):
        margin_test(1, 2, 1, 2, 0.0)
    with pytest.raises(ValueError, match="restricted"):
        restricted_variance(1, 2, 1, 2, 0.1, "pooled")


def test_score_limits_are_where_the_test_turns() -> None:
    lo, hi = miettinen_nurminen(30, 50, 20, 60)
    for limit in (lo, hi):
        z2 = (0.6 - 1 / 3 - limit) ** 2 / (restricted_variance(30, 50, 20, 60, limit) * 110 / 109)
        assert z2 == pytest.approx(1.959964**2, rel=1e-5)
    assert lo < 0.6 - 1 / 3 < hi
    turned = miettinen_nurminen(20, 60, 30, 50)
    np.testing.assert_allclose(turned, (-hi, -lo), atol=1e-9)
    ends = miettinen_nurminen(10, 10, 0, 10)
    assert ends[1] == 1.0
    assert 0.5 < ends[0] < 1.0
    # The rates of statsmodels up to 0.15 are others, and only on request.
    assert abs(miettinen_nurminen(30, 50, 20, 60, restricted="statsmodels")[0] - lo) > 1e-6
    assert all(isnan(v) for v in miettinen_nurminen(1, 2, 0, 0))


def test_p_values_and_limits_of_a_gate_agree() -> None:
    not_inferior, inferior = margin_p_values(-0.02, 0.01, 30.0, 0.04)
    assert not_inferior + inferior == pytest.approx(1.0)
    assert not_inferior == pytest.approx(stats.t.sf(2.0, 30))
    assert (not_inferior < 0.05) == (gate(-0.02, 0.01, 30.0, nan, 0.04, "non_inferiority").verdict == "pass")
    assert all(isnan(p) for p in margin_p_values(0.1, 0.0, 30.0, 0.04))


def test_more_adjustments_by_hand() -> None:
    p = np.array([0.01, 0.04, np.nan, 0.03])
    np.testing.assert_allclose(adjust(p, "bonferroni"), [0.03, 0.12, np.nan, 0.09])
    np.testing.assert_allclose(adjust(p, "hochberg"), [0.03, 0.04, np.nan, 0.04])
    lo, hi = agresti_coull(0, 10)
    assert lo == 0.0
    assert hi > 0.3
    assert isnan(agresti_coull(0, 0)[0])


def test_single_step_is_never_smaller_than_step_down() -> None:
    draws = np.random.default_rng(1).normal(size=(5_000, 3))
    p, se = np.array([0.001, 0.03, 0.4]), np.ones(3)
    single, down = single_step_adjusted(p, draws, se), stepdown_adjusted(p, draws, se)
    assert (single >= down - 1e-12).all()
    assert single[0] == down[0]
    assert single[1] == pytest.approx(1 - 0.97**3, abs=0.02)


def test_both_planning_scales_agree_where_proportions_are_close() -> None:
    normal, arcsine = sessions_per_arm_proportions(0.5, 0.52), sessions_per_arm_arcsine(0.5, 0.52)
    assert arcsine == pytest.approx(normal, rel=1e-3)
    h = 2 * (np.arcsin(sqrt(0.8)) - np.arcsin(sqrt(0.6)))
    assert sessions_per_arm_arcsine(0.6, 0.8) == pytest.approx(2 * ((1.959964 + 0.841621) / h) ** 2, rel=1e-4)


WEIGHTS = st.lists(
    st.tuples(st.floats(0.1, 9), st.floats(0, 1), st.floats(0.1, 9), st.floats(0, 1)), min_size=1, max_size=6
)


@given(WEIGHTS)
def test_parts_of_a_movement_add_up(rows: list[tuple[float, float, float, float]]) -> None:
    w0, r0, w1, r1 = (np.array(column) for column in zip(*rows, strict=True))
    found = kitagawa(w0, r0, w1, r1)
    parts = found.rate.sum() + found.mix.sum() + found.entry_exit.sum()
    assert parts == pytest.approx(found.total, abs=1e-9)
    assert found.mix_centred.sum() == pytest.approx(found.mix.sum(), abs=1e-9)
    back = kitagawa(w1, r1, w0, r0)
    np.testing.assert_allclose(back.rate, -found.rate, atol=1e-12)
    np.testing.assert_allclose(back.mix, -found.mix, atol=1e-12)


def test_movement_by_hand() -> None:
    found = kitagawa(np.array([1.0, 1.0]), np.array([0.2, 0.8]), np.array([1.0, 3.0]), np.array([0.4, 0.8]))
    np.testing.assert_allclose(found.rate, [0.375 * 0.2, 0.0])
    np.testing.assert_allclose(found.mix, [0.3 * -0.25, 0.8 * 0.25])
    assert found.total == pytest.approx(0.7 - 0.5)
    own = (np.array([0.2, 0.8]), np.array([0.4, 0.8]))
    reference = (np.array([0.1, 0.5]), np.array([0.1, 0.9]))
    split = split_rate(np.array([1.0, 1.0]), np.array([1.0, 3.0]), own, reference)
    differences = kitagawa(np.array([1.0, 1.0]), own[0] - reference[0], np.array([1.0, 3.0]), own[1] - reference[1])
    np.testing.assert_allclose(split.own + split.reference, differences.rate)
    assert split.reference[1] < 0


def test_a_stratum_of_one_window_is_neither_rate_nor_mix() -> None:
    found = kitagawa(np.array([1.0, 1.0]), np.array([0.2, 0.6]), np.array([1.0, 0.0]), np.array([0.2, nan]))
    np.testing.assert_allclose(found.entry_exit, [0.0, -0.3])
    assert found.rate.tolist() == [0.0, 0.0]
    assert found.total == pytest.approx(0.2 - 0.4)
    assert isnan(kitagawa(np.zeros(1), np.zeros(1), np.ones(1), np.zeros(1)).total)
    with pytest.raises(ValueError, match="missing"):
        kitagawa(np.ones(1), np.array([nan]), np.ones(1), np.zeros(1))
    with pytest.raises(ValueError, match="negative"):
        kitagawa(-np.ones(1), np.zeros(1), np.ones(1), np.zeros(1))


def test_reversals() -> None:
    open_ends, sure_up, sure_down = (-0.1, 0.1), (0.01, 0.1), (-0.1, -0.01)
    strata = np.array([0.1, -0.2])
    assert simpson_flag(0.05, -0.05, sure_up, sure_down, strata) == "reversal"
    assert simpson_flag(0.05, -0.05, sure_up, open_ends, strata) == "sign_differs"
    assert simpson_flag(0.05, 0.05, sure_up, sure_up, strata) == ""
    assert simpson_flag(0.05, -0.05, sure_up, sure_down, np.array([-0.1, -0.2, nan])) == "uniform_reversal"
    assert simpson_flag(nan, -0.05, sure_up, sure_down, strata) == ""
    assert simpson_flag(0.0, -0.05, sure_up, sure_down, strata) == ""
