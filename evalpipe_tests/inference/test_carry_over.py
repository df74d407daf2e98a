"""Carry-over and feedback: numbers against computation by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evalpipe.inference import Options, Sample, compare
from evalpipe.inference.carry_over import CarryOver, carry_over
from evalpipe.inference.feedback import followed
from evalpipe_tests.inference.helpers import make

FEW = Options(permutations=9, draws=200)


def draw(seed: int, n: int = 600, n_versions: int = 3, effect: float = 0.0) -> tuple[Sample, np.ndarray]:
    """Sessions of which four in ten came from another version; those of version 0 gain by it."""
    rng = np.random.default_rng(seed)
    version, stratum, user = (rng.integers(0, size, n) for size in (n_versions, 2, n // 4))
    carried = rng.random(n) < 0.4
    y = rng.random(n) < 0.4 + 0.1 * version + effect * (carried & (version == 0))
    return make(y.astype(float).tolist(), version.tolist(), stratum.tolist(), user.tolist()), carried


def found(sample: Sample, carried: np.ndarray, options: Options = FEW) -> CarryOver:
    whole = compare(sample, options)
    target = np.where(whole.merged_into >= 0, whole.merged_into, np.arange(sample.n_strata))
    return carry_over(sample, carried, whole.weights, target, options)


def estimate(sample: Sample, weights: np.ndarray, use: np.ndarray) -> np.ndarray:
    mean = np.array(
        [
            [sample.y[use & (sample.version == k) & (sample.stratum == s)].mean() for s in range(sample.n_strata)]
            for k in range(sample.n_versions)
        ]
    )
    theta = mean @ weights
    return np.asarray(theta - theta.mean())


@pytest.mark.parametrize("seed", [1, 2])
def test_the_difference_is_that_of_two_net_improvements_and_its_error_the_jackknife(seed: int) -> None:
    sample, carried = draw(seed)
    one = found(sample, carried)
    everyone = np.ones(len(sample.y), dtype=bool)
    weights = compare(sample, FEW).weights
    np.testing.assert_allclose(one.whole, estimate(sample, weights, everyone), atol=1e-12)
    np.testing.assert_allclose(one.carried, estimate(sample, weights, carried), atol=1e-12)
    np.testing.assert_allclose(one.difference, one.carried - one.whole, atol=1e-12)
    assert one.n_carried.tolist() == np.bincount(sample.version[carried]).tolist()
    # CR3 of the contrast between both kinds is the jackknife over users with the coefficients held fixed.
    share = np.array(
        [
            [carried[(sample.version == k) & (sample.stratum == s)].mean() for s in range(2)]
            for k in range(sample.n_versions)
        ]
    )

    def fixed(use: np.ndarray) -> np.ndarray:
        gap = np.array(
            [
                [
                    np.subtract(*(sample.y[use & part & (sample.version == k) & (sample.stratum == s)].mean()
                                  for part in (carried, ~carried)))
                    for s in range(2)
                ]
                for k in range(sample.n_versions)
            ]
        )  # fmt: skip
        part = ((1.0 - share) * gap) @ weights
        return np.asarray(part - part.mean())

    moved = np.array([fixed(sample.user != g) - one.difference for g in np.unique(sample.user)])
    np.testing.assert_allclose(one.se, np.sqrt((moved**2).sum(axis=0)), rtol=1e-10)
    assert (np.abs(one.z) < np.abs(one.difference / one.se)).all(), "few users say less than many"


def test_what_is_carried_over_shows() -> None:
    for seed in range(3):
        assert (np.abs(found(*draw(seed)).z) < 3.5).all()
        assert np.abs(found(*draw(seed, n=2_000, effect=0.4)).z[0]) > 4.0


def test_chance_exceeds_a_limit_as_often_as_the_limit_says() -> None:
    z = np.array([found(*draw(seed, n=300, n_versions=2)).z[0] for seed in range(200)])
    assert (np.abs(z) > 1.96).mean() < 0.11
    assert 0.8 < z.std() < 1.2


def test_too_few_of_either_kind_are_no_evidence() -> None:
    sample, carried = draw(1)
    few = carried & (np.arange(len(carried)) < 20)
    assert found(sample, few, replace(FEW, min_sessions_per_version=20)).reason == "few_sessions"
    assert np.isnan(found(sample, few, replace(FEW, min_sessions_per_version=20)).z).all()
    one_side = carried & (sample.stratum == 0)
    assert found(sample, one_side).reason == "low_support"
    model = replace(FEW, reference="model", reference_index=2, min_sessions_per_version=10)
    assert found(sample, carried & (sample.version != 2), model).reason == "few_sessions"
    left = found(sample, carried & (sample.version != 2), replace(FEW, min_sessions_per_version=10))
    assert np.isnan(left.z).tolist() == [False, False, True]


@pytest.mark.parametrize("reference", ["control_pool", "loo_uniform", "model", "stratum_mean"])
def test_any_reference_weighs_both_alike(reference: str) -> None:
    sample, carried = draw(3)
    options = replace(FEW, reference=reference, reference_index=1 if reference == "model" else None)
    one = found(sample, carried, options)
    whole = compare(sample, options).estimate
    np.testing.assert_allclose(one.whole, whole, atol=1e-12)
    np.testing.assert_allclose(one.difference, one.carried - one.whole, atol=1e-12)


def test_traffic_that_follows_estimates_has_spearman_s_correlation() -> None:
    rng = np.random.default_rng(1)
    earlier = rng.normal(size=24)
    block = np.repeat(np.arange(4), 6)
    change = 0.1 * earlier + 0.02 * rng.normal(size=24)
    rho, p = followed(change, earlier, block, 1)
    assert rho == pytest.approx(stats.spearmanr(change, earlier).statistic)
    assert p == pytest.approx(1 / 2_000)
    assert followed(-change, earlier, block, 1)[0] == pytest.approx(-rho)
    assert followed(change, earlier, block, 1) == followed(change, earlier, block, 1)


def test_few_arrangements_are_listed() -> None:
    change = np.array([0.1, -0.1, 0.2, -0.2, 0.05, 0.0, -0.05])
    earlier = np.array([0.3, 0.1, 0.4, -0.3, 0.2, 0.5, 0.1])
    block = np.array([0, 0, 1, 1, 2, 2, 2])
    rho, p = followed(change, earlier, block, 0)
    everything = []
    for one, two, three in itertools.product(*(itertools.permutations(range(n)) for n in (2, 2, 3))):
        order = [*one, *(2 + i for i in two), *(4 + i for i in three)]
        everything.append(stats.spearmanr(change, earlier[order]).statistic)
    assert len(everything) == 24
    assert p == pytest.approx(np.mean(np.abs(everything) >= abs(rho) - 1e-12))
    # Five changes between two versions can go alike by chance once in sixteen times, whatever a table says.
    rho, p = followed(np.tile([0.1, -0.1], 5), np.tile([0.2, -0.2], 5), np.repeat(np.arange(5), 2), 0)
    assert [rho, p] == pytest.approx([1.0, 2 / 32])


def test_chance_is_not_called_a_pattern() -> None:
    rng = np.random.default_rng(5)
    block, p = np.repeat(np.arange(3), 5), []
    for _ in range(200):
        change = rng.normal(size=15)
        change -= np.repeat(change.reshape(3, 5).mean(axis=1), 5)
        p.append(followed(change, rng.normal(size=15), block, 1)[1])
    assert 0.01 < np.mean(np.array(p) < 0.05) < 0.1


@pytest.mark.parametrize(
    ("change", "earlier", "block"),
    [([0.1, -0.1], [0.0, 0.0], [0, 0]), ([0.1, 0.2], [0.1, 0.3], [0, 1]), ([], [], [])],
)
def test_nothing_that_differs_is_no_correlation(change: list[float], earlier: list[float], block: list[int]) -> None:
    told = followed(np.array(change), np.array(earlier), np.array(block, dtype=np.int64), 0)
    assert np.isnan(told).all()
