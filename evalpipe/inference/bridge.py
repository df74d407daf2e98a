"""A bridge from an old measurement to a new one: the same sessions under both, user by user.

Belongs here: what the change of ruler moved each version by, and whether it moved all alike. Does not
belong here: scoring sessions. Levels are compared and not net improvements: under a uniform reference
these sum to 0 in either measurement, so a shift that all versions share would not be seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from evalpipe.inference.cells import Ints
from evalpipe.inference.model import Floats, Options, Sample
from evalpipe.inference.prepare import find_support, prepare, total
from evalpipe.inference.simultaneous import gaussian_draws, simultaneous_level
from evalpipe.inference.validate import check_options, check_sample
from evalpipe.inference.variance import ClusterVariance

#: Sessions and users of the overlap below which nothing is joined.
MIN_SESSIONS, MIN_USERS = 500, 100
#: Largest difference between versions, in units of a rate, that a joined series may hide.
MARGIN = 0.005


@dataclass(frozen=True, slots=True)
class Bridge:
    """What a change of measurement did to K versions; arrays (K,), NaN where a version is in one only.

    Attributes:
        old, new: Level of each version under each measurement.
        shift, lo, hi: New less old on the same sessions, with a pointwise interval.
        apart, apart_lo, apart_hi: Less the mean shift, with intervals that hold for all versions at once.
        mean, mean_se: Shift that all share.
        n_sessions: Sessions of each version in the overlap. n_users: Users of it.
        status: ``ok`` (may be chained), ``inconclusive`` (a break) or ``unavailable``.
        reason: ``not_equivalent``, ``few_sessions``, ``few_users`` or ``no_comparator``.
    """

    old: Floats
    new: Floats
    shift: Floats
    lo: Floats
    hi: Floats
    apart: Floats
    apart_lo: Floats
    apart_hi: Floats
    mean: float
    mean_se: float
    n_sessions: Ints
    n_users: int
    status: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Levels:
    """Levels of the K' compared versions, and what each of U users moves them by, (U, K')."""

    versions: Ints
    users: Ints
    level: Floats
    influence: Floats


def bridge(old: Sample, new: Sample, options: Options, *, before: Options | None = None) -> Bridge:
    """Compare two measurements on an overlap.

    Args:
        old, new: The same N sessions in the same order, under each measurement; strata may differ.
        options: How levels are estimated: population, support, alpha, seed.
        before: The same for the old measurement, whose strata may have other parents and weights.

    Returns:
        Series may be chained if every version was moved like the others, to within
        :data:`MARGIN`: equivalence, which a wide interval does not show.

    Raises:
        ValueError: As :func:`compare`; versions or users of the two differ.
    """
    asked = before or options
    for sample, one in ((old, asked), (new, options)):
        check_sample(sample)
        check_options(one, sample.n_versions, sample.n_strata)
    if not (np.array_equal(old.version, new.version) and np.array_equal(old.user, new.user)):
        raise ValueError("the two samples must hold the same sessions in the same order")
    k = old.n_versions
    n_sessions = np.bincount(old.version, minlength=k)
    n_users = len(np.unique(old.user))
    earlier, after = _levels(old, asked), _levels(new, options)
    both = np.intersect1d(earlier.versions, after.versions)
    columns = np.full((8, k), np.nan)
    reason = "few_sessions" if len(old.y) < MIN_SESSIONS else "few_users" if n_users < MIN_USERS else ""
    if len(both) < 2:
        why = reason or "no_comparator"
        return _laid(columns, (math.nan, math.nan), n_sessions, n_users, "unavailable", why)
    at = [np.searchsorted(one.versions, both) for one in (earlier, after)]
    shift = after.level[at[1]] - earlier.level[at[0]]
    psi = np.zeros((int(old.user.max()) + 1, len(both)))
    psi[after.users] += after.influence[:, at[1]]
    psi[earlier.users] -= earlier.influence[:, at[0]]
    contrast = np.eye(len(both)) - 1.0 / len(both)
    own, apart_se, mean_se = (np.sqrt((part**2).sum(axis=0)) for part in (psi, psi @ contrast, psi.mean(axis=1)))
    df = max(n_users - 1, 1)
    half = float(stats.t.ppf(1.0 - options.alpha / 2.0, df)) * own
    level = options.alpha
    varies = apart_se > 0
    if varies.any():
        cov = (psi @ contrast)[:, varies].T @ (psi @ contrast)[:, varies]
        draws = gaussian_draws(cov, options.draws, np.random.SeedSequence(options.seed))
        level = simultaneous_level(draws, apart_se[varies], options.alpha)
    wide = float(stats.t.ppf(1.0 - level / 2.0, df)) * apart_se
    apart = shift - shift.mean()
    is_alike = bool(((apart - wide >= -MARGIN) & (apart + wide <= MARGIN)).all())
    levels = (earlier.level[at[0]], after.level[at[1]])
    columns[:, both] = (*levels, shift, shift - half, shift + half, apart, apart - wide, apart + wide)
    reason = reason or ("" if is_alike else "not_equivalent")
    mean = (float(shift.mean()), float(mean_se))
    return _laid(columns, mean, n_sessions, n_users, "inconclusive" if reason else "ok", reason)


def _laid(
    columns: Floats, mean: tuple[float, float], n_sessions: Ints, n_users: int, status: str, reason: str
) -> Bridge:
    old, new, shift, lo, hi, apart, apart_lo, apart_hi = columns
    return Bridge(old, new, shift, lo, hi, apart, apart_lo, apart_hi, *mean, n_sessions, n_users, status, reason)


def _levels(sample: Sample, options: Options) -> _Levels:
    totals = total(sample)
    support = find_support(sample, totals, options)
    none = np.zeros(0, dtype=np.int64)
    if len(support.versions) < 2 or not support.is_kept.any():
        return _Levels(none, none, np.zeros(0), np.zeros((0, 0)))
    prepared = prepare(sample, totals, support, options)
    theta = prepared.target.theta
    engine = ClusterVariance(prepared.rows, prepared.sums)
    users = np.unique(sample.user[totals.has][prepared.chosen]).astype(np.int64)
    return _Levels(prepared.versions, users, prepared.sums.mean @ theta, engine.influence(theta))
