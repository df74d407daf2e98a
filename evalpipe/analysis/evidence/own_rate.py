"""A version's own rate period by period, held against its own first periods.

Belongs here: the kinds of work and weights that are frozen, and the rate at them. Does not belong
here: an alarm on it, or versions against each other: a version is no worse because another became
better, left or entered, or because people asked for other work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from evalpipe.analysis.evidence.headline import Headline, Ints
from evalpipe.analysis.population import EPOCH
from evalpipe.inference.cells import CellSums, cell_sums, group, tally
from evalpipe.inference.intervals import known_error
from evalpipe.inference.model import Floats
from evalpipe.inference.variance import ClusterVariance

#: Users below which a period of a version is not looked at.
MIN_USERS = 10
_MIN_CELL_USERS = 2


@dataclass(frozen=True, slots=True)
class OwnRate:
    """Rates of T periods less those of the baseline, over the kinds of work that both have, (T, K).

    Attributes:
        change: Period minus baseline; NaN in the baseline and in periods too thin to tell.
        se: Standard error of the period's rate. base_se: that of the baseline's, same kinds of work.
    """

    change: Floats
    se: Floats
    base_se: Floats


@dataclass(frozen=True, slots=True)
class _Part:
    """Cells of some sessions, and an engine for the variance of their means."""

    sums: CellSums
    engine: ClusterVariance
    users: Ints


def own_rate(headline: Headline, period: Ints, n_periods: int, n_base: int) -> OwnRate:
    """Own rates of all versions.

    Args:
        headline: The headline metric. period: (N,) period of each session, negative for none.
        n_periods: T. n_base: periods of the baseline, the first ones; fewer than T.

    Returns:
        Changes within kinds of work (strata without the routing epoch, which tells versions' lotteries
        apart and not kinds of work), weighted by the baseline's traffic of all versions. A kind of
        work counts for a version where period and baseline have two users of it; a period in which
        less than the criteria's share of common traffic is left is too thin.
    """
    sample = headline.sample
    k, work = sample.n_versions, _work(headline)
    s = int(work.max(initial=0)) + 1
    is_base = (period >= 0) & (period < n_base)
    weight = tally(work[is_base], headline.weight[is_base], s)
    weight = weight / max(weight.sum(), 1.0)
    base = _part(headline, work, is_base, s)
    change, se, base_se = (np.full((n_periods, k), np.nan) for _ in range(3))
    for t in range(n_base, n_periods):
        part = _part(headline, work, period == t, s)
        is_told = (np.minimum(part.sums.users, base.sums.users) >= _MIN_CELL_USERS).reshape(k, s)
        share = is_told @ weight
        enough = (share >= headline.options.min_support_share) & (part.users >= MIN_USERS)
        block = np.zeros((k, s, k))
        at = np.flatnonzero(enough)
        block[at, :, at] = np.where(is_told, weight, 0.0)[at] / share[at, None]
        ell = block.reshape(k * s, k)
        now, before = (np.nan_to_num(one.sums.mean) @ ell for one in (part, base))
        change[t] = np.where(enough, now - before, np.nan)
        se[t], base_se[t] = (_error(one, ell) for one in (part, base))
    return OwnRate(change, se, base_se)


def _work(headline: Headline) -> Ints:
    """(N,) kind of work of each session."""
    columns = [name for name in headline.criteria.estimand.strata if name != EPOCH]
    if not columns:
        return np.zeros(len(headline.sample.y), dtype=np.int64)
    kind = headline.population.sessions.select(pl.struct(columns).rank("dense").alias("kind"))["kind"]
    return kind.to_numpy()[headline.use].astype(np.int64) - 1


def _part(headline: Headline, work: Ints, inside: np.ndarray, s: int) -> _Part:
    sample = headline.sample
    use = inside & (sample.d > 0)
    version = sample.version[use].astype(np.int64)
    user, cell = sample.user[use].astype(np.int64), version * s + work[use]
    m, t = (headline.weight[use] * values[use] for values in (sample.d, sample.y))
    rows = group(user, cell, m, t, sample.n_versions * s)
    sums = cell_sums(cell, m, t, rows)
    seen = np.unique(version * (int(user.max(initial=0)) + 1) + user) // (int(user.max(initial=0)) + 1)
    return _Part(sums, ClusterVariance(rows, sums), np.bincount(seen, minlength=sample.n_versions))


def _error(part: _Part, ell: Floats) -> Floats:
    se = np.sqrt(np.maximum(np.diag(part.engine.contrasts(ell).cov), 0.0))
    return known_error(se, np.abs(np.nan_to_num(part.sums.mean)) @ np.abs(ell))
