"""Concordance of layers: labels by the rule, and numbers against computation by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize, stats

from evalpipe.inference import Options, compare
from evalpipe.inference.concordance import Layer, agreement, compared_layer, label, measured_layer
from evalpipe.inference.model import Floats
from evalpipe_tests.inference.helpers import draw

ALPHA = 0.05


def layer(level: list[float], se: float | list[float], seed: int = 1) -> Layer:
    cov = np.diag(np.broadcast_to(np.asarray(se, float) ** 2, (len(level),)).copy())
    return measured_layer(np.array(level), cov, alpha=ALPHA, draws=4_000, seed=seed)


def test_a_pair_s_label_over_all_that_three_layers_can_say() -> None:
    for orders in itertools.product((1, 0, -1, None), repeat=3):
        told = [order for order in orders if order in (1, -1)]
        if len(set(told)) == 2:
            expected = "contradicted"
        else:
            expected = {0: "insufficient", 1: "uncorroborated"}.get(len(told), "corroborated")
        assert label(orders) == expected
    assert label([]) == "insufficient"


def test_a_layer_tells_pairs_apart_by_step_down_and_has_limits_of_each() -> None:
    made = layer([0.30, 0.50, np.nan, 0.52], 0.02)
    assert made.known.tolist() == [True, True, False, True]
    assert made.orders(1, 0) == 1
    assert made.orders(0, 3) == -1
    assert made.orders(1, 3) == 0
    assert made.orders(0, 2) is None
    half = stats.norm.ppf(0.975) * 0.02 * np.sqrt(2)
    assert (made.lo[1, 0], made.hi[1, 0]) == (pytest.approx(0.2 - half), pytest.approx(0.2 + half))
    assert np.isnan(made.lo[2]).all()
    assert layer([0.3, np.nan], 0.02).orders(0, 0) == 0, "one version is no pair"


@pytest.mark.parametrize("is_higher_better", [True, False])
def test_a_comparison_s_layer_has_its_pairs_with_better_up(*, is_higher_better: bool) -> None:
    options = Options(
        design="observational", permutations=9, draws=500, is_higher_better=is_higher_better, is_rate=True
    )
    found = compare(draw(1, n=3_000, effects=[-0.2, 0.0, 0.2]), options)
    made = compared_layer(found, is_higher_better=is_higher_better)
    best = 2 if is_higher_better else 0
    assert int(np.argmax(made.level)) == best
    assert made.orders(best, 2 - best) == 1
    assert made.lo[best, 2 - best] > 0
    own = compare(draw(1), Options(design="observational", permutations=9, draws=200, population="own_share"))
    assert not compared_layer(own, is_higher_better=True).known.any(), "own mixes are not comparable"


def test_signs_are_counted_over_pairs_that_both_tell_apart() -> None:
    one = layer([0.1, 0.3, 0.5, 0.51], 0.01)
    other = layer([0.30, 0.10, 0.60, 0.90], 0.01)
    found = agreement(one, other, alpha=ALPHA, seed=1)
    # 2 and 3 are alike in the first; 0 and 1 change places.
    assert (found.n_versions, found.n_pairs, found.n_agree) == (4, 5, 4)
    assert found.reversed_pairs == ((1, 0),)
    assert found.tau == pytest.approx(stats.kendalltau([0.1, 0.3, 0.5, 0.51], [0.3, 0.1, 0.6, 0.9]).statistic)
    assert found.tau_lo <= found.tau <= found.tau_hi + 1e-12


def chi2_of(b: float, one: Layer, other: Layer) -> float:
    """The misfit by hand: K - 1 free contrasts, so no pseudo-inverse is needed."""
    k = len(one.level)
    basis: Floats = np.linalg.qr(np.column_stack([np.ones(k), np.eye(k)[:, : k - 1]]))[0][:, 1:]
    gap = basis.T @ (one.level - b * other.level)
    return float(gap @ np.linalg.solve(basis.T @ (one.cov + b * b * other.cov) @ basis, gap))


def test_the_slope_and_its_misfit_are_the_smallest_there_are() -> None:
    rng = np.random.default_rng(3)
    root = rng.normal(size=(5, 5)) * 0.02
    one = measured_layer(rng.normal(0.5, 0.1, 5), root @ root.T + 1e-4 * np.eye(5), alpha=ALPHA, draws=1_000, seed=1)
    other = layer((0.4 + 2.0 * (one.level - 0.5) + rng.normal(0, 0.02, 5)).tolist(), [0.02, 0.03, 0.02, 0.01, 0.02])
    found = agreement(one, other, alpha=ALPHA, seed=1)
    best = optimize.minimize_scalar(lambda b: chi2_of(b, one, other), bounds=(0.1, 1.5), method="bounded")
    assert found.slope == pytest.approx(float(best.x), abs=1e-5)
    assert found.chi2 == pytest.approx(float(best.fun), rel=1e-9)
    assert found.df == 3
    assert found.p == pytest.approx(stats.chi2.sf(best.fun, 3))


def test_equal_variances_give_the_textbook_s_deming_slope() -> None:
    x, y = np.array([-0.3, -0.1, 0.15, 0.25]), np.array([-0.14, -0.08, 0.10, 0.12])
    found = agreement(layer(y.tolist(), 0.02), layer(x.tolist(), 0.02), alpha=ALPHA, seed=1)
    sxx, syy, sxy = x @ x, y @ y, x @ y
    assert found.slope == pytest.approx((syy - sxx + np.sqrt((syy - sxx) ** 2 + 4 * sxy**2)) / (2 * sxy), abs=1e-6)


def test_layers_that_agree_up_to_their_unit_are_seldom_said_to_differ() -> None:
    rng, p, held = np.random.default_rng(4), [], 0
    truth = np.array([0.2, 0.3, 0.45, 0.5, 0.6])
    for seed in range(200):
        one = layer((truth + rng.normal(0, 0.02, 5)).tolist(), 0.02)
        other = layer((1.0 - 0.5 * (1 - truth) + rng.normal(0, 0.01, 5)).tolist(), 0.01)
        found = agreement(one, other, alpha=ALPHA, seed=seed)
        p.append(found.p)
        held += found.tau_lo <= 1.0 <= found.tau_hi + 1e-12
    assert 0.01 < np.mean(np.array(p) < 0.05) < 0.1
    turned = agreement(layer(truth.tolist(), 0.02), layer(truth[[3, 1, 4, 0, 2]].tolist(), 0.02), alpha=ALPHA, seed=1)
    assert turned.p < 1e-6


def test_two_versions_leave_a_slope_untested_and_one_says_nothing() -> None:
    found = agreement(layer([0.1, 0.5], 0.02), layer([0.2, 0.3], 0.01), alpha=ALPHA, seed=1)
    assert (found.n_pairs, found.n_agree, found.tau, found.reason) == (1, 1, 1.0, "two_versions")
    assert found.slope == pytest.approx(4.0)
    assert np.isnan([found.chi2, found.p]).all()
    alone = agreement(layer([0.1, 0.5], 0.02), layer([0.2, np.nan], 0.01), alpha=ALPHA, seed=1)
    assert (alone.n_versions, alone.reason) == (1, "no_comparator")
    assert np.isnan([alone.slope, alone.tau, alone.tau_lo]).all()
    flat = agreement(layer([0.1, 0.5, 0.4], 0.02), layer([0.2, 0.2, 0.2], 0.01), alpha=ALPHA, seed=1)
    assert np.isnan([flat.slope, flat.p, flat.tau]).all()
    assert flat.reason == "not_told_apart"
