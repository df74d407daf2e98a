"""Design checks: whether versions were assigned the way that criteria say.

Belongs here: which checks are made, their limits and the design that may be assumed after them.
Does not belong here: their statistics (``balance``). A failed check of randomization makes the
window observational: its numbers are shown, and no gate may pass on them. Where nothing was said to
be random there is nothing to contradict: the same finding then tells what a difference may come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evalpipe.inference.balance import Balance, balance_test, largest_smd
from evalpipe.inference.cells import Ints
from evalpipe.inference.model import Check, DesignReport, Floats, Options, Sample
from evalpipe.inference.multiplicity import adjust
from evalpipe.inference.prepare import find_support, total
from evalpipe.inference.ratio import sample_ratio
from evalpipe.inference.validate import check_options, check_sample

SRM_LIMIT = 0.001
BALANCE_LIMIT = 0.01
SMD_GUIDE = 0.1
STICKY_LIMIT = 0.1
POSITIVITY_LIMIT = 0.01


def design_checks(
    sample: Sample,
    options: Options,
    *,
    shares: Floats | None = None,
    covariates: Mapping[str, NDArray[np.generic]] | None = None,
    known: Sequence[Check] = (),
) -> DesignReport:
    """Check the declared design of a window.

    Args:
        sample: Every session of the window, whatever its outcome: a sample restricted by outcome
            may fail for that reason alone.
        options: ``design``, ``seed`` and the support rule are read.
        shares: Configured assignment shares, (K,) or (epochs, K); None if none are known.
        covariates: Name to (N,) values known before assignment: floats are numeric, other types
            categories. They are tested within strata.
        known: Checks of the assignment that the caller could make and a sample cannot tell. An
            ``srm`` among them takes the place of the one made here.

    Returns:
        Stickiness, SRM, balance, standardized differences and positivity, and the design that may
        be assumed. A check that fails is ``suspect``; in an observational design it is
        ``inconclusive``, since it contradicts nothing that was claimed.

    Raises:
        ValueError: Illegal sample, options, shares or covariates.
    """
    check_sample(sample)
    check_options(options, sample.n_versions, sample.n_strata)
    if len(sample.y) == 0:
        nothing = Check("stickiness", "users", np.nan, STICKY_LIMIT, "unavailable", "No sessions.")
        return DesignReport(options.design, is_suspect=False, checks=(nothing, *known))
    sticky = _stickiness(sample, options.design)
    design = options.design
    if design == "randomized_session" and sticky.value > STICKY_LIMIT:
        design = "randomized_user"
    by_user = design == "randomized_user"
    checks = [sticky, *known]
    if not any(check.check == "srm" for check in known):
        checks.append(_srm(sample, shares, options.seed, by_user=by_user))
    checks += _balance(sample, options, covariates or {}, by_user=by_user)
    checks.append(_positivity(sample, options))
    if design == "observational":
        checks = [replace(c, status="inconclusive") if c.status == "suspect" else c for c in checks]
    failed = any(check.status == "suspect" for check in checks)
    return DesignReport("observational" if failed else design, is_suspect=failed, checks=tuple(checks))


def stickiness(sample: Sample) -> tuple[float, float]:
    """Whether users stay with one version.

    Args:
        sample: Sessions; outcomes do not matter.

    Returns:
        Share of users with two sessions or more in an epoch who saw one version there, and what it
        would be if each session were assigned by itself; NaN without such users.
    """
    if len(sample.y) == 0:
        return np.nan, np.nan
    n_versions = sample.n_versions
    n_users = int(sample.user.max()) + 1
    place = sample.epoch.astype(np.int64) * n_users + sample.user
    places, unit = np.unique(place, return_inverse=True)
    counts = np.bincount(unit)
    n_seen = np.bincount(np.unique(unit * n_versions + sample.version) // n_versions)
    repeated = counts >= 2
    if not repeated.any():
        return np.nan, np.nan
    epoch = places // n_users
    by_epoch = np.bincount(sample.epoch.astype(np.int64) * n_versions + sample.version)
    by_epoch = np.pad(by_epoch, (0, -len(by_epoch) % n_versions)).reshape(-1, n_versions)
    share = by_epoch / np.maximum(by_epoch.sum(axis=1, keepdims=True), 1)
    observed = float((n_seen[repeated] == 1).mean())
    expected = float((share[epoch[repeated]] ** counts[repeated][:, None]).sum(axis=1).mean())
    return observed, expected


def _stickiness(sample: Sample, declared: str) -> Check:
    observed, expected = stickiness(sample)
    if np.isnan(observed):
        detail = "No user has two sessions in one epoch."
        return Check("stickiness", "users", np.nan, STICKY_LIMIT, "unavailable", detail)
    excess = observed - expected
    detail = f"{observed:.0%} of returning users saw one version; {expected:.0%} expected if sessions were assigned."
    if declared != "randomized_session":
        # Users who stay are what such a design makes or allows, so there is nothing to exceed.
        return Check("stickiness", "users", excess, np.nan, "ok", detail)
    is_over = excess > STICKY_LIMIT
    if is_over:
        detail += " That is not what the assignment of sessions looks like, so users are permuted instead."
    return Check("stickiness", "users", excess, STICKY_LIMIT, "inconclusive" if is_over else "ok", detail)


def _srm(sample: Sample, shares: Floats | None, seed: int, *, by_user: bool) -> Check:
    """Sample ratio mismatch: counts of assignment units against configured shares."""
    what = "users" if by_user else "sessions"
    if shares is None:
        return Check("srm", what, np.nan, SRM_LIMIT, "unavailable", "No configured shares are known.")
    n_versions, n_epochs = sample.n_versions, int(sample.epoch.max()) + 1
    shares = np.asarray(shares, dtype=float)
    if shares.ndim == 1:
        shares = np.tile(shares, (n_epochs, 1))
    if shares.shape[0] < n_epochs or shares.shape[1] != n_versions or not np.allclose(shares.sum(axis=1), 1.0):
        raise ValueError(f"shares must have {n_versions} columns, a row an epoch, and rows that sum to 1")
    place = sample.epoch.astype(np.int64) * n_versions + sample.version
    if by_user:
        place = np.unique(place * (int(sample.user.max()) + 1) + sample.user) // (int(sample.user.max()) + 1)
    counts = np.bincount(place, minlength=n_epochs * n_versions).reshape(n_epochs, n_versions).astype(float)
    statistic, df, p = sample_ratio(counts, shares[:n_epochs], seed=seed).pooled
    if p == 0.0 and (counts[shares[:n_epochs] == 0] > 0).any():
        return Check("srm", what, 0.0, SRM_LIMIT, "suspect", "A version with a configured share of 0 was served.")
    if df == 0:
        return Check("srm", what, np.nan, SRM_LIMIT, "unavailable", "Only one version has a share.")
    detail = f"Counts of {what} against configured shares: chi-square {statistic:.2f} on {df}, p = {p:.3g}."
    return Check("srm", what, p, SRM_LIMIT, "suspect" if p < SRM_LIMIT else "ok", detail)


def _balance(
    sample: Sample, options: Options, covariates: Mapping[str, NDArray[np.generic]], *, by_user: bool
) -> list[Check]:
    names = sorted(covariates)
    if not names:
        return [Check("balance", "covariates", np.nan, BALANCE_LIMIT, "unavailable", "No covariates are declared.")]
    streams = np.random.SeedSequence(options.seed).spawn(len(names))
    found: list[Balance] = []
    for name, stream in zip(names, streams, strict=True):
        values = np.asarray(covariates[name])
        if values.shape != sample.version.shape:
            raise ValueError(f"covariate {name} has shape {values.shape}, expected {sample.version.shape}")
        if np.issubdtype(values.dtype, np.floating) and not np.isfinite(values).all():
            raise ValueError(f"covariate {name} is NaN or infinite; give missing values a category")
        found.append(balance_test(sample, values, by_user=by_user, seed=stream))
    adjusted = adjust(np.array([item.p for item in found]), "holm")
    checks: list[Check] = []
    for name, item, p in zip(names, found, adjusted, strict=True):
        status = "unavailable" if np.isnan(p) else "suspect" if p < BALANCE_LIMIT else "ok"
        detail = f"Within strata against versions, {item.method}, Holm over covariates."
        checks.append(Check("balance", name, float(p), BALANCE_LIMIT, status, detail))
        smd = largest_smd(sample, np.asarray(covariates[name]))
        note = "Largest standardized difference of two versions within strata"
        note += f", above the usual guide of {SMD_GUIDE:g}; the balance test decides." if smd > SMD_GUIDE else "."
        # No limit of its own: over many pairs of small versions chance alone exceeds 0.1.
        checks.append(Check("smd", name, smd, np.nan, "unavailable" if np.isnan(smd) else "ok", note))
    return checks


def _positivity(sample: Sample, options: Options) -> Check:
    support = find_support(sample, total(sample), options)
    if not support.is_kept.any():
        detail = "No stratum holds every version."
        return Check("positivity", "strata", np.nan, POSITIVITY_LIMIT, "unavailable", detail)
    merged = support.target[sample.stratum]
    inside = support.is_kept[merged] & np.isin(sample.version, support.versions)
    cell: Ints = merged[inside] * sample.n_versions + sample.version[inside]
    counts = np.bincount(cell, minlength=sample.n_strata * sample.n_versions).reshape(sample.n_strata, -1)
    counts = counts[np.ix_(np.flatnonzero(support.is_kept), support.versions)]
    smallest = float((counts / counts.sum(axis=1, keepdims=True)).min())
    is_thin = smallest < POSITIVITY_LIMIT
    detail = f"Smallest share of a version in a kept stratum: {smallest:.2%}."
    return Check("positivity", "strata", smallest, POSITIVITY_LIMIT, "inconclusive" if is_thin else "ok", detail)
