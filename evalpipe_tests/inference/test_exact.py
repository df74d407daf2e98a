from __future__ import annotations

from itertools import combinations
from math import comb, isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.inference.exact.blocks import block_test, lattice
from evalpipe.inference.exact.enumeration import enumerate_labels
from evalpipe.inference.exact.maxima import westfall_young
from evalpipe.inference.exact.tables import (
    Tables,
    heterogeneity,
    mantel_haenszel,
    qualitative_interaction,
    risk_differences,
)


def tables(*rows: tuple[float, float, float, float]) -> Tables:
    return Tables(*(np.array(column, dtype=float) for column in zip(*rows, strict=True)))


def test_two_sessions_against_two() -> None:
    # 6 ways to choose two of four; the observed total 7 is matched by 7 and by 3 on the other side.
    found = block_test(np.array([4.0, 3.0, 2.0, 1.0]), np.array([1, 1, 0, 0]), np.zeros(4, dtype=int))
    assert (found.statistic, found.expectation) == (7.0, 5.0)
    totals = [sum(c) for c in combinations([4, 3, 2, 1], 2)]
    assert found.variance == pytest.approx(np.var(totals))
    assert found.p_exact == pytest.approx(2 / 6)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 1)), min_size=3, max_size=9))
def test_the_exact_law_is_that_of_all_choices(rows: list[tuple[int, int, int]]) -> None:
    y, target, stratum = (np.array(side) for side in zip(*rows, strict=True))
    scaled = y * 0.25 + 3.0
    found = block_test(scaled, target == 1, stratum)
    per_stratum = []
    for s in (0, 1):
        values, size = scaled[stratum == s], int(target[stratum == s].sum())
        per_stratum.append([sum(c) for c in combinations(values, size)])
    every = np.array([a + b for a in per_stratum[0] for b in per_stratum[1]])
    assert found.expectation == pytest.approx(every.mean())
    assert found.variance == pytest.approx(every.var(), abs=1e-9)
    if found.status == "ok":
        extreme = np.abs(every - every.mean()) >= abs(found.statistic - every.mean()) - 1e-9
        assert found.p_exact == pytest.approx(extreme.mean())


def test_what_has_no_exact_p() -> None:
    flat = block_test(np.ones(4), np.array([1, 1, 0, 0]), np.zeros(4, dtype=int))
    assert (flat.status, flat.reason) == ("unavailable", "no_variation")
    assert isnan(flat.p)
    odd = block_test(np.array([0.0, 1.0, np.pi, 7.7]), np.array([1, 1, 0, 0]), np.zeros(4, dtype=int))
    assert (odd.status, odd.reason) == ("unavailable", "not_on_a_lattice")
    assert 0 < odd.p < 1
    assert lattice(np.array([0.1, 0.4, 0.2])) is not None
    with pytest.raises(ValueError, match="finite"):
        block_test(np.array([np.nan, 1.0]), np.array([1, 0]), np.zeros(2, dtype=int))
    with pytest.raises(ValueError, match="one length"):
        block_test(np.ones(2), np.array([1]), np.zeros(2, dtype=int))


def test_enumeration_by_hand() -> None:
    # Two versions, one stratum, values 3 2 | 1 0: net improvement of the first is half the gap.
    found = enumerate_labels(np.array([3.0, 2.0, 1.0, 0.0]), np.array([0, 0, 1, 1]), np.zeros(4, dtype=int), 2, 1)
    np.testing.assert_allclose(found.observed, [1.0, -1.0])
    assert found.n == comb(4, 2)
    np.testing.assert_allclose(found.p, [2 / 6, 2 / 6])
    np.testing.assert_allclose(found.p_max, found.p)
    gaps = [(sum(c) - (6 - sum(c))) / 4 for c in combinations([3, 2, 1, 0], 2)]
    np.testing.assert_allclose(found.variance, np.var(gaps))


def test_enumeration_says_why_not() -> None:
    y = np.arange(40.0)
    version, stratum = np.arange(40) % 2, np.zeros(40, dtype=int)
    many = enumerate_labels(y, version, stratum, 2, 1)
    assert (many.status, many.reason) == ("unavailable", "too_many_arrangements")
    assert np.isnan(many.p).all()
    assert np.isfinite(many.variance).all()
    assert enumerate_labels(np.ones(4), np.arange(4) % 2, np.zeros(4, dtype=int), 2, 1).reason == "no_variation"
    assert enumerate_labels(y[:2], version[:2], stratum[:2], 3, 1).reason == "incomplete_stratum"
    assert enumerate_labels(y[:2], version[:2] * 0, stratum[:2], 1, 1).reason == "incomplete_stratum"
    with pytest.raises(ValueError, match="standard"):
        enumerate_labels(y, version, stratum, 2, 1, population="standard")
    with pytest.raises(ValueError, match="finite"):
        enumerate_labels(np.array([np.inf, 1.0]), np.array([0, 1]), np.zeros(2, dtype=int), 2, 1)


def test_westfall_young_by_hand() -> None:
    drawn = np.array([[3.0, 0.0], [0.0, 2.5], [1.0, 1.0]])
    found = westfall_young(np.array([2.0, -2.2]), drawn)
    # The second is the most extreme: 1 + 2 of 4 maxima reach 2.2, then 1 + 1 of the rest reach 2.
    np.testing.assert_allclose(found.raw, [2 / 4, 2 / 4])
    np.testing.assert_allclose(found.single_step, [3 / 4, 3 / 4])
    np.testing.assert_allclose(found.step_down, [3 / 4, 3 / 4])
    exact = westfall_young(np.array([2.0, np.nan]), drawn, is_exact=True)
    assert exact.raw[0] == pytest.approx(1 / 3)
    assert isnan(exact.step_down[1])
    assert np.isnan(westfall_young(np.array([np.nan]), drawn[:, :1]).raw).all()
    with pytest.raises(ValueError, match="shape"):
        westfall_young(np.ones(3), drawn)


@given(st.integers(0, 10_000))
def test_adjusted_p_is_ordered_as_the_adjustments_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = westfall_young(rng.normal(size=4) * 2, rng.normal(size=(50, 4)))
    assert (found.raw <= found.step_down + 1e-12).all()
    assert (found.step_down <= found.single_step + 1e-12).all()


def test_mantel_haenszel_by_hand() -> None:
    found = mantel_haenszel(tables((3, 4, 1, 4)))
    # One stratum: E = 2, variance 4 * 4 * 4 * 4 / (64 * 7).
    assert found.statistic == pytest.approx(1 / (256 / 448))
    assert found.odds_ratio == pytest.approx(9.0)
    assert found.difference == pytest.approx(0.5)
    # Totals 3 and 1, 4 and 0 are as unlikely or more: (16 + 16 + 1 + 1) of 70.
    assert found.p_exact == pytest.approx(34 / 70)
    alone = mantel_haenszel(tables((3, 4, 0, 0)))
    assert isnan(alone.difference)
    assert mantel_haenszel(tables((3, 4, 1, 4), (5, 9, 0, 0))) == found
    with pytest.raises(ValueError, match="between 0"):
        tables((5, 4, 1, 4))


def test_heterogeneity_by_hand() -> None:
    found = heterogeneity(np.array([0.2, 0.0]), np.array([0.01, 0.01]))
    assert (found.pooled, found.df) == (pytest.approx(0.1), 1)
    assert found.statistic == pytest.approx(2 * 0.01 / 0.01)
    assert heterogeneity(np.array([0.2, np.nan]), np.array([0.01, 0.01])).reason == "one_stratum"
    difference, variance = risk_differences(tables((2, 4, 1, 4), (4, 4, 1, 4)))
    assert difference[0] == pytest.approx(0.25)
    assert variance[0] == pytest.approx(0.25 / 4 + 0.1875 / 4)
    # Nobody failed: half a session in each cell keeps the variance from being 0.
    assert variance[1] > 0


def test_effects_of_both_signs() -> None:
    assert qualitative_interaction(np.array([0.3, 0.2]), np.ones(2) * 0.01) == (0.0, 1.0)
    smaller, p = qualitative_interaction(np.array([0.3, -0.2]), np.ones(2) * 0.01)
    assert smaller == pytest.approx(4.0)
    # One degree of freedom: half of the chi-square tail beyond 4.
    assert p == pytest.approx(0.5 * 0.04550026, rel=1e-5)
    assert isnan(qualitative_interaction(np.array([0.3]), np.ones(1))[1])
