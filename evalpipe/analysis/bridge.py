"""Rows of ``analysis.bridges``: what another measurement says of the same sessions.

Belongs here: which sessions overlap, and their codes under both. Does not belong here: levels and
intervals (``inference/bridge.py``). Strata and weights are those of the criteria in force; their
values, as the outcomes, are each measurement's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from evalpipe.analysis.evidence.headline import stamped
from evalpipe.analysis.outcomes import check_outcomes, read_pair
from evalpipe.analysis.population import Population, encode, mergeable_parents
from evalpipe.analysis.stamp import Stamp
from evalpipe.analysis.standard import with_population
from evalpipe.contracts.metrics import BY_NAME
from evalpipe.contracts.tables.evidence import BRIDGES
from evalpipe.criteria.model import Criteria, EstimandCriteria
from evalpipe.criteria.populations import is_weighted
from evalpipe.inference import Options, Sample
from evalpipe.inference.bridge import bridge


def bridged(
    old: pl.DataFrame,
    new: pl.DataFrame,
    criteria: Criteria,
    stamp: Stamp,
) -> pl.DataFrame:
    """Rows of ``analysis.bridges`` from one old measurement to that in force.

    Args:
        old, new: Rows of ``signals.session_outcomes`` of one measurement each.
        criteria: Those in force.
        stamp: The window.

    Returns:
        One row a version; none where no settled session is under both.

    Raises:
        EvalpipeError: ``INVALID_OUTCOMES``.
    """
    inside = stamp.settled
    old, new = old.filter(inside), new.filter(inside)
    metric = criteria.outcomes.headline
    known = pl.col(f"{metric}_num").is_not_null() & (pl.col(f"{metric}_den") > 0)
    # What only one of the two knows is no pair; the rest of the row may differ in any column.
    names = old.filter(known).select("session_id").join(new.filter(known).select("session_id"), on="session_id")
    old, new = (one.join(names, on="session_id", how="semi") for one in (old, new))
    for one in (old, new):
        check_outcomes(one, [metric])
    return stamped(BRIDGES, stamp, _rows(old, new, criteria, stamp) if old.height else ())


def _rows(old: pl.DataFrame, new: pl.DataFrame, criteria: Criteria, stamp: Stamp) -> Iterator[Mapping[str, object]]:
    metric, estimand, measurement = criteria.outcomes.headline, criteria.estimand, str(old["measurement"][0])
    # Who served whom is no matter of measurement: both are read as the newer one says.
    same = ("agent", "agent_release", "model", "n_models", "user_id", "task_id", "source")
    old = old.drop(same).join(new.select("session_id", *same), on="session_id", how="inner")
    after = encode(new, criteria.outcomes.compare_by, estimand.strata, (), estimand.sampling)
    # Nor is how a session was drawn, or of which user or task it is: its weight is that of the kind that it
    # has now, and tasks are told apart by the domain that they have now.
    old = old.join(after.sessions.select("session_id"), on="session_id", how="semi")
    before = encode(old.select(new.columns), criteria.outcomes.compare_by, estimand.strata, ())
    before = replace(before, weight=after.weight, cluster=after.cluster)
    if not after.n:
        return
    options = Options(
        alpha=estimand.alpha,
        min_users_per_cell=estimand.min_users_per_cell,
        min_sessions_per_version=estimand.min_sessions_per_version,
        min_support_share=estimand.min_support_share,
        draws=estimand.simultaneous_draws,
        seed=stamp.seed(metric, "all", f"bridge {measurement}"),
    )
    if is_weighted(estimand.population):
        # Weights are of strata as they are, so sparse ones are merged where they are known.
        asked = [_weighted(options, one, estimand) for one in (before, after)]
        found = bridge(_plain(before, metric), _plain(after, metric), asked[1], before=asked[0])
    else:
        options = replace(options, population=estimand.population if estimand.population != "own_share" else "traffic")
        found = bridge(_sample(before, metric, options), _sample(after, metric, options), options)
    for k, version in enumerate(after.versions):
        has = bool(np.isfinite(found.shift[k]))
        yield {
            "old_measurement": measurement,
            "metric": metric,
            "version": version,
            "n_sessions": int(found.n_sessions[k]),
            "n_users": found.n_users,
            "old_level": found.old[k],
            "new_level": found.new[k],
            "shift": found.shift[k],
            "shift_lo": found.lo[k],
            "shift_hi": found.hi[k],
            "mean_shift": found.mean if has else float("nan"),
            "mean_shift_se": found.mean_se if has else float("nan"),
            "apart": found.apart[k],
            "apart_lo": found.apart_lo[k],
            "apart_hi": found.apart_hi[k],
            "is_chained": found.status == "ok",
            "status": found.status if has else "unavailable",
            "reasons": [found.reason or "no_comparator"] if found.reason or not has else [],
        }


def _plain(population: Population, metric: str) -> Sample:
    pair = read_pair(population.sessions, metric)
    return population.sample(pair.y, pair.d, y_low=BY_NAME[metric].low)


def _sample(population: Population, metric: str, options: Options) -> Sample:
    return replace(_plain(population, metric), stratum=_merged(population, options))


def _weighted(options: Options, population: Population, estimand: EstimandCriteria) -> Options:
    parents = mergeable_parents(population, options.min_sessions_per_version)
    return with_population(replace(options, parents=parents), population, estimand)


def _merged(population: Population, options: Options) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Strata with those that are sparse by chance in their parents: both sides have strata of their own."""
    parents = mergeable_parents(population, options.min_sessions_per_version)
    return np.where(parents[population.stratum] >= 0, parents[population.stratum], population.stratum).astype(np.int32)
