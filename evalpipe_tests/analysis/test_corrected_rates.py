"""Rates of signals by version beside what reviews make of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from evalpipe import analysis
from evalpipe.analysis.corrected import COUNTS, REVIEWED
from evalpipe.criteria import Criteria
from evalpipe_tests.analysis.conftest import AS_OF, FIRST_DAY

N = 1_200
LAST_DAY = FIRST_DAY.replace(month=2, day=1)


def home(seed: int = 1, drawn: int = 60) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Corrections of two models that err alike; the detector misses half of those of the second.

    Each session has one turn after its first. Half of the drawn have the signal, half do not.
    """
    rng = np.random.default_rng(seed)
    model = np.arange(N) % 2
    truth = rng.random(N) < 0.3
    fired = truth & (rng.random(N) >= np.array([0.1, 0.6])[model])
    name = np.array([f"s{i:06d}" for i in range(N)])
    rows = [(name[i], "correction", "turn", 1) for i in np.flatnonzero(fired)]
    reviewed = []
    for k in (0, 1):
        for side in (True, False):
            place = np.flatnonzero((model == k) & (fired == side))
            taken = rng.choice(place, min(drawn, len(place)), replace=False)
            share = len(taken) / len(place)
            reviewed += [(name[i], "correction", "turn", side, float(truth[i]), share) for i in taken]
    return pl.DataFrame(rows, schema=COUNTS, orient="row"), pl.DataFrame(reviewed, schema=REVIEWED, orient="row")


@pytest.fixture
def rates(criteria: Criteria, make_outcomes: Callable[..., pl.DataFrame]) -> Callable[..., pl.DataFrame]:
    outcomes = make_outcomes([f"m-{i % 2}" for i in range(N)], np.ones(N), n_human_turns=[2] * N, n_tool_calls=[0] * N)

    def make(counts: pl.DataFrame, reviewed: pl.DataFrame) -> pl.DataFrame:
        stamp = analysis.Stamp.of(criteria, as_of=AS_OF, window="28d", start=FIRST_DAY, end=LAST_DAY)
        return analysis.corrected(outcomes, counts, reviewed, criteria, stamp)

    return make


def test_reviews_show_that_the_version_with_fewer_corrections_only_hides_them(
    rates: Callable[..., pl.DataFrame],
) -> None:
    found = rates(*home()).sort("version")
    assert found["version"].to_list() == ["acme · m-0", "acme · m-1"]
    assert found["method"].to_list() == ["ppi", "ppi"]
    assert found["n_units"].to_list() == [600.0, 600.0]
    raw, rate = found["raw_rate"].to_numpy(), found["rate"].to_numpy()
    assert raw[0] > 1.5 * raw[1]
    assert (found["rate_lo"] < 0.3).all()
    assert (found["rate_hi"] > 0.3).all()
    assert (np.abs(rate - 0.3) < np.abs(raw - 0.3) + 0.03).all()
    assert found["raw_shift"][0] > 0.05
    assert found["shift_lo"][0] < 0 < found["shift_hi"][0]
    # Of two versions half the gap of a shift to either side would explain it.
    assert found["error_rate_gap"].to_numpy() == pytest.approx(np.abs(found["raw_shift"].to_numpy()))


def test_without_reviews_the_counted_rate_stands_with_its_reason(rates: Callable[..., pl.DataFrame]) -> None:
    counts, reviewed = home()
    found = rates(counts, reviewed.clear())
    assert found["reasons"].to_list() == [["no_reviews"]] * 2
    assert found["status"].to_list() == ["unavailable"] * 2
    assert found["raw_rate"].null_count() == 0
    assert found.select("rate", "rate_lo", "rate_hi", "method", "shift").null_count().row(0) == (2, 2, 2, 2, 2)
    assert rates(counts.clear(), reviewed.clear()).is_empty(), "nothing fired and nobody looked"


def test_a_signal_that_only_reviewers_saw_has_a_row(rates: Callable[..., pl.DataFrame]) -> None:
    _, reviewed = home()
    seen = reviewed.with_columns(is_emitted=pl.lit(value=False))
    found = rates(pl.DataFrame(schema=COUNTS), seen)
    assert found["n_fired"].to_list() == [0, 0]
    assert found["reasons"].to_list() == [["labels"]] * 2
