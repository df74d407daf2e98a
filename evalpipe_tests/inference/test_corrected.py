"""Rates corrected by labels: against a truth that is known because it was drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalpipe.inference.labels.corrected import CorrectedRates, Fired, Labels, corrected_rates
from evalpipe.inference.labels.prevalence import rogan_gladen

#: Versions that are equally good, and a detector that misses twice as much of the second.
TRUE_RATE = 0.2
MISSES, ALARMS = (0.2, 0.5), 0.05


def world(seed: int, n: int = 6_000, per_side: int = 60, misses: tuple[float, float] = MISSES) -> tuple[Fired, Labels]:
    """Turns of two versions, three a session; some with and some without the signal are labelled."""
    rng = np.random.default_rng(seed)
    session = np.arange(n) // 3
    version, user = session % 2, session // 4
    truth = rng.random(n) < TRUE_RATE
    fired = np.where(truth, rng.random(n) >= np.array(misses)[version], rng.random(n) < ALARMS)
    drawn, weight = [], []
    for k in (0, 1):
        for side in (True, False):
            place = np.flatnonzero((version == k) & (fired == side))
            taken = rng.choice(place, min(per_side, len(place)), replace=False)
            drawn.append(taken)
            weight.append(np.full(len(taken), len(place) / len(taken)))
    at = np.concatenate(drawn)
    first = np.arange(0, n, 3)
    units = Fired(np.add.reduceat(fired.astype(float), first), np.full(n // 3, 3.0), version[first], user[first])
    return units, Labels(truth[at].astype(float), fired[at], np.concatenate(weight), version[at], user[at])


def test_a_detector_that_is_worse_on_one_version_no_longer_makes_it_better() -> None:
    covered, told = np.zeros(3), 0
    for seed in range(60):
        units, labels = world(seed)
        found = corrected_rates(units, labels, 2)
        assert found.method == ["ppi", "ppi"]
        assert found.raw_shift[0] > 0.01, "as counted the first has more of it"
        told += found.shift_lo[0] > 0 or found.shift_hi[0] < 0
        covered[:2] += (found.lo <= TRUE_RATE) & (found.hi >= TRUE_RATE)
        covered[2] += found.shift_lo[0] <= 0 <= found.shift_hi[0]
    assert (covered >= 53).all(), "60 intervals of 95 %: fewer than 53 would be chance once in a thousand"
    assert told <= 7


def test_the_gap_of_error_rates_that_explains_a_shift_is_half_of_it_between_two() -> None:
    found = corrected_rates(*world(1), 2)
    assert found.error_rate_gap == pytest.approx(np.abs(found.raw_shift))
    assert found.raw_shift.sum() == pytest.approx(0.0)
    assert found.raw_shift[0] - found.raw_shift[1] == pytest.approx(found.rate[0] - found.rate[1])


@pytest.mark.parametrize("misses", [MISSES, (0.3, 0.3)])
def test_the_covariance_gives_the_limits_of_the_shifts(misses: tuple[float, float]) -> None:
    units, labels = world(3, misses=misses)
    # In the second world a version has too few labels of its own, so that both share error rates.
    kept = labels if misses == MISSES else labels.of((labels.version == 0) | (np.arange(len(labels.truth)) % 5 == 0))
    found = corrected_rates(units, kept, 2)
    contrast = np.array([[0.5, -0.5], [-0.5, 0.5]])
    half = 1.959963984540054 * np.sqrt(np.diag(contrast @ found.cov @ contrast))
    np.testing.assert_allclose(found.shift_hi - found.shift, half, rtol=1e-9)
    np.testing.assert_allclose(found.cov, found.cov.T)


def test_few_labels_of_a_version_use_the_errors_of_all_if_these_are_alike() -> None:
    units, labels = world(3, misses=(0.3, 0.3))
    few = labels.of((labels.version == 0) | (np.arange(len(labels.truth)) % 8 == 0))
    found = corrected_rates(units, few, 2)
    assert found.method == ["ppi", "rogan_gladen"]
    assert found.reasons[1] == ["pooled_errors"]
    assert found.lo[1] < TRUE_RATE < found.hi[1]
    assert found.n_labels.tolist() == [120, (few.version == 1).sum()]
    # With error rates taken for certain the interval would be a third of this.
    known = rogan_gladen(found.rate[1] * 3_000, 3_000, 0.7, 0.95)
    assert found.hi[1] - found.lo[1] > 2 * (known.hi - known.lo)


def test_errors_that_differ_are_not_pooled() -> None:
    units, labels = world(3, n=30_000, per_side=400, misses=(0.05, 0.7))
    few = labels.of((labels.version == 0) | (np.arange(len(labels.truth)) % 30 == 0))
    found = corrected_rates(units, few, 2)
    assert (found.status[1], found.reasons[1]) == ("unavailable", ["errors_differ"])
    assert np.isnan(found.estimate[1])
    assert np.isnan(found.shift).all(), "one version alone has no average to be held against"
    assert found.rate[1] > 0, "what was counted is still told"


def without_estimate(found: CorrectedRates) -> bool:
    numbers = (found.estimate, found.lo, found.hi, found.shift, found.shift_lo, found.shift_hi, found.error_rate_gap)
    return all(np.isnan(values).all() for values in numbers) and found.status == ["unavailable"] * 2


def test_without_enough_labels_there_is_a_reason_and_no_number() -> None:
    units, labels = world(5)
    none = labels.of(np.zeros(len(labels.truth), dtype=bool))
    found = corrected_rates(units, none, 2)
    assert without_estimate(found)
    assert found.reasons == [["no_reviews"], ["no_reviews"]]
    few = corrected_rates(units, labels.of(np.arange(len(labels.truth)) % 20 == 0), 2)
    assert without_estimate(few)
    assert few.reasons == [["labels"], ["labels"]]
    # 120 labels of turns with the signal say nothing of what is missed.
    one_sided = corrected_rates(units, labels.of(labels.fired), 2)
    assert one_sided.reasons == [["labels"], ["labels"]]
    silent = corrected_rates(replace(units, size=np.zeros_like(units.size), fired=units.fired * 0), labels, 2)
    assert silent.reasons == [["absent"], ["absent"]]


def test_no_error_among_a_few_labels_does_not_say_that_there_is_none() -> None:
    units, labels = world(7, misses=(0.0, 0.0), per_side=40)
    perfect = replace(labels, truth=labels.fired.astype(float))
    found = corrected_rates(units, perfect, 2)
    assert found.reasons == [["few_errors_seen"]] * 2
    assert found.estimate == pytest.approx(found.rate)
    # Up to 3/40 of the silent turns may have it.
    assert (found.hi - found.estimate > 0.04).all()


def test_a_useless_signal_is_not_corrected_by_pooled_errors() -> None:
    rng = np.random.default_rng(8)
    units, labels = world(8, per_side=40)
    noise = replace(labels, truth=(rng.random(len(labels.truth)) < 0.5).astype(float))
    found = corrected_rates(units, noise.of(np.arange(len(labels.truth)) % 3 == 0), 2)
    assert found.reasons == [["signal_uninformative"]] * 2
