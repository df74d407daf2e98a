"""All arrangements of labels within strata, and what net improvement is under each.

Belongs here: the exact permutation law of net improvement itself, not studentized, for samples
small enough to list. Does not belong here: the studentized test (``randomization``), which is the
default; this one is for audits by hand and for checks of the closed forms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalpipe.inference.arrangements import MAX_ARRANGEMENTS, count_session_arrangements, session_sums
from evalpipe.inference.cells import Ints, tally
from evalpipe.inference.estimand import estimand
from evalpipe.inference.exact.maxima import westfall_young
from evalpipe.inference.model import Floats
from evalpipe.inference.studentize import Layout


@dataclass(frozen=True, slots=True)
class Enumerated:
    """The exact permutation law of net improvement of K versions.

    Attributes:
        observed: (K,) net improvement. n: arrangements.
        p: (K,) two-sided p-values, share of arrangements at least as extreme.
        p_max: (K,) the same against the largest of all versions.
        variance: (K,) permutation variance in closed form; the mean is 0.
        status: ``ok`` or ``unavailable``: p-values are NaN then.
        reason: ``too_many_arrangements``, ``incomplete_stratum`` or ``no_variation``.
    """

    observed: Floats
    n: int
    p: Floats
    p_max: Floats
    variance: Floats
    status: str = "ok"
    reason: str = ""


def enumerate_labels(
    y: Floats,
    version: Ints,
    stratum: Ints,
    n_versions: int,
    n_strata: int,
    reference: str = "uniform",
    population: str = "traffic",
    standard: Floats | None = None,
) -> Enumerated:
    """Net improvement under every arrangement of version labels within strata.

    Args:
        y: (N,) outcomes. version, stratum: (N,) codes.
        n_versions, n_strata: K and S; every version must occur in every stratum.
        reference, population: As in the options of a comparison, ``model`` excepted.
        standard: (S,) weights of the strata, which population ``standard`` needs.

    Returns:
        The law, or why it was not computed.

    Raises:
        ValueError: Lengths differ, an outcome is NaN or infinite, or weights are missing.
    """
    y = np.asarray(y, dtype=np.float64)
    version, stratum = np.asarray(version, dtype=np.int64), np.asarray(stratum, dtype=np.int64)
    if y.shape != version.shape or y.shape != stratum.shape:
        raise ValueError("y, version and stratum must have one length")
    if not np.isfinite(y).all():
        raise ValueError("y must be finite")
    shape, nan = (n_versions, n_strata), np.full(n_versions, np.nan)
    counts = np.bincount(version * n_strata + stratum, minlength=n_versions * n_strata).astype(np.float64)
    if n_versions < 2 or (counts == 0).any():
        return Enumerated(nan, 0, nan, nan, nan, "unavailable", "incomplete_stratum")
    traffic = counts.reshape(shape)
    target = estimand(traffic, traffic, reference, None, population, standard)
    code = np.arange(len(y))
    layout = Layout(
        version, stratum, code, np.zeros_like(code), np.ones(len(y)), y, target.ell, None, None, is_plain=True
    )
    observed = tally(layout.cell, y, len(counts)) / counts @ target.ell
    cov = permutation_covariance(y, stratum, traffic)
    variance = np.einsum("ck,cd,dk->k", target.ell, cov, target.ell)
    if not layout.varies:
        return Enumerated(observed, 0, nan, nan, variance, "unavailable", "no_variation")
    n = count_session_arrangements(layout)
    if n > MAX_ARRANGEMENTS:
        return Enumerated(observed, n, nan, nan, variance, "unavailable", "too_many_arrangements")
    found = westfall_young(observed, session_sums(layout)[0] / counts @ target.ell, is_exact=True)
    return Enumerated(observed, n, found.raw, found.single_step, variance)


def permutation_covariance(y: Floats, stratum: Ints, counts: Floats) -> Floats:
    """Covariance of cell means when labels are permuted within strata, (C, C).

    Args:
        y: (N,) outcomes. stratum: (N,) codes. counts: (K, S) sessions of each cell.

    Returns:
        S_s^2 (1[k = j]/n_ks - 1/n_s) within a stratum, S_s^2 the variance of y in it with n_s - 1;
        0 between strata.
    """
    n_versions, n_strata = counts.shape
    n = counts.sum(axis=0)
    mean = tally(stratum, y, n_strata) / np.maximum(n, 1.0)
    variance = tally(stratum, (y - mean[stratum]) ** 2, n_strata) / np.maximum(n - 1.0, 1.0)
    out = np.zeros((n_versions, n_strata, n_versions, n_strata))
    for s in range(n_strata):
        out[:, s, :, s] = variance[s] * (np.diag(1.0 / counts[:, s]) - 1.0 / n[s])
    return out.reshape(n_versions * n_strata, -1)
