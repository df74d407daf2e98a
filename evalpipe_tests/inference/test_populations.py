"""Populations: overlap weights, and standard populations with declared weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from evalpipe.inference import Comparison, Options, Sample, Standard, compare
from evalpipe.inference.model import Floats
from evalpipe.inference.shift import net_shift
from evalpipe_tests.inference.helpers import make

FEW = Options(permutations=9, draws=200)


def sessions(*cells: tuple[int, int, int, int]) -> Sample:
    """Sessions of distinct users from (version, stratum, successes, sessions)."""
    n = [cell[3] for cell in cells]
    version, stratum = (np.repeat([cell[i] for cell in cells], n).tolist() for i in (0, 1))
    return make([float(i < x) for _, _, x, m in cells for i in range(m)], version, stratum)


CELLS = ((0, 0, 50, 100), (1, 0, 24, 40), (2, 0, 3, 10), (0, 1, 5, 20), (1, 1, 40, 80), (2, 1, 30, 60))


def by_hand(weights: list[float]) -> Floats:
    mean = np.array([[50 / 100, 5 / 20], [24 / 40, 40 / 80], [3 / 10, 30 / 60]])
    theta = mean @ np.asarray(weights)
    return np.asarray(theta - theta.mean())


def standard(weight: list[float], group: list[int]) -> Options:
    return replace(FEW, population="standard", standard=Standard(np.array(weight), np.array(group)))


def test_overlap_weights_make_the_sum_of_variances_smallest() -> None:
    found = compare(sessions(*CELLS), replace(FEW, population="overlap"))
    n = np.array([[100, 20], [40, 80], [10, 60]], dtype=float)
    # Li and Li (2019): n_s / sum_k (1 / pi_ks).
    share = n / n.sum(axis=0)
    tilted = n.sum(axis=0) / (1.0 / share).sum(axis=0)
    np.testing.assert_allclose(found.weights, tilted / tilted.sum(), rtol=1e-12)
    best = optimize.minimize_scalar(
        lambda w: (w**2 / n[:, 0]).sum() + ((1 - w) ** 2 / n[:, 1]).sum(), bounds=(0, 1), method="bounded"
    )
    assert found.weights[0] == pytest.approx(best.x, abs=1e-5)
    np.testing.assert_allclose(found.estimate, by_hand(list(found.weights)), atol=1e-12)
    assert (found.rank_lo > 0).all()


def test_declared_weights_are_the_weights() -> None:
    found = compare(sessions(*CELLS), standard([0.9, 0.1], [0, 1]))
    np.testing.assert_allclose(found.weights, [0.9, 0.1])
    np.testing.assert_allclose(found.estimate, by_hand([0.9, 0.1]), atol=1e-12)
    assert found.support_share == 1.0
    # The interval is about this mix: the variance by hand of independent sessions, CR3 = n / (n - 1) here.
    n, x = (np.array([[c[at] for c in CELLS if c[0] == k] for k in range(3)], float) for at in (3, 2))
    p = x / n
    cell = p * (1 - p) / (n - 1.0) * n / (n - 1.0)
    ell = (np.eye(3) - 1 / 3)[:, :, None] * np.array([0.9, 0.1])
    np.testing.assert_allclose(found.se, np.sqrt((ell**2 * cell[None]).sum(axis=(1, 2))), rtol=1e-10)
    assert (found.rank_lo > 0).all()


def test_strata_of_a_group_share_its_weight_by_their_traffic() -> None:
    # Strata 0 and 1 are one kind of work in two epochs; 2 is another.
    cells = (*CELLS, (0, 2, 5, 10), (1, 2, 5, 10), (2, 2, 5, 10))
    found = compare(sessions(*cells), standard([0.31, 0.69], [0, 0, 1]))
    np.testing.assert_allclose(found.weights, [0.31 * 150 / 310, 0.31 * 160 / 310, 0.69])


def test_weight_without_common_work_is_not_covered_and_the_rest_is_renormalised() -> None:
    # Nobody served group 2 in this window, and version 2 never stratum 1.
    cells = [cell for cell in CELLS if cell[:2] != (2, 1)]
    found = compare(sessions(*cells), standard([0.5, 0.2, 0.3], [0, 1]))
    assert found.kept.tolist() == [True, False]
    assert found.support_share == pytest.approx(0.5)
    np.testing.assert_allclose(found.weights, [1.0, np.nan])
    assert all("low_support" in why for why in found.reasons)
    assert (found.rank_lo == 0).all()


def test_the_version_that_costs_too_much_weight_leaves() -> None:
    # Version 2 lacks the stratum that hardly has traffic and nearly all the weight.
    cells = ((0, 0, 40, 90), (1, 0, 50, 90), (2, 0, 40, 90), (0, 1, 3, 6), (1, 1, 2, 6))
    by_traffic = compare(sessions(*cells), FEW)
    assert by_traffic.support_share > 0.9
    assert by_traffic.status == ["ok"] * 3
    by_weight = compare(sessions(*cells), standard([0.1, 0.9], [0, 1]))
    assert by_weight.reasons[2] == ("insufficient_overlap",)
    assert by_weight.support_share == 1.0


def test_a_stratum_outside_the_population_is_dropped_and_merged_with_nothing() -> None:
    # 0 is the parent of 1 and 2; version 1 lacks both, but 2 is outside the population.
    cells = ((0, 1, 1, 4), (0, 2, 1, 5), (1, 2, 1, 5), (0, 3, 2, 6), (1, 3, 3, 6))
    parents = np.array([-1, 0, 0, -1], dtype=np.int32)
    for outside in ([-1, 0, -1, 1], [-1, 0, 2, 1]):
        options = replace(standard([0.2, 0.8, 0.0], outside), parents=parents, min_support_share=0.5)
        found = compare(sessions(*cells), options)
        assert found.kept.tolist() == [False, False, False, True]
        assert found.support_share == pytest.approx(0.8)
        assert found.merged_into.tolist() == [-1, 0, -1, -1]
    # A parent outside the population takes nobody in.
    options = replace(standard([0.2, 0.8], [-1, 0, -1, 1]), parents=parents, min_support_share=0.5)
    assert compare(sessions(*cells, (0, 0, 1, 3), (1, 0, 1, 3)), options).merged_into.tolist() == [-1, -1, -1, -1]


def test_merged_strata_bring_their_weights_along() -> None:
    cells = ((0, 1, 1, 4), (1, 2, 1, 5), (0, 3, 2, 6), (1, 3, 3, 6))
    parents = np.array([-1, 0, 0, -1], dtype=np.int32)
    found = compare(sessions(*cells), replace(standard([0.2, 0.3, 0.5], [-1, 0, 1, 2]), parents=parents))
    assert found.merged_into.tolist() == [-1, 0, 0, -1]
    np.testing.assert_allclose(found.weights, [0.5, np.nan, np.nan, 0.5])
    assert found.support_share == 1.0


def test_weights_that_no_session_meets_leave_nothing_to_compare() -> None:
    found = compare(sessions(*CELLS), standard([1.0, 0.0], [-1, 1]))
    assert found.support_share == 0.0
    assert found.status == ["unavailable"] * 3
    assert {why for each in found.reasons for why in each} == {"no_common_support"}


@pytest.mark.parametrize("population", ["overlap", "standard"])
def test_the_plain_shift_is_that_of_the_comparison(population: str) -> None:
    options = replace(FEW, population="overlap") if population == "overlap" else standard([0.3, 0.7], [0, 1])
    whole: Comparison = compare(sessions(*CELLS), options)
    plain = net_shift(sessions(*CELLS), options)
    np.testing.assert_array_equal(plain.estimate, whole.estimate)
    np.testing.assert_array_equal(plain.se, whole.se)
    assert plain.is_ranked


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (replace(FEW, population="standard"), "need each other"),
        (replace(FEW, standard=Standard(np.ones(1), np.zeros(2, np.int64))), "need each other"),
        (standard([1.0], [0]), "expected"),
        (standard([1.0], [0, 1]), "out of range"),
        (standard([1.5, -0.5], [0, 1]), "not negative"),
        (standard([0.0, 0.0], [0, 1]), "one of them is positive"),
        (standard([np.nan, 1.0], [0, 1]), "not negative"),
    ],
)
def test_illegal_standard_populations_are_refused(options: Options, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        compare(sessions(*CELLS), options)
