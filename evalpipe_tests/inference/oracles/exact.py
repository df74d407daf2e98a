"""Answers on exact tests, stratified tables, many hypotheses at once and ranks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy import special, stats

from evalpipe.inference import adjust
from evalpipe.inference.exact.blocks import BlockTest, block_test
from evalpipe.inference.exact.enumeration import Enumerated, enumerate_labels
from evalpipe.inference.exact.maxima import westfall_young
from evalpipe.inference.exact.tables import Tables, heterogeneity, mantel_haenszel, risk_differences
from evalpipe.inference.letters import compact_letters
from evalpipe.inference.simultaneous import (
    Ranking,
    gaussian_draws,
    rank_sets,
    simultaneous_level,
    single_step_adjusted,
    stepdown_adjusted,
)
from evalpipe_tests.inference.oracles.case import Case, Check, answers
from evalpipe_tests.inference.oracles.parameters import ALPHA, level

DRAWS = 400_000


@cache
def _enumerated(case: Case) -> tuple[Enumerated, list[str]]:
    version, names = case.labels("sessions", "model")
    stratum, strata = case.labels("sessions", "stratum")
    y = case.column("sessions", "score")
    return enumerate_labels(y, version, stratum, len(names), len(strata)), names


@answers("exact_permutation", r"observed|p_two_sided|p_maxT_single_step|permutation_variance")
def arrangements(check: Check) -> Any:
    found, names = _enumerated(check.case)
    values = {
        "observed": found.observed,
        "p_two_sided": found.p,
        "p_maxT_single_step": found.p_max,
        "permutation_variance": found.variance,
    }[check.name]
    return dict(zip(names, values, strict=True))


@answers("exact_permutation", "n_arrangements")
def n_arrangements(check: Check) -> Any:
    return _enumerated(check.case)[0].n


@answers("exact_permutation", r"coin_exact_p\.(?P<target>.+)_vs_rest\.own_share")
def one_against_rest(check: Check, target: str) -> Any:
    version, names = check.case.labels("sessions", "model")
    stratum, strata = check.case.labels("sessions", "stratum")
    y, k = check.case.column("sessions", "score"), names.index(target)
    found = block_test(y, version == k, stratum)
    # The net improvement of that reference and population is linear in the total: one p-value.
    listed = enumerate_labels(y, version, stratum, len(names), len(strata), "stratum_mean", "own_share")
    assert abs(found.p_exact - listed.p[k]) < 1e-9
    return found.p_exact


@cache
def _blocks(case: Case, y: str) -> BlockTest:
    stratum, _ = case.labels("data", "stratum")
    return block_test(case.column("data", y), case.column("data", "target") == 1, stratum)


@answers("stratified_two_group", r"coin\.(?P<y>[^.]+)")
def moments(check: Check, y: str) -> Any:
    found = _blocks(check.case, y)
    return {
        "linear_statistic": found.statistic,
        "expectation": found.expectation,
        "variance": found.variance,
        "z": found.z,
        "p_asymptotic": found.p,
    }


@answers("stratified_two_group", r"coin\.(?P<y>[^.]+)\.p_exact")
def exact_p(check: Check, y: str) -> Any:
    return _blocks(check.case, y).p_exact


def _tables(case: Case) -> Tables:
    stratum, strata = case.labels("data", "stratum")
    target, y = case.column("data", "target") == 1, case.column("data", "success")

    def by_stratum(values: np.ndarray) -> np.ndarray:
        return np.bincount(stratum, values, len(strata))

    return Tables(by_stratum(y * target), by_stratum(target), by_stratum(y * ~target), by_stratum(~target))


@answers("stratified_two_group", "mantelhaen")
def cochran(check: Check) -> Any:
    found = mantel_haenszel(_tables(check.case))
    return {
        "p_exact": found.p_exact,
        "statistic": found.statistic,
        "p_asymptotic": found.p,
        "common_or_mh": found.odds_ratio,
    }


@answers("stratified_two_group", "mh_risk_difference")
def risk_difference(check: Check) -> Any:
    found = mantel_haenszel(_tables(check.case))
    return {"estimate": found.difference, "se": found.difference_se}


@answers("stratified_two_group", "heterogeneity_Q")
def evenness(check: Check) -> Any:
    found = heterogeneity(*risk_differences(_tables(check.case)))
    return {"Q": found.statistic, "df": found.df, "p": found.p}


@answers("multiplicity", r"holm|BH|BY|bonferroni|hochberg")
def adjusted(check: Check) -> Any:
    rows = check.case.rows("pvalues")
    found = adjust(check.case.column("pvalues", "p"), check.name.lower())
    return {row["hypothesis"]: p for row, p in zip(rows, found, strict=True)}


@answers("westfall_young", r"stepdown_maxT|single_step_maxT|raw_p")
def maxima(check: Check) -> Any:
    names = [row["hypothesis"] for row in check.case.rows("observed")]
    permuted = np.stack([check.case.column("permuted", name) for name in names], axis=1)
    found = westfall_young(check.case.column("observed", "abs_t"), permuted)
    values = {"stepdown_maxT": found.step_down, "single_step_maxT": found.single_step, "raw_p": found.raw}[check.name]
    return dict(zip(names, values, strict=True))


@cache
def _estimates(case: Case) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    names = [row["model"] for row in case.rows("estimates")]
    cov = np.stack([case.column("covariance", name) for name in names], axis=1)
    return names, case.column("estimates", "estimate"), cov, gaussian_draws(cov, DRAWS, np.random.SeedSequence(1))


def _pairs(case: Case) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Labels of all pairs, their p-values, draws and standard errors."""
    names, theta, cov, draws = _estimates(case)
    one, other = np.triu_indices(len(names), 1)
    se = np.sqrt(np.diag(cov)[one] + np.diag(cov)[other] - 2 * cov[one, other])
    p = 2 * stats.norm.sf(np.abs(theta[one] - theta[other]) / se)
    labels = [f"{names[i]}-{names[j]}" for i, j in zip(one, other, strict=True)]
    return labels, p, draws[:, one] - draws[:, other], se


@answers("ranks_maxt", r"pairwise_maxT_(?P<how>single_step|stepdown)")
def pairwise(check: Check, how: str) -> Any:
    labels, p, draws, se = _pairs(check.case)
    found = (single_step_adjusted if how == "single_step" else stepdown_adjusted)(p, draws, se)
    return dict(zip(labels, found, strict=True))


@answers("ranks_maxt", r"(?P<what>pairwise|vs_mean)_crit_(?P<percent>\d+)")
def critical_value(check: Check, what: str, percent: str) -> Any:
    names, _, cov, draws = _estimates(check.case)
    centre = np.eye(len(names)) - 1 / len(names)
    if what == "pairwise":
        _, _, draws, se = _pairs(check.case)
    else:
        draws, se = draws @ centre, np.sqrt(np.diag(centre @ cov @ centre))
    return -special.ndtri(simultaneous_level(draws, se, level(percent)) / 2)


@cache
def _ranking(case: Case) -> Ranking:
    _, theta, cov, draws = _estimates(case)
    return rank_sets(theta, cov, np.full(cov.shape, np.inf), draws, ALPHA)


@answers("ranks_maxt", "simultaneous_rank_sets")
def ranks(check: Check) -> Any:
    found = _ranking(check.case)
    ends = np.stack((found.rank_lo, found.rank_hi), axis=1).tolist()
    return dict(zip(_estimates(check.case)[0], ends, strict=True))


@answers("ranks_maxt", "distinguishable_pairs_better_first")
def orders(check: Check) -> Any:
    names, found = _estimates(check.case)[0], _ranking(check.case)
    pairs = {(names[i], names[j]) for i, j in np.argwhere(found.better)}
    # A set of pairs: in the order of the reference, so that only members differ.
    listed = [pair for pair in check.expected if tuple(pair) in pairs]
    return listed + [list(pair) for pair in sorted(pairs - {tuple(pair) for pair in check.expected})]


@answers("ranks_maxt", "compact_letters")
def letters(check: Check) -> Any:
    names, theta, _, _ = _estimates(check.case)
    found = _ranking(check.case)
    marks = dict(zip(names, compact_letters(theta, found.better | found.better.T), strict=True))
    # Letters may be named otherwise: what is compared is who shares one.
    shares = {(a, b) for a in names for b in names if set(marks[a]) & set(marks[b])}
    wanted = {(a, b) for a in names for b in names if set(check.expected[a]) & set(check.expected[b])}
    return check.expected if shares == wanted else marks
