"""Carry-over: do sessions whose user came from another version say something else than all sessions?

Belongs here: the difference of two net improvements on the same strata, weights and reference, one over
the sessions that came from another version, one over all, with its error. Does not belong here: who
came from where (``analysis/carry_over.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalpipe.inference.cells import Ints, cell_sums, divide, group, tally
from evalpipe.inference.estimand import estimand
from evalpipe.inference.intervals import known_error
from evalpipe.inference.model import Bools, Floats, Options, Sample
from evalpipe.inference.scatter import spread
from evalpipe.inference.simultaneous import normal_equivalent
from evalpipe.inference.variance import ClusterVariance


@dataclass(frozen=True, slots=True)
class CarryOver:
    """Net improvement of K versions by sessions that came from another version and by all, (K,) each.

    Attributes:
        carried, whole: Both on the strata, weights and versions that they share; NaN where there is none.
        difference, se: carried less whole, and its standard error, clustered by user.
        z: Normal deviate with the tail probability of difference / se on Bell-McCaffrey degrees of freedom.
        n_carried: Sessions that came from another version.
        share: Weight of the strata that could be used. reason: why there is nothing, or empty.
    """

    carried: Floats
    whole: Floats
    difference: Floats
    se: Floats
    z: Floats
    n_carried: Ints
    share: float
    reason: str = ""


def carry_over(sample: Sample, is_carried: Bools, weights: Floats, target: Ints, options: Options) -> CarryOver:
    """Hold sessions that came from another version against all sessions.

    All sessions of a cell are those that came and the rest, so that the difference of the two means is
    (1 - f) (mean of those that came - mean of the rest), f their share of the cell: two means that
    share no session, and users whose influence on both adds up before it is squared.

    Args:
        sample: Sessions. is_carried: (N,) whether the user's session before was served by another version.
        weights: (S,) weights of the strata of the whole comparison; NaN for those that are not kept.
        target: (S,) stratum that each stratum was estimated in.
        options: Reference, and what makes a version or a cell count.

    Returns:
        ``reason`` is ``few_sessions`` where fewer than two versions (or not the reference) have
        ``min_sessions_per_version`` sessions of both kinds, ``low_support`` where strata with users
        enough of both kinds hold too little of the weight.
    """
    k, s = sample.n_versions, sample.n_strata
    merged = target[sample.stratum]
    use = (sample.d > 0) & np.isfinite(weights[merged]) & (weights[merged] > 0)
    version = sample.version.astype(np.int64)
    n = np.array([np.bincount(version[use & part], minlength=k) for part in (is_carried, ~is_carried)])
    enough: Bools = np.asarray((n >= options.min_sessions_per_version).all(axis=0))
    n_carried = np.bincount(version[is_carried & (sample.d > 0)], minlength=k).astype(np.int64)
    control = options.reference_index if options.reference == "model" else None
    is_lost = control is not None and not enough[control]
    if enough.sum() < 2 or is_lost:
        return _nothing(k, n_carried, 0.0, "few_sessions")
    chosen = np.flatnonzero(enough)
    use &= enough[version]
    m = np.ones(len(sample.y)) if sample.weight is None else sample.weight
    v, user = m[use], sample.user[use].astype(np.int64)
    m, t = v * sample.d[use], v * sample.y[use]
    part, cell = is_carried[use].astype(np.int64), version[use] * s + merged[use]
    users = _users(user, part * k * s + cell, 2 * k * s).reshape(2, k, s)[:, chosen]
    kept = np.flatnonzero((users >= options.min_users_per_cell).all(axis=(0, 1)))
    share = float(weights[kept].sum() / np.nansum(weights))
    if share < max(options.min_support_share, np.finfo(float).tiny):
        return _nothing(k, n_carried, share, "low_support")
    place = np.full(k * s, -1)
    at = (chosen[:, None] * s + kept[None, :]).ravel()
    place[at] = np.arange(len(at))
    inside = place[cell] >= 0
    user, v, m, t, part, cell = (values[inside] for values in (user, v, m, t, part, place[cell]))
    size, shape = len(at), (len(chosen), len(kept))
    index = None if control is None else int(np.searchsorted(chosen, control))
    D, T = tally(cell, m, size), tally(cell, t, size)
    traffic = tally(cell, v, size).reshape(shape)
    ell = estimand(traffic, D.reshape(shape), options.reference, index, "standard", weights[kept]).ell
    both = part * size + cell
    rows = group(user, both, m, t, 2 * size)
    sums = cell_sums(both, m, t, rows)
    rest = 1.0 - sums.D[size:] / D
    two = np.concatenate((-ell * rest[:, None], ell * rest[:, None]))
    variance = ClusterVariance(rows, sums).contrasts(two)
    se = known_error(np.sqrt(np.maximum(np.diag(variance.cov), 0.0)), np.abs(sums.mean) @ np.abs(two))
    difference = sums.mean @ two
    z = normal_equivalent(difference / se, variance.df)
    lay = spread(k, chosen)
    return CarryOver(
        lay(sums.mean[size:] @ ell), lay(divide(T, D) @ ell), lay(difference), lay(se), lay(z), n_carried, share
    )


def _users(user: Ints, cell: Ints, size: int) -> Ints:
    """(size,) distinct users of each cell."""
    pairs = np.unique(cell * (int(user.max(initial=0)) + 1) + user)
    return np.bincount(pairs // (int(user.max(initial=0)) + 1), minlength=size)


def _nothing(k: int, n_carried: Ints, share: float, reason: str) -> CarryOver:
    nan = np.full(k, np.nan)
    return CarryOver(nan, nan, nan, nan, nan, n_carried, share, reason)
