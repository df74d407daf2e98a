"""Curves of recovery: what was not seen is censored, what was refused never came back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from evalpipe import analysis
from evalpipe.analysis.recovery import EPISODES
from evalpipe.criteria import Criteria
from evalpipe_tests.analysis.conftest import AS_OF, FIRST_DAY

LAST_DAY = FIRST_DAY.replace(month=2, day=1)


def test_a_curve_by_hand(criteria: Criteria, make_outcomes: Callable[..., pl.DataFrame]) -> None:
    outcomes = make_outcomes(["a"] * 6 + ["b"], np.ones(7))
    ends = [(1, "strong"), (1, "weak"), (2, "censored"), (1, "rejected"), (3, "strong"), (0, "censored")]
    rows = [(f"s{i:06d}", *end) for i, end in enumerate(ends)] + [("elsewhere", 1, "strong"), ("s000001", None, None)]
    episodes = pl.DataFrame(rows, schema=EPISODES, orient="row")
    stamp = analysis.Stamp.of(criteria, as_of=AS_OF, window="28d", start=FIRST_DAY, end=LAST_DAY)
    found = analysis.recovery_curves(outcomes, episodes, criteria, stamp)
    assert found["version"].unique().to_list() == ["acme · a"], "a version without an episode has no curve"
    # The one that nobody judged at all leaves at once; the refused one stays to the third answer.
    assert found.select("k", "n_at_risk", "n_recovered").rows() == [(1, 5, 2), (2, 3, 0), (3, 2, 1)]
    assert found["recovered"].to_list() == pytest.approx([2 / 5, 2 / 5, 1 - 3 / 5 * 1 / 2])
    assert (found["recovered_lo"] < found["recovered"]).all()
    assert found["reasons"].to_list() == [["few_episodes"]] * 3
    nothing = analysis.recovery_curves(outcomes, episodes.clear(), criteria, stamp)
    assert nothing.is_empty()
