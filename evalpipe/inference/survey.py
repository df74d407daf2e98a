"""Means and totals of a sample that was drawn with known, unequal chances.

Belongs here: Hajek means and ratios, Horvitz-Thompson totals, means of a part. Does not belong
here: comparisons of versions, which carry the same weights through cell means (``variance``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalpipe.inference.agreement.detector import kish_ess
from evalpipe.inference.cells import Ints
from evalpipe.inference.influence import clustered_covariance
from evalpipe.inference.model import Bools, Floats


@dataclass(frozen=True, slots=True)
class Weighted:
    """An estimate for the population that a sample stands for.

    Attributes:
        estimate, se: NaN where unavailable. ess: Kish's effective sample size.
        status: ``ok`` or ``unavailable``. reason: ``no_sessions``, ``zero_denominator`` or
            ``one_user``, in which case only the standard error is missing.
    """

    estimate: float
    se: float
    ess: float
    status: str = "ok"
    reason: str = ""


def inclusion_weights(probability: Floats) -> Floats:
    """1 / probability of having been drawn, (N,).

    Raises:
        ValueError: A probability is not in (0, 1]: what cannot be drawn is not in the population.
    """
    p = np.asarray(probability, dtype=np.float64)
    if not (np.isfinite(p).all() and (p > 0).all() and (p <= 1).all()):
        raise ValueError("probabilities of being drawn must lie in (0, 1]")
    return np.asarray(1.0 / p)


def hajek_ratio(
    y: Floats, weight: Floats, user: Ints, d: Floats | None = None, inside: Bools | None = None
) -> Weighted:
    """Weighted mean, or ratio of weighted sums, clustered by user (Hajek, 1971; Binder, 1983).

    Args:
        y: (N,) numerators. weight: (N,) positive. user: (N,) cluster codes.
        d: (N,) denominators; 1 by default, which gives a mean.
        inside: (N,) the part of the population that is estimated; users without sessions in it
            still count as clusters, since another draw might have found some.

    Returns:
        sum w y / sum w d, with the with-replacement variance between users.
    """
    y, w = np.asarray(y, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    used = np.ones(len(y), dtype=bool) if inside is None else np.asarray(inside, dtype=bool)
    m = w * (np.ones(len(y)) if d is None else np.asarray(d, dtype=np.float64)) * used
    ess, whole = kish_ess(w[used]), float(m.sum())
    if not used.any():
        return Weighted(math.nan, math.nan, 0.0, "unavailable", "no_sessions")
    if not whole > 0:
        return Weighted(math.nan, math.nan, ess, "unavailable", "zero_denominator")
    estimate = float((w * y * used).sum()) / whole
    return _with_se(estimate, (w * y * used - estimate * m) / whole, user, ess)


def horvitz_thompson_total(y: Floats, weight: Floats, user: Ints) -> Weighted:
    """Weighted total, clustered by user (Horvitz and Thompson, 1952).

    Args:
        y: (N,). weight: (N,) inverse probabilities of being drawn. user: (N,) cluster codes.
    """
    y, w = np.asarray(y, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    if len(y) == 0:
        return Weighted(math.nan, math.nan, 0.0, "unavailable", "no_sessions")
    return _with_se(float((w * y).sum()), w * y, user, kish_ess(w))


def _with_se(estimate: float, influence: Floats, user: Ints, ess: float) -> Weighted:
    variance = float(clustered_covariance(influence[:, None], user, is_centred=True)[0, 0])
    if math.isnan(variance):
        return Weighted(estimate, math.nan, ess, "unavailable", "one_user")
    return Weighted(estimate, math.sqrt(max(variance, 0.0)), ess)
