from __future__ import annotations

from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.inference.agreement.cohen import agreement_weights, cohen_kappa, contingency, gwet_ac1, pabak
from evalpipe.inference.agreement.detector import detection, kish_ess
from evalpipe.inference.agreement.several import fleiss_kappa, krippendorff_alpha, rating_counts


def test_kappa_by_hand() -> None:
    # 20 + 15 of 50 agree; by chance 25 * 30 + 25 * 20 of 2,500 would.
    found = cohen_kappa(np.array([[20.0, 5.0], [10.0, 15.0]]))
    assert found.agreement == pytest.approx(0.7)
    assert found.kappa == pytest.approx((0.7 - 0.5) / 0.5)
    # Under chance with these margins: (pe + pe^2 - sum p q (p + q)) / (n (1 - pe)^2).
    chance = 0.5 + 0.25 - (0.5 * 0.6 * 1.1 + 0.5 * 0.4 * 0.9)
    assert found.se_null == pytest.approx(sqrt(chance / 50) / 0.5)
    assert found.lo < found.kappa < found.hi
    assert found.hi - found.kappa == pytest.approx(1.959964 * found.se, rel=1e-6)


def test_weights_of_ordered_categories() -> None:
    np.testing.assert_allclose(agreement_weights(3, "linear")[0], [1.0, 0.5, 0.0])
    np.testing.assert_allclose(agreement_weights(3, "quadratic")[0], [1.0, 0.75, 0.0])
    table = contingency(np.array([0, 1, 2, 2]), np.array([0, 1, 1, 2]), 3)
    assert table[2, 1] == 1
    # One miss by one step: it costs less the more near misses count.
    kappas = [cohen_kappa(table, kind).kappa for kind in ("unweighted", "linear", "quadratic")]
    assert kappas == sorted(kappas)
    with pytest.raises(ValueError, match="weights"):
        cohen_kappa(table, "cubic")
    with pytest.raises(ValueError, match="codes below 2"):
        contingency(np.array([2]), np.array([0]), 2)
    with pytest.raises(ValueError, match="shapes"):
        contingency(np.array([1]), np.array([0, 1]), 2)


def test_a_rater_with_one_category_has_no_kappa() -> None:
    both = cohen_kappa(np.diag([9.0, 0.0]))
    assert (both.status, both.reason, both.agreement) == ("unavailable", "one_category", 1.0)
    assert isnan(both.kappa)
    # One rater varies: agreement is chance, and that is a number.
    assert cohen_kappa(np.array([[6.0, 0.0], [3.0, 0.0]])).kappa == pytest.approx(0.0)
    empty = cohen_kappa(np.zeros((2, 2)))
    assert (empty.status, empty.reason) == ("unavailable", "no_ratings")
    assert isnan(gwet_ac1(np.zeros((2, 2))))
    assert isnan(pabak(np.zeros((2, 2))))
    assert isnan(pabak(np.array([[4.0]])))


def test_the_prevalence_paradox_is_seen_beside_kappa() -> None:
    table = np.array([[90.0, 5.0], [5.0, 0.0]])
    assert cohen_kappa(table).kappa < 0
    assert pabak(table) == pytest.approx(0.8)
    chance = 2 * 0.95 * 0.05
    assert gwet_ac1(table) == pytest.approx((0.9 - chance) / (1 - chance))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=4, max_size=40))
def test_kappa_does_not_depend_on_who_is_first_or_on_names(pairs: list[tuple[int, int]]) -> None:
    one, other = (np.array(side) for side in zip(*pairs, strict=True))
    table = contingency(one, other, 3)
    found, turned = cohen_kappa(table), cohen_kappa(table.T)
    renamed = cohen_kappa(contingency((one + 1) % 3, (other + 1) % 3, 3))
    for version in (turned, renamed):
        np.testing.assert_allclose([version.kappa, version.se], [found.kappa, found.se], atol=1e-9)
    if found.status == "ok":
        assert found.kappa <= 1 + 1e-12


def test_fleiss_kappa_by_hand() -> None:
    # Pairs that agree: 3 of 3, 1 of 3; shares 4/6 and 2/6.
    counts = rating_counts(np.array([[0, 0, 0], [0, 1, 1]]), 2)
    chance = (4 / 6) ** 2 + (2 / 6) ** 2
    assert fleiss_kappa(counts) == pytest.approx(((1 + 1 / 3) / 2 - chance) / (1 - chance))
    assert isnan(fleiss_kappa(np.array([[3.0, 0.0], [3.0, 0.0]])))
    assert isnan(fleiss_kappa(np.zeros((0, 2))))
    with pytest.raises(ValueError, match="same number"):
        fleiss_kappa(np.array([[2.0, 1.0], [1.0, 1.0]]))


def test_alpha_by_hand_and_with_missing_ratings() -> None:
    # One rating has no partner and counts for nothing.
    ratings = np.array([[0, 0], [1, 1], [0, 1], [1, -1]])
    counts = rating_counts(ratings, 2)
    # Coincidences: 2 of 00, 2 of 11, 1 of 01, 1 of 10; disagreement 2, expected 2 * 3 * 3 / 5.
    assert krippendorff_alpha(counts) == pytest.approx(1 - 2 / (18 / 5))
    assert krippendorff_alpha(counts[:3]) == krippendorff_alpha(counts)
    for level in ("ordinal", "interval"):
        # Two categories have one distance, whatever it is called.
        assert krippendorff_alpha(counts, level) == pytest.approx(krippendorff_alpha(counts))
    assert isnan(krippendorff_alpha(counts[3:]))
    assert isnan(krippendorff_alpha(np.array([[2.0, 0.0]])))
    with pytest.raises(ValueError, match="level"):
        krippendorff_alpha(counts, "ratio")
    with pytest.raises(ValueError, match="codes below"):
        rating_counts(np.array([[2]]), 2)


def test_distance_between_categories_counts() -> None:
    near, far = (rating_counts(np.array([[0, 0], [1, 1], [2, 2], [0, miss]]), 3) for miss in (1, 2))
    assert krippendorff_alpha(near, "interval") > krippendorff_alpha(far, "interval")
    values = np.array([0.0, 1.0, 100.0])
    assert krippendorff_alpha(near, "interval", values) > krippendorff_alpha(near, "interval")


def test_detection_by_hand() -> None:
    fired = np.array([1, 1, 1, 0, 0], dtype=bool)
    truth = np.array([1, 1, 0, 1, 0], dtype=bool)
    found = detection(fired, truth)
    assert (found.tp, found.fp, found.fn, found.tn) == (2, 1, 1, 1)
    assert (found.precision, found.recall, found.specificity) == (2 / 3, 2 / 3, 0.5)
    # Silent sessions were reviewed one in ten: each miss stands for ten.
    weighted = detection(fired, truth, np.array([1.0, 1.0, 1.0, 10.0, 10.0]))
    assert weighted.precision == found.precision
    assert weighted.recall == pytest.approx(2 / 12)
    assert weighted.ess_true == pytest.approx(144 / 102)
    silent = detection(~np.ones(5, dtype=bool), truth)
    assert isnan(silent.precision)
    assert silent.recall == 0.0
    assert kish_ess(np.zeros(0)) == 0.0
    with pytest.raises(ValueError, match="positive"):
        detection(fired, truth, np.zeros(5))
    with pytest.raises(ValueError, match="one length"):
        detection(fired, truth[:3])
