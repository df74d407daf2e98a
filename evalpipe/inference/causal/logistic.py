"""Logistic regression of two or more classes, penalized or not.

Belongs here: Newton steps, coefficients, their standard errors. Does not belong here: what is
regressed on what (propensities, weights of signals).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from evalpipe.inference.cells import Ints
from evalpipe.inference.model import Floats

_MAX_STEPS = 100
_TOLERANCE = 1e-10
#: Relative change of the deviance at which iterated weighted least squares stops.
_SETTLED = 1e-8
#: A coefficient this large means that the classes are separated: the likelihood has no maximum.
_SEPARATED = 30.0


@dataclass(frozen=True, slots=True)
class Logit:
    """A fitted regression of J + 1 classes on P columns.

    Attributes:
        coef: (J, P) log-odds of classes 1..J against class 0.
        cov: (J P, J P) inverse information at the maximum.
        se: (J, P) standard errors from the last step that still moved the deviance by 1e-8 of it,
            which is what iterated weighted least squares (R's ``glm``) reports; they differ from the
            root of ``cov`` in the fifth digit.
        fitted: (N, J + 1) probabilities of the classes.
        deviance: -2 log-likelihood, unpenalized, weighted.
        is_converged: Whether the maximum was reached; if not, nothing of it may be used.
    """

    coef: Floats
    cov: Floats
    se: Floats
    fitted: Floats
    deviance: float
    is_converged: bool

    def predict(self, X: Floats) -> Floats:
        """(M, J + 1) probabilities of the classes for other rows."""
        return _probabilities(X, self.coef)


def fit_logit(
    X: Floats, label: Ints, n_classes: int = 2, *, weight: Floats | None = None, penalty: Floats | None = None
) -> Logit:
    """Fit by Newton's method with step halving.

    Args:
        X: (N, P) columns, the intercept among them if there is to be one.
        label: (N,) classes 0..n_classes-1.
        n_classes: J + 1.
        weight: (N,) weights of the rows; 1 by default.
        penalty: (P,) ridge: adds 0.5 sum penalty coef^2 to the loss, for more than two classes of each
            class's distance to the mean of all, so that no class is special. 0 for the intercept; 1/C
            in the convention of scikit-learn. None for maximum likelihood.

    Returns:
        The fit. Separated classes and collinear columns do not converge without a penalty.

    Raises:
        ValueError: Shapes do not fit, a label is out of range, or a number is NaN or infinite.
    """
    X, label = np.asarray(X, dtype=np.float64), np.asarray(label, dtype=np.int64)
    v = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
    if X.ndim != 2 or label.shape != (len(X),) or v.shape != (len(X),):
        raise ValueError(f"X has shape {X.shape}, label {label.shape}, weight {v.shape}")
    if len(label) and (label.min() < 0 or label.max() >= n_classes):
        raise ValueError(f"label must be below {n_classes}")
    return fit_counts(X, v[:, None] * (label[:, None] == np.arange(n_classes)), penalty=penalty)


def fit_counts(X: Floats, counts: Floats, *, penalty: Floats | None = None, with_errors: bool = True) -> Logit:
    """Fit rows that stand for several sessions of several classes, at a cost free of their number.

    Args:
        X: (R, P) columns. counts: (R, J + 1) weight of each class in each row.
        penalty: As :func:`fit_logit`.
        with_errors: Whether ``cov`` and ``se`` are wanted: they cost more than the fit. NaN if not.

    Raises:
        ValueError: Shapes do not fit, or a number is NaN, infinite or negative.
    """
    X, counts = np.asarray(X, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if X.ndim != 2 or counts.shape[:1] != X.shape[:1] or counts.ndim != 2:
        raise ValueError(f"X has shape {X.shape}, counts {counts.shape}")
    if not (np.isfinite(X).all() and np.isfinite(counts).all()) or (counts < 0).any():
        raise ValueError("X and weights must be finite, and weights not negative")
    ridge = _ridge(np.zeros(X.shape[1]) if penalty is None else np.asarray(penalty, float), counts.shape[1])
    n = counts.sum(axis=1)
    coef, reported = _start(X, counts, ridge)
    loss, is_converged, is_settled = _loss(X, counts, coef, ridge), False, False
    for _ in range(_MAX_STEPS):
        p = _probabilities(X, coef)[:, 1:]
        gradient = (counts[:, 1:] - n[:, None] * p).T @ X - (ridge @ coef.ravel()).reshape(coef.shape)
        information = _information(X, p, n) + ridge
        step, is_solved = _solve(information, gradient.ravel())
        if not is_solved:
            break
        trial, trial_loss = _halve(X, counts, coef, step.reshape(coef.shape), ridge, loss)
        if not is_settled:
            reported = information
            is_settled = abs(trial_loss - loss) * 2.0 < _SETTLED * (abs(trial_loss) * 2.0 + 0.1)
        done = np.abs(trial - coef).max() <= _TOLERANCE * (1.0 + np.abs(coef).max())
        coef, loss = trial, trial_loss
        if done:
            is_converged = bool((np.abs(X @ coef.T) < _SEPARATED).all())
            break
    fitted = _probabilities(X, coef)
    deviance = 2.0 * _loss(X, counts, coef, np.zeros_like(ridge))
    if not with_errors:
        nan = np.full((coef.size, coef.size), np.nan)
        return Logit(coef, nan, np.full(coef.shape, np.nan), fitted, deviance, is_converged)
    cov = _inverse(_information(X, fitted[:, 1:], n) + ridge)
    se = np.sqrt(np.maximum(np.diag(_inverse(reported)), 0.0)).reshape(coef.shape)
    return Logit(coef, cov, np.asarray(se), fitted, deviance, is_converged)


def _ridge(penalty: Floats, n_classes: int) -> Floats:
    """(J P, J P) matrix of the penalty on the log-odds against class 0."""
    j = n_classes - 1
    between = np.eye(j) - (np.ones((j, j)) / n_classes if j > 1 else 0.0)
    return np.asarray(np.kron(between, np.diag(penalty)), dtype=np.float64)


def _start(X: Floats, counts: Floats, ridge: Floats) -> tuple[Floats, Floats]:
    """First coefficients and the information that gave them: one step from shrunken outcomes."""
    j, n_columns = counts.shape[1] - 1, X.shape[1]
    nothing, n = np.zeros((j, n_columns)), counts.sum(axis=1)
    if j != 1 or ridge.any() or len(X) == 0:
        return nothing, _information(X, _probabilities(X, nothing)[:, 1:], n) + ridge
    mean = (counts[:, 1] + 0.5) / (n + 1.0)
    w = n * mean * (1.0 - mean)
    target = np.divide(counts[:, 1], n, out=np.zeros_like(n), where=n > 0)
    working = special.logit(mean) + (target - mean) / (mean * (1.0 - mean))
    information = X.T @ (w[:, None] * X)
    coef, is_solved = _solve(information, X.T @ (w * working))
    return (coef[None, :] if is_solved else nothing), information


def _halve(X: Floats, counts: Floats, coef: Floats, step: Floats, ridge: Floats, loss: float) -> tuple[Floats, float]:
    """The step, halved until the loss does not rise."""
    scale = 1.0
    while True:
        trial = coef + scale * step
        trial_loss = _loss(X, counts, trial, ridge)
        if trial_loss <= loss + 1e-12 * abs(loss) or scale < 1e-6:
            return trial, trial_loss
        scale /= 2.0


def _inverse(information: Floats) -> Floats:
    if not np.isfinite(information).all():
        return np.full(information.shape, np.nan)
    return np.asarray(np.linalg.pinv(information))


def with_intercept(columns: Floats) -> Floats:
    """A column of ones before the columns, (N, P + 1)."""
    columns = np.asarray(columns, dtype=np.float64).reshape(len(columns), -1)
    return np.concatenate((np.ones((len(columns), 1)), columns), axis=1)


def _probabilities(X: Floats, coef: Floats) -> Floats:
    score = np.concatenate((np.zeros((len(X), 1)), X @ coef.T), axis=1)
    return np.asarray(special.softmax(score, axis=1))


def _loss(X: Floats, counts: Floats, coef: Floats, ridge: Floats) -> float:
    score = np.concatenate((np.zeros((len(X), 1)), X @ coef.T), axis=1)
    log_p = score - special.logsumexp(score, axis=1, keepdims=True)
    return float(-(counts * log_p).sum() + 0.5 * coef.ravel() @ ridge @ coef.ravel())


def _information(X: Floats, p: Floats, v: Floats) -> Floats:
    j, n_columns = p.shape[1], X.shape[1]
    out = np.empty((j, n_columns, j, n_columns))
    for a in range(j):
        for b in range(j):
            w = v * p[:, a] * ((a == b) - p[:, b])
            out[a, :, b, :] = X.T @ (w[:, None] * X)
    return out.reshape(j * n_columns, j * n_columns)


def _solve(matrix: Floats, right: Floats) -> tuple[Floats, bool]:
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return right, False
    return np.asarray(np.linalg.solve(factor.T, np.linalg.solve(factor, right))), True
