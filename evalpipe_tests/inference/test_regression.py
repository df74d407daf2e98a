from __future__ import annotations

from dataclasses import replace
from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.inference import Options, compare
from evalpipe.inference.bootstrap import user_bootstrap
from evalpipe.inference.covariates import cuped
from evalpipe.inference.intraclass import anova_icc, kish_design_effect
from evalpipe.inference.recipes import control_pool_gap, raw_gap, shuffled_gaps, stratum_mean_gap
from evalpipe.inference.regression import fit_wls
from evalpipe.inference.variance import ClusterVariance
from evalpipe_tests.inference.helpers import draw, make, prepared

FEW = Options(permutations=9, draws=200)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from(["CR0", "CR1", "CR2", "CR3"]))
def test_cell_dummies_give_the_closed_form(seed: int, kind: str) -> None:
    sample = draw(seed, n=120, n_versions=2, n_strata=2, n_users=25, user_sd=0.2)
    found = prepared(sample)
    cell = found.cell
    X = (cell[:, None] == np.arange(found.rows.n_cells)).astype(float)
    fit = fit_wls(X, sample.y, sample.user, kind=kind)
    closed = ClusterVariance(found.rows, found.sums, kind).contrasts(np.eye(found.rows.n_cells))
    np.testing.assert_allclose(fit.coef, found.sums.mean, atol=1e-10)
    np.testing.assert_allclose(fit.cov, closed.cov, atol=1e-10)
    if kind in ("CR2", "CR3"):
        np.testing.assert_allclose(fit.df, closed.df, rtol=1e-8)


def test_weighted_line_by_hand() -> None:
    X = np.column_stack((np.ones(4), [0.0, 0.0, 1.0, 1.0]))
    y, w = np.array([1.0, 4.0, 2.0, 2.0]), np.array([2.0, 1.0, 1.0, 1.0])
    fit = fit_wls(X, y, np.arange(4), w, "CR0")
    np.testing.assert_allclose(fit.coef, [2.0, 0.0], atol=1e-12)
    # Residuals -1, 2 with weights 2, 1 of 3.
    assert fit.se[0] == pytest.approx(sqrt((2 / 3) ** 2 + (2 / 3) ** 2))
    larger = fit_wls(X, y, np.arange(4), w, "CR1S")
    np.testing.assert_allclose(larger.cov, fit.cov * (4 / 3) * (3 / 2))
    assert np.isnan(larger.df).all()


def test_what_cannot_be_fitted() -> None:
    X = np.ones((6, 2))
    assert fit_wls(X, np.arange(6.0), np.arange(6)).reason == "collinear"
    one = fit_wls(X[:, :1], np.arange(6.0), np.zeros(6, dtype=int))
    assert (one.status, one.reason, one.coef[0]) == ("unavailable", "one_user", 2.5)
    assert np.isnan(one.cov).all()
    with pytest.raises(ValueError, match="kind"):
        fit_wls(X, np.arange(6.0), np.arange(6), kind="HC1")
    with pytest.raises(ValueError, match="finite"):
        fit_wls(X, np.full(6, np.nan), np.arange(6))
    with pytest.raises(ValueError, match="shape"):
        fit_wls(X, np.arange(5.0), np.arange(6))


def test_adjustment_by_hand() -> None:
    y, x, cell = np.array([0.0, 2.0, 5.0, 9.0]), np.array([0.0, 1.0, 0.0, 2.0]), np.array([0, 0, 1, 1])
    found = cuped(y, x, cell)
    # Within cells: (0.5 x 1 x 2 + 1 x 2 x 2) / (0.5 + 2).
    assert found.slope[0] == pytest.approx((1 + 4) / 2.5)
    np.testing.assert_allclose(found.y, y - 2.0 * (x - 0.75))
    flat = cuped(y, cell.astype(float), cell)
    assert not flat.is_changed
    np.testing.assert_allclose(flat.y, y)
    assert not cuped(y[:0], x[:0], cell[:0]).is_changed
    with pytest.raises(ValueError, match="finite"):
        cuped(y, x * np.nan, cell)


def test_adjustment_saves_variance_and_not_effect() -> None:
    rng = np.random.default_rng(2)
    sample = draw(2, n=2_000, n_versions=2, n_strata=2, n_users=800)
    x = rng.normal(size=2_000)
    y = 0.8 * x + 0.1 * sample.version + 0.3 * rng.normal(size=2_000)
    plain = compare(replace(sample, y=y), FEW)
    cell = sample.version * sample.n_strata + sample.stratum
    adjusted = compare(replace(sample, y=cuped(y, x, cell).y), FEW)
    assert adjusted.se[0] < 0.5 * plain.se[0]
    assert adjusted.estimate[1] - adjusted.estimate[0] == pytest.approx(0.1, abs=0.04)


def test_bootstrap_agrees_with_the_closed_form() -> None:
    found = prepared(draw(6, n=3_000, n_versions=2, n_strata=2, n_users=400))
    closed = ClusterVariance(found.rows, found.sums).contrasts(found.target.ell)
    se = np.sqrt(np.diag(closed.cov))
    full = user_bootstrap(found.rows, found.target.ell, 1_500, 1)
    np.testing.assert_allclose(full.se, se, rtol=0.1)
    estimate = found.sums.mean @ found.target.ell
    assert ((full.lo < estimate) & (estimate < full.hi)).all()
    bucketed = user_bootstrap(found.rows, found.target.ell, 1_500, 1, buckets=100)
    np.testing.assert_allclose(bucketed.se, se, rtol=0.2)
    again = user_bootstrap(found.rows, found.target.ell, 1_500, 1)
    np.testing.assert_array_equal(again.se, full.se)


def test_bootstrap_without_enough_users_is_unavailable() -> None:
    lonely = make([1.0, 0.0, 1.0, 0.0], [0, 0, 1, 1], user=[0, 1, 2, 3])
    found = prepared(lonely)
    resampled = user_bootstrap(found.rows, found.target.ell, 200, 1)
    assert resampled.status == ["unavailable"] * 2
    assert np.isnan(resampled.se).all()
    with pytest.raises(ValueError, match="n must"):
        user_bootstrap(found.rows, found.target.ell, 1, 1)


def test_icc_by_hand() -> None:
    # Two users of two sessions: between 1 x 2 x 0.25 x 2 = 1, within (0.5 + 0.5) / 2.
    y, user = np.array([0.0, 1.0, 1.0, 2.0]), np.array([0, 0, 1, 1])
    assert anova_icc(y, user) == pytest.approx((1 - 0.5) / (1 + 0.5))
    assert anova_icc(np.array([0.0, 0.0, 1.0, 1.0]), user) == pytest.approx(1.0)
    assert isnan(anova_icc(np.ones(4), user))
    assert isnan(anova_icc(y, np.arange(4)))
    assert isnan(anova_icc(y, np.zeros(4, dtype=int)))
    assert kish_design_effect(user, 0.5) == pytest.approx(1.5)
    assert kish_design_effect(user, -0.2) == 1.0
    assert isnan(kish_design_effect(user[:0], 0.1))
    assert isnan(kish_design_effect(user, np.nan))


def test_recipes_by_hand() -> None:
    y = np.array([1.0, 0.0, 1.0, 0.0, 0.0])
    version, stratum = np.array([0, 0, 1, 1, 0]), np.array([0, 0, 0, 0, 1])
    assert raw_gap(y, version, 0).estimate == pytest.approx(1 / 3 - 2 / 5)
    # Stratum 1 has no comparator: it is passed over, and the other is all there is.
    assert control_pool_gap(y, version, stratum, 0).estimate == pytest.approx(0.0)
    assert stratum_mean_gap(y, version, stratum, 0, 50, 1).estimate == pytest.approx(0.0)
    alone = control_pool_gap(y, version * 0, stratum, 0)
    assert (alone.status, alone.reason) == ("unavailable", "no_comparator")
    for missing in (
        raw_gap(y, version, 7),
        shuffled_gaps(y, version, 8, 3, 1)[7],
        control_pool_gap(y, version, stratum, 7),
        stratum_mean_gap(y, version, stratum, 7, 3, 1),
    ):
        assert missing.reason == "absent"
        assert isnan(missing.estimate)


def test_shuffling_adds_noise_and_nothing_else() -> None:
    sample = draw(4, n=400)
    gap = raw_gap(sample.y, sample.version, 1).estimate
    found = shuffled_gaps(sample.y, sample.version, 3, 2_000, 3)[1].estimate
    assert found == pytest.approx(gap, abs=5 * np.sqrt(0.25 / 130 / 2_000))
    assert found != gap


def test_recipes_in_one_stratum_differ_by_the_share() -> None:
    sample = draw(5, n=300, n_strata=1)
    share = (sample.version == 0).mean()
    pool = control_pool_gap(sample.y, sample.version, sample.stratum, 0).estimate
    mean = stratum_mean_gap(sample.y, sample.version, sample.stratum, 0, 4_000, 1)
    assert mean.estimate == pytest.approx((1 - share) * pool)
    # The stratum's mean is held fixed: half-width of the version's own mean.
    own = sample.y[sample.version == 0]
    assert (mean.hi - mean.lo) / 2 == pytest.approx(1.96 * own.std() / np.sqrt(len(own)), rel=0.08)


def test_a_bootstrap_of_equal_outcomes_or_of_one_user_has_no_interval() -> None:
    flat = prepared(make([1.0] * 40, [0, 1] * 20))
    found = user_bootstrap(flat.rows, flat.target.ell, 50, 1)
    assert np.isnan([found.se, found.lo, found.hi]).all()
    assert (found.status, found.reason) == (["inconclusive"] * 2, ["no_variation"] * 2)
    alone = prepared(make([1.0, 0.0] * 20, [0, 1] * 20, user=[0] * 40), Options(min_users_per_cell=1))
    found = user_bootstrap(alone.rows, alone.target.ell, 50, 1)
    assert np.isnan([found.se, found.lo, found.hi]).all()
    assert (found.status, found.reason) == (["unavailable"] * 2, ["one_user"] * 2)
