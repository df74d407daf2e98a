"""Intervals of proportions.

Belongs here: one and two proportions, from counts that may be effective (non-integer) counts. Does
not belong here: how effective counts are found (``intervals``).
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special, stats

from evalpipe.inference.model import Floats

_NAN = (math.nan, math.nan)
_SMALL = 20


def wilson(
    x: float | Floats, n: float | Floats, alpha: float = 0.05, crit: float | Floats | None = None
) -> tuple[Floats, Floats]:
    """Wilson score interval (Wilson, 1927).

    Args:
        x: Successes, may be fractional. n: trials. Scalars or arrays.
        alpha: Error rate.
        crit: Critical value in place of the normal one, for clustered counts (after Korn and
            Graubard, 1998).

    Returns:
        Lower and upper limits; NaN where n is 0.
    """
    x, n = np.asarray(x, dtype=float), np.asarray(n, dtype=float)
    z = special.ndtri(1.0 - alpha / 2.0) if crit is None else np.asarray(crit)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = x / n
        centre = (p + z**2 / (2.0 * n)) / (1.0 + z**2 / n)
        half = z / (1.0 + z**2 / n) * np.sqrt(p * (1.0 - p) / n + z**2 / (4.0 * n**2))
        # At the ends the limit is the end itself; rounding would leave 1e-17.
        lower = np.where(x <= 0, 0.0, np.maximum(centre - half, 0.0))
        upper = np.where(x >= n, 1.0, np.minimum(centre + half, 1.0))
    return np.where(n > 0, lower, np.nan), np.where(n > 0, upper, np.nan)


def clopper_pearson(x: float, n: float, alpha: float = 0.05) -> tuple[float, float]:
    """Exact interval of one proportion (Clopper and Pearson, 1934); NaN when n is 0."""
    if n <= 0:
        return _NAN
    lower = 0.0 if x <= 0 else float(stats.beta.ppf(alpha / 2.0, x, n - x + 1.0))
    upper = 1.0 if x >= n else float(stats.beta.ppf(1.0 - alpha / 2.0, x + 1.0, n - x))
    return lower, upper


def agresti_coull(x: float, n: float, alpha: float = 0.05) -> tuple[float, float]:
    """Adjusted Wald interval (Agresti and Coull, 1998), cut to [0, 1]; NaN when n is 0."""
    if n <= 0:
        return _NAN
    z2 = float(special.ndtri(1.0 - alpha / 2.0)) ** 2
    centre = (x + z2 / 2.0) / (n + z2)
    half = math.sqrt(z2 * centre * (1.0 - centre) / (n + z2))
    return max(centre - half, 0.0), min(centre + half, 1.0)


def proportion_interval(x: float, n: float, alpha: float = 0.05) -> tuple[float, float]:
    """Interval of one unclustered proportion: Clopper-Pearson below 20 trials, else Wilson."""
    if n < _SMALL:
        return clopper_pearson(x, n, alpha)
    lower, upper = wilson(x, n, alpha)
    return float(lower), float(upper)


def newcombe(x1: float, n1: float, x2: float, n2: float, alpha: float = 0.05) -> tuple[float, float]:
    """Hybrid score interval of p1 - p2 (Newcombe, 1998, method 10); NaN when either n is 0."""
    if n1 <= 0 or n2 <= 0:
        return _NAN
    p1, p2 = x1 / n1, x2 / n2
    l1, u1 = (float(v) for v in wilson(x1, n1, alpha))
    l2, u2 = (float(v) for v in wilson(x2, n2, alpha))
    diff = p1 - p2
    lower = diff - math.hypot(p1 - l1, u2 - p2)
    upper = diff + math.hypot(u1 - p1, p2 - l2)
    return lower, upper
