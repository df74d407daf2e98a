"""Versions routed by what is known of the work: weighting by the chance of having been routed so.

Belongs here: means under inverse-probability and overlap weights, with the influence of the fitted
chances in them, and what the weights look like. Does not belong here: outcome models (``robust``),
how chances are fitted by fold (``crossfit``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalpipe.inference.agreement.detector import kish_ess
from evalpipe.inference.causal.logistic import Logit
from evalpipe.inference.cells import Ints, divide
from evalpipe.inference.model import Floats

SCHEMES = ("hajek", "horvitz_thompson", "overlap")


@dataclass(frozen=True, slots=True)
class Means:
    """Means of K versions over one population.

    Attributes:
        theta: (K,). influence: (N, K) share of each session, summing to about 0 by column.
        weight: (N, K) weights W_ik, 0 off a session's own version.
    """

    theta: Floats
    influence: Floats
    weight: Floats

    @property
    def net_improvement(self) -> Floats:
        """(K,) means minus their plain average."""
        return np.asarray(self.theta - self.theta.mean())


def inverse_weights(label: Ints, chance: Floats, scheme: str = "hajek") -> Floats:
    """Weights W_ik of sessions by version, (N, K).

    Args:
        label: (N,) version codes. chance: (N, K) chances of each version; rows sum to 1.
        scheme: ``hajek`` and ``horvitz_thompson`` weigh by 1/e_ik, for all sessions as population;
            ``overlap`` by h_i/e_ik with h_i = 1/sum_j(1/e_ij), for those who could have been served
            by any version (Li and Li, 2019).

    Raises:
        ValueError: Unknown scheme, or a chance that is not positive.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"scheme must be one of {', '.join(SCHEMES)}; got {scheme!r}")
    if not (chance > 0).all():
        raise ValueError("chances of being routed must be positive")
    own = label[:, None] == np.arange(chance.shape[1])
    h = 1.0 / (1.0 / chance).sum(axis=1, keepdims=True) if scheme == "overlap" else 1.0
    return np.asarray(own * h / chance)


def weighted_means(
    y: Floats,
    label: Ints,
    chance: Floats,
    scheme: str = "hajek",
    fitted: tuple[Logit, Floats] | None = None,
) -> Means:
    """Means of versions by weighting (Horvitz and Thompson, 1952; Hajek, 1971; Li and Li, 2019).

    Args:
        y: (N,) outcomes. label: (N,) version codes. chance: (N, K).
        scheme: One of :data:`SCHEMES`.
        fitted: The unpenalized regression that gave ``chance`` on these sessions, and its columns:
            then the influence accounts for the chances being estimated, which makes the standard
            error smaller. Inverse-probability schemes only. None takes the chances as known.

    Returns:
        Means; NaN for a version without sessions.
    """
    w = inverse_weights(label, chance, scheme)
    whole = w.sum(axis=0)
    if scheme == "horvitz_thompson":
        whole = np.full(len(whole), float(len(y)))
    with np.errstate(divide="ignore", invalid="ignore"):
        theta = np.where(w.any(axis=0), (w * y[:, None]).sum(axis=0) / whole, np.nan)
        centre = 0.0 if scheme == "horvitz_thompson" else theta
        influence = w * (y[:, None] - centre)
        if fitted is not None and scheme != "overlap":
            influence = influence + chance_influence(fitted[0], fitted[1], label) @ _slopes(
                w * (y[:, None] - centre), *fitted
            )
        influence = influence / whole - (theta / len(y) if scheme == "horvitz_thompson" else 0.0)
    return Means(theta, np.asarray(influence), w)


def chance_influence(fit: Logit, X: Floats, label: Ints) -> Floats:
    """Share of each session in the coefficients of the routing model, (N, J P)."""
    target = (label[:, None] == np.arange(1, fit.fitted.shape[1])).astype(np.float64)
    score = (target - fit.fitted[:, 1:])[:, :, None] * X[:, None, :]
    return np.asarray(score.reshape(len(X), -1) @ fit.cov)


def _slopes(part: Floats, fit: Logit, X: Floats) -> Floats:
    """(J P, K) derivative of sum_i part_ik by the routing model's coefficients, part ~ 1/e_ik."""
    k = fit.fitted.shape[1]
    out = np.empty((k - 1, X.shape[1], k))
    for version in range(k):
        for j in range(1, k):
            # d(1/e_k) = -(1/e_k) (1[k = j] - e_j) x
            out[j - 1, :, version] = -X.T @ (part[:, version] * (float(version == j) - fit.fitted[:, j]))
    return out.reshape(-1, k)


@dataclass(frozen=True, slots=True)
class WeightReport:
    """What a set of weights looks like, (K,) each.

    Attributes:
        ess: Kish's effective number of sessions. n: sessions. largest: largest share of one session.
    """

    ess: Floats
    n: Ints
    largest: Floats


def weight_report(weight: Floats) -> WeightReport:
    """Effective sizes of weights (N, K)."""
    whole = weight.sum(axis=0)
    largest = np.divide(weight.max(axis=0, initial=0.0), whole, out=np.full(len(whole), np.nan), where=whole > 0)
    return WeightReport(np.array([kish_ess(column) for column in weight.T]), (weight > 0).sum(axis=0), largest)


def weighted_smd(X: Floats, weight: Floats) -> Floats:
    """Largest standardized difference of weighted means between two versions, by covariate (P,).

    The scale is the covariate's standard deviation over all sessions; NaN where it does not vary.
    """
    mean = weight.T @ X / weight.sum(axis=0)[:, None]
    sd = X.std(axis=0)
    return divide(np.ptp(mean, axis=0), np.where(sd > 1e-12, sd, 0.0))
