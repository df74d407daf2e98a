"""Means of human judgement from a few labels and many signals.

Belongs here: prediction-powered means with a tuned weight, one version at a time. Does not belong
here: how labels were drawn, or contrasts of versions beyond their influence. A correction pooled
over versions cancels out of every comparison of them, so it corrects nothing: one each is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

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
    """

    estimate: float
    se: float
    lo: float
    hi: float
    weight: float
    raw_weight: float
    status: str = "ok"
    reason: str = ""

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
    alpha: float = 0.05,
    min_labels: int = MIN_LABELS,
) -> Rectified:
    """Prediction-powered mean of one version (Angelopoulos and others, 2023; Fisch and others, 2024).

    Args:
        labels: (n,) human judgements Y. signal: (n,) the signal f of the same sessions.
        unlabelled: (N,) the signal of sessions without a label.
        weight: Weight of the signal; ``None`` tunes it and clips it to [0, 1]; 1 is plain
            prediction-powered inference, 0 the labels alone.
        users: User codes of the labelled and of the unlabelled sessions, (n,) and (N,), so that
            sessions of one user count as one; None for independent sessions.
        alpha: Error rate of the normal interval.
        min_labels: Labels below which the answer is ``unavailable``.

    Returns:
        lambda mean(f, unlabelled) + mean(Y - lambda f, labelled), with its interval.

    Raises:
        ValueError: Lengths differ, or a value is NaN or infinite.
    """
    y, f, u = (np.asarray(values, dtype=np.float64) for values in (labels, signal, unlabelled))
    if y.shape != f.shape:
        raise ValueError(f"labels have shape {y.shape}, their signal {f.shape}")
    if not all(np.isfinite(values).all() for values in (y, f, u)):
        raise ValueError("labels and signals must be finite")
    raw = tuned_weight(y, f, u)
    if len(y) < max(min_labels, 1) or len(u) == 0:
        nan = math.nan
        return Rectified(nan, nan, nan, nan, nan, raw, "unavailable", "labels")
    tuned = 0.0 if math.isnan(raw) else min(max(raw, 0.0), 1.0)
    lam = tuned if weight is None else weight
    estimate = lam * float(u.mean()) + float((y - lam * f).mean())
    variance = _variance(y - lam * f, lam * u, users)
    is_alone = users is not None and len(np.unique(np.concatenate(users))) < 2
    scale = max(float(np.abs(y).max()), float(np.abs(f).max()), float(np.abs(u).max()))
    se = math.nan if is_alone else float(known_error(np.array(math.sqrt(variance)), scale))
    half = float(special.ndtri(1.0 - alpha / 2.0)) * se
    why = "one_user" if is_alone else "" if math.isfinite(se) else "no_variation"
    return Rectified(estimate, se, estimate - half, estimate + half, lam, raw, "inconclusive" if why else "ok", why)


def _variance(rectifier: Floats, predicted: Floats, users: tuple[Ints, Ints] | None) -> float:
    """Variance of mean(predicted) + mean(rectifier); sums by user where users are known."""
    left, right = (rectifier - rectifier.mean()) / len(rectifier), (predicted - predicted.mean()) / len(predicted)
    if users is None:
        return float((left**2).sum() + (right**2).sum())
    # A user may have sessions in both parts: their influence adds up before it is squared.
    _, code = np.unique(np.concatenate(users), return_inverse=True)
    return float((tally(code, np.concatenate((left, right)), int(code.max()) + 1) ** 2).sum())
