"""One version against the rest within strata: the permutation law of its total.

Belongs here: mean, variance and exact p-value of the sum of outcomes of the target's sessions when
labels are permuted within strata. Does not belong here: all versions at once (``enumeration``,
``randomization``), effects in units of a rate (``tables``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from evalpipe.inference.cells import Ints, tally
from evalpipe.inference.exact.convolution import convolve, two_sided_by_distance
from evalpipe.inference.model import Bools, Floats

#: States of the exact law (sessions taken x total) above which it is not computed.
MAX_STATES = 20_000_000


@dataclass(frozen=True, slots=True)
class BlockTest:
    """The target's total and its permutation law.

    Attributes:
        statistic: Sum of outcomes of the target. expectation, variance: under permutation.
        z, p: Standardized, and its two-sided normal p-value; NaN where nothing varies.
        p_exact: Two-sided exact p-value; NaN where unavailable.
        status: Of ``p_exact``: ``ok`` or ``unavailable``.
        reason: ``no_variation``, ``not_on_a_lattice`` or ``too_many_states``.
    """

    statistic: float
    expectation: float
    variance: float
    z: float
    p: float
    p_exact: float
    status: str = "ok"
    reason: str = ""


def block_test(y: Floats, is_target: Bools, stratum: Ints) -> BlockTest:
    """Test whether the target's outcomes differ from the others', labels permuted within strata.

    With the reference ``stratum_mean`` and the population ``own_share`` this is the exact test of
    the target's net improvement, which is linear in the total. For binary outcomes it is the exact
    Cochran-Mantel-Haenszel test.

    Args:
        y: (N,) outcomes. is_target: (N,). stratum: (N,) codes from 0.

    Returns:
        Moments in closed form; the exact law by counting subsets, which needs outcomes that are
        whole multiples of one step.

    Raises:
        ValueError: Lengths differ, or an outcome is NaN or infinite.
    """
    y, is_target = np.asarray(y, dtype=np.float64), np.asarray(is_target, dtype=bool)
    stratum = np.asarray(stratum, dtype=np.int64)
    if y.shape != is_target.shape or y.shape != stratum.shape:
        raise ValueError("y, is_target and stratum must have one length")
    if not np.isfinite(y).all():
        raise ValueError("y must be finite")
    size = int(stratum.max(initial=-1)) + 1
    n = np.bincount(stratum, minlength=size).astype(np.float64)
    taken = tally(stratum, is_target.astype(np.float64), size)
    mean = tally(stratum, y, size) / np.maximum(n, 1.0)
    square = tally(stratum, (y - mean[stratum]) ** 2, size)
    expectation = float((taken * mean).sum())
    variance = float((taken * (n - taken) / np.maximum(n * (n - 1.0), 1.0) * square).sum())
    statistic = float(y[is_target].sum())
    if variance <= 1e-12 * float((y**2).sum()):
        nan = math.nan
        return BlockTest(statistic, expectation, variance, nan, nan, nan, "unavailable", "no_variation")
    z = (statistic - expectation) / math.sqrt(variance)
    p_exact, reason = _exact(y, is_target, stratum, expectation)
    p = float(2.0 * special.ndtr(-abs(z)))
    return BlockTest(statistic, expectation, variance, z, p, p_exact, "unavailable" if reason else "ok", reason)


def lattice(y: Floats) -> tuple[Ints, float, float] | None:
    """Outcomes as whole numbers: (codes, offset, step) with y = offset + step x codes, or None."""
    levels = np.unique(y)
    offset = float(levels[0])
    if len(levels) == 1:
        return np.zeros(len(y), dtype=np.int64), offset, 1.0
    gaps = np.diff(levels)
    for parts in (1, 2, 3, 4, 5, 6, 8, 10, 12, 100, 1000):
        step = float(gaps.min()) / parts
        codes = (y - offset) / step
        if np.abs(codes - np.rint(codes)).max() < 1e-6:
            return np.rint(codes).astype(np.int64), offset, step
    return None


def _exact(y: Floats, is_target: Bools, stratum: Ints, expectation: float) -> tuple[float, str]:
    found = lattice(y)
    if found is None:
        return math.nan, "not_on_a_lattice"
    codes, offset, step = found
    strata = np.unique(stratum)
    pmf = np.ones(1)
    states = sum(
        int(is_target[stratum == s].sum() + 1) * (int(codes[stratum == s].sum()) + 1) * int((stratum == s).sum())
        for s in strata
    )
    if states > MAX_STATES:
        return math.nan, "too_many_states"
    for s in strata:
        pmf = convolve(pmf, _subset_sums(codes[stratum == s], int(is_target[stratum == s].sum())))
    at = float(codes[is_target].sum())
    centre = (expectation - offset * float(is_target.sum())) / step
    return two_sided_by_distance(pmf, at, centre), ""


def _subset_sums(codes: Ints, size: int) -> Floats:
    """Law of the sum of ``size`` of the codes drawn without replacement."""
    # State [j, t]: probability that the first i sessions gave j to the target, with total t.
    ways = np.zeros((size + 1, int(codes.sum()) + 1))
    ways[0, 0] = 1.0
    n = len(codes)
    for i, code in enumerate(codes):
        # Chance that the next session is taken, given j of i taken: what is left over what remains.
        take = np.clip((size - np.arange(size + 1)) / (n - i), 0.0, 1.0)[:, None]
        moved = np.zeros_like(ways)
        moved[1:, code:] = (ways * take)[:-1, : ways.shape[1] - code]
        ways = ways * (1.0 - take) + moved
    return np.asarray(ways[size])
