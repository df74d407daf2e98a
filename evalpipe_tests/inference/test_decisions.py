from __future__ import annotations

from math import isnan, nan

import numpy as np
import pytest
from scipy import stats

from evalpipe.inference import (
    Options,
    adjust,
    clopper_pearson,
    compare,
    gate,
    proportion_interval,
    sessions_per_arm,
    sessions_vs_mean,
    smallest_effect,
    smallest_effect_vs_mean,
    wilson,
)
from evalpipe.inference.intervals import stratified_trials
from evalpipe_tests.inference.helpers import draw, make

FEW = Options(permutations=9, draws=200)


@pytest.mark.parametrize(
    ("estimate", "kind", "margin", "verdict"),
    [
        (0.0, "non_inferiority", 0.05, "pass"),
        (-0.04, "non_inferiority", 0.05, "inconclusive"),
        (-0.09, "non_inferiority", 0.05, "fail"),
        (0.03, "superiority", 0.0, "pass"),
        (0.01, "superiority", 0.0, "inconclusive"),
        (-0.03, "superiority", 0.0, "fail"),
        (0.03, "superiority", 0.02, "inconclusive"),
        (0.05, "superiority", 0.02, "pass"),
    ],
)
def test_gate_lines(estimate: float, kind: str, margin: float, verdict: str) -> None:
    found = gate(estimate, 0.01, 100.0, 80.0, margin, kind)
    assert found.verdict == verdict
    assert found.df == 80.0
    assert found.lower == pytest.approx(estimate - stats.t.ppf(0.95, 80) * 0.01)
    assert bool(found.reasons) == (verdict == "inconclusive")


def test_gate_stays_open_without_evidence() -> None:
    assert gate(0.1, 0.01, 3.9, 50.0, 0.05, "non_inferiority").reasons == ("few_degrees_of_freedom",)
    assert gate(0.1, 0.01, 50.0, 3.9, 0.05, "non_inferiority").reasons == ("few_degrees_of_freedom",)
    missing = gate(nan, nan, nan, nan, 0.05, "non_inferiority")
    assert (missing.verdict, missing.reasons) == ("inconclusive", ("no_estimate",))
    assert isnan(missing.lower)
    assert gate(0.1, nan, 9.0, 9.0, 0.05, "superiority").reasons == ("no_variation",)
    blocked = gate(0.1, 0.01, 50.0, 50.0, 0.05, "non_inferiority", blockers=("suspect",))
    assert (blocked.verdict, blocked.reasons) == ("inconclusive", ("suspect",))
    assert blocked.lower > 0


@pytest.mark.parametrize(
    ("margin", "kind"), [(0.0, "non_inferiority"), (-0.1, "superiority"), (nan, "superiority"), (0.1, "other")]
)
def test_gate_refuses_nonsense(margin: float, kind: str) -> None:
    with pytest.raises(ValueError, match=r"margin|kind"):
        gate(0.0, 0.1, 10.0, 10.0, margin, kind)


def test_wilson_by_hand() -> None:
    lower, upper = wilson(5, 10)
    z2 = stats.norm.ppf(0.975) ** 2
    half = np.sqrt(z2) * np.sqrt(0.025 + z2 / 400) / (1 + z2 / 10)
    assert (lower, upper) == (pytest.approx(0.5 - half), pytest.approx(0.5 + half))
    assert proportion_interval(5, 10) == clopper_pearson(5, 10)
    assert proportion_interval(50, 100) == tuple(float(v) for v in wilson(50, 100))
    assert wilson(0, 30)[0] == 0.0
    assert wilson(30, 30)[1] == 1.0


def test_adjust_by_hand() -> None:
    p = np.array([0.03, np.nan, 0.01, 0.02])
    np.testing.assert_allclose(adjust(p, "holm"), [0.04, np.nan, 0.03, 0.04])
    np.testing.assert_allclose(adjust(p, "bh"), [0.03, np.nan, 0.03, 0.03])
    assert np.isnan(adjust(np.array([np.nan]), "holm")).all()
    with pytest.raises(ValueError, match="method"):
        adjust(p, "sidak")


def test_sizes_and_effects_are_inverse() -> None:
    effect = smallest_effect_vs_mean(850, 20, 0.25)
    assert effect == pytest.approx(0.047, abs=5e-4)
    assert sessions_vs_mean(effect, 20, 0.25) == pytest.approx(850)
    n = sessions_per_arm(0.05, 0.25, deff=1.5)
    assert smallest_effect(np.sqrt(1.5 * 2 * 0.25 / n)) == pytest.approx(0.05)
    found = compare(draw(1), FEW)
    np.testing.assert_allclose(found.mde / found.se, 1.959964 + 0.841621, atol=1e-5)


def test_rate_limits_stay_inside() -> None:
    rng = np.random.default_rng(0)
    version = rng.integers(0, 2, 60)
    y = np.where(version == 0, 1.0, (rng.random(60) < 0.1)).astype(float)
    found = compare(make(y, version), Options(permutations=9, draws=200, is_rate=True))
    n0 = int((version == 0).sum())
    # All successes: the limit is Wilson's with t(G - 1), the design effect being 1.
    assert found.theta_hi[0] == 1.0
    assert found.theta_lo[0] == pytest.approx(float(wilson(n0, n0, crit=stats.t.ppf(0.975, n0 - 1))[0]))
    assert 0.0 < found.theta_lo[1] < found.theta[1] < found.theta_hi[1] < 1.0


def test_rate_limits_widen_with_clustering() -> None:
    # Ten users, each of one outcome in all of ten sessions: about ten independent trials, not 100.
    user = np.repeat(np.arange(20), 10)
    y = (user % 3 == 0).astype(float)
    rate = Options(permutations=9, draws=200, is_rate=True)
    clustered = compare(make(y, user // 10, user=user), rate)
    single = compare(make(y, user // 10), rate)
    assert (clustered.theta_hi - clustered.theta_lo > 2.5 * (single.theta_hi - single.theta_lo)).all()


def test_rate_limits_do_not_profit_from_strata() -> None:
    # Strata explain most of the variance; the effective count still does not exceed the trials.
    stratum = np.arange(400) % 2
    version = (np.arange(400) // 2) % 2
    y = np.where(np.random.default_rng(2).random(400) < 0.1, 1 - stratum, stratum)
    found = compare(make(y, version, stratum), Options(permutations=9, draws=200, is_rate=True))
    lower, upper = wilson(found.theta * 200, 200.0, crit=stats.t.ppf(0.975, 199))
    np.testing.assert_allclose(found.theta_lo, lower)
    np.testing.assert_allclose(found.theta_hi, upper)


def test_stratified_trials() -> None:
    # One version, two strata of 10 and 40 sessions: 1 / (0.25/10 + 0.25/40) = 32.
    sizes, half = np.array([10.0, 40.0]), np.array([[0.5, 0.5]])
    np.testing.assert_allclose(stratified_trials(sizes, sizes, sizes, half), [32.0])
    # Ten sessions of weight 1 and ten of weight 3 are worth 40^2 / 100 = 16 of the 20 (Kish).
    v, vv = np.array([40.0]), np.array([100.0])
    np.testing.assert_allclose(stratified_trials(v, v, vv, np.ones((1, 1))), [16.0])


def test_graded_rates_and_counts() -> None:
    sample = draw(3)
    graded = make(0.4 + 0.2 * sample.y, sample.version, sample.stratum, sample.user)
    rate = compare(graded, Options(permutations=9, draws=200, is_rate=True))
    count = compare(graded, FEW)
    half = (count.theta_hi - count.theta_lo) / 2
    np.testing.assert_allclose(count.theta - half, count.theta_lo)
    # Graded outcomes vary less than 0/1 ones, and their limits show it.
    np.testing.assert_allclose(rate.theta_hi - rate.theta_lo, 2 * half, rtol=0.05)


def test_a_gate_asked_every_night_seldom_passes_a_loss_of_its_margin() -> None:
    """Fixed bounds pass it on some night in one of four months, which the test's own count shows."""
    rng = np.random.default_rng(1)
    nights = np.arange(1, 29) * 60
    n_fixed = n_watched = 0
    for _ in range(300):
        means = (rng.normal(-0.05, 0.7, nights[-1]).cumsum())[nights - 1] / nights
        looks = list(enumerate(zip(means.tolist(), (0.7 / np.sqrt(nights)).tolist(), strict=True)))
        n_fixed += any(gate(m, se, 500, 500, 0.05, "non_inferiority").verdict == "pass" for _, (m, se) in looks)
        n_watched += any(
            gate(m, se, 500, 500, 0.05, "non_inferiority", n_earlier=t).verdict == "pass" for t, (m, se) in looks
        )
    assert n_fixed > 0.15 * 300
    assert n_watched < 0.10 * 300
