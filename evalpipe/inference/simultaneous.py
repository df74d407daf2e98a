"""Inference on all versions at once, from the joint covariance.

Belongs here: Gaussian draws, simultaneous critical values, step-down adjusted p-values, ordered
pairs and rank sets. Does not belong here: letters (``letters``). The draws are exactly the Gaussian
multiplier bootstrap of the influence functions, without another pass over data (Chernozhukov,
Chetverikov and Kato, 2013).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from evalpipe.inference.model import Bools, Floats


@dataclass(frozen=True, slots=True)
class Ranking:
    """Which orders are established, and what ranks remain possible.

    Attributes:
        better: (K, K), whether i is established to be better than j.
        rank_lo, rank_hi: (K,) simultaneous rank confidence sets, 1 = best.
    """

    better: Bools
    rank_lo: NDArray[np.int64]
    rank_hi: NDArray[np.int64]


def gaussian_draws(cov: Floats, n_draws: int, seed: np.random.SeedSequence) -> Floats:
    """Draws from N(0, cov), (n_draws, K).

    Eigenvalues below zero are clipped: the covariance of contrasts that sum to 0 is singular.
    """
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    rng = np.random.Generator(np.random.PCG64(seed))
    return np.asarray(rng.standard_normal((n_draws, len(cov))) @ root.T)


def simultaneous_level(draws: Floats, se: Floats, alpha: float) -> float:
    """Pointwise two-sided level at which all intervals hold at once with 1 - alpha.

    Args:
        draws: (B, K) draws of the estimates' errors.
        se: (K,) their standard errors, positive.
        alpha: Joint error rate.

    Returns:
        The alpha-quantile of the smallest two-sided p-value over versions; the critical value of a
        version is then its own t quantile at this level. Never above ``alpha``: in the limit it
        cannot be, and a draw's noise must not make the joint interval the narrower one.
    """
    peak = np.abs(draws / se).max(axis=1)
    crit = float(np.quantile(peak, 1.0 - alpha, method="higher"))
    return min(alpha, float(2.0 * special.ndtr(-crit)))


def stepdown_adjusted(p: Floats, draws: Floats, se: Floats) -> Floats:
    """Step-down adjusted p-values over versions (Romano and Wolf, 2005).

    Args:
        p: (K,) two-sided p-values.
        draws: (B, K) draws of the estimates' errors.
        se: (K,) standard errors, positive.

    Returns:
        (K,) p-values that control the family-wise error over versions.
    """
    order = np.argsort(p, kind="stable")
    size = np.abs(draws / se)[:, order]
    # peak[:, l]: largest |Z| among the hypotheses that are still open at step l.
    peak = np.maximum.accumulate(size[:, ::-1], axis=1)[:, ::-1]
    crit = -special.ndtri(np.clip(p[order] / 2.0, 1e-300, 0.5))
    share = (peak >= crit).mean(axis=0)
    out = np.empty(len(p))
    out[order] = np.maximum.accumulate(share)
    return out


def single_step_adjusted(p: Floats, draws: Floats, se: Floats) -> Floats:
    """Single-step adjusted p-values: each against the largest of all (arguments as above).

    Returns:
        (K,) share of draws whose largest |Z| reaches each statistic: the p-values that the
        simultaneous interval agrees with. Never below the step-down ones.
    """
    peak = np.abs(draws / se).max(axis=1)
    crit = -special.ndtri(np.clip(p / 2.0, 1e-300, 0.5))
    return np.asarray((peak[:, None] >= crit).mean(axis=0))


def rank_sets(theta: Floats, cov: Floats, df: Floats, draws: Floats, alpha: float) -> Ranking:
    """Ordered pairs and simultaneous rank sets (Mogstad, Romano, Shaikh and Wilhelm, 2024).

    One-sided step-down over all ordered pairs: the direction of an error is controlled too.

    Args:
        theta: (K,) means, larger is better.
        cov: (K, K) their covariance.
        df: (K, K) degrees of freedom of the differences; a statistic is compared at the normal
            quantile of its t probability, so that few users do not pass for many. Inf for normal.
        draws: (B, K) draws from N(0, cov).
        alpha: Family-wise error rate.

    Returns:
        Established orders and rank sets. Pairs without variation are never established.
    """
    n = len(theta)
    diff = theta[:, None] - theta[None, :]
    var = np.diag(cov)[:, None] + np.diag(cov)[None, :] - 2.0 * cov
    floor = 1e-12 * np.maximum(np.diag(cov)[:, None], np.diag(cov)[None, :])
    is_open = (var > floor) & (df > 0) & ~np.eye(n, dtype=bool)
    sd = np.sqrt(np.where(is_open, var, 1.0))
    statistic = np.where(is_open, normal_equivalent(diff / sd, df), -np.inf)
    better = np.zeros((n, n), dtype=bool)
    while is_open.any():
        peak = np.full(len(draws), -np.inf)
        for i in np.flatnonzero(is_open.any(axis=1)):
            others = np.flatnonzero(is_open[i])
            np.maximum(peak, ((draws[:, i, None] - draws[:, others]) / sd[i, others]).max(axis=1), out=peak)
        crit = float(np.quantile(peak, 1.0 - alpha, method="higher"))
        rejected = is_open & (statistic > crit)
        if not rejected.any():
            break
        better |= rejected
        is_open &= ~rejected
    return Ranking(
        better,
        rank_lo=1 + better.sum(axis=0, dtype=np.int64),
        rank_hi=n - better.sum(axis=1, dtype=np.int64),
    )


def normal_equivalent(t: Floats, df: Floats) -> Floats:
    """Normal deviate with the same tail probability as ``t`` on ``df`` degrees of freedom."""
    with np.errstate(invalid="ignore"):
        tail = stats.t.sf(np.abs(t), np.where(df > 0, df, np.nan))
    return np.asarray(np.sign(t) * -special.ndtri(np.clip(tail, 1e-300, 0.5)))
