"""Versions routed by what is known of the work: outcome models, alone and doubly robust.

Belongs here: regression adjustment and augmented inverse-probability means, with their influence.
Does not belong here: the chances of routing (``weighting``, ``crossfit``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalpipe.inference.causal.logistic import Logit, fit_logit
from evalpipe.inference.causal.weighting import Means, chance_influence, inverse_weights
from evalpipe.inference.cells import Ints
from evalpipe.inference.model import Floats


@dataclass(frozen=True, slots=True)
class OutcomeModel:
    """Predicted outcomes of every session under every version, (N, K), and how they were fitted.

    Attributes:
        predicted: (N, K); NaN where a version has too few sessions for a model.
        gain: (K,) inverse information of each version's linear model, or empty: needed only for
            the influence of the fitted coefficients.
    """

    predicted: Floats
    gain: tuple[Floats, ...] = ()


def linear_outcomes(y: Floats, label: Ints, X: Floats, n_versions: int) -> OutcomeModel:
    """Least squares of the outcome on X, one model a version.

    Args:
        y: (N,). label: (N,). X: (N, P), an intercept among the columns. n_versions: K.
    """
    predicted, gain = np.full((len(y), n_versions), np.nan), []
    for k in range(n_versions):
        mine = label == k
        gram = np.linalg.pinv(X[mine].T @ X[mine])
        gain.append(gram)
        if mine.any():
            predicted[:, k] = X @ (gram @ (X[mine].T @ y[mine]))
    return OutcomeModel(predicted, tuple(gain))


def logistic_outcomes(
    y: Floats, label: Ints, X: Floats, n_versions: int, penalty: Floats | None = None
) -> OutcomeModel:
    """Logistic regression of a 0/1 outcome on X, one model a version.

    A version whose outcomes do not vary is predicted by their mean; one whose model does not
    converge has NaN.
    """
    predicted = np.full((len(y), n_versions), np.nan)
    for k in range(n_versions):
        mine = label == k
        if not mine.any():
            continue
        if np.ptp(y[mine]) == 0:
            predicted[:, k] = y[mine][0]
            continue
        fit = fit_logit(X[mine], y[mine].astype(np.int64), penalty=penalty)
        if fit.is_converged:
            predicted[:, k] = fit.predict(X)[:, 1]
    return OutcomeModel(predicted)


def regression_means(y: Floats, label: Ints, X: Floats, n_versions: int) -> Means:
    """Means of versions by linear outcome models, each averaged over all sessions."""
    model = linear_outcomes(y, label, X, n_versions)
    theta = model.predicted.mean(axis=0)
    influence = (model.predicted - theta + len(y) * _outcome_influence(y, label, X, model, X.mean(axis=0))) / len(y)
    return Means(theta, influence, np.zeros_like(influence))


def aipw_means(
    y: Floats,
    label: Ints,
    chance: Floats,
    model: OutcomeModel,
    fitted: tuple[Logit, Floats] | None = None,
) -> Means:
    """Augmented inverse-probability means (Robins, Rotnitzky and Zhao, 1994).

    phi_ik = m_k(x_i) + W_ik (y_i - m_k(x_i)), averaged over sessions. Right if either the chances
    or the outcome model are.

    Args:
        y: (N,). label: (N,). chance: (N, K), positive. model: predicted outcomes.
        fitted: As in :func:`weighted_means`, with a linear outcome model on the same columns: the
            influence then accounts for both fits. None leaves them out, as cross-fitting allows.
    """
    w = inverse_weights(label, chance)
    residual = y[:, None] - model.predicted
    phi = model.predicted + w * residual
    theta = phi.mean(axis=0)
    influence = (phi - theta) / len(y)
    if fitted is not None and model.gain:
        fit, X = fitted
        k = chance.shape[1]
        slopes = np.empty((k - 1, X.shape[1], k))
        for version in range(k):
            for j in range(1, k):
                part = (w * residual)[:, version] * (float(version == j) - fit.fitted[:, j])
                slopes[j - 1, :, version] = -X.T @ part
        influence = influence + chance_influence(fit, X, label) @ slopes.reshape(-1, k) / len(y)
        for version in range(k):
            pull = ((1.0 - w[:, [version]]) * X).mean(axis=0)
            influence[:, version] += _outcome_influence(y, label, X, model, pull)[:, version]
    return Means(theta, influence, w)


def _outcome_influence(y: Floats, label: Ints, X: Floats, model: OutcomeModel, pull: Floats) -> Floats:
    """(N, K) share of each session in pull' coef of each version's linear model."""
    out = np.zeros_like(model.predicted)
    for k, gain in enumerate(model.gain):
        mine = label == k
        out[mine, k] = (X[mine] @ (gain @ pull)) * (y[mine] - model.predicted[mine, k])
    return out
