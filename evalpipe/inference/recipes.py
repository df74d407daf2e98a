"""Well-known recipes for net improvement, taken at their word, under their own names.

Belongs here: what is commonly computed elsewhere, so that its numbers can be reproduced and told
apart. Does not belong here: anything that decides. Each grades a version on its own mix of work or
on no strata at all, so none ranks; none clusters by user. :func:`compare` replaces them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from evalpipe.inference.cells import Ints, tally
from evalpipe.inference.model import Floats

#: Names, as rows carry them.
RECIPES = ("seed000.raw_gap", "seed000.net_improvement", "seed001.net_improvement", "seed004.net_improvement")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A number as a recipe gives it, where it gives one.

    Attributes:
        estimate: NaN where the recipe would print 0 for want of data. lo, hi: its interval, if any.
        status: ``ok`` or ``unavailable``. reason: ``absent`` or ``no_comparator``.
    """

    estimate: float
    lo: float = math.nan
    hi: float = math.nan
    status: str = "ok"
    reason: str = ""


def raw_gap(y: Floats, version: Ints, target: int) -> Recipe:
    """Mean of the version minus the mean of all sessions."""
    mine = version == target
    if not mine.any():
        return Recipe(math.nan, status="unavailable", reason="absent")
    return Recipe(float(y[mine].mean() - y.mean()))


def shuffled_gaps(y: Floats, version: Ints, n_versions: int, n: int, seed: int) -> list[Recipe]:
    """The gap of every version minus its mean over labels shuffled across everything.

    That mean is 0 but for simulation error, so this is the gap with noise: shuffling removes no
    confounding.

    Args:
        y, version: (N,). n_versions: K. n: shuffles. seed: non-negative.
    """
    rng, size = np.random.default_rng(seed), np.bincount(version, minlength=n_versions)
    total = np.zeros(n_versions)
    for _ in range(n):
        total += tally(version, rng.permutation(y), n_versions)
    with np.errstate(divide="ignore", invalid="ignore"):
        null = total / (n * size) - (y.mean() if len(y) else np.nan)
    gaps = [raw_gap(y, version, k) for k in range(n_versions)]
    return [replace(gap, estimate=gap.estimate - float(null[k])) for k, gap in enumerate(gaps)]


def control_pool_gap(y: Floats, version: Ints, stratum: Ints, target: int) -> Recipe:
    """Version minus the other versions' sessions in each stratum, weighted by the version's own mix.

    Strata without one of the two are passed over, and the weights of the others add to 1 again.
    """
    mine, total, weight = version == target, 0.0, 0.0
    if not mine.any():
        return Recipe(math.nan, status="unavailable", reason="absent")
    for s in np.unique(stratum):
        here = stratum == s
        if (here & mine).any() and (here & ~mine).any():
            share = float((here & mine).sum() / mine.sum())
            total += share * float(y[here & mine].mean() - y[here & ~mine].mean())
            weight += share
    if weight == 0:
        return Recipe(math.nan, status="unavailable", reason="no_comparator")
    return Recipe(total / weight)


def stratum_mean_gap(
    y: Floats, version: Ints, stratum: Ints, target: int, n: int, seed: int, alpha: float = 0.05
) -> Recipe:
    """Version minus all sessions of each stratum, weighted by its own mix, with a session bootstrap.

    The stratum's mean is held fixed while the sessions in it are drawn again, and sessions of one
    user are drawn apart: the interval is too wide for the first reason and too narrow for the second.

    Args:
        y, version, stratum: (N,). target: version code. n: resamples. seed: non-negative.
        alpha: Error rate of the percentile interval.
    """
    mine = version == target
    if not mine.any():
        return Recipe(math.nan, status="unavailable", reason="absent")
    rng, point, drawn = np.random.default_rng(seed), 0.0, np.zeros(n)
    for s in np.unique(stratum[mine]):
        values, here = y[mine & (stratum == s)], y[stratum == s]
        weight = len(values) / mine.sum()
        point += weight * float(values.mean() - here.mean())
        levels, counts = np.unique(values, return_counts=True)
        # Resampling with replacement draws how often each level comes up.
        means = rng.multinomial(len(values), counts / len(values), size=n) @ levels / len(values)
        drawn += weight * (means - here.mean())
    lo, hi = np.percentile(drawn, [100.0 * alpha / 2.0, 100.0 * (1.0 - alpha / 2.0)]) if n else (math.nan, math.nan)
    return Recipe(point, float(lo), float(hi))
