"""How uneven hidden routing would have to be to explain a difference of two rates.

Belongs here: Rosenbaum bounds of the stratified exact test, and the unevenness at which it stops
being significant. Does not belong here: risk ratios (``evalue``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from evalpipe.inference.exact.convolution import convolve, tail
from evalpipe.inference.model import Floats

#: Gamma below which an effect is called fragile.
FRAGILE = 1.2
_LARGEST_EXACT = 5_000
_LARGEST_GAMMA = 64.0


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest hidden unevenness under which an effect stays significant.

    Attributes:
        gamma: Odds ratio of assignment; NaN where unavailable, 1 where already chance explains it.
        is_fragile: Whether it lies below :data:`FRAGILE`.
        status: ``ok`` or ``unavailable``. reason: ``no_overlap`` or ``no_variation``.
    """

    gamma: float
    is_fragile: bool
    status: str = "ok"
    reason: str = ""


def bound(x: Floats, n: Floats, x_other: Floats, n_other: Floats, gamma: float, *, upper: bool = True) -> float:
    """One-sided p-value (greater) of the sum of x, if hidden odds of assignment reach gamma.

    Args:
        x, n: (S,) successes and sessions of the version in each stratum.
        x_other, n_other: (S,) of what it is compared with.
        gamma: Odds ratio, at least 1.
        upper: The largest p-value possible; otherwise the smallest.

    Returns:
        P(T >= sum x) with T a sum of Fisher noncentral hypergeometrics (Rosenbaum, 2002); by a
        normal approximation of their mean and variance where a stratum exceeds 5,000 sessions.

    Raises:
        ValueError: ``gamma`` is below 1, or counts are not whole or do not fit.
    """
    if not gamma >= 1:
        raise ValueError("gamma must be at least 1")
    x, n, other, m = (_whole(values) for values in (x, n, x_other, n_other))
    if not (len(x) == len(n) == len(other) == len(m)) or (x > n).any() or (other > m).any():
        raise ValueError("counts of strata do not fit")
    log_odds = math.log(gamma if upper else 1.0 / gamma)
    laws = [_noncentral(*sizes, log_odds) for sizes in zip(x, n, other, m, strict=True) if sizes[1] + sizes[3] > 0]
    if (n + m).max(initial=0) > _LARGEST_EXACT:
        place = [low + np.arange(len(pmf)) for low, pmf in laws]
        mean = [float(at @ pmf) for at, (_, pmf) in zip(place, laws, strict=True)]
        variance = sum(float((at - mu) ** 2 @ pmf) for at, mu, (_, pmf) in zip(place, mean, laws, strict=True))
        if variance <= 0:
            return 1.0 if x.sum() <= sum(mean) + 1e-9 else 0.0
        return float(stats.norm.sf((x.sum() - 0.5 - sum(mean)) / math.sqrt(variance)))
    start, pmf = 0, np.ones(1)
    for low, law in laws:
        start, pmf = start + low, convolve(pmf, law)
    return tail(pmf, int(x.sum()) - start)


def _noncentral(x: float, n: float, other: float, m: float, log_odds: float) -> tuple[int, Floats]:
    """Fisher's noncentral hypergeometric law of x: its first value and its probabilities."""
    total = x + other
    low = int(max(0.0, total - m))
    at = np.arange(low, int(min(n, total)) + 1, dtype=np.float64)
    log_p = -(special.gammaln(at + 1) + special.gammaln(n - at + 1))
    log_p -= special.gammaln(total - at + 1) + special.gammaln(m - total + at + 1)
    return low, np.asarray(special.softmax(log_p + log_odds * at))


def sensitivity(
    x: Floats,
    n: Floats,
    x_other: Floats,
    n_other: Floats,
    alpha: float = 0.05,
    step: float = 0.01,
    *,
    is_more: bool | None = None,
) -> Sensitivity:
    """Largest gamma at which the upper p-value stays at or below alpha.

    Args:
        x, n, x_other, n_other: As :func:`bound`.
        alpha: One-sided level. step: width at which bisection stops.
        is_more: Whether the version is said to have more successes: where it is said to have fewer,
            failures are counted. ``None`` takes the side from the counts, which is a second look at
            them: a two-sided claim at 5 % then asks for ``alpha`` 0.025.

    Returns:
        The odds ratio, by bisection; never above 64, past which nothing is told apart.
    """
    x, n, other, m = (_whole(values) for values in (x, n, x_other, n_other))
    both = (n > 0) & (m > 0)
    if not both.any():
        return Sensitivity(math.nan, is_fragile=False, status="unavailable", reason="no_overlap")
    x, n, other, m = x[both], n[both], other[both], m[both]
    total = x + other
    if ((total == 0) | (total == n + m)).all():
        return Sensitivity(math.nan, is_fragile=False, status="unavailable", reason="no_variation")
    if is_more is None:
        is_more = bool(x.sum() >= float((n * total / (n + m)).sum()))
    if not is_more:
        x, other = n - x, m - other
    if bound(x, n, other, m, 1.0) > alpha:
        return Sensitivity(1.0, is_fragile=True)
    low, high = 1.0, 2.0
    while high < _LARGEST_GAMMA and bound(x, n, other, m, high) <= alpha:
        low, high = high, high * 2.0
    while high - low > step:
        middle = (low + high) / 2.0
        low, high = (middle, high) if bound(x, n, other, m, middle) <= alpha else (low, middle)
    return Sensitivity(low, is_fragile=low < FRAGILE)


def _whole(values: Floats) -> Floats:
    out = np.asarray(values, dtype=np.float64)
    if not np.isfinite(out).all() or (out < 0).any() or (out != np.rint(out)).any():
        raise ValueError("counts must be whole and not negative")
    return out
