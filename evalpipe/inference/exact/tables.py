"""Two-by-two tables in strata: common effects and how even they are.

Belongs here: Mantel-Haenszel odds ratio and risk difference, Cochran's test, heterogeneity. Does
not belong here: the permutation law of a total (``blocks``), more than two groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from evalpipe.inference.exact.convolution import convolve, two_sided_by_probability
from evalpipe.inference.model import Floats


@dataclass(frozen=True, slots=True)
class Tables:
    """Successes of a target and of the others in S strata, each (S,).

    Attributes:
        x, n: Target's successes and sessions. x_other, n_other: the others'.
    """

    x: Floats
    n: Floats
    x_other: Floats
    n_other: Floats

    def __post_init__(self) -> None:
        """Refuse counts that do not fit."""
        if (self.x > self.n).any() or (self.x_other > self.n_other).any() or (self.x < 0).any():
            raise ValueError("successes must lie between 0 and the sessions of their group")


@dataclass(frozen=True, slots=True)
class MantelHaenszel:
    """Common effect of a target over strata; NaN where a number does not exist.

    Attributes:
        statistic, p: Cochran-Mantel-Haenszel without continuity correction, on 1 degree of freedom.
        p_exact: Exact, two-sided by probability.
        odds_ratio: Mantel and Haenszel (1959).
        difference, difference_se: Risk difference (Greenland and Robins, 1985; variance of Sato,
            Greenland and Robins, 1989).
    """

    statistic: float
    p: float
    p_exact: float
    odds_ratio: float
    difference: float
    difference_se: float


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """Whether effects of strata differ.

    Attributes:
        statistic, df, p: Cochran's Q around the inverse-variance mean.
        pooled: That mean. status: ``ok`` or ``unavailable``. reason: ``one_stratum``.
    """

    statistic: float
    df: int
    p: float
    pooled: float
    status: str = "ok"
    reason: str = ""


def mantel_haenszel(tables: Tables) -> MantelHaenszel:
    """Common effect of a target; strata without one of the groups do not count."""
    both = (tables.n > 0) & (tables.n_other > 0)
    x, n = tables.x[both], tables.n[both]
    other, m = tables.x_other[both], tables.n_other[both]
    if len(x) == 0:
        return MantelHaenszel(*[math.nan] * 6)
    size, total = n + m, x + other
    expected = n * total / size
    variance = float((n * m * total * (size - total) / (size**2 * np.maximum(size - 1.0, 1.0))).sum())
    gap = float((x - expected).sum())
    statistic = gap**2 / variance if variance > 0 else math.nan
    start, pmf = 0, np.ones(1)
    for ti, ni, mi in zip(total.astype(int), n.astype(int), m.astype(int), strict=True):
        low, high = max(0, ti - mi), min(ni, ti)
        start, pmf = start + low, convolve(pmf, stats.hypergeom.pmf(np.arange(low, high + 1), ni + mi, ti, ni))
    p_exact = two_sided_by_probability(pmf, int(x.sum()) - start) if variance > 0 else math.nan
    wrong = float(((n - x) * other / size).sum())
    odds_ratio = float((x * (m - other) / size).sum()) / wrong if wrong > 0 else math.nan
    weight = float((n * m / size).sum())
    difference = float((x * m / size - other * n / size).sum()) / weight
    first = (other * (n / size) ** 2 - x * (m / size) ** 2 + n * m / size**2 * (m - n) / 2.0).sum()
    second = (x * (m - other) / size + other * (n - x) / size).sum() / 2.0
    se = math.sqrt(max(float(difference * first + second), 0.0)) / weight
    p = float(stats.chi2.sf(statistic, 1)) if math.isfinite(statistic) else math.nan
    return MantelHaenszel(statistic, p, p_exact, odds_ratio, difference, se)


def risk_differences(tables: Tables) -> tuple[Floats, Floats]:
    """Risk difference of each stratum and its unpooled variance.

    A stratum with an empty cell gets half a session in each, so that its variance is not 0.
    """
    counts = np.stack((tables.x, tables.n - tables.x, tables.x_other, tables.n_other - tables.x_other))
    counts = counts + 0.5 * (counts == 0).any(axis=0)
    n, m = counts[0] + counts[1], counts[2] + counts[3]
    p, q = counts[0] / n, counts[2] / m
    return p - q, p * (1.0 - p) / n + q * (1.0 - q) / m


def heterogeneity(estimate: Floats, variance: Floats) -> Heterogeneity:
    """Cochran's Q over strata (Cochran, 1954).

    Args:
        estimate: (S,) effects. variance: (S,) their variances; strata with a NaN or without a
            positive variance do not count.
    """
    used = np.isfinite(estimate) & np.isfinite(variance) & (variance > 0)
    e, w = estimate[used], 1.0 / variance[used]
    if len(e) < 2:
        return Heterogeneity(math.nan, 0, math.nan, math.nan, "unavailable", "one_stratum")
    pooled = float((w * e).sum() / w.sum())
    q = float((w * (e - pooled) ** 2).sum())
    return Heterogeneity(q, len(e) - 1, float(stats.chi2.sf(q, len(e) - 1)), pooled)


def qualitative_interaction(estimate: Floats, variance: Floats) -> tuple[float, float]:
    """Whether effects differ in sign between strata (Gail and Simon, 1985).

    Args:
        estimate, variance: As :func:`heterogeneity`.

    Returns:
        min(H+, H-) and its p-value; NaN with fewer than two strata.
    """
    used = np.isfinite(estimate) & np.isfinite(variance) & (variance > 0)
    if used.sum() < 2:
        return math.nan, math.nan
    square = estimate[used] ** 2 / variance[used]
    is_up = estimate[used] > 0
    smaller = float(min(square[is_up].sum(), square[~is_up].sum()))
    rest = int(used.sum()) - 1
    j = np.arange(1, rest + 1)
    p = float((stats.binom.pmf(j, rest, 0.5) * stats.chi2.sf(smaller, j)).sum())
    return smaller, 1.0 if smaller == 0 else min(p, 1.0)
