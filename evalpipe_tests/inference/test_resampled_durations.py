"""Limits of quantiles of times over users drawn again, against sessions written out as often as drawn."""

from __future__ import annotations

import numpy as np

from evalpipe.inference.durations.kaplan_meier import kaplan_meier, quantile
from evalpipe.inference.durations.resampled import resampled_quantiles

Q = np.array([0.5, 0.9])


def times(n_users: int = 12, seed: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users with one to six sessions each, alike in length; some sessions are censored, some times are equal."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(n_users), rng.integers(1, 7, n_users))
    pace = rng.gamma(2.0, 20.0, n_users)
    time = np.round(pace[user] * rng.gamma(5.0, 0.2, len(user)))
    return time, rng.random(len(user)) < 0.85, user


def test_limits_are_those_of_sessions_written_out() -> None:
    time, event, user = times()
    lo, hi = resampled_quantiles(time, event, user, Q, seed=7, n=400)
    rng = np.random.Generator(np.random.PCG64(7))
    drawn = rng.multinomial(12, np.full(12, 1 / 12), size=400)
    found = np.empty((400, 2))
    for i, counts in enumerate(drawn):
        at = np.repeat(np.arange(len(time)), counts[user])
        curve = kaplan_meier(time[at], event[at])
        found[i] = [quantile(curve, q).value for q in Q]
    ordered = np.sort(np.where(np.isnan(found), np.inf, found), axis=0)
    # Of 400 the 10th and the 390th.
    np.testing.assert_array_equal(np.where(np.isfinite(ordered[9]), ordered[9], np.nan), lo)
    np.testing.assert_array_equal(np.where(np.isfinite(ordered[389]), ordered[389], np.nan), hi)
    assert lo[0] < hi[0]


def test_users_who_are_alike_in_themselves_leave_more_open_than_sessions_would() -> None:
    time, event, user = times(n_users=40, seed=5)
    time, event = np.tile(time, 4), np.ones(4 * len(time), dtype=bool)
    user = np.tile(user, 4)
    lo, hi = resampled_quantiles(time, event, user, Q[:1], seed=1)
    alone = quantile(kaplan_meier(time, event), 0.5)
    assert hi[0] - lo[0] > 1.5 * (alone.hi - alone.lo)
    # Sessions that are draws of their own have about the limits of the band.
    single = resampled_quantiles(time, event, np.arange(len(time)), Q[:1], seed=1)
    assert abs((single[1][0] - single[0][0]) / (alone.hi - alone.lo) - 1.0) < 0.35


def test_what_is_not_reached_has_no_limit() -> None:
    time, user = np.arange(1.0, 41.0), np.arange(40)
    lo, hi = resampled_quantiles(time, time <= 22, user, Q, seed=3)
    assert 10 < lo[0] < 22
    assert np.isnan([hi[0], lo[1], hi[1]]).all()
    assert np.isnan(resampled_quantiles(time, time > 0, np.zeros(40, dtype=int), Q, seed=3)).all()
    assert np.isnan(resampled_quantiles(time[:0], time[:0] > 0, user[:0], Q, seed=3)).all()
