"""Means of human judgement from a few labels and many signals.

Belongs here: prediction-powered means with a tuned weight, one version at a time. Does not belong
here: how labels were drawn, or contrasts of versions beyond their influence. A correction pooled
over versions cancels out of every comparison of them, so it corrects nothing: one each is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from evalpipe.inference.cells import Ints, tally
from evalpipe.inference.intervals import known_error
from evalpipe.inference.model import Floats

#: Labels of a version below which its correction is not made.
MIN_LABELS = 30


@dataclass(frozen=True, slots=True)
class Rectified:
    """A mean of human judgement.

    Attributes:
        estimate, se, lo, hi: NaN where unavailable.
        weight: Weight of the signal, lambda in [0, 1] unless it was given.
        raw_weight: The tuned weight before it was clipped.
        status: ``ok``, ``inconclusive`` where there is an estimate and no interval, or ``unavailable``.
        reason: ``labels``, ``no_variation`` or ``one_user``.
        users, influence: Codes of the users, sorted, and what each moves the estimate by, (G,); of
            sessions where no users were given. Their sum of squares is the variance, and sums of
            products with another version's are the covariance.
    """

    estimate: float
    se: float
    lo: float
    hi: float
    weight: float
    raw_weight: float
    status: str = "ok"
    reason: str = ""
    users: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    influence: Floats = field(default_factory=lambda: np.zeros(0))

    def p_value(self, null: float) -> float:
        """Two-sided normal p-value of a mean of ``null``; NaN without a positive standard error."""
        if not self.se > 0:
            return math.nan
        return float(2.0 * special.ndtr(-abs(self.estimate - null) / self.se))


def tuned_weight(labels: Floats, signal: Floats, unlabelled: Floats) -> float:
    """Weight of the signal that makes the variance smallest (Angelopoulos, Duchi and Zrnic, 2023).

    Cov(Y, f) over labelled sessions / ((1 + n/N) Var(f) over all), not clipped; NaN where the
    signal does not vary.
    """
    n, size = len(labels), len(unlabelled)
    if n == 0 or size == 0:
        return math.nan
    # n - 1 here and n in the covariance, as in the authors' own software: any other choice differs
    # in the fourth digit of the weight.
    spread = float(np.var(np.concatenate((signal, unlabelled)), ddof=1))
    if spread <= 0:
        return math.nan
    together = float(np.mean((labels - labels.mean()) * (signal - signal.mean())))
    return together / ((1.0 + n / size) * spread)


def rectified_mean(
    labels: Floats,
    signal: Floats,
    unlabelled: Floats,
    *,
    weight: float | None = None,
    users: tuple[Ints, Ints] | None = None,
    label_weight: Floats | None = None,
    size: Floats | None = None,
    alpha: float = 0.05,
    min_labels: int = MIN_LABELS,
) -> Rectified:
    """Prediction-powered mean of one version (Angelopoulos and others, 2023; Fisch and others, 2024).

    Args:
        labels: (n,) human judgements Y. signal: (n,) the signal f of the same units.
        unlabelled: (N,) the signal of units without a label; with ``size`` its sum over a group of them.
        weight: Weight of the signal; ``None`` tunes it and clips it to [0, 1]; 1 is plain
            prediction-powered inference, 0 the labels alone.
        users: User codes of the labelled and of the unlabelled, (n,) and (N,), so that units of one
            user count as one; None for independent units.
        label_weight: (n,) inverse probabilities of having been labelled, where they are unequal. A
            tuned weight is then the one of the least variance under them.
        size: (N,) units in each group, such as turns of a session; 1 by default.
        alpha: Error rate of the normal interval.
        min_labels: Labels below which the answer is ``unavailable``.

    Returns:
        lambda mean(f, unlabelled) + mean(Y - lambda f, labelled), with its interval.

    Raises:
        ValueError: Lengths differ, or a value is NaN or infinite.
    """
    y, f, u = (np.asarray(values, dtype=np.float64) for values in (labels, signal, unlabelled))
    v = np.ones(len(y)) if label_weight is None else np.asarray(label_weight, dtype=np.float64)
    m = np.ones(len(u)) if size is None else np.asarray(size, dtype=np.float64)
    if y.shape != f.shape or y.shape != v.shape:
        raise ValueError(f"labels have shape {y.shape}, their signal {f.shape}, their weights {v.shape}")
    if u.shape != m.shape:
        raise ValueError(f"signals have shape {u.shape}, the sizes of their groups {m.shape}")
    if not all(np.isfinite(values).all() for values in (y, f, u, v, m)):
        raise ValueError("labels and signals must be finite")
    is_plain = label_weight is None and size is None
    raw = tuned_weight(y, f, u) if is_plain else math.nan
    if len(y) < max(min_labels, 1) or len(u) == 0 or not (m.sum() > 0 and v.sum() > 0):
        nan = math.nan
        return Rectified(nan, nan, nan, nan, nan, raw, "unavailable", "labels")
    mean_y, mean_f = (float((v * values).sum() / v.sum()) for values in (y, f))
    mean_u = float(u.sum() / m.sum())
    # What each user moves the mean label, the mean signal beside it, and the mean signal of all by.
    parts = [v * (y - mean_y) / v.sum(), v * (f - mean_f) / v.sum(), (u - mean_u * m) / m.sum()]
    who, (by_label, by_signal, by_all) = _by_user(parts, users)
    if not is_plain:
        raw = _least_variance_weight(by_label, by_all - by_signal)
    tuned = 0.0 if math.isnan(raw) else min(max(raw, 0.0), 1.0)
    lam = tuned if weight is None else weight
    influence = by_label + lam * (by_all - by_signal)
    estimate, spread = lam * mean_u + mean_y - lam * mean_f, math.sqrt(float((influence**2).sum()))
    # Rounding is a share of what was averaged: of a group's sum, over its size.
    scale = max(float(np.abs(y).max()), float(np.abs(f).max()), float(np.abs(u).sum() / m.sum()))
    is_alone = users is not None and len(who) < 2
    se = math.nan if is_alone else float(known_error(np.array(spread), scale))
    half = float(special.ndtri(1.0 - alpha / 2.0)) * se
    why = "one_user" if is_alone else "" if math.isfinite(se) else "no_variation"
    status = "inconclusive" if why else "ok"
    return Rectified(
        estimate, se, estimate - half, estimate + half, lam, raw, status, why, users=who, influence=influence
    )


def _least_variance_weight(fixed: Floats, moved: Floats) -> float:
    """The lambda that makes the sum of squares of fixed + lambda moved smallest; NaN where nothing moves."""
    square = float((moved**2).sum())
    return -float((fixed * moved).sum()) / square if square > 0 else math.nan


def _by_user(parts: list[Floats], users: tuple[Ints, Ints] | None) -> tuple[Ints, list[Floats]]:
    """Users, and sums by them of two parts of the labelled and one of the unlabelled.

    A user may have units in both: their influence adds up before it is squared.
    """
    n, size = len(parts[0]), len(parts[2])
    if users is None:
        users = (np.arange(n), np.arange(n, n + size))
    who, code = np.unique(np.concatenate(users), return_inverse=True)
    codes = (code[:n], code[:n], code[n:])
    return who, [tally(one, part, len(who)) for one, part in zip(codes, parts, strict=True)]
