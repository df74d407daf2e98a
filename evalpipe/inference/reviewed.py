"""Shares from reviewed samples, and distances of distributions and orders.

Belongs here: Hajek shares with Wilson bounds, equality of shares over groups, population stability index,
Jensen-Shannon distance, agreement of orders. Does not belong here: agreement of raters (``agreement``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from evalpipe.inference.agreement.detector import kish_ess
from evalpipe.inference.proportions import wilson


@dataclass(frozen=True, slots=True)
class Share:
    """A share estimated from units that were drawn with unequal probabilities.

    Attributes:
        n: Units.
        n_effective: Units that would tell as much if all had the same weight (Kish, 1965).
        value: The share; NaN without units.
        low, high: One-sided bounds; NaN likewise.
    """

    n: int
    n_effective: float
    value: float
    low: float
    high: float


def hajek_share(hit: ArrayLike, inclusion_prob: ArrayLike, alpha: float = 0.05) -> Share:
    """Share of a population that hits, from a sample (Hajek, 1971), with Wilson bounds on effective counts.

    Args:
        hit: (n,) in [0, 1] of each unit.
        inclusion_prob: (n,) in (0, 1].
        alpha: Error rate of each of the two one-sided bounds.
    """
    hit, prob = np.asarray(hit, dtype=float), np.asarray(inclusion_prob, dtype=float)
    if not hit.size:
        return Share(0, 0.0, math.nan, math.nan, math.nan)
    weight = 1.0 / prob
    value = float(np.clip((weight * hit).sum() / weight.sum(), 0.0, 1.0))
    n_effective = kish_ess(weight)
    low, high = wilson(value * n_effective, n_effective, 2.0 * alpha)
    return Share(int(hit.size), n_effective, value, float(low), float(high))


def units_for_bound(bound: float, alpha: float = 0.05) -> int:
    """Fewest units whose one-sided Wilson bound below reaches ``bound`` if all of them hit."""
    z = float(special.ndtri(1.0 - alpha))
    # With x = n the bound is n / (n + z^2).
    return math.ceil(bound * z**2 / (1.0 - bound) - 1e-9)


def equal_shares(shares: Sequence[Share]) -> float:
    """p-value of equal shares in several groups: Pearson's chi-square on effective counts.

    Returns:
        NaN with fewer than two groups, or where all units hit or none does.
    """
    n = np.array([share.n_effective for share in shares])
    x = np.array([share.value for share in shares]) * n
    if len(shares) < 2 or x.sum() <= 0 or x.sum() >= n.sum():
        return math.nan
    p = x.sum() / n.sum()
    statistic = float((((x - n * p) ** 2) / (n * p * (1.0 - p))).sum())
    # K. Pearson's N - 1 keeps its level in small tables (Campbell, 2007).
    return float(stats.chi2.sf(statistic * (1.0 - 1.0 / n.sum()), len(shares) - 1))


def stability_index(now: ArrayLike, before: ArrayLike) -> float:
    """Population stability index of two distributions over the same bins, from counts.

    Half a unit is added to each bin, so that an empty one gives no infinity.
    """
    p, q = _smoothed(now), _smoothed(before)
    return float(((p - q) * np.log(p / q)).sum())


def jensen_shannon(first: ArrayLike, second: ArrayLike) -> float:
    """Jensen-Shannon distance (base 2, from 0 to 1) of two distributions over the same bins, from counts."""
    p, q = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if p.sum() <= 0 or q.sum() <= 0:
        return math.nan
    p, q = p / p.sum(), q / q.sum()
    mean = (p + q) / 2.0
    divergence = (special.rel_entr(p, mean).sum() + special.rel_entr(q, mean).sum()) / (2.0 * math.log(2.0))
    return math.sqrt(min(1.0, max(0.0, float(divergence))))


def _smoothed(counts: ArrayLike) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    values = np.asarray(counts, dtype=float) + 0.5
    smoothed: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = values / values.sum()
    return smoothed


def kendall_tau(first: ArrayLike, second: ArrayLike) -> float:
    """Kendall's tau-b of two rankings of the same things; NaN where one of them ranks nothing."""
    return float(stats.kendalltau(np.asarray(first, dtype=float), np.asarray(second, dtype=float)).statistic)


def top_overlap(first: ArrayLike, second: ArrayLike, k: int) -> float:
    """Share of the k highest of one ranking that are among the k highest of another; NaN without any."""
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    k = min(k, a.size)
    if not k:
        return math.nan
    tops = [set(np.argsort(-values, kind="stable")[:k].tolist()) for values in (a, b)]
    return len(tops[0] & tops[1]) / k
