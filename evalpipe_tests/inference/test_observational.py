from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.inference import Options, compare
from evalpipe.inference.bootstrap import bootstrap_comparison
from evalpipe.inference.causal.crossfit import CLIP, crossfit_chances, crossfit_outcomes, group_kinds
from evalpipe.inference.causal.observational import weigh_routing
from evalpipe.inference.missing import worst_case_bounds
from evalpipe.inference.shift import net_shift
from evalpipe_tests.inference.helpers import draw, make


def routed(seed: int, n: int = 3_000, strength: float = 0.3) -> tuple[np.ndarray, ...]:
    """Outcomes without any effect, versions, kind of work, users: hard work goes to version 1."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, n // 3, n)
    hard = rng.random(n) < 0.5
    label = (rng.random(n) < np.where(hard, 0.5 + strength, 0.5 - strength)).astype(np.int64)
    y = (rng.random(n) < np.where(hard, 0.3, 0.7)).astype(float)
    return y, label, hard.astype(np.int64)[:, None], user


def test_chances_are_those_of_the_kind_of_work_in_other_folds() -> None:
    _, label, kind, user = routed(1)
    kinds = group_kinds(kind, user)
    assert kinds.X.shape == (2, 3)
    # A user's sessions share a fold, so that nobody predicts himself.
    assert all(len(set(kinds.fold[user == one])) == 1 for one in np.unique(user)[:50])
    found = crossfit_chances(kinds, label, 2)
    assert found.is_converged
    assert found.clipped == 0.0
    np.testing.assert_allclose(found.chance.sum(axis=1), 1.0)
    assert found.chance[kind[:, 0] == 1, 1] == pytest.approx(0.8, abs=0.04)
    rare = crossfit_chances(
        group_kinds(np.zeros((500, 1), dtype=int), np.arange(500)), (np.arange(500) == 7).astype(int), 2
    )
    assert (rare.chance[:, 1] >= CLIP / (1 + CLIP)).all()
    assert rare.clipped == pytest.approx(1 / 500)


def test_outcomes_are_expected_from_other_people() -> None:
    y, label, kind, user = routed(2)
    kinds = group_kinds(kind, user)
    rate = crossfit_outcomes(kinds, y, label, 3)
    assert rate[kind[:, 0] == 1, 0] == pytest.approx(0.3, abs=0.06)
    assert np.isnan(rate[:, 2]).all()
    # A number without bounds is predicted by a line: the same means, ten times larger.
    line = crossfit_outcomes(kinds, y * 10, label, 2)
    np.testing.assert_allclose(line[:, 0], rate[:, 0] * 10, atol=0.1)


def test_how_versions_and_kinds_are_numbered_changes_nothing() -> None:
    rng = np.random.default_rng(8)
    n = 500
    kind, user = rng.integers(0, 3, (n, 2)), rng.integers(0, n, n)
    label = (rng.integers(0, 3, n) + (rng.random(n) < 0.5) * kind[:, 0]) % 3
    y = (rng.random(n) < 0.3 + 0.15 * kind[:, 1]).astype(float)
    new_label, new_kind = np.array([2, 0, 1]), np.array([1, 2, 0])
    before = weigh_routing(y, label, kind, user, 3)
    after = weigh_routing(y, new_label[label], new_kind[kind], user, 3)
    for name, found in before.items():
        np.testing.assert_allclose(after[name].estimate[new_label], found.estimate, atol=1e-7)


@settings(max_examples=5)
@given(st.integers(0, 500))
def test_no_effect_is_found_where_routing_made_one(seed: int) -> None:
    y, label, kind, user = routed(seed)
    raw = y[label == 1].mean() - y[label == 0].mean()
    assert raw < -0.15
    for found in weigh_routing(y, label, kind, user, 2).values():
        assert found.status == ("ok", "ok")
        assert found.estimate.sum() == pytest.approx(0.0)
        # Four standard errors: a fair estimator strays further once in 16,000.
        assert abs(found.estimate[1]) < 4 * found.se[1]


def test_logged_chances_take_the_place_of_fitted_ones() -> None:
    y, label, kind, user = routed(3)
    truth = np.where(label == 1, 0.5 + 0.3 * (2 * kind[:, 0] - 1), 0.5 - 0.3 * (2 * kind[:, 0] - 1))
    logged = weigh_routing(y, label, kind, user, 2, logged=truth)
    fitted = weigh_routing(y, label, kind, user, 2)
    assert logged["ipw"].estimate[1] == pytest.approx(fitted["ipw"].estimate[1], abs=0.03)
    assert logged["ipw"].estimate[1] != fitted["ipw"].estimate[1]
    assert logged["overlap"].estimate[1] == fitted["overlap"].estimate[1]


def test_routing_without_overlap_is_unavailable() -> None:
    y, label, kind, user = routed(4, n=400, strength=0.49)
    found = weigh_routing(y, label, kind, user, 2)
    assert set(found["overlap"].status) == {"unavailable"}
    assert "no_overlap" in found["overlap"].reasons[0] + found["overlap"].reasons[1]
    assert np.isnan(found["overlap"].estimate).all()
    for name, one in weigh_routing(y, label, kind, np.zeros(400, dtype=int), 2).items():
        assert (one.status, one.reasons[0]) == (("unavailable",) * 2, ("few_users",)), name
    crowd = np.arange(900) % 450
    many = weigh_routing(np.zeros(900), crowd, np.arange(900)[:, None] % 9, np.arange(900), 450)
    assert many["aipw"].reasons[0] == ("too_many_versions",)


def test_worst_cases_by_hand() -> None:
    # Of version 0: one success, one failure, two unknown; of version 1: both known, one success.
    y = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    known = np.array([True, True, False, False, True, True])
    version, stratum = np.array([0, 0, 0, 0, 1, 1]), np.zeros(6, dtype=int)
    lower, upper = worst_case_bounds(y, known, version, stratum, np.array([1.0]), 2)
    np.testing.assert_allclose(lower, [(0.25 - 0.5) / 2, (0.5 - 0.75) / 2])
    np.testing.assert_allclose(upper, [(0.75 - 0.5) / 2, (0.5 - 0.25) / 2])
    two = worst_case_bounds(y, known, version, stratum, np.array([1.0, np.nan]), 2)
    np.testing.assert_allclose(two[0], lower)
    assert np.isnan(worst_case_bounds(y, known, version * 0, stratum, np.array([1.0]), 2)[0]).all()
    assert np.isnan(worst_case_bounds(y, known, version, stratum, np.array([np.nan]), 2)[0]).all()


@given(st.integers(0, 1_000))
def test_bounds_hold_the_estimate_whatever_the_unknown_was(seed: int) -> None:
    sample = draw(seed, n=200)
    known = np.random.default_rng(seed).random(200) < 0.8
    full = compare(sample, Options(permutations=9, draws=50))
    lower, upper = worst_case_bounds(sample.y, known, sample.version, sample.stratum, full.weights, 3)
    assert (lower <= full.estimate + 1e-12).all()
    assert (full.estimate <= upper + 1e-12).all()


@pytest.mark.parametrize("reference", ["uniform", "stratum_mean", "control_pool", "loo_uniform", "model"])
def test_the_short_way_gives_the_same_estimate(reference: str) -> None:
    sample = draw(3, n=400, effects=[0.1, 0.0, -0.1])
    options = Options(
        permutations=9, draws=50, reference=reference, reference_index=1 if reference == "model" else None
    )
    found, whole = net_shift(sample, options), compare(sample, options)
    for name in ("estimate", "se", "df", "lo", "hi"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.n_users, whole.n_users)


def test_the_short_way_has_no_number_where_there_is_none() -> None:
    alone = make([1.0, 0.0, 1.0], [0, 0, 0], n_versions=2)
    assert np.isnan(net_shift(alone, Options()).estimate).all()
    assert net_shift(alone, Options()).n_sessions.tolist() == [3, 0]
    missing = Options(reference="model", reference_index=1)
    assert np.isnan(net_shift(alone, missing).estimate).all()
    flat = draw(1, n=100, n_versions=2)
    same = net_shift(replace(flat, y=np.ones(100)), Options())
    assert same.estimate == pytest.approx(0.0)
    assert np.isnan(same.se).all()
    resampled = bootstrap_comparison(alone, Options(), 10, 1)
    assert resampled.status == ["unavailable"] * 2


def test_outcomes_that_do_not_vary_have_an_estimate_and_no_interval() -> None:
    rng = np.random.default_rng(1)
    label, kind = rng.integers(0, 2, 400), rng.integers(0, 3, (400, 1))
    for found in weigh_routing(np.ones(400), label, kind, np.arange(400) // 3, 2).values():
        assert np.allclose(found.estimate, 0.0, atol=1e-6)
        assert np.isnan([found.se, found.lo, found.hi]).all()
        assert found.status == ("inconclusive",) * 2
        assert found.reasons == (("no_variation",),) * 2


def test_a_reference_of_one_version_has_the_error_of_a_difference() -> None:
    rng = np.random.default_rng(2)
    label, kind = rng.integers(0, 3, 900), rng.integers(0, 3, (900, 1))
    y = (rng.random(900) < 0.3 + 0.1 * label).astype(float)
    against = np.eye(3) - np.array([1.0, 0.0, 0.0])
    plain = weigh_routing(y, label, kind, np.arange(900) // 3, 3)
    for name, found in weigh_routing(y, label, kind, np.arange(900) // 3, 3, contrast=against).items():
        assert np.allclose(found.estimate, plain[name].estimate - plain[name].estimate[0])
        assert (found.estimate[0], found.status[0], found.reasons[0]) == (0.0, "ok", ())
        assert np.isnan(found.lo[0])
        # A difference of two independent means varies as both do together.
        se = [y[label == k].std() / np.sqrt((label == k).sum()) for k in range(3)]
        assert found.se[2] == pytest.approx(np.hypot(se[0], se[2]), rel=0.1)


def test_what_weights_leave_of_a_difference_in_the_work_is_told() -> None:
    y, label, kind, user = routed(4)
    hard = kind[:, 0].astype(float)
    before = abs(hard[label == 1].mean() - hard[label == 0].mean()) / hard.std()
    assert before > 1.0
    found = weigh_routing(y, label, kind, user, 2)
    assert max(one.largest_smd for one in found.values()) < 0.1
    # Logged chances that say routing was blind leave the whole of it.
    blind = weigh_routing(y, label, kind, user, 2, logged=np.full(len(y), 0.5))
    assert blind["ipw"].largest_smd == pytest.approx(before)
    assert blind["aipw"].largest_smd == pytest.approx(before)
    assert blind["overlap"].largest_smd < 0.1
    # Nothing was known of the work, so there is nothing to balance.
    assert np.isnan(weigh_routing(y, label, np.zeros_like(kind), user, 2)["ipw"].largest_smd)
