"""Intervals of single estimates.

Belongs here: t intervals of net improvement and score intervals of means. Does not belong here:
intervals that hold for all versions at once (``simultaneous``) or raw proportions (``proportions``).
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from evalpipe.inference.cells import Ints, cell_sums, group
from evalpipe.inference.model import Bools, Floats
from evalpipe.inference.proportions import wilson
from evalpipe.inference.variance import ClusterVariance

#: Share of the size of what is averaged below which a standard error is rounding.
_NO_VARIATION = 1e-12


def known_error(se: Floats, scale: Floats | float) -> Floats:
    """Standard errors that are more than rounding; NaN for the others.

    Where all outcomes are alike nothing was learnt about their spread, and an interval of no width
    would claim that everything was.

    Args:
        se: (F,) standard errors. scale: size of what was averaged, in the units of ``se``.
    """
    se = np.asarray(se, dtype=np.float64)
    return np.where(se > _NO_VARIATION * np.maximum(scale, 1e-300), se, np.nan)


def t_interval(estimate: Floats, se: Floats, df: Floats, level: float) -> tuple[Floats, Floats]:
    """estimate -+ t(1 - level/2; df) se; NaN where ``se`` or ``df`` is NaN."""
    half = stats.t.ppf(1.0 - level / 2.0, df) * se
    return estimate - half, estimate + half


def mean_interval(
    theta: Floats, se: Floats, df: Floats, trials: Floats, users: Ints, alpha: float, *, is_rate: bool, is_binary: bool
) -> tuple[Floats, Floats]:
    """Interval of a mean; of a rate, one that stays in [0, 1].

    Args:
        theta: (K,) means. se: (K,) CR3 standard errors. df: (K,) degrees of freedom.
        trials: (K,) trials that a simple random sample with the unclustered variance would hold.
        users: (K,) clusters.
        alpha: Error rate.
        is_rate: Whether the mean lies in [0, 1].
        is_binary: Whether a session's numerator counts successes among its denominator.

    Returns:
        For rates Wilson limits on effective counts n/deff with t(G - 1) in place of z (after Korn
        and Graubard, 1998). For 0/1 outcomes deff is at least 1; a rate of graded outcomes has
        less variance than a 0/1 rate, which its effective count then shows. Otherwise t limits.
    """
    if not is_rate:
        return t_interval(theta, se, df, alpha)
    p = np.clip(theta, 0.0, 1.0)
    bernoulli = p * (1.0 - p)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = bernoulli / se**2
    if is_binary:
        effective = np.where(bernoulli > 0, np.fmin(effective, trials), trials)
    else:
        effective = np.where(np.isfinite(effective) & (effective > 0), effective, np.nan)
    crit = stats.t.ppf(1.0 - alpha / 2.0, np.where(users > 1, users - 1.0, np.nan))
    return wilson(p * effective, effective, crit=crit)


def stratified_trials(D: Floats, v: Floats, vv: Floats, weights: Floats) -> Floats:
    """Trials of a simple random sample with the variance of the post-stratified mean.

    Args:
        D: (C,) sum of sampling weight x denominator over the cell's sessions.
        v, vv: (C,) sums of sampling weights and of their squares.
        weights: (K, S) stratum weights.

    Returns:
        (K,) 1 / sum_s w_s^2 / n_ks, with n_ks the cell's denominators, deflated by Kish's factor
        when sessions carry sampling weights.
    """
    trials = (D * v / vv).reshape(weights.shape)
    return np.asarray(1.0 / (weights**2 / trials).sum(axis=1))


def clustered_share(is_hit: Bools, cluster: Ints, alpha: float = 0.05) -> tuple[float, float]:
    """Interval of a share of units that come in clusters.

    Args:
        is_hit: (N,) whether a unit counts. cluster: (N,) codes from 0.
        alpha: Error rate.

    Returns:
        As :func:`mean_interval` of a rate; NaN with fewer than two clusters, which show no spread
        between clusters. Where all units agree, a cluster counts as one trial: how alike units of a
        cluster are cannot be seen then.
    """
    n = len(is_hit)
    cell = np.zeros(n, dtype=np.int64)
    hit = np.asarray(is_hit, dtype=np.float64)
    rows = group(np.asarray(cluster, dtype=np.int64), cell, np.ones(n), hit, 1)
    if rows.n_users < 2:
        return math.nan, math.nan
    sums = cell_sums(cell, np.ones(n), hit, rows)
    found = ClusterVariance(rows, sums).contrasts(np.ones((1, 1)))
    share = sums.mean
    trials = np.where((share > 0.0) & (share < 1.0), float(n), float(rows.n_users))
    se = known_error(np.sqrt(np.diag(found.cov)), share)
    users = np.array([rows.n_users])
    lo, hi = mean_interval(share, se, found.df, trials, users, alpha, is_rate=True, is_binary=True)
    return float(lo[0]), float(hi[0])
