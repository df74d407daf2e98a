"""Rates of a signal by version, corrected for its errors by people's labels.

Belongs here: which correction each version gets, and contrasts of corrected rates. Does not belong
here: the corrections themselves (``ppi``, ``prevalence``), or what a label is (``review``). Units are
turns or calls. A version with labels enough is corrected by its own (``ppi``); the others by error
rates of all versions together (``rogan_gladen``), and only where these do not differ by version: a
correction that is the same for all cannot undo errors that are not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from evalpipe.inference.agreement.detector import kish_ess
from evalpipe.inference.cells import Ints, divide, tally
from evalpipe.inference.labels.ppi import MIN_LABELS, rectified_mean
from evalpipe.inference.labels.prevalence import misclassification_value, rogan_gladen
from evalpipe.inference.model import Bools, Floats
from evalpipe.inference.reviewed import Share, equal_shares, hajek_share

#: Effective labels that each side needs, with the signal and without it: one silent turn may stand
#: for thousands, so a plain count of them says little.
MIN_EFFECTIVE = 10.0
#: Labels that contradict the signal on one side of it, below which their own spread says too little:
#: forty silent turns without a miss do not say that none is missed.
MIN_ERRORS = 5
#: p-value of equal error rates over versions below which none are pooled.
POOLING_LEVEL = 0.05

PPI, ROGAN_GLADEN = "ppi", "rogan_gladen"


@dataclass(frozen=True, slots=True)
class Fired:
    """How often a signal fired, by session.

    Attributes:
        fired: (N,) units with the signal. size: (N,) units. version, user: (N,) codes.
    """

    fired: Floats
    size: Floats
    version: Ints
    user: Ints


@dataclass(frozen=True, slots=True)
class Labels:
    """Labelled units.

    Attributes:
        truth: (n,) share of reviewers who say that the unit has the signal. fired: (n,) whether it fired.
        weight: (n,) inverse probabilities of having been labelled. version, user: (n,) codes, users as
            in :class:`Fired`.
    """

    truth: Floats
    fired: Bools
    weight: Floats
    version: Ints
    user: Ints

    def of(self, inside: Bools) -> Labels:
        """Some of the units."""
        return Labels(*(getattr(self, name)[inside] for name in ("truth", "fired", "weight", "version", "user")))


@dataclass(frozen=True, slots=True)
class CorrectedRates:
    """Rates of K versions, each (K,); NaN where there is none.

    Attributes:
        rate: Share of units with the signal, as counted.
        estimate, lo, hi: Share that has it by people's judgement.
        shift, shift_lo, shift_hi: Against the plain average of the versions that have an estimate.
        raw_shift: As counted, against the same versions.
        error_rate_gap: Difference of error rates between versions that could explain ``raw_shift``.
        n_labels: Labelled units of the version.
        method: ``ppi``, ``rogan_gladen`` or empty. status, reasons: of the estimate.
        cov: (K, K) covariance of ``estimate``: users who met several versions, and error rates that
            versions share.
    """

    rate: Floats
    estimate: Floats
    lo: Floats
    hi: Floats
    shift: Floats
    shift_lo: Floats
    shift_hi: Floats
    raw_shift: Floats
    error_rate_gap: Floats
    n_labels: Ints
    method: list[str]
    status: list[str]
    reasons: list[list[str]]
    cov: Floats


@dataclass(frozen=True, slots=True)
class _Pooled:
    """Error rates of all versions together.

    Attributes:
        sensitivity, specificity: NaN where unavailable. variance: of each, (2,).
        reason: ``no_reviews``, ``labels`` or ``errors_differ``; empty where they may be used.
    """

    sensitivity: float
    specificity: float
    variance: Floats
    reason: str = ""


def corrected_rates(fired: Fired, labels: Labels, n_versions: int, alpha: float = 0.05) -> CorrectedRates:
    """Correct the rate of one signal in each version.

    Args:
        fired: All units of the window. labels: The labelled ones.
        n_versions: K. alpha: Error rate of the intervals.

    Returns:
        Rates with user-clustered intervals. A version's status is ``unavailable`` where its labels do
        not suffice and error rates cannot be pooled. Where few labels contradict the signal
        (``few_errors_seen``), the interval has room for as many errors as Wilson's limit allows.
    """
    k = n_versions
    rate = divide(tally(fired.version, fired.fired, k), tally(fired.version, fired.size, k))
    estimate, lo, hi = (np.full(k, np.nan) for _ in range(3))
    method, status = [""] * k, ["unavailable"] * k
    reasons: list[list[str]] = [[] for _ in range(k)]
    n_users = int(max(fired.user.max(initial=-1), labels.user.max(initial=-1))) + 1
    psi, shared, unseen = np.zeros((n_users, k)), np.zeros((k, 2)), np.zeros(k)
    z = float(special.ndtri(1.0 - alpha / 2.0))
    pooled = _pool(labels)
    for one in range(k):
        units, mine = fired.version == one, labels.of(labels.version == one)
        if not fired.size[units].sum() > 0:
            reasons[one] = ["absent"]
        elif _suffice(mine):
            found = rectified_mean(
                mine.truth,
                mine.fired.astype(np.float64),
                fired.fired[units],
                users=(mine.user, fired.user[units]),
                label_weight=mine.weight,
                size=fired.size[units],
                alpha=alpha,
            )
            psi[found.users, one] = found.influence
            unseen[one] = _unseen(mine, float(rate[one]), alpha)
            # What labels that all agree leave open is in ``unseen``; with nothing in either, or one user,
            # there is an estimate and no interval.
            known_se = 0.0 if found.reason == "no_variation" else found.se
            half = z * math.sqrt(known_se**2 + unseen[one])
            is_bounded = half > 0
            half = half if is_bounded else math.nan
            estimate[one] = min(max(found.estimate, 0.0), 1.0)
            lo[one], hi[one] = max(found.estimate - half, 0.0), min(found.estimate + half, 1.0)
            method[one], status[one] = PPI, "ok" if is_bounded else "inconclusive"
            reasons[one] = [*(["few_errors_seen"] if unseen[one] > 0 else []), *([] if is_bounded else [found.reason])]
        elif pooled.reason:
            reasons[one] = [pooled.reason]
        else:
            spread = (fired.fired[units] - rate[one] * fired.size[units]) / fired.size[units].sum()
            apparent = tally(fired.user[units], spread, n_users)
            n = _effective(rate[one], float((apparent**2).sum()), float(fired.size[units].sum()))
            known = rogan_gladen(rate[one] * n, n, pooled.sensitivity, pooled.specificity, alpha)
            if known.reason:
                reasons[one] = [known.reason]
                continue
            youden = pooled.sensitivity + pooled.specificity - 1.0
            psi[:, one] = apparent / youden
            # Error rates are estimates too: Lang and Reiczigel (2014).
            shared[one] = (-known.estimate / youden, (1.0 - known.estimate) / youden)
            add = z**2 * float((shared[one] ** 2 * pooled.variance).sum())
            estimate[one] = known.truncated
            lo[one] = max(known.estimate - math.sqrt((known.estimate - known.lo) ** 2 + add), 0.0)
            hi[one] = min(known.estimate + math.sqrt((known.hi - known.estimate) ** 2 + add), 1.0)
            method[one], status[one], reasons[one] = ROGAN_GLADEN, "ok", ["pooled_errors"]
            if known.is_outside:
                status[one], reasons[one] = "suspect", ["pooled_errors", "outside_range"]
    shift = _shifts(rate, estimate, psi, shared, pooled.variance, unseen, z)
    n_labels = np.bincount(labels.version, minlength=k)
    known = np.isfinite(estimate)
    cov = psi.T @ psi + (shared * np.nan_to_num(pooled.variance)) @ shared.T + np.diag(unseen)
    cov = np.where(known[:, None] & known[None, :], cov, np.nan)
    return CorrectedRates(rate, estimate, lo, hi, *shift, n_labels, method, status, reasons, cov)


def _shifts(
    rate: Floats, estimate: Floats, psi: Floats, shared: Floats, pooled: Floats, unseen: Floats, z: float
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Shift with its limits, raw shift, and the gap of error rates that could explain the latter."""
    blank = np.full(len(rate), np.nan)
    out = (blank, blank.copy(), blank.copy(), blank.copy(), blank.copy())
    has = np.flatnonzero(np.isfinite(estimate))
    if len(has) < 2:
        return out
    contrast = np.eye(len(has)) - 1.0 / len(has)
    by_user, by_error = psi[:, has] @ contrast, contrast @ shared[has]
    variance = (by_user**2).sum(axis=0) + (by_error**2 * pooled).sum(axis=1) + contrast**2 @ unseen[has]
    half = z * np.sqrt(variance)
    shift, raw = contrast @ estimate[has], contrast @ rate[has]
    gap = [misclassification_value(float(value), len(has)) for value in raw]
    for column, values in zip(out, (shift, shift - half, shift + half, raw, gap), strict=True):
        column[has] = values
    return out


def _suffice(labels: Labels) -> bool:
    """Whether labels correct a rate: enough, on both sides of the signal."""
    sides = (kish_ess(labels.weight[side]) for side in (labels.fired, ~labels.fired))
    return len(labels.truth) >= MIN_LABELS and min(sides) >= MIN_EFFECTIVE


def _unseen(labels: Labels, rate: float, alpha: float) -> float:
    """Variance for errors that were hardly seen: on each side of the signal, up to Wilson's limit."""
    total = 0.0
    for side, share in ((labels.fired, rate), (~labels.fired, 1.0 - rate)):
        error = np.abs(labels.truth - labels.fired)[side]
        if error.sum() < MIN_ERRORS:
            seen = hajek_share(error, 1.0 / labels.weight[side], alpha / 2.0)
            total += (share * (seen.high - seen.value) / float(special.ndtri(1.0 - alpha / 2.0))) ** 2
    return total


def _effective(rate: float, variance: float, size: float) -> float:
    """Independent units that would tell a rate as well, at most all of them."""
    spread = rate * (1.0 - rate)
    return min(size, spread / variance) if variance > 0 and spread > 0 else size


def _pool(labels: Labels) -> _Pooled:
    """Sensitivity and specificity over all versions, where they do not differ by version."""
    nothing = np.zeros(2)
    if not len(labels.truth):
        return _Pooled(math.nan, math.nan, nothing, "no_reviews")
    whole = (_caught(labels, is_true=True), _caught(labels, is_true=False))
    if not _suffice(labels) or min(share.n_effective for share in whole) < MIN_EFFECTIVE:
        return _Pooled(math.nan, math.nan, nothing, "labels")
    for is_true in (True, False):
        shares = [_caught(labels.of(labels.version == one), is_true=is_true) for one in np.unique(labels.version)]
        p = equal_shares([share for share in shares if share.n])
        # Two tests, so each at half the level.
        if p < POOLING_LEVEL / 2.0:
            return _Pooled(math.nan, math.nan, nothing, "errors_differ")
    variance = np.array([_variance(share) for share in whole])
    return _Pooled(whole[0].value, 1.0 - whole[1].value, variance)


def _caught(labels: Labels, *, is_true: bool) -> Share:
    """Share of the units with, or without, the signal by people's judgement on which it fired."""
    share = labels.truth if is_true else 1.0 - labels.truth
    has = share > 0
    # A unit that one of two reviewers gave the label counts half on either side.
    return hajek_share(labels.fired[has].astype(np.float64), 1.0 / (labels.weight[has] * share[has]))


def _variance(share: Share) -> float:
    # One unit is added to each side, so that a rate of 0 or 1 is not taken for certain.
    p = (share.value * share.n_effective + 1.0) / (share.n_effective + 2.0)
    return p * (1.0 - p) / share.n_effective
