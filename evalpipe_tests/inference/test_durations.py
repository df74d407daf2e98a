from __future__ import annotations

from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.inference.durations.competing import cumulative_incidence, logrank
from evalpipe.inference.durations.kaplan_meier import (
    kaplan_meier,
    pseudo_restricted_means,
    quantile,
    restricted_mean,
)
from evalpipe.inference.durations.recovery import recovery_curve, steerability_score

TIME = np.array([1.0, 2.0, 2.0, 3.0, 5.0])
EVENT = np.array([True, True, False, True, False])
TIMES = st.lists(st.tuples(st.integers(1, 30), st.booleans()), min_size=3, max_size=30)


def test_curve_by_hand() -> None:
    found = kaplan_meier(TIME, EVENT)
    np.testing.assert_allclose(found.time, [1, 2, 3, 5])
    np.testing.assert_allclose(found.at_risk, [5, 4, 2, 1])
    np.testing.assert_allclose(found.survival, [0.8, 0.6, 0.3, 0.3])
    assert found.se[1] == pytest.approx(0.6 * sqrt(1 / (5 * 4) + 1 / (4 * 3)))
    assert ((found.lo < found.survival) & (found.survival < found.hi)).all()
    s, se, lo, _ = found.at(np.array([0.5, 2.5]))
    assert (s[0], se[0], s[1]) == (1.0, 0.0, pytest.approx(0.6))
    assert isnan(lo[0])


def test_quantiles_and_what_is_not_reached() -> None:
    found = kaplan_meier(TIME, EVENT)
    assert quantile(found, 0.5).value == 3.0
    assert quantile(found, 0.4).value == 2.0
    late = quantile(found, 0.9)
    assert (late.status, late.reason) == ("unavailable", "not_reached")
    assert isnan(late.value)
    assert quantile(kaplan_meier(TIME[:0], EVENT[:0]), 0.5).reason == "no_observations"
    assert quantile(kaplan_meier(TIME, np.zeros(5, dtype=bool)), 0.5).reason == "not_reached"


def test_restricted_mean_by_hand() -> None:
    found = restricted_mean(kaplan_meier(TIME, EVENT), 4.0)
    assert found.mean == pytest.approx(1 + 0.8 + 0.6 + 0.3)
    left = [0.8 + 0.6 + 0.3, 0.6 + 0.3, 0.3]
    variance = sum(a**2 * v for a, v in zip(left, [1 / 20, 1 / 12, 1 / 2], strict=True))
    assert found.se == pytest.approx(sqrt(variance))
    beyond = restricted_mean(kaplan_meier(TIME, EVENT), 6.0)
    assert (beyond.status, beyond.reason) == ("unavailable", "horizon_not_observed")
    # Everybody has left by 2: the area beyond is known, and is 0.
    assert restricted_mean(kaplan_meier(np.array([1.0, 2.0]), np.ones(2, dtype=bool)), 9.0).mean == 1.5
    assert restricted_mean(kaplan_meier(TIME[:0], EVENT[:0]), 1.0).reason == "no_observations"


@given(TIMES)
def test_a_pseudo_observation_is_what_a_session_adds(rows: list[tuple[int, bool]]) -> None:
    time, event = np.array([float(t) for t, _ in rows]), np.array([e for _, e in rows])
    tau = float(time.max()) / 2
    pseudo = pseudo_restricted_means(time, event, tau)
    whole = restricted_mean(kaplan_meier(time, event), tau).mean
    for i in range(len(time)):
        rest = np.arange(len(time)) != i
        without = restricted_mean(kaplan_meier(time[rest], event[rest]), tau)
        if without.status == "ok":
            n = len(time)
            assert pseudo[i] == pytest.approx(n * whole - (n - 1) * without.mean, abs=1e-9)


def test_many_sessions_are_left_out_in_the_limit() -> None:
    rng = np.random.default_rng(1)
    time, event = rng.integers(1, 60, 900).astype(float), rng.random(900) < 0.8
    many = pseudo_restricted_means(time, event, 40.0)
    few = pseudo_restricted_means(time[:450], event[:450], 40.0)
    mean = restricted_mean(kaplan_meier(time, event), 40.0)
    assert many.mean() == pytest.approx(mean.mean, abs=0.01)
    # The same session says nearly the same in half of the sample, left out in earnest.
    np.testing.assert_allclose(many[:450], few, atol=2.0)
    assert np.corrcoef(many[:450], few)[0, 1] > 0.999
    assert many.std() / np.sqrt(900) == pytest.approx(mean.se, rel=0.02)


@given(TIMES)
def test_without_censoring_nothing_is_estimated(rows: list[tuple[int, bool]]) -> None:
    time = np.array([float(t) for t, _ in rows])
    every = np.ones(len(time), dtype=bool)
    tau = 12.0
    found = kaplan_meier(time, every)
    s, _, _, _ = found.at(np.array([tau]))
    assert s[0] == pytest.approx((time > tau).mean())
    assert restricted_mean(found, tau).mean == pytest.approx(np.minimum(time, tau).mean())
    np.testing.assert_allclose(pseudo_restricted_means(time, every, tau), np.minimum(time, tau), atol=1e-9)
    # Causes share out what the curve has lost.
    cause = np.arange(len(time)) % 2 + 1
    parts = cumulative_incidence(time, cause, np.array([tau]), 2)
    assert parts.sum() == pytest.approx(1 - s[0])


def test_incidence_by_hand() -> None:
    found = cumulative_incidence(TIME, np.array([1, 2, 0, 1, 0]), np.array([0.5, 1, 2, 3, 9]), 2)
    np.testing.assert_allclose(found[0][:4], [0, 0.2, 0.2, 0.5])
    np.testing.assert_allclose(found[1][:4], [0, 0, 0.2, 0.2])
    # Somebody still waited at 5: nothing is known of 9.
    assert np.isnan(found[:, 4]).all()
    assert np.isnan(cumulative_incidence(TIME[:0], np.zeros(0, dtype=int), np.ones(1), 1)).all()
    with pytest.raises(ValueError, match="cause"):
        cumulative_incidence(TIME, np.array([1, 2, 0, 1, 3]), np.ones(1), 2)


def test_logrank_by_hand() -> None:
    # At 1: 1 event among 2 + 2; at 2: 1 among 1 + 2; at 3: 1 among 1 + 1, then nobody varies.
    time, event = np.array([1.0, 3.0, 2.0, 4.0]), np.array([True, True, True, False])
    group = np.array([0, 0, 1, 1])
    gap = (1 - 0.5) + (0 - 1 / 3) + (1 - 0.5)
    variance = 0.25 + 2 / 9 + 0.25
    statistic, df, p = logrank(time, event, group)
    assert (statistic, df) == (pytest.approx(gap**2 / variance), 1)
    assert 0 < p < 1
    assert logrank(time, event, group + 7)[0] == pytest.approx(statistic)
    assert isnan(logrank(time, event, np.zeros(4, dtype=int))[0])
    assert isnan(logrank(time, ~event | event & False, group * 0)[2])


def test_times_are_checked() -> None:
    for bad in ([1.0, np.nan], [1.0, np.inf], [1.0, -1.0]):
        with pytest.raises(ValueError, match="finite"):
            kaplan_meier(np.array(bad), np.ones(2, dtype=bool))
    with pytest.raises(ValueError, match="shape"):
        kaplan_meier(np.ones(2), np.ones(3, dtype=bool))


def test_recovery() -> None:
    assert steerability_score([0, 0, 1], 0) == 0.5
    assert steerability_score([1, 0, 0], 0) == 0.0
    assert steerability_score([1, 0], 1) == 0.0
    with pytest.raises(ValueError, match="correction_index"):
        steerability_score([1], 1)
    # Two recover after one turn; one session ends after one turn, which says less than never.
    curve = recovery_curve(np.array([1.0, 1.0, 1.0, 3.0]), np.array([True, True, False, True]))
    np.testing.assert_allclose(curve.survival, [0.5, 0.0])
    with pytest.raises(ValueError, match="whole"):
        recovery_curve(np.array([1.5]), np.array([True]))
