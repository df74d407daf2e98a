"""Populations with declared weights: which strata a weight is of, and weights that a window is frozen to.

Belongs here: the match of kinds of work in criteria with the strata of a window, in all of it and in a
slice, and checks of it. Does not belong here: what is legal (``criteria/populations.py``), or what weights do to an
estimate (``inference``). The weights stand in the criteria file and nowhere else, so that the hash of
the measurement holds them: the same criteria weigh every window of every home alike.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from evalpipe.analysis.labels import version_labels
from evalpipe.analysis.population import Bools, Population, stratum_label
from evalpipe.analysis.sampling import inside_population, sampling_weights
from evalpipe.criteria.model import Criteria, EstimandCriteria
from evalpipe.criteria.populations import EPOCH, is_weighted, kind_columns
from evalpipe.inference import Check, Comparison, Options, Standard

#: Decimals of a frozen weight.
DECIMALS = 6
#: Parts of a session that are counted apart.
_SCALE = 1_000_000
#: Share of sessions that may do work without a weight before the weights no longer fit the window.
OUTSIDE_LIMIT = 0.05


def with_population(
    options: Options, population: Population, estimand: EstimandCriteria, inside: Bools | None = None
) -> Options:
    """Options with the population of the criteria.

    Args:
        options: What else is asked. population: Sessions of the window.
        estimand: Criteria. inside: (N,) sessions of a slice; all by default.

    Returns:
        Options that name the weights. In a slice a kind of work weighs as much as the slice has of its
        sessions in the window.
    """
    if not is_weighted(estimand.population):
        return replace(options, population=estimand.population)
    standard = standard_of(population, estimand)
    if inside is not None and not inside.all():
        standard = _within(standard, population, inside)
    return replace(options, population="standard", standard=standard)


def is_outside(options: Options) -> bool:
    """Whether no session of a slice does work that has a weight, so that there is nothing to estimate."""
    return options.standard is not None and not options.standard.weight.sum() > 0


def standard_of(population: Population, estimand: EstimandCriteria) -> Standard:
    """Declared weights and the strata of a window that each is of.

    Args:
        population: Sessions of the window.
        estimand: Criteria whose population is weighted.
    """
    weights = estimand.population_weights
    place = {kind: at for at, kind in enumerate(weights)}
    group = np.full(len(population.strata), -1, dtype=np.int64)
    # Strata that only take others in hold no session, and have no weight before they do.
    codes, first = np.unique(population.stratum, return_index=True)
    kinds = stratum_label(population.sessions[first], kind_columns(weights))
    group[codes] = [place.get(kind, -1) for kind in kinds]
    return Standard(np.array(list(weights.values()), dtype=np.float64), group)


def _within(standard: Standard, population: Population, inside: Bools) -> Standard:
    group = standard.group[population.stratum]
    size = len(standard.weight)
    whole, part = (np.bincount(group[use & (group >= 0)], minlength=size) for use in (np.ones_like(inside), inside))
    return replace(standard, weight=standard.weight * part / np.maximum(whole, 1))


def frozen_weights(outcomes: pl.DataFrame, criteria: Criteria) -> dict[str, float]:
    """Shares of the kinds of work in a baseline, as criteria take them.

    Args:
        outcomes: Rows of ``signals.session_outcomes``; sessions without a version are no traffic.
        criteria: Versions and strata.

    Returns:
        Weight by key, sorted; shares of :data:`DECIMALS` decimals that sum to 1. Empty without sessions,
        or where criteria have no stratum but the routing epoch.
    """
    columns = [name for name in criteria.estimand.strata if name != EPOCH]
    labelled = outcomes.filter(version_labels(outcomes, criteria.outcomes.compare_by).is_not_null())
    sessions = inside_population(labelled, criteria.estimand.sampling)
    if not columns or sessions.is_empty():
        return {}
    # A session that was drawn counts for those that it stands for, as it does in every estimate.
    drawn = sampling_weights(sessions, criteria.estimand.sampling)
    stands_for = np.ones(sessions.height) if drawn is None else drawn
    kinds = pl.DataFrame({"kind": stratum_label(sessions, columns), "n": stands_for})
    counts = kinds.group_by("kind").agg(pl.col("n").sum()).sort("kind")
    # Whole numbers, so that what is left to give out does not hang on rounding.
    n = np.array([round(v * _SCALE) for v in counts["n"]], dtype=object)
    unit = 10**DECIMALS
    exact = n * unit
    parts = exact // n.sum()
    # Largest remainders get what rounding down left, ties by name.
    left = int(unit - parts.sum())
    parts[np.argsort((-(exact % n.sum())).astype(float), kind="stable")[:left]] += 1
    return {kind: int(part) / unit for kind, part in zip(counts["kind"], parts, strict=True)}


def population_checks(population: Population, estimand: EstimandCriteria, found: Comparison | None) -> list[Check]:
    """How the population that is weighed differs from the window's traffic; none where it is the traffic.

    Args:
        population: Sessions of the window.
        estimand: Criteria.
        found: The headline comparison over all traffic.
    """
    checks: list[Check] = []
    if is_weighted(estimand.population) and population.n:
        standard = standard_of(population, estimand)
        group = standard.group[population.stratum]
        is_weighed = (group >= 0) & (standard.weight[group] > 0)
        n, share = int((~is_weighed).sum()), float((~is_weighed).mean())
        detail = f"{n} of {population.n} sessions do work that {estimand.population} gives no weight: no estimate over "
        detail += "all traffic speaks of them."
        status = "inconclusive" if share > OUTSIDE_LIMIT else "ok"
        checks.append(Check("population", "outside", share, OUTSIDE_LIMIT, status, detail))
        absent = float(np.delete(standard.weight, np.unique(group[is_weighed])).sum())
        detail = f"{absent:.1%} of the weight is on work that no session of the window does; the rest is renormalised."
        checks.append(Check("population", "absent", absent, np.nan, "ok", detail))
    if (is_weighted(estimand.population) or estimand.population == "overlap") and found is not None:
        distance = _distance(population, found)
        detail = f"{distance:.1%} of the weight lies elsewhere than the common traffic of the window does."
        if np.isnan(distance):
            checks.append(
                Check("population", "distance", distance, np.nan, "unavailable", "Nothing could be compared.")
            )
        else:
            checks.append(Check("population", "distance", distance, np.nan, "ok", detail))
    return checks


def _distance(population: Population, found: Comparison) -> float:
    """Total variation between the weights of the kept strata and the traffic of the compared versions there."""
    weighs = np.isfinite(found.weights)
    used = np.isfinite(found.estimate)[population.version]
    target = np.where(found.merged_into >= 0, found.merged_into, np.arange(len(population.strata)))
    n = np.bincount(target[population.stratum[used]], minlength=len(population.strata))[weighs]
    return float(np.abs(found.weights[weighs] - n / n.sum()).sum() / 2.0) if n.sum() else np.nan
