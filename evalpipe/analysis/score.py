"""From outcome rows to analysis tables: every metric, in every slice, under one criteria.

Belongs here: which comparisons are made and with what effort. Does not belong here: the maths
(``inference``), row shapes (``rows.py``) or checks of the design (``design.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl

from evalpipe.analysis.design import Examined, examine
from evalpipe.analysis.diagnostics import diagnostics_rows
from evalpipe.analysis.evidence import evidence_tables
from evalpipe.analysis.evidence.headline import Headline
from evalpipe.analysis.groups import Group, support_groups
from evalpipe.analysis.ledger import ledger_checks
from evalpipe.analysis.measurement import require_one_measurement
from evalpipe.analysis.outcomes import Pair, check_outcomes, read_pair
from evalpipe.analysis.population import ALL, Bools, Codes, Population, encode, mergeable_parents
from evalpipe.analysis.rows import (
    ESTIMATOR,
    Basis,
    Counts,
    Scored,
    net_improvement_rows,
    pair_rows,
    strata_rows,
    unordered,
)
from evalpipe.analysis.stamp import Stamp
from evalpipe.analysis.standard import is_outside, with_population
from evalpipe.contracts import render
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.metrics import BY_NAME
from evalpipe.contracts.model import Table
from evalpipe.contracts.tables.analysis import DIAGNOSTICS, NET_IMPROVEMENT, PAIRS, STRATA
from evalpipe.contracts.tables.signals import ROUTING_ARMS
from evalpipe.criteria.model import Criteria
from evalpipe.inference import Options, compare

#: Replicates of the randomization test of a metric other than the headline, over all traffic and
#: within a slice. Such a p-value decides nothing (gates, ranks and letters read intervals), and the
#: simulation error of p = 0.05 is 0.010 and 0.015; 9,999 for every metric and slice would take a
#: night of 17,000 sessions from seconds to a minute.
SIDE_PERMUTATIONS = 499
SIDE_SLICE_PERMUTATIONS = 199
_NAMED_REFERENCE = "model:"


def score(
    outcomes: pl.DataFrame,
    criteria: Criteria,
    *,
    as_of: date,
    window: str,
    window_start: date,
    window_end: date,
    arms: pl.DataFrame | None = None,
    demoted: Sequence[str] = (),
) -> dict[str, pl.DataFrame]:
    """Score a window of sessions under criteria.

    Args:
        outcomes: Rows of ``signals.session_outcomes``. Days outside the window are ignored;
            sessions that are not settled are counted and left out.
        criteria: What is compared, how, and when a number is withheld.
        as_of: Day the window belongs to.
        window: Name of the window, such as ``28d`` or ``all``.
        window_start, window_end: Its first and last day, both inclusive.
        arms: ``signals.routing_arms`` of these days: arms of the assignment ledger; none without one.
        demoted: Signals that reviews kept out of these outcomes, as signal@language.

    Returns:
        ``analysis.net_improvement``, ``pairs``, ``strata``, ``diagnostics`` and the tables of evidence
        by full name, each sorted and checked against its contract. Without sessions only diagnostics
        has rows.

    Raises:
        EvalpipeError: ``MIXED_MEASUREMENTS`` if the rows were not made under these criteria,
            ``INVALID_OUTCOMES`` if a value is not legal.
    """
    _require_measurement(outcomes, criteria)
    inside = outcomes.filter(_within(window_start, window_end))
    settled = inside.filter(pl.col("is_settled"))
    check_outcomes(settled, criteria.estimand.metrics)
    stamp = Stamp.of(criteria, as_of=as_of, window=window, start=window_start, end=window_end)
    estimand = criteria.estimand
    population = encode(settled, criteria.outcomes.compare_by, estimand.strata, estimand.slices, estimand.sampling)
    arms = render.empty(ROUTING_ARMS) if arms is None else arms.filter(_within(window_start, window_end))
    assigned = ledger_checks(settled, arms, criteria.outcomes.compare_by, criteria.outcomes.headline)
    examined = examine(population, estimand, assigned)
    basis = Basis(
        stamp, estimand, population.versions, examined.design, examined.failed, examined.noted, examined.is_ordered
    )
    parents = mergeable_parents(population, estimand.min_sessions_per_version)
    scored: list[Scored] = []
    for metric in estimand.metrics if population.n else ():
        pair = read_pair(population.sessions, metric)
        scored += [
            score_one(population, pair, metric, name, criteria, examined, parents, stamp) for name in population.slices
        ]
    headline = next((s for s in scored if (s.metric.name, s.slice) == (criteria.outcomes.headline, ALL)), None)
    groups = _groups(population, headline, criteria)
    population = replace(population, slices={**population.slices, **{group.slice: group.inside for group in groups}})
    arrays = _headline(population, headline, criteria, examined, parents, stamp)
    evidence = evidence_tables(arrays, stamp)
    pair = read_pair(population.sessions, criteria.outcomes.headline)
    known = {s.slice for s in scored}
    scored += [
        score_one(population, pair, criteria.outcomes.headline, group.slice, criteria, examined, parents, stamp)
        for group in groups
        if group.slice not in known
    ]
    if not examined.is_ordered:
        scored = [unordered(one) for one in scored]
        headline = unordered(headline) if headline else None
    checks = diagnostics_rows(inside, settled, population, examined, headline, criteria, stamp, groups, arrays, demoted)
    return {
        **evidence,
        NET_IMPROVEMENT.full_name: _table(NET_IMPROVEMENT, [net_improvement_rows(s, basis) for s in scored]),
        PAIRS.full_name: _table(PAIRS, [pair_rows(s, basis) for s in scored]),
        STRATA.full_name: _table(STRATA, [strata_rows(headline, population, basis)] if headline else []),
        DIAGNOSTICS.full_name: _table(DIAGNOSTICS, [checks]),
    }


def _within(start: date, end: date) -> pl.Expr:
    return pl.col("day").is_between(start, end)


def replicates(metric: str, slice_name: str, criteria: Criteria) -> int:
    """Replicates of the randomization test for a metric in a slice.

    The headline metric gets what the criteria ask for; the others get no more than
    :data:`SIDE_PERMUTATIONS`. ``n_permutations`` on every row says which it was.
    """
    asked = criteria.estimand.permutations
    if metric == criteria.outcomes.headline:
        return asked
    return min(asked, SIDE_PERMUTATIONS if slice_name == ALL else SIDE_SLICE_PERMUTATIONS)


def _groups(population: Population, headline: Scored | None, criteria: Criteria) -> tuple[Group, ...]:
    """Groups of versions with common traffic, where no order over all traffic exists or several have no part in it."""
    if headline is None or criteria.estimand.population == "own_share":
        return ()
    pair = read_pair(population.sessions, criteria.outcomes.headline)
    is_counted = pair.is_known & (pair.d > 0)
    if headline.comparison is None or not (headline.comparison.rank_lo > 0).any():
        return support_groups(population, is_counted, criteria.estimand)
    left = {k for k, why in enumerate(headline.comparison.reasons) if "insufficient_overlap" in why}
    if len(left) < 2:
        return ()
    found = support_groups(population, is_counted, criteria.estimand)
    return tuple(group for group in found if len(left.intersection(group.versions)) >= 2)


def _require_measurement(outcomes: pl.DataFrame, criteria: Criteria) -> None:
    found = require_one_measurement(outcomes)
    if found and found != criteria.measurement:
        first, last = outcomes.select(pl.col("day").min().alias("a"), pl.col("day").max().alias("b")).row(0)
        raise EvalpipeError(
            "MIXED_MEASUREMENTS",
            f"The outcomes were made under measurement {found}, the criteria are {criteria.measurement}.",
            where=f"criteria {criteria.name} {criteria.version}",
            fix=f"Compute them under these criteria: evalpipe backfill {first}..{last}",
        )


def score_one(
    population: Population,
    pair: Pair,
    metric: str,
    slice_name: str,
    criteria: Criteria,
    examined: Examined,
    parents: Codes,
    stamp: Stamp,
) -> Scored:
    """Compare the versions on one metric in one slice.

    Args:
        population: Sessions of the window.
        pair: The metric's numerators and denominators.
        metric, slice_name: Their names.
        criteria: What is compared, how, and when a number is withheld.
        examined: The design that may be assumed.
        parents: (S,) code of the stratum that a sparse one is merged into, or -1.
        stamp: The window; the seed follows from it.
    """
    inside = population.slices[slice_name]
    use = inside & pair.is_known
    seed = stamp.seed(metric, slice_name, ESTIMATOR)
    counts = _count(population, pair, inside)
    reference, index = _reference(criteria, population.versions)
    if reference == "model" and index is None:
        return Scored(BY_NAME[metric], slice_name, counts, None, seed, "reference_unavailable")
    if not use.any():
        return Scored(BY_NAME[metric], slice_name, counts, None, seed, "absent")
    sample = population.sample(pair.y, pair.d, use, y_low=BY_NAME[metric].low)
    options = _options(metric, slice_name, criteria, examined, parents, seed, (reference, index))
    options = with_population(options, population, criteria.estimand, inside)
    if is_outside(options):
        return Scored(BY_NAME[metric], slice_name, counts, None, seed, "outside_population")
    return Scored(BY_NAME[metric], slice_name, counts, compare(sample, options), seed)


def _headline(
    population: Population,
    headline: Scored | None,
    criteria: Criteria,
    examined: Examined,
    parents: Codes,
    stamp: Stamp,
) -> Headline | None:
    """The headline metric over all traffic as arrays, for the tables of evidence."""
    if headline is None or headline.comparison is None:
        return None
    metric = headline.metric.name
    pair = read_pair(population.sessions, metric)
    reference = _reference(criteria, population.versions)
    return Headline(
        metric=headline.metric,
        criteria=criteria,
        stamp=stamp,
        population=population,
        use=pair.is_known,
        sample=population.sample(pair.y, pair.d, pair.is_known, y_low=BY_NAME[metric].low),
        options=with_population(
            _options(metric, ALL, criteria, examined, parents, headline.seed, reference), population, criteria.estimand
        ),
        found=headline.comparison,
        design=examined.design,
        failed=examined.failed,
        noted=examined.noted,
    )


def _options(
    metric: str,
    slice_name: str,
    criteria: Criteria,
    examined: Examined,
    parents: Codes,
    seed: int,
    reference: tuple[str, int | None],
) -> Options:
    estimand = criteria.estimand
    return Options(
        reference=reference[0],
        reference_index=reference[1],
        design=examined.design,
        alpha=estimand.alpha,
        min_users_per_cell=estimand.min_users_per_cell,
        min_sessions_per_version=estimand.min_sessions_per_version,
        min_support_share=estimand.min_support_share,
        permutations=replicates(metric, slice_name, criteria),
        draws=estimand.simultaneous_draws,
        seed=seed,
        parents=parents,
        is_higher_better=BY_NAME[metric].is_higher_better,
        is_rate=BY_NAME[metric].is_rate,
    )


def _reference(criteria: Criteria, versions: list[str]) -> tuple[str, int | None]:
    reference = criteria.estimand.reference
    if not reference.startswith(_NAMED_REFERENCE):
        return reference, None
    label = reference.removeprefix(_NAMED_REFERENCE)
    return "model", versions.index(label) if label in versions else None


def _count(population: Population, pair: Pair, inside: Bools) -> Counts:
    k = len(population.versions)
    version = population.version[inside]
    known = pair.is_known[inside]
    n = np.bincount(version, minlength=k)
    n_known = np.bincount(version, known, minlength=k)
    seen = np.unique(version.astype(np.int64) * population.n + population.cluster[inside])
    v = np.ones(population.n) if population.weight is None else population.weight
    y, d = (np.bincount(version, (v * values)[inside], minlength=k) for values in (pair.y, pair.d))
    nothing = np.full(k, np.nan)
    return Counts(
        n_sessions=n,
        n_users=np.bincount(seen // population.n, minlength=k),
        raw_rate=np.divide(y, d, out=nothing.copy(), where=d > 0),
        missing_share=np.divide(n - n_known, n, out=nothing.copy(), where=n > 0),
        is_unknown=(n > 0) & (n_known == 0),
    )


def _table(table: Table, parts: list[pl.DataFrame]) -> pl.DataFrame:
    rows = pl.concat([render.empty(table), *parts])
    return render.conform(table, rows).sort(table.sort)
