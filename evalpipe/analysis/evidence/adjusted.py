"""Rows of ``analysis.estimators`` that adjust, or pool over strata, in a well-known way.

Belongs here: the covariate that is adjusted for, and the tables that are pooled. Does not belong here:
formulas.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from evalpipe.analysis.evidence.headline import UNWEIGHTED, Bools, Headline
from evalpipe.inference.cells import divide, tally
from evalpipe.inference.covariates import MIN_GAIN, cuped
from evalpipe.inference.exact.tables import Tables, mantel_haenszel
from evalpipe.inference.intervals import known_error
from evalpipe.inference.model import Floats
from evalpipe.inference.shift import net_shift


@dataclass(frozen=True, slots=True)
class Line:
    """One estimate of one version by one estimator; the fields of the row of the same name."""

    estimator: str
    version: int
    reference: str
    population: str
    estimate: float
    lo: float
    hi: float
    status: str
    reasons: tuple[str, ...]
    p: float = float("nan")
    p_adj: float = float("nan")


def history_lines(headline: Headline) -> Iterator[Line]:
    """Net improvement adjusted for the user's earlier outcomes (CUPED).

    Only where sessions are assigned: a user who keeps a version had it before too, and his earlier
    outcomes are its doing.
    """
    sample, found = headline.sample, headline.found
    if headline.design != "randomized_session" or not (sample.d == 1).all():
        return
    earlier, is_new = _history(headline)
    if is_new.all():
        return
    stratum = sample.stratum.astype(np.int64)
    known, size = ~is_new, sample.n_strata
    usual = divide(tally(stratum[known], earlier[known], size), tally(stratum[known], np.ones(int(known.sum())), size))
    filled = np.where(is_new, np.nan_to_num(usual[stratum], nan=float(earlier[known].mean())), earlier)
    cell = sample.version.astype(np.int64) * sample.n_strata + headline.target[stratum]
    adjusted = cuped(sample.y, np.stack((filled, is_new.astype(np.float64)), axis=1), cell)
    shift = net_shift(replace(sample, y=adjusted.y, y_low=-np.inf), headline.options)
    for k in headline.compared:
        gain = 1.0 - (shift.se[k] / found.se[k]) ** 2 if np.isfinite(found.se[k]) else np.nan
        reasons = ("descriptive",) if gain >= MIN_GAIN else ("descriptive", "no_gain")
        status = "ok" if np.isfinite(shift.estimate[k]) else "unavailable"
        yield Line(
            "cuped",
            int(k),
            headline.criteria.estimand.reference,
            headline.criteria.estimand.population,
            shift.estimate[k],
            shift.lo[k],
            shift.hi[k],
            status,
            reasons,
        )


def pooled_lines(headline: Headline) -> Iterator[Line]:
    """Each version against the sessions of the others, pooled over strata (Mantel-Haenszel)."""
    sample = headline.sample
    if not (np.isin(sample.y, (0.0, 1.0)).all() and np.isin(sample.d, (0.0, 1.0)).all()):
        return
    drawn = (UNWEIGHTED,) if headline.is_drawn else ()
    size, has = sample.n_strata, sample.d > 0
    stratum, used = sample.stratum[has].astype(np.int64), np.isin(sample.version[has], headline.compared)
    y, version = sample.y[has], sample.version[has]

    def count(inside: Bools, values: Floats) -> Floats:
        return tally(stratum[inside], values[inside], size)

    ones, crit = np.ones(len(y)), float(special.ndtri(1.0 - headline.options.alpha / 2.0))
    for k in headline.compared:
        mine, rest = version == k, used & (version != k)
        found = mantel_haenszel(Tables(count(mine, y), count(mine, ones), count(rest, y), count(rest, ones)))
        se = float(known_error(np.array(found.difference_se), float(np.abs(y).mean())))
        half = crit * se
        status, reasons = "ok", ["descriptive", "not_clustered", *drawn]
        if not np.isfinite(found.difference):
            status, reasons = "unavailable", ["no_common_support"]
        elif np.isnan(se):
            status, reasons = "inconclusive", [*reasons, "no_variation"]
        lo, hi = found.difference - half, found.difference + half
        told = tuple(reasons)
        yield Line("mantel_haenszel", int(k), "control_pool", "precision", found.difference, lo, hi, status, told)


def _history(headline: Headline) -> tuple[Floats, Bools]:
    """Mean outcome of the user's earlier sessions, (N,), and whether there are none."""
    sample, sessions = headline.sample, headline.population.sessions
    started = sessions["started_at"].to_physical().to_numpy()[headline.use]
    order = np.lexsort((np.arange(len(started)), started, sample.user))
    user, y = sample.user[order], sample.y[order]
    first = np.flatnonzero(np.diff(user, prepend=-1))
    length = np.diff(np.append(first, len(user)))
    before = np.arange(len(user)) - np.repeat(first, length)
    total = np.concatenate(([0.0], np.cumsum(y)[:-1]))
    total -= np.repeat(total[first], length)
    mean = np.divide(total, before, out=np.zeros(len(y)), where=before > 0)
    earlier, is_new = np.empty(len(y)), np.empty(len(y), dtype=bool)
    earlier[order], is_new[order] = mean, before == 0
    return earlier, is_new
