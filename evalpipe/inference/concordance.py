"""Concordance: do layers of evidence that share no measurement say the same of versions?

Belongs here: which pairs a layer tells apart, the label of a pair over layers, and how two layers agree
on the whole. Does not belong here: what the layers are (``analysis/layers.py``). Layers differ in what
they count, so their sizes are compared up to a slope, and their signs as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

from evalpipe.inference.model import Bools, Comparison, Floats
from evalpipe.inference.reviewed import kendall_tau
from evalpipe.inference.simultaneous import gaussian_draws, rank_sets

CORROBORATED, CONTRADICTED = "corroborated", "contradicted"
UNCORROBORATED, INSUFFICIENT = "uncorroborated", "insufficient"
LABELS = (CORROBORATED, CONTRADICTED, UNCORROBORATED, INSUFFICIENT)

#: Draws of both layers behind the interval of tau.
TAU_DRAWS = 2_000
#: Angles at which the slope is looked for before it is refined.
_ANGLES = 181


@dataclass(frozen=True, slots=True)
class Layer:
    """What one layer says of K versions; higher is better, whatever it counts.

    Attributes:
        level: (K,) means; NaN for versions that the layer does not know.
        cov: (K, K) their covariance, NaN likewise.
        lo, hi: (K, K) interval of level_i - level_j, for that pair alone.
        better: (K, K) whether i is established to be better than j, all ordered pairs together.
    """

    level: Floats
    cov: Floats
    lo: Floats
    hi: Floats
    better: Bools

    @property
    def known(self) -> Bools:
        """(K,) versions that the layer knows."""
        return np.isfinite(self.level)

    def orders(self, i: int, j: int) -> int | None:
        """1 where i is better than j, -1 where it is worse, 0 where neither is established; None if unknown."""
        if not (self.known[i] and self.known[j]):
            return None
        return int(self.better[i, j]) - int(self.better[j, i])


def compared_layer(found: Comparison, *, is_higher_better: bool) -> Layer:
    """The layer of a comparison, its pairs judged as there."""
    lo, hi = (found.pair_lo, found.pair_hi) if is_higher_better else (-found.pair_hi, -found.pair_lo)
    # Versions may have a mean and no difference, as where each is scored on its own mix of work.
    is_known = np.isfinite(found.pair_diff).any(axis=1)
    level = np.where(is_known, found.theta, np.nan)
    return Layer(level if is_higher_better else -level, found.theta_cov, lo, hi, found.pair_better)


def measured_layer(level: Floats, cov: Floats, *, alpha: float, draws: int, seed: int) -> Layer:
    """A layer of means that are near normal, its ordered pairs judged by step-down.

    Args:
        level: (K,) means, higher is better; NaN for unknown. cov: (K, K).
        alpha: Error rate over all ordered pairs, and of the interval of each pair.
        draws, seed: Gaussian draws behind the step-down.
    """
    k = len(level)
    lo, hi = np.full((k, k), np.nan), np.full((k, k), np.nan)
    better = np.zeros((k, k), dtype=bool)
    at = np.flatnonzero(np.isfinite(level))
    if len(at) >= 2:
        block, mean = np.ix_(at, at), level[at]
        inner = cov[block]
        drawn = gaussian_draws(inner, draws, np.random.SeedSequence(seed))
        better[block] = rank_sets(mean, inner, np.full(inner.shape, np.inf), drawn, alpha).better
        spread = np.diag(inner)[:, None] + np.diag(inner)[None, :] - 2.0 * inner
        half = float(special.ndtri(1.0 - alpha / 2.0)) * np.sqrt(np.where(spread > 0, spread, np.nan))
        gap = mean[:, None] - mean[None, :]
        lo[block], hi[block] = gap - half, gap + half
    return Layer(level, cov, lo, hi, better)


def label(orders: Iterable[int | None]) -> str:
    """The label of a pair from what each layer says of it.

    Args:
        orders: 1, -1, 0 or None a layer, as :meth:`Layer.orders` gives them.

    Returns:
        ``contradicted`` if two layers establish opposite orders, ``corroborated`` if two or more
        establish the same one, ``uncorroborated`` if one layer establishes an order, else ``insufficient``.
    """
    told = [order for order in orders if order]
    if 1 in told and -1 in told:
        return CONTRADICTED
    return (INSUFFICIENT, UNCORROBORATED)[len(told)] if len(told) < 2 else CORROBORATED


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two layers agree; NaN where a number does not exist.

    Attributes:
        n_versions: Versions that both know.
        n_pairs, n_agree: Pairs that both tell apart, and those of them in the same order.
        reversed_pairs: The others, (i, j) with i better in the first layer.
        slope: Units of the first layer for one of the second, in which shifts agree best.
        chi2, df, p: Whether shifts agree up to that slope, (K - 2) degrees of freedom.
        tau, tau_lo, tau_hi: Kendall's tau-b of the levels, and its interval from draws of both.
        reason: Why there is none: ``no_comparator``; ``not_told_apart`` where one of the layers tells no
            two versions apart; ``two_versions``, which leave a slope untested.
    """

    n_versions: int
    n_pairs: int
    n_agree: int
    reversed_pairs: tuple[tuple[int, int], ...]
    slope: float
    chi2: float
    df: int
    p: float
    tau: float
    tau_lo: float
    tau_hi: float
    reason: str = ""


def agreement(one: Layer, other: Layer, *, alpha: float, seed: int) -> Agreement:
    """How two layers agree over the versions that both know.

    Args:
        one, other: Layers over the same K versions; their errors are taken for independent.
        alpha: Error rate of the interval of tau. seed: of its draws.

    Returns:
        Signs of pairs, sizes of shifts against the plain average of these versions, and order.
    """
    at = np.flatnonzero(one.known & other.known)
    k, nan = len(at), math.nan
    if k < 2:
        return Agreement(k, 0, 0, (), nan, nan, 0, nan, nan, nan, nan, "no_comparator")
    block = np.ix_(at, at)
    first, second = one.better[block], other.better[block]
    opposed = first & second.T
    pairs = tuple((int(at[i]), int(at[j])) for i, j in np.argwhere(opposed))
    n_agree = int((first & second).sum())
    contrast = np.eye(k) - 1.0 / k
    shifts = [contrast @ layer.level[at] for layer in (one, other)]
    covs = [contrast @ layer.cov[block] @ contrast for layer in (one, other)]
    # Shifts that are not told from chance have no unit: the slope between them could be anything.
    is_told = bool(first.any() and second.any())
    slope, chi2 = _slope(shifts, covs) if is_told else (nan, nan)
    # The slope takes one of the K - 1 contrasts.
    df = k - 2
    p = float(stats.chi2.sf(chi2, df)) if df > 0 and math.isfinite(chi2) else nan
    tau = kendall_tau(one.level[at], other.level[at])
    lo, hi = _tau_limits(shifts, covs, alpha, seed) if math.isfinite(tau) else (nan, nan)
    reason = "not_told_apart" if not is_told else "" if df > 0 else "two_versions"
    return Agreement(
        k, n_agree + len(pairs), n_agree, pairs, slope, chi2 if df > 0 else nan, df, p, tau, lo, hi, reason
    )


def _slope(shifts: list[Floats], covs: list[Floats]) -> tuple[float, float]:
    """Slope b that makes d' (V_A + b^2 V_B)^+ d smallest, d = NI_A - b NI_B, and that minimum.

    Both sides err, so a plain regression would be flat: this is Deming's line through the origin, with
    the errors and covariances of every version in place of one ratio of variances.
    """
    sizes = [float(np.trace(cov)) for cov in covs]
    unit = math.sqrt(sizes[0] / sizes[1])

    def misfit(angle: float) -> float:
        b = unit * math.tan(angle)
        gap = shifts[0] - b * shifts[1]
        return float(gap @ np.linalg.pinv(covs[0] + b * b * covs[1], hermitian=True) @ gap)

    step = math.pi / _ANGLES
    angles = -math.pi / 2.0 + step * (np.arange(_ANGLES) + 0.5)
    best = float(angles[int(np.argmin([misfit(angle) for angle in angles]))])
    low, high = max(best - step, -math.pi / 2.0 + 1e-6), min(best + step, math.pi / 2.0 - 1e-6)
    found = optimize.minimize_scalar(misfit, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
    return unit * math.tan(float(found.x)), float(found.fun)


def _tau_limits(shifts: list[Floats], covs: list[Floats], alpha: float, seed: int) -> tuple[float, float]:
    streams = np.random.SeedSequence(seed).spawn(2)
    i, j = np.triu_indices(len(shifts[0]), k=1)
    signs = []
    for shift, cov, stream in zip(shifts, covs, streams, strict=True):
        drawn = shift + gaussian_draws(cov, TAU_DRAWS, stream)
        signs.append(np.sign(drawn[:, i] - drawn[:, j]))
    # Draws have no ties, so tau-b is the mean product of signs.
    lo, hi = np.quantile((signs[0] * signs[1]).mean(axis=1), [alpha / 2.0, 1.0 - alpha / 2.0])
    return float(lo), float(hi)
