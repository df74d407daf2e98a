"""What is estimated: stratum weights and the coefficients of the cell means.

Belongs here: populations (weights) and references (contrasts). Does not belong here: data beyond
cell counts. Every net improvement is linear in the cell means, NI_k = sum_c ell[c, k] * mu_c, so one
covariance matrix of cell means serves all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalpipe.inference.model import Floats


@dataclass(frozen=True, slots=True)
class Estimand:
    """Coefficients over the cells of K compared versions and S kept strata.

    Attributes:
        weights: (K, S) stratum weights of each version; equal rows unless ``own_share``.
        theta: (C, K) coefficients of the mean under the population's traffic.
        ell: (C, K) coefficients of the net improvement.
        is_comparable: Whether all versions share one population, so that they may be ranked.
        contrast: (K, K) matrix with NI = contrast @ theta, or None where the reference weighs the
            versions differently in each stratum.
    """

    weights: Floats
    theta: Floats
    ell: Floats
    is_comparable: bool
    contrast: Floats | None


def estimand(
    traffic: Floats,
    cell_weight: Floats,
    reference: str,
    reference_index: int | None,
    population: str,
    standard: Floats | None = None,
) -> Estimand:
    """Coefficients for one reference and population.

    Args:
        traffic: (K, S) sampling-weighted sessions of the compared versions in the kept strata.
        cell_weight: (K, S) denominators D_c: the shares by which ``stratum_mean`` and
            ``control_pool`` average the versions inside a stratum.
        reference: ``uniform``: minus the plain average over versions. ``loo_uniform``: minus the
            plain average over the other versions. ``stratum_mean``: minus the mean of all sessions
            of the stratum. ``control_pool``: minus the mean of the other versions' sessions.
            ``model``: minus one version.
        reference_index: Row of the version that ``model`` compares with.
        population: ``traffic``; ``own_share``; ``equal``; ``overlap``, proportional to
            1 / sum_k 1/n_ks, which makes the sum of the variances of theta smallest where all cells
            vary alike (Li and Li, 2019); or ``standard``.
        standard: (S,) declared weights of the kept strata, which are renormalised.

    Returns:
        The coefficients. With ``own_share`` each version is scored on its own mix of work.

    Raises:
        ValueError: The population is ``standard`` and no weights are given.
    """
    n_versions, n_strata = traffic.shape
    weights = _weights(traffic, population, standard)
    eye = np.eye(n_versions)
    # minus[k, j, s]: weight of version j in what version k is compared with, in stratum s.
    minus = np.zeros((n_versions, n_versions, n_strata))
    if reference == "uniform":
        minus += 1.0 / n_versions
    elif reference == "loo_uniform":
        minus += ((1.0 - eye) / (n_versions - 1))[:, :, None]
    elif reference == "model":
        minus[:, reference_index, :] = 1.0
    else:
        share = cell_weight / cell_weight.sum(axis=0)
        minus += share[None, :, :]
        if reference == "control_pool":
            minus *= (1.0 - eye)[:, :, None]
            minus /= minus.sum(axis=1, keepdims=True)
    contrast = eye[:, :, None] - minus
    ell = (weights[:, None, :] * contrast).transpose(1, 2, 0).reshape(-1, n_versions)
    theta = (weights[:, None, :] * eye[:, :, None]).transpose(1, 2, 0).reshape(-1, n_versions)
    is_comparable = population != "own_share"
    is_constant = is_comparable and reference in ("uniform", "loo_uniform", "model")
    return Estimand(
        weights,
        theta=np.ascontiguousarray(theta),
        ell=np.ascontiguousarray(ell),
        is_comparable=is_comparable,
        contrast=contrast[:, :, 0].copy() if is_constant else None,
    )


def _weights(traffic: Floats, population: str, standard: Floats | None) -> Floats:
    n_versions, n_strata = traffic.shape
    if population == "standard":
        if standard is None:
            raise ValueError("population 'standard' needs weights")
        return np.tile(standard / standard.sum(), (n_versions, 1))
    if population == "overlap":
        thinnest = 1.0 / (1.0 / traffic).sum(axis=0)
        return np.tile(thinnest / thinnest.sum(), (n_versions, 1))
    if population == "own_share":
        return np.asarray(traffic / traffic.sum(axis=1, keepdims=True))
    if population == "equal":
        return np.full((n_versions, n_strata), 1.0 / n_strata)
    pooled = traffic.sum(axis=0)
    return np.tile(pooled / pooled.sum(), (n_versions, 1))
