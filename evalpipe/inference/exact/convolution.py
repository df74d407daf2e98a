"""Sums of independent whole numbers: their laws by convolution, and tails of them.

Belongs here: probability arithmetic. Does not belong here: which law a stratum has.
"""

from __future__ import annotations

import numpy as np

from evalpipe.inference.model import Floats

#: Two probabilities closer than this, relatively, are the same one computed along two ways.
SAME = 1e-7


def convolve(one: Floats, other: Floats) -> Floats:
    """Law of a sum from the laws of its terms, both from 0 upwards."""
    return np.convolve(one, other)


def tail(pmf: Floats, at: int) -> float:
    """P(T >= at) of a law on 0..len-1, never above 1."""
    return float(min(1.0, pmf[max(at, 0) :].sum()))


def two_sided_by_distance(pmf: Floats, at: float, centre: float) -> float:
    """P(|T - centre| >= |at - centre|) of a law on 0..len-1."""
    place = np.arange(len(pmf))
    return float(min(1.0, pmf[np.abs(place - centre) >= abs(at - centre) - 1e-9].sum()))


def two_sided_by_probability(pmf: Floats, at: int) -> float:
    """Probability of all outcomes that are no more likely than the observed one."""
    return float(min(1.0, pmf[pmf <= pmf[at] * (1.0 + SAME)].sum()))
