from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from evalpipe.inference import Options, compare
from evalpipe.inference.letters import compact_letters
from evalpipe.inference.simultaneous import (
    gaussian_draws,
    normal_equivalent,
    rank_sets,
    stepdown_adjusted,
)
from evalpipe_tests.inference.helpers import draw, make


def share_letters(letters: list[str]) -> np.ndarray:
    return np.array([[bool(set(a) & set(b)) for b in letters] for a in letters])


def test_draws_have_the_covariance_of_singular_contrasts() -> None:
    cov = np.array([[2.0, -1.0, -1.0], [-1.0, 2.0, -1.0], [-1.0, -1.0, 2.0]])
    draws = gaussian_draws(cov, 50_000, np.random.SeedSequence(3))
    np.testing.assert_allclose(np.cov(draws.T), cov, atol=0.06)
    np.testing.assert_allclose(draws.sum(axis=1), 0.0, atol=1e-6)


def test_few_degrees_of_freedom_widen_ranks() -> None:
    theta, cov = np.array([1.0, 0.0]), np.eye(2) * 0.1
    draws = gaussian_draws(cov, 20_000, np.random.SeedSequence(1))
    assert rank_sets(theta, cov, np.full((2, 2), np.inf), draws, 0.05).better[0, 1]
    assert not rank_sets(theta, cov, np.full((2, 2), 2.0), draws, 0.05).better.any()
    assert normal_equivalent(np.array(2.0), np.array(5.0)) == pytest.approx(-special.ndtri(stats.t.sf(2.0, 5)))
    assert normal_equivalent(np.array(-2.0), np.array(1e9)) == pytest.approx(-2.0, abs=1e-6)


def test_adjusted_p_is_between_raw_and_bonferroni() -> None:
    cov = np.eye(6)
    draws = gaussian_draws(cov, 50_000, np.random.SeedSequence(1))
    p = np.array([0.001, 0.01, 0.03, 0.2, 0.5, 0.9])
    adjusted = stepdown_adjusted(p, draws, np.ones(6))
    assert (adjusted >= p - 0.005).all()
    assert (adjusted <= np.minimum(6 * p, 1.0) + 0.005).all()
    # Independent versions: step l is 1 - (1 - p)^(hypotheses left).
    assert adjusted[0] == pytest.approx(1 - 0.999**6, abs=0.002)
    assert adjusted[1] == pytest.approx(1 - 0.99**5, abs=0.004)


def test_adjusted_p_keeps_the_order_of_raw_p() -> None:
    draws = gaussian_draws(np.eye(2), 20_000, np.random.SeedSequence(1))
    adjusted = stepdown_adjusted(np.array([0.040, 0.041]), draws, np.ones(2))
    # The second alone would be 0.041: it may not fall below the first, which is about 0.078.
    assert adjusted[1] == adjusted[0] > 0.07


def test_rank_steps_go_on_after_a_rejection() -> None:
    # Three pairs are clear; only once they are out of the way is the fourth.
    theta, cov = np.array([90.0, 60.0, 30.0, 0.0]), np.eye(4) / 2
    draws = gaussian_draws(cov, 100_000, np.random.SeedSequence(2))
    sd = 1.0
    gaps = (draws[:, :, None] - draws[:, None, :]) / sd
    first = float(np.quantile(gaps.max(axis=(1, 2)), 0.95))
    theta[3] = theta[2] - (first - 0.05) * sd
    found = rank_sets(theta, cov, np.full((4, 4), np.inf), draws, 0.05)
    assert found.rank_lo.tolist() == found.rank_hi.tolist() == [1, 2, 3, 4]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.randoms(use_true_random=False))
def test_letters_say_exactly_which_pairs_are_told_apart(n: int, random) -> None:
    distinct = np.zeros((n, n), dtype=bool)
    for i in range(n):
        for j in range(i):
            distinct[i, j] = distinct[j, i] = random.random() < 0.5
    score = np.array([random.random() for _ in range(n)])
    letters = compact_letters(score, distinct)
    np.testing.assert_array_equal(share_letters(letters), ~distinct)
    assert letters[int(score.argmax())].startswith("a")


def test_letters_of_three_by_hand() -> None:
    distinct = np.zeros((3, 3), dtype=bool)
    distinct[0, 2] = distinct[2, 0] = True
    assert compact_letters(np.array([3.0, 2.0, 1.0]), distinct) == ["a", "ab", "b"]
    assert compact_letters(np.array([1.0, 2.0, 3.0]), distinct) == ["b", "ab", "a"]
    many = compact_letters(-np.arange(60.0), ~np.eye(60, dtype=bool))
    assert len(set(many)) == 60
    assert all(len(mark) == 1 for mark in many)


def test_comparison_letters_ranks_and_pairs_agree() -> None:
    sample = draw(3, n=3_000, n_users=600, n_versions=4, effects=[0.2, 0.15, 0.0, -0.2])
    found = compare(sample, Options(permutations=99, draws=4_000))
    better = found.pair_better
    assert better[0, 3]
    assert not (better & better.T).any()
    np.testing.assert_array_equal(share_letters(found.letters), ~(better | better.T))
    np.testing.assert_array_equal(found.rank_lo, 1 + better.sum(axis=0))
    np.testing.assert_array_equal(found.rank_hi, 4 - better.sum(axis=1))
    assert (found.lo_sim < found.lo).all()
    assert (found.hi_sim > found.hi).all()
    np.testing.assert_allclose(found.pair_diff, -found.pair_diff.T)
    np.testing.assert_allclose(found.pair_lo, -found.pair_hi.T)
    worse = compare(sample, Options(permutations=99, draws=4_000, is_higher_better=False))
    np.testing.assert_array_equal(worse.pair_better, better.T)
    np.testing.assert_array_equal(worse.estimate, found.estimate)
    assert worse.rank_lo[3] == 1
    assert worse.rank_hi[0] == 4
    assert "a" in worse.letters[3]
    assert "a" not in worse.letters[0]


def test_equal_versions_are_rarely_told_apart() -> None:
    false = [
        compare(draw(seed, n=500, n_users=200, n_versions=5), Options(permutations=1, draws=500)).pair_better.any()
        for seed in range(120)
    ]
    assert np.mean(false) < 0.12


def test_versions_without_variation_are_not_ranked_above() -> None:
    y = np.tile([1.0, 1.0, 0.0, 0.0], 5)
    found = compare(make(y, np.tile([0, 0, 1, 1], 5)), Options(permutations=9, draws=100))
    assert np.isnan(found.se).all()
    assert not found.pair_better.any()
    assert found.rank_hi.tolist() == [2, 2]
    assert found.status == ["inconclusive", "inconclusive"]
    assert found.reasons[0] == ("no_variation",)
    np.testing.assert_allclose(found.estimate, [0.5, -0.5])
