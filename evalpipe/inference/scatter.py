"""From the compared versions and kept strata back to all of them.

Belongs here: filling K x S arrays, with NaN where nothing was compared. Does not belong here: any
estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evalpipe.inference.cells import Ints, divide, tally
from evalpipe.inference.model import Bools, Comparison, Floats, Sample
from evalpipe.inference.prepare import Prepared, Totals
from evalpipe.inference.support import Support


@dataclass(frozen=True, slots=True)
class Strata:
    """What is told of strata and cells; the fields of the same name in the comparison.

    Attributes:
        is_binary: Whether every numerator counts successes among its denominator.
    """

    kept: Bools
    merged_into: Ints
    weights: Floats
    mean: Floats
    n: Ints
    users: Ints
    is_binary: bool


def spread(n_versions: int, at: Ints) -> Callable[[Floats], Floats]:
    """A function that lays (K',) values out over K versions, NaN elsewhere."""

    def lay(values: Floats) -> Floats:
        out = np.full(n_versions, np.nan)
        out[at] = values
        return out

    return lay


def spread_square(n_versions: int, at: Ints) -> Callable[[Floats], Floats]:
    """A function that lays (K', K') values out over K x K, NaN elsewhere."""

    def lay(values: Floats) -> Floats:
        out = np.full((n_versions, n_versions), np.nan)
        out[np.ix_(at, at)] = values
        return out

    return lay


def lay_strata(sample: Sample, totals: Totals, support: Support, prepared: Prepared | None) -> Strata:
    """Strata and cells as they were estimated.

    A stratum that was merged away shows the sessions that it held itself; its parent shows what was
    estimated. Weights are those of the pooled population, NaN with ``own_share``, where each version
    has its own.
    """
    shape = (sample.n_versions, sample.n_strata)
    n_cells = shape[0] * shape[1]
    n = np.bincount(totals.cell, minlength=n_cells).reshape(shape)
    users = np.bincount(totals.rows.cell, minlength=n_cells).reshape(shape)
    D, T = tally(totals.cell, totals.m, n_cells), tally(totals.cell, totals.t, n_cells)
    mean = divide(T, D).reshape(shape)
    weights = np.full(sample.n_strata, np.nan)
    if prepared is not None:
        block = np.ix_(prepared.versions, prepared.strata)
        inner = (len(prepared.versions), len(prepared.strata))
        mean[block] = prepared.sums.mean.reshape(inner)
        n[block] = prepared.sums.n.reshape(inner)
        users[block] = prepared.sums.users.reshape(inner)
        if prepared.target.is_comparable:
            weights[prepared.strata] = prepared.target.weights[0]
    own = np.arange(sample.n_strata)
    has_traffic = totals.traffic.sum(axis=0) > 0
    y, d = sample.y, sample.d
    is_binary = bool((y >= 0).all() and (y <= d).all() and (y == np.rint(y)).all() and (d == np.rint(d)).all())
    return Strata(
        kept=support.is_kept[support.target] & (has_traffic | support.is_kept),
        merged_into=np.where((support.target != own) & has_traffic, support.target, -1),
        weights=weights,
        mean=mean,
        n=n,
        users=users,
        is_binary=is_binary,
    )


@dataclass(frozen=True, slots=True)
class Withheld:
    """A sample in which nothing can be compared, and why."""

    sample: Sample
    totals: Totals
    support: Support
    why: str

    def comparison(self) -> Comparison:
        """The comparison: counts and raw rates are told, every estimate is NaN."""
        n_versions = self.sample.n_versions
        strata = lay_strata(self.sample, self.totals, self.support, None)
        one = np.full(n_versions, np.nan)
        two = np.full((n_versions, n_versions), np.nan)
        zero = np.zeros(n_versions, dtype=np.int64)
        names = "estimate lo hi lo_sim hi_sim se df gstar p_perm p_normal p_adj theta theta_lo theta_hi deff mde"
        names += " plain_successes plain_sessions"
        squares = "cov theta_cov pair_diff pair_se pair_df pair_gstar pair_lo pair_hi newcombe_lo newcombe_hi"
        return Comparison(
            **{name: one.copy() for name in names.split()},
            **{name: two.copy() for name in squares.split()},
            rank_lo=zero,
            rank_hi=zero.copy(),
            letters=[""] * n_versions,
            raw_rate=self.totals.raw_rate,
            n_sessions=self.totals.n_sessions,
            n_users=self.totals.n_users,
            n_permutations=0,
            engine="none",
            test_reasons=(self.why,),
            support_share=self.support.share,
            kept=strata.kept,
            merged_into=strata.merged_into,
            weights=strata.weights,
            cell_mean=strata.mean,
            cell_n=strata.n,
            cell_users=strata.users,
            pair_better=np.zeros((n_versions, n_versions), dtype=bool),
            status=["unavailable"] * n_versions,
            reasons=[why or (self.why,) for why in self.support.version_reasons],
        )
