"""Feedback: does traffic follow what was measured before?

Belongs here: the rank correlation of changes of routing with earlier estimates and its p-value. Does not
belong here: which changes and estimates (``analysis/feedback.py``).
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import stats

from evalpipe.inference.cells import Ints
from evalpipe.inference.model import Floats

#: Draws of the permutation test, and arrangements up to which all of them are listed.
DRAWS = 1_999
_MAX_LISTED = 5_040
_SAME = 1e-12


def followed(change: Floats, earlier: Floats, block: Ints, seed: int) -> tuple[float, float]:
    """Spearman's correlation of changes with what was measured before, and its p-value.

    Args:
        change: (P,) change of the share of a version from one epoch to the next.
        earlier: (P,) its estimate before. block: (P,) which change of routing it belongs to.
        seed: Seed of the draws.

    Returns:
        Correlation over all pairs, and the two-sided p-value of it when estimates are dealt anew to the
        versions of each change: shares of one change sum to 0, so its pairs are not independent, and a
        table of Spearman's law would call chance a pattern. NaN where one of the two never differs, or no
        change has two versions.
    """
    if len(change) < 2:
        return math.nan, math.nan
    x, y = (stats.rankdata(values) for values in (change, earlier))
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float(x @ x) * float(y @ y))
    places = [np.flatnonzero(block == one) for one in np.unique(block)]
    if not scale > 0 or all(len(place) < 2 for place in places):
        return math.nan, math.nan
    rho = float(x @ y) / scale
    n_arrangements = math.prod(math.factorial(len(place)) for place in places)
    if n_arrangements <= _MAX_LISTED:
        orders = itertools.product(*(itertools.permutations(place) for place in places))
        at = np.concatenate(places)
        drawn = np.array([x[at] @ y[np.concatenate(order)] for order in orders]) / scale
        return rho, float((np.abs(drawn) >= abs(rho) - _SAME).mean())
    rng = np.random.Generator(np.random.PCG64(seed))
    dealt = np.repeat(y[None, :], DRAWS, axis=0)
    for place in places:
        dealt[:, place] = rng.permuted(dealt[:, place], axis=1)
    drawn = dealt @ x / scale
    return rho, float((1 + (np.abs(drawn) >= abs(rho) - _SAME).sum()) / (DRAWS + 1))
