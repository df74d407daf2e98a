from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy import stats

from evalpipe.inference import Options, Sample, compare
from evalpipe.inference import randomization as tests
from evalpipe.inference.arrangements import all_labels, count_arrangements
from evalpipe.inference.exact.blocks import block_test
from evalpipe.inference.shuffle import Shuffler
from evalpipe.inference.tables import table_sampler
from evalpipe.inference.units import UnitTable
from evalpipe.inference.variance import ClusterVariance
from evalpipe_tests.inference.helpers import draw, laid, make, prepared

MANY = Options(permutations=1_999, draws=200)


def permutation_covariance(sample: Sample) -> np.ndarray:
    """Closed form of the covariance of cell means over permutations, (C, C), strata independent."""
    size = sample.n_versions * sample.n_strata
    out = np.zeros((size, size))
    for s in range(sample.n_strata):
        inside = sample.stratum == s
        n_s, variance = inside.sum(), sample.y[inside].var(ddof=1)
        for k in range(sample.n_versions):
            for j in range(sample.n_versions):
                n_ks = (inside & (sample.version == k)).sum()
                at = (k * sample.n_strata + s, j * sample.n_strata + s)
                out[at] = variance * ((k == j) / n_ks - 1.0 / n_s)
    return out


@pytest.mark.parametrize("is_graded", [False, True])
def test_table_sampler_matches_the_exact_two_group_law(is_graded: bool) -> None:
    sample = draw(9, n=120, n_versions=2, n_strata=3)
    if is_graded:
        sample = replace(sample, y=sample.y + np.random.default_rng(1).integers(0, 3, 120))
    exact = block_test(sample.y, sample.version == 1, sample.stratum.astype(np.int64))
    n_draws = 20_000
    sampler = table_sampler(laid(sample))
    assert sampler is not None
    sums, _ = sampler.sums(n_draws, np.random.default_rng(1))
    target = sums.reshape(n_draws, 2, -1)[:, 1].sum(axis=1)
    assert target.mean() == pytest.approx(exact.expectation, abs=4 * np.sqrt(exact.variance / n_draws))
    assert target.var() == pytest.approx(exact.variance, rel=4 * np.sqrt(2 / n_draws))
    extreme = abs(exact.statistic - exact.expectation) - 1e-9
    p = (np.abs(target - exact.expectation) >= extreme).mean()
    assert p == pytest.approx(exact.p_exact, abs=4 * np.sqrt(exact.p_exact * (1 - exact.p_exact) / n_draws))


def three_levels(seed: int, n: int = 240) -> Sample:
    sample = draw(seed, n=n)
    rng = np.random.default_rng(seed)
    return replace(sample, y=np.clip(sample.y + rng.integers(0, 2, n), 0, 2) * 0.5)


@pytest.mark.parametrize("sample", [draw(2, n=240), three_levels(2)], ids=["binary", "three levels"])
def test_table_sampler_has_the_moments_of_permutation(sample: Sample) -> None:
    layout = laid(sample)
    sampler = table_sampler(layout)
    assert sampler is not None
    T, TT = sampler.sums(20_000, np.random.default_rng(3))
    means = T / layout.counts().ravel()
    closed = permutation_covariance(sample)
    scale = np.sqrt(np.outer(np.diag(closed), np.diag(closed)))
    np.testing.assert_allclose(np.cov(means.T) / scale, closed / scale, atol=0.04)
    np.testing.assert_allclose((means @ layout.ell).mean(axis=0), 0.0, atol=2e-3)
    # Totals of a stratum never change, nor can a cell hold more than its sessions.
    by_stratum = T.reshape(len(T), 3, 2).sum(axis=1)
    np.testing.assert_allclose(by_stratum, np.tile(np.bincount(sample.stratum, sample.y), (len(T), 1)))
    squares = TT.reshape(len(TT), 3, 2).sum(axis=1)
    np.testing.assert_allclose(squares, np.tile(np.bincount(sample.stratum, sample.y**2), (len(T), 1)))


def test_engines_agree() -> None:
    # Few sessions: the sampler, the shuffler and brute force draw from one law.
    layout = laid(draw(7, n=160, effects=[0.15, 0.0, -0.1]))
    observed = layout.observed()
    sampler, shuffler = table_sampler(layout), Shuffler(layout)
    assert sampler is not None
    by_table, _ = tests.p_values(observed, [sampler.draw(8_000, np.random.default_rng(1))])
    by_shuffle, _ = tests.p_values(observed, [shuffler.draw(8_000, np.random.default_rng(2))])
    rng, exceed = np.random.default_rng(4), np.zeros(3)
    for _ in range(2_000):
        version = layout.version.copy()
        for s in range(layout.n_strata):
            inside = layout.stratum == s
            version[inside] = rng.permutation(version[inside])
        exceed += np.abs(replace(layout, version=version).observed()) >= np.abs(observed) - 1e-12
    np.testing.assert_allclose(by_table, by_shuffle, atol=0.025)
    np.testing.assert_allclose(by_table, exceed / 2_000, atol=0.035)


def test_statistic_is_net_improvement_over_hc2() -> None:
    for sample in (draw(3), replace(draw(3), d=np.random.default_rng(1).integers(1, 4, 300).astype(float))):
        found = compare(sample, replace(MANY, permutations=9))
        flat = found.se / np.sqrt(found.deff)
        np.testing.assert_allclose(laid(sample).observed(), found.estimate / flat)


def test_ratio_pairs_travel_together() -> None:
    # With y = 0.5 d in every session the ratio is 0.5 under any labelling.
    sample = draw(3)
    d = np.random.default_rng(1).integers(1, 9, len(sample.y)).astype(float)
    layout = laid(replace(sample, y=d / 2, d=d))
    np.testing.assert_array_equal(Shuffler(layout).draw(20, np.random.default_rng(0)), 0.0)


def test_exact_engine_is_brute_force() -> None:
    sample = make([1, 1, 0, 1, 0, 0, 1, 0], [0, 0, 0, 0, 1, 1, 1, 1])
    found = compare(sample, MANY)
    layout = laid(sample)
    extreme = 0
    for chosen in combinations(range(8), 4):
        version = np.ones(8, dtype=np.int64)
        version[list(chosen)] = 0
        extreme += int(abs(replace(layout, version=version).observed()[0]) >= abs(layout.observed()[0]) - 1e-12)
    assert (found.engine, found.n_permutations) == ("exact", comb(8, 4))
    assert found.p_perm[0] == pytest.approx(extreme / comb(8, 4))


def test_perfect_separation_has_a_p_but_no_interval() -> None:
    sample = make([1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1])
    for design in ("randomized_session", "randomized_user"):
        found = compare(sample, replace(MANY, design=design))
        # Of 70 arrangements only this one and its mirror separate perfectly.
        np.testing.assert_allclose(found.p_perm, 2 / 70)
        assert np.isnan(found.lo).all()
        assert found.reasons[0] == ("no_variation",)


def test_engines_are_chosen_by_cost() -> None:
    sample = draw(5, n=600)
    graded = replace(sample, y=np.random.default_rng(0).random(600))
    assert compare(sample, MANY).engine == "table"
    assert compare(graded, MANY).engine == "shuffle"
    assert compare(replace(sample, d=np.full(600, 2.0)), MANY).engine == "shuffle"
    dear = compare(graded, replace(MANY, shuffle_budget=1e5))
    assert (dear.engine, dear.n_permutations, dear.test_reasons) == ("gaussian", 0, ("gaussian_limit",))
    np.testing.assert_allclose(dear.p_perm, compare(graded, MANY).p_perm, atol=0.03)
    np.testing.assert_allclose(dear.p_perm, dear.p_normal)


def test_gaussian_limit_is_refused_where_it_does_not_hold() -> None:
    # One session carries nearly all of the variance: the statistic is far from normal.
    sample = draw(5, n=400)
    y = np.random.default_rng(0).random(400) * 1e-3
    y[:2] = 1e6, 2e6
    found = compare(replace(sample, y=y), replace(MANY, shuffle_budget=2e5))
    assert (found.engine, found.n_permutations) == ("shuffle", 500)
    assert found.test_reasons == ("fewer_replicates",)


def test_observational_designs_have_no_test() -> None:
    found = compare(draw(5), replace(MANY, design="observational"))
    assert np.isnan(found.p_perm).all()
    assert (found.engine, found.n_permutations, found.test_reasons) == ("none", 0, ("not_randomized",))
    assert np.isfinite(found.p_adj).all()


def test_seed_decides_and_threads_do_not() -> None:
    sample = draw(6, n=900, effects=[0.05, 0.0, -0.02])
    options = replace(MANY, permutations=4_000, seed=12)
    one, two = compare(sample, options), compare(sample, replace(options, threads=2))
    for name in ("p_perm", "lo_sim", "p_adj"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    other = compare(sample, replace(options, seed=13))
    assert (one.p_perm != other.p_perm).any()
    np.testing.assert_array_equal(one.se, other.se)


def test_chunks_cover_all_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalpipe.inference.shuffle._BUFFER_BYTES", 100_000)
    sample = replace(draw(5, n=300), y=np.random.default_rng(0).random(300))
    assert Shuffler(laid(sample)).chunk < 50
    found = compare(sample, replace(MANY, permutations=501))
    assert found.n_permutations == 501


def uniformity(p: np.ndarray) -> float:
    """p-value of a test that the p-values are at least uniform (stochastically not smaller)."""
    return float(stats.kstest(p, "uniform", alternative="greater").pvalue)


@pytest.mark.parametrize("graded", [False, True])
def test_p_is_uniform_when_no_version_matters(graded: bool) -> None:
    options = Options(permutations=99, draws=10)
    p = []
    for seed in range(300):
        sample = draw(seed, n=80, n_versions=2)
        if graded:
            sample = replace(sample, y=sample.y + np.random.default_rng(seed).random(80))
        p.append(compare(sample, options).p_perm[0])
    assert uniformity(np.array(p)) > 1e-4
    assert 0.02 <= np.mean(np.array(p) <= 0.05) <= 0.09
    assert np.mean(p) < 0.56


def test_user_permutation_is_valid_where_session_permutation_is_not() -> None:
    by_user, by_session = [], []
    for seed in range(150):
        sample = draw(seed, n=200, n_users=24, n_versions=2, n_strata=1, sticky=True, user_sd=0.3)
        by_user.append(compare(sample, Options(permutations=99, draws=10, design="randomized_user")).p_perm[0])
        by_session.append(compare(sample, Options(permutations=99, draws=10)).p_perm[0])
    assert np.mean(np.array(by_user) <= 0.05) <= 0.11
    assert np.mean(np.array(by_session) <= 0.05) >= 0.2


def test_units_travel_whole() -> None:
    sample = replace(draw(2, n=120, n_users=20, sticky=True), epoch=(np.arange(120) % 2).astype(np.int32))
    table = UnitTable.build(laid(sample))
    assert table.mixed_share == 0.0
    assert len(table.label) == len({(u, e) for u, e in zip(sample.user, sample.epoch, strict=True)})
    assert table.m.sum() == 120
    # A row is one unit in one stratum: a label given to the unit moves all of its sessions.
    held = [(table.user[u], table.epoch[u], s) for u, s in zip(table.row_unit, table.row_stratum, strict=True)]
    assert len(held) == len(set(held))
    # Units trade labels within their epoch only.
    seen: list[np.ndarray] = []
    rng = np.random.default_rng(0)
    original = UnitTable.statistic

    def spy(self: UnitTable, label: np.ndarray) -> np.ndarray:
        seen.append(label.copy())
        return original(self, label)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UnitTable, "statistic", spy)
        table.draw(20, rng)
    assert len(seen) == 20
    for label in seen:
        for epoch in (0, 1):
            inside = table.epoch == epoch
            assert sorted(label[inside]) == sorted(table.label[inside])
    assert any((label != table.label).any() for label in seen)


@pytest.mark.parametrize("reference", ["uniform", "model", "stratum_mean"])
def test_unit_statistic_is_net_improvement_over_cr0(reference: str) -> None:
    sample = replace(draw(2, n=200, n_users=30), epoch=(np.arange(200) % 3).astype(np.int32))
    options = replace(MANY, reference=reference, reference_index=1)
    ready = prepared(sample, options)
    cov = ClusterVariance(ready.rows, ready.sums, "CR0").contrasts(ready.target.ell).cov
    expected = ready.sums.mean @ ready.target.ell
    table = UnitTable.build(laid(sample, options))
    found = table.statistic(table.label)
    at = ~np.isnan(found)
    assert at.sum() == (2 if reference == "model" else 3)
    np.testing.assert_allclose(found[at], expected[at] / np.sqrt(np.diag(cov)[at]))
    assert table.mixed_share > 0.5


def test_few_units_are_enumerated() -> None:
    sample = draw(1, n=60, n_users=8, n_versions=2, n_strata=1, sticky=True)
    found = compare(sample, replace(MANY, design="randomized_user"))
    label = np.array([sample.version[sample.user == u][0] for u in np.unique(sample.user)])
    block = np.zeros(len(label), dtype=np.int64)
    every = list(all_labels(block, label))
    assert len({tuple(x) for x in every}) == len(every) == count_arrangements(block, label) == comb(8, 4)
    assert (found.engine, found.n_permutations) == ("exact", comb(8, 4))
    # Swapping all labels gives the mirrored statistic: two-sided fractions are even.
    assert (found.p_perm[0] * comb(8, 4)) % 2 == pytest.approx(0)


def test_labellings_that_empty_a_cell_are_redrawn_or_reported() -> None:
    # Each stratum is seen by four users of ten; versions would often miss a stratum.
    user = np.repeat(np.arange(20), 3)
    sample = make(np.random.default_rng(1).integers(0, 2, 60), user % 2, user // 4, user)
    found = compare(sample, replace(MANY, design="randomized_user", permutations=99))
    if found.engine == "units":
        assert found.n_permutations == 99
    else:
        assert found.test_reasons == ("permutation_empties_cells",)
        assert np.isnan(found.p_perm).all()
    table = UnitTable.build(laid(sample))
    lost = table.label.copy()
    lost[:4] = 0
    assert table.is_complete(table.label)
    assert not table.is_complete(lost)


def test_the_observed_arrangement_is_counted_in() -> None:
    p, n = tests.p_values(np.array([5.0, 0.0, np.nan]), [np.ones((60, 3)), np.ones((39, 3))])
    assert n == 99
    np.testing.assert_array_equal(p, [0.01, 1.0, np.nan])


def test_user_replicates_are_capped() -> None:
    sample = draw(2, n=150, n_users=40, n_versions=2, n_strata=1, sticky=True)
    found = compare(sample, Options(permutations=9_999, draws=100, design="randomized_user"))
    assert (found.engine, found.n_permutations) == ("units", 1_999)
    dear = compare(sample, Options(permutations=9_999, draws=100, design="randomized_user", shuffle_budget=1.0))
    assert (dear.n_permutations, dear.test_reasons) == (199, ("fewer_replicates",))


def test_mixed_units_are_told() -> None:
    sample = draw(2, n=300, n_users=40)
    found = compare(sample, replace(MANY, design="randomized_user", permutations=49))
    assert "mixed_units" in found.test_reasons


def test_counting_stops_early_on_large_samples() -> None:
    label = np.arange(200_000) % 2
    assert count_arrangements(np.zeros(200_000, dtype=np.int64), label) > 50_000
    assert count_arrangements(np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 0, 1])) == 6


def test_a_weight_that_a_stratum_shares_leaves_the_test_and_its_engine_as_they_are() -> None:
    """A common factor cancels in the statistic, so that drawn sessions are tested at no other cost."""
    sample, options = draw(3), Options(permutations=499, seed=5)
    drawn = replace(sample, weight=np.where(sample.stratum == 0, 10.0, 1.0 / 0.3))
    for design in ("randomized_session", "randomized_user"):
        plain, weighted = (compare(one, replace(options, design=design, population="equal")) for one in (sample, drawn))
        assert weighted.engine == plain.engine
        np.testing.assert_array_equal(weighted.p_perm, plain.p_perm)
    # Several weights in a stratum stay with their sessions.
    mixed = replace(sample, weight=np.where(np.arange(len(sample.y)) % 2 == 0, 10.0, 1.0))
    assert compare(mixed, options).engine == "shuffle"
