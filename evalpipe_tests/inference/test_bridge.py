"""The same sessions under two measurements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalpipe.inference import Options, Sample, compare
from evalpipe.inference.bridge import MARGIN, bridge

FAST = Options(draws=2_000, permutations=9)
N = 20_000


def sample(y: np.ndarray, rng: np.random.Generator) -> Sample:
    n = len(y)
    version, stratum = (np.arange(n) % 3).astype(np.int32), (rng.random(n) < 0.4).astype(np.int32)
    user = (np.arange(n) // 6).astype(np.int32)
    return Sample(y, np.ones(n), version, stratum, user, np.zeros(n, dtype=np.int32), 3, 2)


def both(seed: int, moved: tuple[float, float, float]) -> tuple[Sample, Sample]:
    """An old and a new ruler: the new one calls a share of the failures of each version successes."""
    rng = np.random.default_rng(seed)
    y = (rng.random(N) < 0.5).astype(float)
    old = sample(y, rng)
    chance = 2 * np.array(moved)[old.version]
    return old, replace(old, y=np.where((y == 0) & (rng.random(N) < chance), 1.0, y))


def test_a_shift_that_all_versions_share_may_be_chained() -> None:
    found = bridge(*both(1, (0.002, 0.002, 0.002)), FAST)
    assert (found.status, found.reason) == ("ok", "")
    assert found.mean == pytest.approx(0.002, abs=0.001)
    assert (np.abs(found.shift - found.mean - found.apart) < 1e-12).all()
    assert found.mean_se < 0.001
    assert found.n_sessions.sum() == N


def test_one_version_that_is_moved_apart_is_a_break() -> None:
    found = bridge(*both(2, (0.0, 0.0, 0.05)), FAST)
    assert (found.status, found.reason) == ("inconclusive", "not_equivalent")
    assert found.lo[2] < 0.05 < found.hi[2]
    assert found.apart_lo[2] > MARGIN
    assert found.shift[:2] == pytest.approx([0.0, 0.0])


def test_pairing_beats_two_estimates_that_do_not_know_of_each_other() -> None:
    old, new = both(3, (0.01, 0.01, 0.01))
    found = bridge(old, new, FAST)
    apart = [compare(one, FAST) for one in (old, new)]
    assert found.old == pytest.approx(apart[0].theta)
    assert found.new == pytest.approx(apart[1].theta)
    se = np.sqrt(np.diag(apart[0].theta_cov) + np.diag(apart[1].theta_cov))
    assert (found.hi - found.lo < 2 * se).all(), "half as wide at least"


def test_the_paired_error_is_the_jackknife_over_users() -> None:
    rng = np.random.default_rng(4)
    y = (rng.random(120) < 0.5).astype(float)
    old = sample(y, rng)
    new = replace(old, y=np.where(rng.random(120) < 0.2, 1.0, y))
    found = bridge(old, new, FAST)
    left = []
    weights = np.bincount(old.stratum) / len(y)
    for user in np.unique(old.user):
        stay = old.user != user
        level = [
            [
                sum(w * one.y[stay & (one.version == k) & (one.stratum == s)].mean() for s, w in enumerate(weights))
                for k in range(3)
            ]
            for one in (old, new)
        ]
        left.append(np.subtract(level[1], level[0]))
    se = np.sqrt(((np.array(left) - found.shift) ** 2).sum(axis=0))
    from scipy import stats

    assert found.hi - found.shift == pytest.approx(stats.t.ppf(0.975, found.n_users - 1) * se)
    assert (found.status, found.reason) == ("inconclusive", "few_sessions")


def test_the_same_ruler_twice_moves_nothing_and_two_samples_must_be_one() -> None:
    old, _ = both(5, (0.0, 0.0, 0.0))
    found = bridge(old, old, FAST)
    assert found.status == "ok"
    assert found.shift == pytest.approx([0.0] * 3)
    assert found.apart_hi == pytest.approx([0.0] * 3)
    with pytest.raises(ValueError, match="same sessions"):
        bridge(old, replace(old, version=np.roll(old.version, 1)), FAST)
    alone = replace(old, version=np.zeros(N, dtype=np.int32))
    nothing = bridge(alone, alone, FAST)
    assert (nothing.status, nothing.reason) == ("unavailable", "no_comparator")
    assert np.isnan(nothing.shift).all()
    few = replace(old, user=(np.arange(N) % 30).astype(np.int32))
    assert bridge(few, few, FAST).reason == "few_users"
