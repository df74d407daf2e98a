"""What is counted of a comparison whose truth is known.

Belongs here: questions, targets and counting. Does not belong here: worlds, or averaging over
replications. Targets are those of a 95 % interval and a 5 % test, with the room that simulation and
small samples need; a limit that only has one side lets a method be more careful than it says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalpipe.inference import Comparison, gate

Floats = NDArray[np.float64]
Count = Callable[[Comparison, Floats], tuple[int, int]]

ALPHA = 0.05
#: Margin and kind of the gates that ship with the default criteria.
GATE_MARGIN = 0.05
GATE_KIND = "non_inferiority"


@dataclass(frozen=True, slots=True)
class Measure:
    """Something that is counted in every replication.

    Attributes:
        name: Quantity. question: it, in one sentence. target: range that its share should lie in.
        count: (hits, trials) of one comparison, given the true net improvement of the versions.
    """

    name: str
    question: str
    target: tuple[float, float]
    count: Count


def _covered(found: Comparison, truth: Floats) -> tuple[int, int]:
    has = np.isfinite(found.lo)
    return int(((found.lo <= truth) & (truth <= found.hi))[has].sum()), int(has.sum())


def _all_covered(found: Comparison, truth: Floats) -> tuple[int, int]:
    has = np.isfinite(found.lo_sim)
    inside = (found.lo_sim <= truth) & (truth <= found.hi_sim)
    return int(bool(inside[has].all())), int(bool(has.any()))


def _rejected(found: Comparison, _: Floats) -> tuple[int, int]:
    has = np.isfinite(found.p_perm)
    return int((found.p_perm[has] <= ALPHA).sum()), int(has.sum())


def _false_order(found: Comparison, truth: Floats) -> tuple[int, int]:
    is_false = found.pair_better & (truth[:, None] <= truth[None, :])
    return int(bool(is_false.any())), int(bool((found.rank_lo > 0).any()))


def _right_ranks(found: Comparison, truth: Floats) -> tuple[int, int]:
    best = 1 + (truth[None, :] > truth[:, None]).sum(axis=1)
    worst = len(truth) - (truth[None, :] < truth[:, None]).sum(axis=1)
    has = found.rank_lo > 0
    inside = (found.rank_lo <= best) & (worst <= found.rank_hi)
    return int(bool(inside[has].all())), int(bool(has.any()))


def _verdict(wanted: str) -> Count:
    """Counts a verdict on the first version as candidate and the second as baseline."""

    def count(found: Comparison, _: Floats) -> tuple[int, int]:
        decided = gate(
            float(found.pair_diff[0, 1]),
            float(found.pair_se[0, 1]),
            float(found.pair_df[0, 1]),
            float(found.pair_gstar[0, 1]),
            GATE_MARGIN,
            GATE_KIND,
        )
        return int(decided.verdict == wanted), 1

    return count


COVERAGE = Measure("coverage", "How often does a 95 % interval hold the truth?", (0.935, 0.965), _covered)
SIMULTANEOUS = Measure(
    "simultaneous_coverage",
    "How often do the simultaneous intervals hold the truth of all versions at once?",
    (0.935, 1.0),
    _all_covered,
)
TYPE_1 = Measure("type_1_error", "How often is p <= 0.05 where no version differs?", (0.04, 0.06), _rejected)
FALSE_ORDER = Measure(
    "any_false_order", "How often is some version called better than one that is as good?", (0.0, 0.065), _false_order
)
RANKS = Measure("rank_coverage", "How often do the rank sets hold all true ranks at once?", (0.935, 1.0), _right_ranks)
FALSE_FAIL = Measure(
    "false_fail", "How often does the gate fail a version that is no worse?", (0.0, 0.02), _verdict("fail")
)
FALSE_PASS = Measure(
    "false_pass",
    "How often does the gate pass a version that is worse by all of the margin?",
    (0.0, 0.06),
    _verdict("pass"),
)
