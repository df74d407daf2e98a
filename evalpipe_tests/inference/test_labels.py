from __future__ import annotations

from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.inference.labels.ppi import rectified_mean, tuned_weight
from evalpipe.inference.labels.prevalence import misclassification_value, rogan_gladen
from evalpipe.inference.labels.signal_weights import brier_score, calibration, signal_weights


def test_rectified_mean_by_hand() -> None:
    y, f, u = np.array([1.0, 0.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0, 0.0])
    found = rectified_mean(y, f, u, weight=1.0, min_labels=1)
    # The signal says 1/4 of all, and missed one success in four.
    assert found.estimate == pytest.approx(0.25 + 0.25)
    assert found.se == pytest.approx(sqrt(0.1875 / 4 + 0.1875 / 4))
    assert rectified_mean(y, f, u, weight=0.0, min_labels=1).estimate == 0.75
    # Cov(Y, f) = 1/8; variance of all eight signals 15/64 x 8/7.
    assert tuned_weight(y, f, u) == pytest.approx((1 / 8) / (2 * 15 / 64 * 8 / 7))
    assert found.p_value(0.5) == pytest.approx(1.0)


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_a_tuned_signal_never_costs_much_and_stays_in_range(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = (rng.random(200) < 0.5).astype(float)
    f = np.where(rng.random(200) < 0.8, y, 1 - y)
    u = (rng.random(2_000) < 0.5).astype(float)
    tuned, alone = rectified_mean(y, f, u), rectified_mean(y, f, u, weight=0.0)
    assert 0.0 <= tuned.weight <= 1.0
    assert tuned.se < alone.se
    against = rectified_mean(y, 1 - f, u)
    assert against.raw_weight < 0
    assert against.weight == 0.0
    assert against.estimate == alone.estimate


def test_sessions_of_one_user_count_as_one() -> None:
    rng = np.random.default_rng(1)
    y, u = (rng.random(60) < 0.5).astype(float), (rng.random(300) < 0.5).astype(float)
    alone = (np.arange(60), np.arange(60, 360))
    assert rectified_mean(y, y, u, users=alone).se == pytest.approx(rectified_mean(y, y, u).se)
    users = tuple(np.tile(codes, 2) for codes in alone)
    twice = rectified_mean(np.tile(y, 2), np.tile(y, 2), np.tile(u, 2), weight=0.5, users=users)
    assert twice.se == pytest.approx(rectified_mean(y, y, u, weight=0.5).se)


def test_too_few_labels_give_no_number() -> None:
    some = np.tile([0.0, 1.0], 10)
    found = rectified_mean(some, some, some)
    assert (found.status, found.reason) == ("unavailable", "labels")
    assert isnan(found.estimate)
    assert isnan(found.p_value(0.5))
    assert rectified_mean(some, some, some[:0], min_labels=1).reason == "labels"
    flat = rectified_mean(some, np.ones(20), np.ones(50), min_labels=1)
    assert (flat.weight, flat.estimate) == (0.0, 0.5)
    with pytest.raises(ValueError, match="finite"):
        rectified_mean(some * np.nan, some, some)
    with pytest.raises(ValueError, match="shape"):
        rectified_mean(some, some[:3], some)


def test_rogan_gladen_by_hand() -> None:
    found = rogan_gladen(50, 100, 0.9, 0.8)
    assert found.estimate == pytest.approx(0.3 / 0.7)
    assert found.lo < found.estimate < found.hi
    assert not found.is_outside
    low = rogan_gladen(10, 100, 0.9, 0.8)
    assert low.estimate == pytest.approx(-0.1 / 0.7)
    assert (low.is_outside, low.truncated) == (True, 0.0)
    useless = rogan_gladen(50, 100, 0.6, 0.6)
    assert (useless.status, useless.reason, useless.apparent) == ("unavailable", "signal_uninformative", 0.5)
    assert isnan(useless.truncated)
    assert rogan_gladen(0, 0, 0.9, 0.9).reason == "no_sessions"
    with pytest.raises(ValueError, match="sensitivity"):
        rogan_gladen(1, 2, 1.1, 0.5)


@given(st.floats(0.05, 0.95), st.floats(0.7, 1.0), st.floats(0.7, 1.0))
def test_correction_undoes_the_error(true: float, se: float, sp: float) -> None:
    apparent = true * se + (1 - true) * (1 - sp)
    assert rogan_gladen(apparent * 1_000, 1_000, se, sp).estimate == pytest.approx(true)


def test_smallest_difference_of_error_rates_that_explains_an_effect() -> None:
    assert misclassification_value(-0.051, 20) == pytest.approx(0.051 / 1.9)
    assert isnan(misclassification_value(0.1, 1))
    assert isnan(misclassification_value(np.nan, 5))


def labelled(n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    signals = rng.integers(0, 2, (n, 2)).astype(float)
    chance = 1 / (1 + np.exp(-(2.0 * signals[:, 0] - 2.0 * signals[:, 1])))
    return signals, rng.random(n) < chance


def test_weights_have_the_sign_of_what_signals_say() -> None:
    signals, success = labelled(2_000)
    found = signal_weights(signals, success)
    assert found.status == "ok"
    assert found.coef[0] > 1.5
    assert found.coef[1] < -1.5
    assert ((found.fitted > 0) & (found.fitted < 1)).all()
    # A stronger ridge says less.
    assert abs(signal_weights(signals, success, C=0.001).coef[0]) < found.coef[0]
    # A weight of two is a session that stands there twice.
    double = signal_weights(np.tile(signals, (2, 1)), np.tile(success, 2))
    weighted = signal_weights(signals, success, weight=np.full(2_000, 2.0))
    np.testing.assert_allclose(weighted.coef, double.coef, atol=1e-8)


def test_weights_are_not_published_from_little() -> None:
    signals, success = labelled(100)
    assert signal_weights(signals, success).reason == "too_few_labels"
    assert signal_weights(signals, success, min_labels=1, min_events=99).reason == "too_few_events"
    assert signal_weights(signals, np.ones(100, dtype=bool), min_labels=1).reason == "one_outcome"
    assert np.isnan(signal_weights(signals, success).coef).all()


def test_calibration_by_hand() -> None:
    p, success = np.repeat([0.25, 0.75], 4), np.array([1, 0, 0, 0, 1, 1, 1, 0], dtype=bool)
    right = calibration(p, success, n_bins=2)
    assert right.brier == pytest.approx(0.1875)
    assert right.slope == pytest.approx(1.0, abs=1e-6)
    assert right.intercept == pytest.approx(0.0, abs=1e-6)
    assert right.ece == pytest.approx(0.0)
    assert not right.is_stale
    bold = calibration(np.repeat([0.1, 0.9], 4), success, n_bins=2)
    # log 9 was claimed where log 3 was true.
    assert bold.slope == pytest.approx(0.5, abs=1e-6)
    assert bold.is_stale
    assert bold.ece == pytest.approx(0.15)
    assert isnan(calibration(p, np.ones(8, dtype=bool)).slope)
    assert isnan(brier_score(np.zeros(0), np.zeros(0, dtype=bool)))
    assert isnan(calibration(np.zeros(0), np.zeros(0, dtype=bool)).ece)


def test_labels_that_do_not_vary_give_no_interval() -> None:
    flat, many = np.ones(40), np.ones(100)
    found = rectified_mean(flat, flat, many)
    assert (found.estimate, found.status, found.reason) == (1.0, "inconclusive", "no_variation")
    assert np.isnan([found.se, found.lo, found.hi]).all()
    some = np.arange(40) % 2.0
    alone = rectified_mean(some, some, np.tile(some, 3), users=(np.zeros(40, dtype=int), np.zeros(120, dtype=int)))
    assert (alone.estimate, alone.reason) == (0.5, "one_user")
    assert np.isnan([alone.se, alone.lo, alone.hi]).all()
