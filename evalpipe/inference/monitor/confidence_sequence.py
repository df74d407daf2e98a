"""A sequence of intervals that holds on every night at once.

Belongs here: the asymptotic confidence sequence. Does not belong here: alarms (``edetector``) or
estimates. Fixed 95 % intervals looked at every night for seven weeks give a false alarm on some
night in one of five runs; these do not, at half again the width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from evalpipe.inference.model import Floats

#: Users below which the sequence does not start: its error rate is a limit in their number.
MIN_USERS = 50


@dataclass(frozen=True, slots=True)
class Sequence:
    """A mean watched over time, one entry a look, each (T,).

    Attributes:
        n: Observations so far. mean: their mean. lo, hi: limits; NaN before there is variation.
    """

    n: Floats
    mean: Floats
    lo: Floats
    hi: Floats


def tuning(alpha: float) -> float:
    """c = -W_{-1}(-alpha^2 / e) - 1: rho^2 x the look at which the sequence is narrowest.

    Raises:
        ValueError: ``alpha`` is not in (0, 1).
    """
    if not 0 < alpha < 1:
        raise ValueError("alpha must lie between 0 and 1")
    return float(-special.lambertw(-(alpha**2) / math.e, -1).real - 1.0)


def sequence_half_width(se: Floats | float, n: Floats | float, n_planned: float, alpha: float = 0.05) -> Floats:
    """Half-width of the sequence at a look (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, 2024).

    Args:
        se: Standard error of the estimate at the look, clustered if sessions are.
        n: Observations so far. n_planned: observations at which the sequence is to be narrowest.
        alpha: Error rate over all looks together.

    Returns:
        se sqrt((1 + 1/x)(2 ln(1/alpha) + ln(1 + x))), x = c n / n_planned; NaN where n is 0.

    Raises:
        ValueError: ``n_planned`` is not positive, or ``alpha`` not in (0, 1).
    """
    if not n_planned > 0:
        raise ValueError("n_planned must be positive")
    x = tuning(alpha) * np.asarray(n, dtype=np.float64) / n_planned
    safe = np.where(x > 0, x, np.nan)
    return np.asarray(se * np.sqrt((1.0 + 1.0 / safe) * (2.0 * math.log(1.0 / alpha) + np.log1p(safe))))


def watch_mean(values: Floats, looks: Floats, n_planned: float, alpha: float = 0.05) -> Sequence:
    """The sequence of a stream of independent values.

    Args:
        values: (N,) in order of arrival.
        looks: (T,) numbers of values at which to look, 1..N.
        n_planned: Look at which it is to be narrowest.
        alpha: Error rate over all looks together.

    Returns:
        Means and limits with the running sample variance; NaN limits where nothing varies yet.

    Raises:
        ValueError: A value is NaN or infinite, or a look outside 1..N.
    """
    values, at = np.asarray(values, dtype=np.float64), np.asarray(looks, dtype=np.int64)
    if not np.isfinite(values).all():
        raise ValueError("values must be finite")
    if len(at) and (at.min() < 1 or at.max() > len(values)):
        raise ValueError(f"looks must lie in 1..{len(values)}")
    n = at.astype(np.float64)
    # Centred first: sums of squares of a stream with a large mean cancel.
    centre = float(values.mean()) if len(values) else 0.0
    total, square = np.cumsum(values - centre)[at - 1], np.cumsum((values - centre) ** 2)[at - 1]
    spread = np.maximum(square - total**2 / n, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        se = np.sqrt(spread / (n - 1.0) / n)
    se = np.where(spread > 1e-12 * np.maximum(square, 1e-300), se, np.nan)
    mean = centre + total / n
    half = sequence_half_width(se, n, n_planned, alpha)
    return Sequence(n, mean, mean - half, mean + half)
