from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.inference import Options, Sample, compare
from evalpipe.inference.variance import ClusterVariance
from evalpipe_tests.inference.helpers import draw, make, prepared

FEW = Options(permutations=9, draws=200)


def test_a_version_on_its_own_mix_of_work_is_not_ranked() -> None:
    sample = draw(7, n_strata=2)
    found = compare(sample, replace(FEW, reference="stratum_mean", population="own_share"))
    for k in range(3):
        mine = sample.version == k
        means = [sample.y[sample.stratum == s].mean() for s in range(2)]
        by_hand = (
            sample.y[mine].mean() - sum((mine & (sample.stratum == s)).sum() * means[s] for s in range(2)) / mine.sum()
        )
        assert found.estimate[k] == pytest.approx(by_hand)
    # An order between versions that did different work means nothing.
    assert (found.rank_lo == 0).all()
    assert np.isnan(found.pair_diff).all()


def test_two_versions_by_hand() -> None:
    # Version 0: 1 1 0 0 by four users, version 1: 1 0 0 0 by four others; one stratum.
    found = compare(make([1, 1, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]), FEW)
    np.testing.assert_allclose(found.theta, [0.5, 0.25])
    np.testing.assert_allclose(found.estimate, [0.125, -0.125])
    # Each user is one session, so CR3 is sum of (e / (1 - 1/4) / 4)^2 over the cell, halved twice.
    v0, v1 = 4 * 0.25 / 9, (0.75**2 + 3 * 0.25**2) / 9
    np.testing.assert_allclose(found.se, [np.sqrt((v0 + v1) / 4)] * 2)
    np.testing.assert_allclose(found.pair_se[0, 1], np.sqrt(v0 + v1))


samples = st.builds(
    draw,
    seed=st.integers(0, 10_000),
    n=st.integers(60, 200),
    n_versions=st.integers(2, 4),
    n_strata=st.integers(1, 3),
    n_users=st.integers(12, 60),
    user_sd=st.sampled_from([0.0, 0.2]),
)


@settings(max_examples=25, deadline=None)
@given(samples)
def test_uniform_sums_to_zero(sample: Sample) -> None:
    found = compare(sample, FEW)
    if found.status[0] != "unavailable":
        assert abs(np.nansum(found.estimate)) < 1e-12


@settings(max_examples=25, deadline=None)
@given(samples, st.sampled_from(["uniform", "stratum_mean", "control_pool", "loo_uniform", "model"]))
def test_cr3_is_the_jackknife_over_users(sample: Sample, reference: str) -> None:
    options = replace(FEW, reference=reference, reference_index=0)
    if not any(status != "unavailable" for status in compare(sample, options).status):
        return
    ready = prepared(sample, options)
    found = ClusterVariance(ready.rows, ready.sums).contrasts(ready.target.ell).cov
    full = ready.sums.mean @ ready.target.ell
    total = np.zeros_like(full)
    for user in range(ready.rows.n_users):
        D, T = ready.sums.D.copy(), ready.sums.T.copy()
        mine = ready.rows.user == user
        D[ready.rows.cell[mine]] -= ready.rows.m[mine]
        T[ready.rows.cell[mine]] -= ready.rows.t[mine]
        total += ((T / D) @ ready.target.ell - full) ** 2
    np.testing.assert_allclose(np.diag(found), total, rtol=1e-9, atol=1e-14)


@settings(max_examples=15, deadline=None)
@given(samples)
def test_pair_dof_equal_those_of_an_explicit_contrast(sample: Sample) -> None:
    if compare(sample, FEW).status.count("unavailable") > len(set(sample.version)) - 2:
        return
    ready = prepared(sample)
    engine = ClusterVariance(ready.rows, ready.sums)
    pairs = engine.contrasts(ready.target.theta, pairs=True)
    explicit = engine.contrasts(ready.target.theta[:, [0]] - ready.target.theta[:, [1]])
    assert pairs.pair_df[0, 1] == pytest.approx(explicit.df[0])
    assert pairs.pair_gstar[0, 1] == pytest.approx(explicit.gstar[0])


def test_dof_equal_dense_algebra() -> None:
    sample = draw(5, n=60, n_versions=2, n_strata=2, n_users=15)
    sample = replace(sample, d=np.random.default_rng(0).integers(1, 4, 60).astype(float))
    ready = prepared(sample)
    found = ClusterVariance(ready.rows, ready.sums).contrasts(ready.target.ell)
    # Weighted least squares on cell dummies, working variance 1/d, by its matrices.
    cell = ready.cell
    W = np.diag(sample.d)
    X = np.eye(4)[cell]
    bread = np.linalg.inv(X.T @ W @ X)
    H = X @ bread @ X.T @ W
    phi, residual_maker = np.linalg.inv(W), np.eye(60) - H
    for k in range(2):
        columns = []
        for user in np.unique(sample.user):
            mine = np.flatnonzero(sample.user == user)
            adjust = np.linalg.inv(np.eye(len(mine)) - H[np.ix_(mine, mine)])
            columns.append(
                residual_maker[mine].T @ adjust.T @ W[np.ix_(mine, mine)] @ X[mine] @ bread @ ready.target.ell[:, k]
            )
        P = np.array(columns) @ phi @ np.array(columns).T
        assert found.df[k] == pytest.approx(np.trace(P) ** 2 / np.trace(P @ P))


def test_dense_and_sparse_cross_products_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = prepared(draw(3, n=400))
    dense = ClusterVariance(ready.rows, ready.sums).contrasts(ready.target.ell).df
    monkeypatch.setattr("evalpipe.inference.variance._SPARSE_TO_DENSE", 0.0)
    np.testing.assert_allclose(ClusterVariance(ready.rows, ready.sums).contrasts(ready.target.ell).df, dense)
    monkeypatch.setattr("evalpipe.inference.variance._LARGEST_DENSE", 0)
    np.testing.assert_allclose(ClusterVariance(ready.rows, ready.sums).contrasts(ready.target.ell).df, dense)


def test_blocks_of_users_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compare(draw(8, user_sd=0.2), FEW)
    monkeypatch.setattr("evalpipe.inference.variance._BLOCK_BYTES", 1_000)
    parts = compare(draw(8, user_sd=0.2), FEW)
    np.testing.assert_allclose(parts.df, whole.df)
    np.testing.assert_allclose(parts.pair_gstar, whole.pair_gstar)


def test_duplicating_users_halves_cr0() -> None:
    sample = draw(11)
    twice = make(
        np.tile(sample.y, 2),
        np.tile(sample.version, 2),
        np.tile(sample.stratum, 2),
        np.concatenate((sample.user, sample.user + 1_000)),
    )
    one, two = prepared(sample), prepared(twice)
    before = ClusterVariance(one.rows, one.sums, "CR0").contrasts(one.target.ell).cov
    after = ClusterVariance(two.rows, two.sums, "CR0").contrasts(two.target.ell).cov
    np.testing.assert_allclose(after, before / 2)


@settings(max_examples=10, deadline=None)
@given(samples, st.integers(0, 100))
def test_row_order_and_labels_do_not_matter(sample: Sample, seed: int) -> None:
    rng = np.random.default_rng(seed)
    order, rename = rng.permutation(len(sample.y)), rng.permutation(sample.n_versions)
    renamed = replace(
        sample,
        y=sample.y[order],
        d=sample.d[order],
        version=rename[sample.version][order].astype(np.int32),
        stratum=(sample.n_strata - 1 - sample.stratum)[order],
        user=rng.permutation(sample.user.max() + 1)[sample.user][order].astype(np.int32),
        epoch=sample.epoch[order],
    )
    before, after = compare(sample, FEW), compare(renamed, FEW)
    for name in ("estimate", "se", "df", "gstar", "lo", "theta", "theta_hi", "raw_rate", "n_users", "deff"):
        np.testing.assert_allclose(getattr(after, name)[rename], getattr(before, name), atol=1e-12, rtol=1e-7)


def test_stratum_mean_is_a_fraction_of_control_pool() -> None:
    sample = draw(4, n_strata=1)
    share = np.bincount(sample.version) / len(sample.y)
    mean = compare(sample, replace(FEW, reference="stratum_mean")).estimate
    pool = compare(sample, replace(FEW, reference="control_pool")).estimate
    np.testing.assert_allclose(mean, (1 - share) * pool)


def test_references_are_contrasts_of_theta() -> None:
    sample = draw(4, n_versions=4)
    theta = compare(sample, FEW).theta
    model = compare(sample, replace(FEW, reference="model", reference_index=2))
    np.testing.assert_allclose(model.estimate, theta - theta[2])
    assert model.reasons[2] == ("is_reference",)
    assert np.isnan(model.se[2])
    assert model.estimate[0] == pytest.approx(model.pair_diff[0, 2])
    assert model.se[0] == pytest.approx(model.pair_se[0, 2])
    loo = compare(sample, replace(FEW, reference="loo_uniform")).estimate
    np.testing.assert_allclose(loo, 4 / 3 * (theta - theta.mean()))


def test_weights_follow_the_population() -> None:
    sample = draw(4, n_strata=3)
    traffic = compare(sample, FEW)
    np.testing.assert_allclose(traffic.weights, np.bincount(sample.stratum) / len(sample.y))
    equal = compare(sample, replace(FEW, population="equal"))
    np.testing.assert_allclose(equal.weights, 1 / 3)
    np.testing.assert_allclose(equal.theta, equal.cell_mean.mean(axis=1))


def test_sessions_without_a_denominator_weigh_strata_only() -> None:
    sample = draw(4, n_strata=2)
    silent = np.arange(len(sample.y)) % 3 == 0
    ratio = replace(sample, y=np.where(silent, 0.0, sample.y), d=np.where(silent, 0.0, 1.0))
    found = compare(ratio, FEW)
    np.testing.assert_allclose(found.weights, compare(sample, FEW).weights)
    stay = ~silent & (sample.version == 1) & (sample.stratum == 0)
    assert found.cell_mean[1, 0] == pytest.approx(sample.y[stay].mean())
    assert found.n_sessions.sum() == (~silent).sum()


def test_coverage_with_sticky_heterogeneous_users() -> None:
    covered = []
    for seed in range(150):
        sample = draw(seed, n=240, n_users=60, n_strata=1, sticky=True, user_sd=0.15)
        found = compare(sample, FEW)
        covered.extend((found.lo <= 0) & (found.hi >= 0))
    # 450 intervals: without clustering about 80 % would cover.
    assert 0.91 < np.mean(covered) < 0.985
