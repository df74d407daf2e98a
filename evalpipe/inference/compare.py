"""The comparison of K versions on one metric: the package's main entry point.

Belongs here: the order of the steps, and what each version's status is. Does not belong here: any
formula. Steps: validate, group, find the common support, estimate, then variance, intervals, test,
ranks. Where test and interval disagree near alpha the interval decides; the test is evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from evalpipe.inference.cells import divide
from evalpipe.inference.gates import MIN_DF
from evalpipe.inference.intervals import known_error, mean_interval, stratified_trials, t_interval
from evalpipe.inference.letters import compact_letters
from evalpipe.inference.model import Bools, Comparison, Floats, Options, Sample
from evalpipe.inference.plain_pairs import PlainPairs, newcombe_pairs
from evalpipe.inference.power import smallest_effect
from evalpipe.inference.prepare import Prepared, Totals, find_support, layout, nothing_to_compare, prepare, total
from evalpipe.inference.randomization import TestResult, randomization_test
from evalpipe.inference.scatter import Strata, Withheld, lay_strata, spread, spread_square
from evalpipe.inference.simultaneous import (
    Ranking,
    gaussian_draws,
    rank_sets,
    simultaneous_level,
    stepdown_adjusted,
)
from evalpipe.inference.support import Support
from evalpipe.inference.validate import check_options, check_sample
from evalpipe.inference.variance import ClusterVariance, ContrastVariance, hc2

#: Reasons for which nothing is decided on a number that is shown.
BLOCKING = ("low_support", "no_variation", "few_degrees_of_freedom")
FEW_CLUSTERS = 10.0
DOMINANT_LEVERAGE = 0.9
_NO_VARIATION = 1e-12


@dataclass(frozen=True, slots=True)
class _Estimates:
    """Estimates of the K' compared versions; every array (K',) or (K', K')."""

    theta: Floats
    ni: Floats
    variance: ContrastVariance
    pairs: ContrastVariance
    se: Floats
    deff: Floats
    dominant: Bools


def compare(sample: Sample, options: Options) -> Comparison:
    """Estimate every version's net improvement, with intervals, tests and ranks.

    Args:
        sample: Sessions of one metric, window and slice.
        options: What is estimated and when a number is withheld.

    Returns:
        Arrays over the sample's K versions and S strata. Versions that could not be compared hold
        NaN, status ``unavailable`` and a reason.

    Raises:
        ValueError: The sample or the options are illegal; names fields and positions.
    """
    check_sample(sample)
    check_options(options, sample.n_versions, sample.n_strata)
    totals = total(sample)
    support = find_support(sample, totals, options)
    why = nothing_to_compare(sample, totals, support, options)
    if why:
        return Withheld(sample, totals, support, why).comparison()
    prepared = prepare(sample, totals, support, options)
    found = _estimate(prepared)
    is_ranked = prepared.target.is_comparable and support.share >= options.min_support_share
    streams = np.random.SeedSequence(options.seed).spawn(3)
    test = randomization_test(layout(sample, totals, prepared), options.design, options, streams[2])
    strata = lay_strata(sample, totals, support, prepared)
    plain = newcombe_pairs(sample, strata, prepared.versions, options.alpha)
    return _assemble(totals, support, prepared, found, test, strata, plain, options, streams, is_ranked=is_ranked)


def _estimate(prepared: Prepared) -> _Estimates:
    target, sums = prepared.target, prepared.sums
    engine = ClusterVariance(prepared.rows, sums)
    variance = engine.contrasts(target.ell)
    pairs = engine.contrasts(target.theta, pairs=True)
    mean = sums.mean
    scale = np.abs(mean) @ np.abs(target.ell)
    se = np.sqrt(np.maximum(np.diag(variance.cov), 0.0))
    se = known_error(se, scale)
    unclustered = hc2(sums, target.ell)
    deff = divide(se**2, unclustered)
    return _Estimates(
        theta=mean @ target.theta,
        ni=mean @ target.ell,
        variance=variance,
        pairs=pairs,
        se=se,
        deff=deff,
        dominant=_dominated(prepared, engine.leverage),
    )


def _dominated(prepared: Prepared, leverage: Floats) -> Bools:
    """Versions whose estimate leans on a cell that one user nearly fills.

    A cell counts against a version if its coefficient is at least half its stratum's weight: the
    version's own cells, and those of the one version that it is compared with.
    """
    target = prepared.target
    n_versions = len(prepared.versions)
    is_filled = np.zeros(prepared.rows.n_cells, dtype=bool)
    is_filled[prepared.rows.cell[leverage > DOMINANT_LEVERAGE]] = True
    share = np.abs(target.ell).reshape(n_versions, -1, n_versions) / target.weights.T[None]
    return np.asarray((is_filled.reshape(n_versions, -1, 1) & (share >= 0.5)).any(axis=(0, 1)))


def _joint(found: _Estimates, options: Options, stream: np.random.SeedSequence) -> tuple[Floats, Floats, Floats]:
    """Simultaneous limits and step-down p-values of the versions that vary, NaN elsewhere."""
    n = len(found.se)
    lo, hi, p_adj = (np.full(n, np.nan) for _ in range(3))
    at = np.flatnonzero(np.isfinite(found.se) & np.isfinite(found.variance.df))
    if len(at) == 0:
        return lo, hi, p_adj
    se, df = found.se[at], found.variance.df[at]
    draws = gaussian_draws(found.variance.cov[np.ix_(at, at)], options.draws, stream)
    level = simultaneous_level(draws, se, options.alpha)
    lo[at], hi[at] = t_interval(found.ni[at], se, df, level)
    p = 2.0 * stats.t.sf(np.abs(found.ni[at]) / se, df)
    p_adj[at] = stepdown_adjusted(p, draws, se)
    return lo, hi, p_adj


def _rank(found: _Estimates, options: Options, stream: np.random.SeedSequence) -> Ranking:
    score = found.theta if options.is_higher_better else -found.theta
    draws = gaussian_draws(found.pairs.cov, options.draws, stream)
    return rank_sets(score, found.pairs.cov, found.pairs.pair_df, draws, options.alpha)


def _assemble(
    totals: Totals,
    support: Support,
    prepared: Prepared,
    found: _Estimates,
    test: TestResult,
    strata: Strata,
    plain: PlainPairs,
    options: Options,
    streams: list[np.random.SeedSequence],
    *,
    is_ranked: bool,
) -> Comparison:
    n_versions, at, alpha = len(support.version_reasons), prepared.versions, options.alpha
    target, sums = prepared.target, prepared.sums
    lo, hi = t_interval(found.ni, found.se, found.variance.df, alpha)
    lo_sim, hi_sim, p_adj = _joint(found, options, streams[0])
    theta_var = np.diag(found.pairs.cov)
    theta_lo, theta_hi = mean_interval(
        found.theta,
        np.sqrt(np.where(theta_var > 0, theta_var, np.nan)),
        found.pairs.df,
        stratified_trials(sums.D, prepared.v, prepared.vv, target.weights),
        totals.n_users[at],
        alpha,
        is_rate=options.is_rate,
        is_binary=strata.is_binary,
    )
    pair_var = theta_var[:, None] + theta_var[None, :] - 2.0 * found.pairs.cov
    floor = _NO_VARIATION * np.maximum(theta_var[:, None], theta_var[None, :])
    shown = ~np.eye(len(at), dtype=bool) & target.is_comparable
    pair_diff = np.where(shown, found.theta[:, None] - found.theta[None, :], np.nan)
    pair_se = np.where(shown & (pair_var > floor), np.sqrt(np.maximum(pair_var, 0.0)), np.nan)
    pair_lo, pair_hi = t_interval(pair_diff, pair_se, found.pairs.pair_df, alpha)
    rank_lo, rank_hi = np.zeros(n_versions, dtype=np.int64), np.zeros(n_versions, dtype=np.int64)
    better = np.zeros((n_versions, n_versions), dtype=bool)
    letters = [""] * n_versions
    if is_ranked:
        ranking = _rank(found, options, streams[1])
        rank_lo[at], rank_hi[at] = ranking.rank_lo, ranking.rank_hi
        better[np.ix_(at, at)] = ranking.better
        score = found.theta if options.is_higher_better else -found.theta
        marks = compact_letters(score, ranking.better | ranking.better.T)
        for k, mark in zip(at, marks, strict=True):
            letters[k] = mark
    status, reasons = _judge(support, prepared, found, options)
    one, two = spread(n_versions, at), spread_square(n_versions, at)
    return Comparison(
        estimate=one(found.ni),
        lo=one(lo),
        hi=one(hi),
        lo_sim=one(lo_sim),
        hi_sim=one(hi_sim),
        se=one(found.se),
        df=one(found.variance.df),
        gstar=one(found.variance.gstar),
        p_perm=one(test.p),
        p_normal=one(test.p_normal),
        p_adj=one(p_adj),
        rank_lo=rank_lo,
        rank_hi=rank_hi,
        letters=letters,
        theta=one(found.theta),
        theta_lo=one(theta_lo),
        theta_hi=one(theta_hi),
        raw_rate=totals.raw_rate,
        deff=one(found.deff),
        mde=one(smallest_effect(found.se, alpha, options.power)),
        n_sessions=totals.n_sessions,
        n_users=totals.n_users,
        n_permutations=test.n,
        engine=test.engine,
        test_reasons=test.reasons,
        support_share=support.share,
        kept=strata.kept,
        merged_into=strata.merged_into,
        weights=strata.weights,
        cell_mean=strata.mean,
        cell_n=strata.n,
        cell_users=strata.users,
        cov=two(found.variance.cov),
        theta_cov=two(found.pairs.cov),
        pair_diff=two(pair_diff),
        pair_se=two(pair_se),
        pair_df=two(np.where(shown, found.pairs.pair_df, np.nan)),
        pair_gstar=two(np.where(shown, found.pairs.pair_gstar, np.nan)),
        pair_lo=two(pair_lo),
        pair_hi=two(pair_hi),
        newcombe_lo=plain.lo,
        newcombe_hi=plain.hi,
        plain_successes=plain.successes,
        plain_sessions=plain.sessions,
        pair_better=better,
        status=status,
        reasons=reasons,
    )


def _judge(
    support: Support, prepared: Prepared, found: _Estimates, options: Options
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Status and reasons of every version."""
    status = ["unavailable" if why else "ok" for why in support.version_reasons]
    reasons = list(support.version_reasons)
    is_own = (prepared.target.ell == 0).all(axis=0)
    for place, k in enumerate(prepared.versions):
        blocking, flags = [], []
        if support.share < options.min_support_share:
            blocking.append("low_support")
        if is_own[place]:
            flags.append("is_reference")
        elif np.isnan(found.se[place]):
            blocking.append("no_variation")
        else:
            if not found.variance.df[place] >= MIN_DF:
                blocking.append("few_degrees_of_freedom")
            if found.variance.gstar[place] < FEW_CLUSTERS:
                flags.append("few_effective_users")
            if found.dominant[place]:
                flags.append("dominant_user")
        status[k] = "inconclusive" if blocking else "ok"
        reasons[k] = (*blocking, *flags)
    return status, reasons
