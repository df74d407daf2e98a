"""Score intervals of small samples in which every session is of another user."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evalpipe.inference import Options, compare, newcombe
from evalpipe_tests.inference.helpers import make


def test_small_independent_samples_have_a_score_interval_of_their_difference() -> None:
    y = np.repeat([1.0, 0.0, 1.0, 0.0], [28, 2, 18, 12])
    version = np.repeat([0, 1], [30, 30])
    found = compare(make(y, version), Options(permutations=99, draws=200))
    assert (found.newcombe_lo[0, 1], found.newcombe_hi[0, 1]) == newcombe(28, 30, 18, 30)
    assert (found.newcombe_lo[1, 0], found.newcombe_hi[1, 0]) == (-found.newcombe_hi[0, 1], -found.newcombe_lo[0, 1])
    assert found.newcombe_lo[0, 1] < found.pair_diff[0, 1] < found.newcombe_hi[0, 1]


@pytest.mark.parametrize(
    "change",
    [
        {"user": [0, 0, *range(1, 59)]},
        {"user": [*range(30), *range(29, 59)]},
        {"stratum": [0, 1] * 30},
        {"weight": np.full(60, 2.0)},
        {"d": np.full(60, 2.0)},
        {"times": 4},
    ],
    ids=["a user came twice", "a user met both", "two strata", "drawn", "a ratio", "large"],
)
def test_other_samples_have_none(change: dict[str, Any]) -> None:
    y, version = np.repeat([1.0, 0.0, 1.0, 0.0], [28, 2, 18, 12]), np.repeat([0, 1], [30, 30])
    times = change.pop("times", 1)
    sample = make(np.tile(y, times), np.tile(version, times), **change)
    assert np.isnan(compare(sample, Options(permutations=99, draws=200)).newcombe_lo).all()
