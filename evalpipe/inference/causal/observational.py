"""Net improvement from traffic that nobody randomized.

Belongs here: which estimator such traffic allows, its interval, and when it allows none. Does not
belong here: how strong a hidden cause would have to be (``evalue``, ``rosenbaum``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from evalpipe.inference.causal.crossfit import Kinds, crossfit_chances, crossfit_outcomes, group_kinds
from evalpipe.inference.causal.robust import OutcomeModel, aipw_means
from evalpipe.inference.causal.weighting import Means, weight_report, weighted_means, weighted_smd
from evalpipe.inference.cells import Ints
from evalpipe.inference.influence import clustered_covariance
from evalpipe.inference.intervals import known_error
from evalpipe.inference.model import Floats

MIN_ESS = 50.0
MIN_ESS_SHARE = 0.1
MAX_CLIPPED = 0.05
#: Coefficients of the routing model above which it is not fitted.
MAX_COEFFICIENTS = 2_000
ESTIMATORS = ("ipw", "aipw", "overlap")


@dataclass(frozen=True, slots=True)
class Weighed:
    """Net improvement by one estimator, (K,) each; NaN where unavailable.

    Attributes:
        estimate, se, lo, hi: Against the reference. df: G - 1.
        ess: Effective sessions. clipped: share of sessions whose chance was raised.
        largest_smd: Largest standardized difference that the weights leave between two versions, over what
            routing was modelled by; NaN where nothing of that varies, or nothing was estimated.
        status: ``ok``, ``inconclusive`` where nothing varies, ``suspect`` or ``unavailable``, per version.
        reasons: ``no_overlap``, ``low_ess``, ``many_clipped``, ``not_converged``,
            ``too_many_versions``, ``few_users`` or ``no_variation``, per version.
    """

    estimate: Floats
    se: Floats
    lo: Floats
    hi: Floats
    df: float
    ess: Floats
    clipped: float
    status: tuple[str, ...]
    reasons: tuple[tuple[str, ...], ...]
    largest_smd: float = np.nan


def weigh_routing(
    y: Floats,
    label: Ints,
    categories: Ints,
    user: Ints,
    n_versions: int,
    *,
    logged: Floats | None = None,
    contrast: Floats | None = None,
    alpha: float = 0.05,
) -> dict[str, Weighed]:
    """Estimate net improvement as if routing had been random given the categories.

    Args:
        y: (N,) outcomes. label: (N,) version codes, every version present.
        categories: (N, P) codes of what was known before routing. user: (N,) cluster codes.
        n_versions: K.
        logged: (N,) chance of the version that was served, where logs state it for every session.
        contrast: (K, K) what each mean is held against, estimate = contrast @ means; ``None`` for
            the plain average over versions.
        alpha: Error rate of the intervals.

    Returns:
        By name: ``ipw`` (Hajek), ``aipw`` (Robins, Rotnitzky and Zhao, 1994; cross-fitted by user),
        which is the one to read, and ``overlap`` (Li and Li, 2019), which is the one to read where
        ``aipw`` is not ``ok``, for a population of its own.
    """
    users = len(np.unique(user))
    kinds = group_kinds(categories, user)
    if users < 2 or n_versions < 2:
        return dict.fromkeys(ESTIMATORS, _nothing(n_versions, "few_users"))
    if (n_versions - 1) * kinds.X.shape[1] > MAX_COEFFICIENTS:
        return dict.fromkeys(ESTIMATORS, _nothing(n_versions, "too_many_versions"))
    fitted = crossfit_chances(kinds, label, n_versions)
    if not fitted.is_converged:
        return dict.fromkeys(ESTIMATORS, _nothing(n_versions, "not_converged"))
    known, clipped = fitted.chance, fitted.clipped
    if logged is not None:
        known, clipped = known.copy(), 0.0
        known[np.arange(len(y)), label] = logged
    if contrast is None:
        contrast = np.eye(n_versions) - 1.0 / n_versions
    model = OutcomeModel(crossfit_outcomes(kinds, y, label, n_versions))
    n = np.bincount(label, minlength=n_versions)
    found = {
        "ipw": (weighted_means(y, label, known), clipped),
        "aipw": (aipw_means(y, label, known, model), clipped),
        "overlap": (weighted_means(y, label, fitted.chance, "overlap"), 0.0),
    }
    return {
        name: _judge(
            means,
            _left(kinds, means.weight),
            contrast,
            user,
            users - 1.0,
            n,
            share,
            alpha,
            is_overlap=name == "overlap",
            is_varied=bool(np.ptp(y) > 0),
        )
        for name, (means, share) in found.items()
    }


def _judge(
    means: Means,
    largest_smd: float,
    contrast: Floats,
    user: Ints,
    df: float,
    n: Ints,
    clipped: float,
    alpha: float,
    *,
    is_overlap: bool,
    is_varied: bool,
) -> Weighed:
    ess = weight_report(means.weight).ess
    # Outcomes that are all alike leave rounding, or what the outcome model misses of them.
    scale = np.abs(means.theta).mean() if is_varied else np.inf
    se = known_error(np.sqrt(np.diag(clustered_covariance(means.influence @ contrast.T, user))), scale)
    half = float(stats.t.ppf(1.0 - alpha / 2.0, df)) * se
    reasons: list[tuple[str, ...]] = []
    for k in range(len(n)):
        why = []
        if ess[k] < MIN_ESS:
            why.append("no_overlap")
        elif not is_overlap and ess[k] < MIN_ESS_SHARE * n[k]:
            why.append("low_ess")
        if clipped > MAX_CLIPPED:
            why.append("many_clipped")
        reasons.append(tuple(why))
    gone = np.array(["no_overlap" in why for why in reasons]) | ~np.isfinite(means.theta)
    # A reference may hold every version: without one there is nothing to stand against.
    if gone.any():
        reasons = [("no_overlap",) if gone[k] else (*why, "no_comparator") for k, why in enumerate(reasons)]
        gone[:] = True
    # The version that is the reference has no error to know.
    is_flat = np.isnan(se) & ~gone & (contrast != 0).any(axis=1)
    status = tuple(
        "unavailable" if gone[k] else "suspect" if why else "inconclusive" if is_flat[k] else "ok"
        for k, why in enumerate(reasons)
    )
    reasons = [(*why, "no_variation") if is_flat[k] else why for k, why in enumerate(reasons)]
    estimate = np.where(gone, np.nan, contrast @ means.theta)
    se, half = np.where(gone, np.nan, se), np.where(gone, np.nan, half)
    return Weighed(
        estimate, se, estimate - half, estimate + half, df, ess, clipped, status, tuple(reasons), largest_smd
    )


def _left(kinds: Kinds, weight: Floats) -> float:
    """Largest standardized difference of weighted means of a level; NaN where no level varies."""
    if (weight.sum(axis=0) <= 0).any():
        return np.nan
    # One level at a time, since all of them for every session would be the largest thing in memory.
    found = [weighted_smd(column[kinds.kind][:, None], weight)[0] for column in kinds.X.T]
    known = [value for value in found if np.isfinite(value)]
    return float(max(known, default=np.nan))


def _nothing(n_versions: int, why: str) -> Weighed:
    nan = np.full(n_versions, np.nan)
    return Weighed(
        nan, nan, nan, nan, np.nan, nan, np.nan, ("unavailable",) * n_versions, ((why,),) * n_versions
    )  # fmt: skip
