"""Two independent proportions: score intervals and tests against a margin.

Belongs here: Miettinen-Nurminen limits, non-inferiority and equivalence of two plain counts. Does
not belong here: clustered rates, which go through ``gates``; the hybrid interval (``proportions``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

#: How the rates of a score test are found.
RESTRICTED = ("likelihood", "statsmodels")


@dataclass(frozen=True, slots=True)
class MarginTest:
    """New against old, against a margin.

    Attributes:
        difference: New minus old rate. se: unpooled. p_wald, p_score: one-sided p-values of
            "worse by the margin or more"; the score test is that of Farrington and Manning (1990).
        p_equivalence: Larger of the two one-sided Wald p-values (Schuirmann, 1987).
        lo, hi: Wald limits of level 1 - 2 alpha; ``lo`` is the one-sided limit of level 1 - alpha.
        status: ``ok`` or ``unavailable``. reason: ``no_sessions`` or ``no_variation``.
    """

    difference: float
    se: float
    p_wald: float
    p_score: float
    p_equivalence: float
    lo: float
    hi: float
    status: str = "ok"
    reason: str = ""


def margin_test(
    x1: float, n1: float, x2: float, n2: float, margin: float, alpha: float = 0.05, *, restricted: str = "likelihood"
) -> MarginTest:
    """Test that a new rate is not worse than an old one by a margin.

    Args:
        x1, n1: New successes and sessions. x2, n2: old ones.
        margin: Loss that is tolerated, positive.
        alpha: One-sided error rate.
        restricted: As in :func:`restricted_variance`; it concerns the score test alone.

    Raises:
        ValueError: ``margin`` is not positive.
    """
    if not margin > 0:
        raise ValueError("margin must be positive")
    nan = math.nan
    if n1 <= 0 or n2 <= 0:
        return MarginTest(nan, nan, nan, nan, nan, nan, nan, "unavailable", "no_sessions")
    p1, p2 = x1 / n1, x2 / n2
    difference = p1 - p2
    se = math.sqrt(p1 * (1.0 - p1) / n1 + p2 * (1.0 - p2) / n2)
    if se == 0:
        return MarginTest(difference, 0.0, nan, nan, nan, nan, nan, "unavailable", "no_variation")
    half = float(special.ndtri(1.0 - alpha)) * se
    p_wald = float(special.ndtr(-(difference + margin) / se))
    p_upper = float(special.ndtr((difference - margin) / se))
    score_se = math.sqrt(restricted_variance(x1, n1, x2, n2, -margin, restricted))
    p_score = float(special.ndtr(-(difference + margin) / score_se))
    return MarginTest(
        difference, se, p_wald, p_score, max(p_wald, p_upper), difference - half, difference + half
    )  # fmt: skip


def restricted_variance(
    x1: float, n1: float, x2: float, n2: float, difference: float, restricted: str = "likelihood"
) -> float:
    """Variance of p1 - p2 at the likeliest rates that differ by ``difference``.

    Args:
        x1, n1, x2, n2: Counts. difference: p1 - p2 that is assumed.
        restricted: ``likelihood`` solves the cubic of Miettinen and Nurminen (1985). ``statsmodels``
            solves the one that statsmodels up to 0.15 does, in which a count stands where the
            sessions belong: its rates are not the likeliest ones, so it serves only to reproduce
            what was reported by it.

    Raises:
        ValueError: Unknown ``restricted``.
    """
    if restricted not in RESTRICTED:
        raise ValueError(f"restricted must be one of {', '.join(RESTRICTED)}; got {restricted!r}")
    total, count = n1 + n2, x1 + x2
    square = (n1 + 2.0 * n2) * difference - total - count
    linear = ((n2 if restricted == "likelihood" else x2) * difference - total - 2.0 * x2) * difference + count
    constant = x2 * difference * (1.0 - difference)
    third = square / (3.0 * total)
    v = third**3 - linear * square / (6.0 * total**2) + constant / (2.0 * total)
    u = math.copysign(math.sqrt(max(third**2 - linear / (3.0 * total), 0.0)), v)
    angle = (math.pi + math.acos(min(max(v / u**3, -1.0), 1.0))) / 3.0 if u != 0 else math.pi / 2.0
    q2 = min(max(2.0 * u * math.cos(angle) - third, 0.0), 1.0)
    q1 = min(max(q2 + difference, 0.0), 1.0)
    return q1 * (1.0 - q1) / n1 + q2 * (1.0 - q2) / n2


def miettinen_nurminen(
    x1: float, n1: float, x2: float, n2: float, alpha: float = 0.05, *, restricted: str = "likelihood"
) -> tuple[float, float]:
    """Score interval of p1 - p2 (Miettinen and Nurminen, 1985); NaN when either n is 0.

    Args:
        x1, n1, x2, n2: Counts. alpha: Error rate.
        restricted: As in :func:`restricted_variance`.
    """
    if n1 <= 0 or n2 <= 0:
        return math.nan, math.nan
    difference, total = x1 / n1 - x2 / n2, n1 + n2
    crit = float(special.ndtri(1.0 - alpha / 2.0)) ** 2

    def excess(value: float) -> float:
        variance = restricted_variance(x1, n1, x2, n2, value, restricted) * total / (total - 1.0)
        if variance <= 0:
            return -crit if value == difference else math.inf
        return (difference - value) ** 2 / variance - crit

    return _cross(excess, difference, -1.0), _cross(excess, difference, 1.0)


def _cross(excess: Callable[[float], float], inside: float, side: float) -> float:
    """Where ``excess`` turns positive on the way from the estimate to the end of the range."""
    edge = side * (1.0 - 1e-12)
    if (inside - edge) * side >= 0 or excess(edge) <= 0:
        return side
    far = edge if math.isfinite(excess(edge)) else side * (1.0 - 1e-9)
    return float(optimize.brentq(excess, *sorted((inside, far)), xtol=1e-13, rtol=4 * np.finfo(float).eps))
