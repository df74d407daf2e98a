"""Power: what a study of a size can see, and what size it needs.

Belongs here: planning formulas. Does not belong here: results of a study. Read them before a study
starts: 17,000 sessions over 20 equal versions detect a net improvement of 4.7 points, not less.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize, special

from evalpipe.inference.model import Floats


def smallest_effect(se: float | Floats, alpha: float = 0.05, power: float = 0.8) -> Floats:
    """Smallest effect that a two-sided test sees with ``power``: se (z_{1-alpha/2} + z_power)."""
    return np.asarray(se * (special.ndtri(1.0 - alpha / 2.0) + special.ndtri(power)))


def smallest_effect_vs_mean(
    n: float, n_versions: int, variance: float, deff: float = 1.0, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Smallest net improvement against the uniform mean.

    Args:
        n: Sessions a version. n_versions: K. variance: of a session's outcome.
        deff: Design effect, V_CR3 / V_HC2 of a pilot.
    """
    se = math.sqrt(deff * variance / n * (1.0 - 1.0 / n_versions))
    return float(smallest_effect(se, alpha, power))


def sessions_vs_mean(
    effect: float, n_versions: int, variance: float, deff: float = 1.0, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Sessions a version, so that a net improvement of ``effect`` is seen with ``power``."""
    return deff * variance * (1.0 - 1.0 / n_versions) * _squared_deviates(alpha, power) / effect**2


def sessions_per_arm(
    effect: float, variance: float, deff: float = 1.0, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Sessions an arm, so that a difference of two versions is seen with ``power``.

    For a non-inferiority margin pass the margin as ``effect`` and twice the one-sided level.
    """
    return 2.0 * deff * variance * _squared_deviates(alpha, power) / effect**2


def sessions_per_arm_proportions(
    p1: float, p2: float, deff: float = 1.0, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Sessions an arm for two proportions: pooled variance under the null, unpooled otherwise."""
    mean = (p1 + p2) / 2.0
    null = special.ndtri(1.0 - alpha / 2.0) * math.sqrt(2.0 * mean * (1.0 - mean))
    alternative = special.ndtri(power) * math.sqrt(p1 * (1.0 - p1) + p2 * (1.0 - p2))
    return float(deff * (null + alternative) ** 2 / (p1 - p2) ** 2)


def sessions_per_arm_arcsine(p1: float, p2: float, alpha: float = 0.05, power: float = 0.8) -> float:
    """Sessions an arm for two proportions on the scale of Cohen's h (Cohen, 1988)."""
    h = 2.0 * math.asin(math.sqrt(p1)) - 2.0 * math.asin(math.sqrt(p2))
    # The far tail is counted too, as Cohen's tables do.
    upper = float(special.ndtri(1.0 - alpha / 2.0))

    def shortfall(n: float) -> float:
        shift = abs(h) * math.sqrt(n / 2.0)
        return float(special.ndtr(shift - upper) + special.ndtr(-shift - upper)) - power

    high = 2.0
    while shortfall(high) < 0:
        high *= 2.0
    return float(optimize.brentq(shortfall, 1e-9, high, xtol=1e-10))


def planned_design_effect(mean_sessions: float, cv: float, icc: float) -> float:
    """Design effect of sticky users without a pilot: 1 + (m (1 + cv^2) - 1) ICC (Kish, 1965).

    Args:
        mean_sessions: Mean sessions a user. cv: their coefficient of variation.
        icc: Intra-user correlation of the outcome.
    """
    return 1.0 + (mean_sessions * (1.0 + cv**2) - 1.0) * icc


def _squared_deviates(alpha: float, power: float) -> float:
    return float((special.ndtri(1.0 - alpha / 2.0) + special.ndtri(power)) ** 2)
