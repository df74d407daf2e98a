"""What each signal says about success: weights from human labels.

Belongs here: the penalized regression of labels on signals, and how well it is calibrated. Does not
belong here: which signals exist, or the declared weights that are used until there are labels
enough (criteria). A positive weight on a negative signal is an error to look at, not to ship.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalpipe.inference.causal.logistic import Logit, fit_logit, with_intercept
from evalpipe.inference.cells import Ints
from evalpipe.inference.model import Bools, Floats

MIN_LABELS = 200
MIN_EVENTS_PER_SIGNAL = 10
#: Slope of labels on predicted log-odds outside of which weights are to be fitted anew.
SLOPE_BAND = (0.8, 1.25)
FOLDS = 5


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of J signals.

    Attributes:
        intercept, coef: Log-odds of success, (J,). fitted: (N,) utilities of the labelled sessions.
        status: ``ok`` or ``unavailable``. reason: ``too_few_labels``, ``too_few_events``,
            ``one_outcome`` or ``not_converged``: declared weights stay in force.
    """

    intercept: float
    coef: Floats
    fitted: Floats
    status: str = "ok"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far predicted probabilities are from what happened.

    Attributes:
        brier: Mean squared error. log_loss: mean negative log-likelihood.
        slope, intercept: Of labels on predicted log-odds; 1 and 0 if calibrated.
        ece: Mean gap of predicted and observed rate over bins of equal mass.
        is_stale: Whether the slope lies outside its band.
    """

    brier: float
    log_loss: float
    slope: float
    intercept: float
    ece: float
    is_stale: bool


def regress_labels(signals: Floats, success: Bools, *, weight: Floats | None = None, C: float | None = None) -> Logit:
    """Logistic regression of success on signals, intercept first and unpenalized.

    Args:
        signals: (N, J). success: (N,). weight: (N,) inverse probabilities of being labelled.
        C: Inverse strength of the ridge; None for maximum likelihood.
    """
    X = with_intercept(signals)
    penalty = None if C is None else np.concatenate(([0.0], np.full(X.shape[1] - 1, 1.0 / C)))
    return fit_logit(X, np.asarray(success, dtype=np.int64), weight=weight, penalty=penalty)


def signal_weights(
    signals: Floats,
    success: Bools,
    *,
    weight: Floats | None = None,
    C: float = 1.0,
    min_labels: int = MIN_LABELS,
    min_events: int = MIN_EVENTS_PER_SIGNAL,
) -> Weights:
    """Weights of signals from human labels of success.

    Args:
        signals: (N, J) signals of the labelled sessions, counts capped by the caller.
        success: (N,) labels. weight: (N,) inverse probabilities of being labelled.
        C: Inverse strength of the ridge.
        min_labels, min_events: Labels, and labelled sessions of the rarer outcome a signal, below
            which no weights are published.

    Returns:
        The weights, or why there are none.

    Raises:
        ValueError: As :func:`fit_logit`.
    """
    signals = np.asarray(signals, dtype=np.float64)
    n, j = signals.shape
    success = np.asarray(success, dtype=bool)
    events = int(min(success.sum(), n - success.sum()))
    reason = ""
    if n < min_labels:
        reason = "too_few_labels"
    elif events == 0:
        reason = "one_outcome"
    elif events < min_events * j:
        reason = "too_few_events"
    fit = None if reason else regress_labels(signals, success, weight=weight, C=C)
    if fit is None or not fit.is_converged:
        nan = np.full(n, np.nan)
        return Weights(math.nan, np.full(j, np.nan), nan, "unavailable", reason or "not_converged")
    return Weights(float(fit.coef[0, 0]), fit.coef[0, 1:], fit.fitted[:, 1])


def crossfit_utilities(
    signals: Floats, success: Bools, user: Ints, *, weight: Floats | None = None, C: float = 1.0, folds: int = FOLDS
) -> Floats:
    """Chance of success of each session by weights that were fitted on other people's sessions.

    Args:
        signals, success, weight, C: As :func:`signal_weights`.
        user: (N,) cluster codes; sessions of one user share a fold.
        folds: Folds.

    Returns:
        (N,) probabilities; NaN in a fold whose other folds hold one outcome only.
    """
    signals, success = np.asarray(signals, dtype=np.float64), np.asarray(success, dtype=bool)
    fold = np.unique(user, return_inverse=True)[1] % folds
    out = np.full(len(success), np.nan)
    for one in range(folds):
        here = fold == one
        rest = success[~here]
        if not here.any() or rest.all() or not rest.any():
            continue
        v = None if weight is None else np.asarray(weight, dtype=np.float64)[~here]
        fit = regress_labels(signals[~here], rest, weight=v, C=C)
        if fit.is_converged:
            out[here] = fit.predict(with_intercept(signals[here]))[:, 1]
    return out


def brier_score(predicted: Floats, success: Bools, weight: Floats | None = None) -> float:
    """Mean squared error of probabilities (Brier, 1950), weighted if asked for; NaN without sessions."""
    return float(np.average((predicted - success) ** 2, weights=weight)) if len(predicted) else math.nan


def calibration(predicted: Floats, success: Bools, n_bins: int = 10, weight: Floats | None = None) -> Calibration:
    """How well probabilities fit what happened.

    Args:
        predicted: (N,) probabilities that were made without these labels (cross-fitted by user).
        success: (N,) labels.
        n_bins: Bins of equally many sessions of the calibration error.
        weight: (N,) inverse probabilities of being labelled; 1 by default.

    Returns:
        The scores; NaN where labels or predictions do not vary.
    """
    p = np.clip(np.asarray(predicted, dtype=np.float64), 1e-12, 1.0 - 1e-12)
    y = np.asarray(success, dtype=np.float64)
    if len(p) == 0:
        return Calibration(math.nan, math.nan, math.nan, math.nan, math.nan, is_stale=False)
    v = np.ones(len(p)) if weight is None else np.asarray(weight, dtype=np.float64)
    loss = float(np.average(-(y * np.log(p) + (1.0 - y) * np.log1p(-p)), weights=v))
    slope, intercept = math.nan, math.nan
    if 0 < y.sum() < len(y) and np.ptp(p) > 1e-12:
        line = fit_logit(with_intercept(np.log(p) - np.log1p(-p)), y.astype(np.int64), weight=v)
        if line.is_converged:
            intercept, slope = (float(value) for value in line.coef[0])
    bins = np.array_split(np.argsort(p, kind="stable"), min(n_bins, len(p)))
    ece = sum(abs(float((v[part] * (p[part] - y[part])).sum())) for part in bins) / float(v.sum())
    is_stale = math.isfinite(slope) and not SLOPE_BAND[0] <= slope <= SLOPE_BAND[1]
    return Calibration(brier_score(p, y.astype(bool), v), loss, slope, intercept, ece, is_stale)
