"""Three layers of evidence on the same versions: sessions, controlled tasks, reviewed turns.

Belongs here: which sessions are of which layer, and what is counted in it. Does not belong here: whether
layers agree (``concordance.py``), or any formula (``inference``).

No session is of two layers of outcomes: one whose log states an outcome, or that tries a task of a
controlled task set, is of ``tasks``; the others are of ``sessions``, and what reviewers said of their
turns is ``audit``. Two numbers made from the same outcome would corroborate each other whatever is true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from evalpipe.analysis.corrected import sessions_of, units_of
from evalpipe.analysis.labels import TASK
from evalpipe.analysis.outcomes import read_pair
from evalpipe.analysis.population import Bools, Floats, Population, mergeable_parents
from evalpipe.analysis.stamp import Stamp
from evalpipe.analysis.standard import with_population
from evalpipe.contracts.metrics import BY_NAME
from evalpipe.criteria.model import Criteria
from evalpipe.inference import Comparison, Options, Sample, compare
from evalpipe.inference.concordance import Layer, compared_layer, measured_layer
from evalpipe.inference.labels.corrected import PPI, corrected_rates

SESSIONS, TASKS, AUDIT = "sessions", "tasks", "audit"
#: Metric of controlled tasks, and the group of signals that reviewers judge.
OBJECTIVE, NEGATIVE, UNIT = "objective_success", "negative", "turn"
#: Tasks that versions must have in common before they are compared on them.
MIN_TASKS = 10


@dataclass(frozen=True, slots=True)
class Told:
    """One layer, or why there is none.

    Attributes:
        layer: What it says; ``None`` where it compares no two versions. reason: why not, or empty.
        limits: Reasons for which nothing of a version is established, by its code.
    """

    layer: Layer | None
    reason: str = ""
    limits: Mapping[int, tuple[str, ...]] | None = None


def is_controlled(population: Population) -> Bools:
    """(N,) whether a session tries a task of a task set, or its log states an outcome."""
    sessions = population.sessions
    tried = pl.col("task_id").is_not_null() | (pl.col(f"{OBJECTIVE}_den").fill_null(0.0) > 0)
    return sessions.select(tried.alias("is_controlled"))["is_controlled"].to_numpy()


def layers_of(
    population: Population,
    counts: pl.DataFrame,
    reviewed: pl.DataFrame,
    criteria: Criteria,
    stamp: Stamp,
) -> dict[str, Told]:
    """The layers by name, in the order of the contract.

    Args:
        population: Settled sessions of the window that have a version.
        counts: Signals by session. reviewed: reviewed units, as for corrected rates.
        criteria: Metric, strata, weights and error rates.
        stamp: The window; seeds follow from it.
    """
    controlled = is_controlled(population)
    found = _sessions(population, ~controlled, criteria, stamp)
    return {
        SESSIONS: _compared(found, criteria.outcomes.headline) if found else Told(None, "no_free_sessions"),
        TASKS: _tasks(population, controlled, criteria, stamp),
        AUDIT: _audit(population, ~controlled, found, counts, reviewed, criteria, stamp),
    }


def _options(criteria: Criteria, metric: str, seed: int) -> Options:
    estimand = criteria.estimand
    return Options(
        # Nothing is tested at random here: pairs are judged by their joint errors.
        design="observational",
        alpha=estimand.alpha,
        min_users_per_cell=estimand.min_users_per_cell,
        min_sessions_per_version=estimand.min_sessions_per_version,
        min_support_share=estimand.min_support_share,
        draws=estimand.simultaneous_draws,
        seed=seed,
        is_higher_better=BY_NAME[metric].is_higher_better,
        is_rate=BY_NAME[metric].is_rate,
    )


def _stratified(population: Population, use: Bools, metric: str, criteria: Criteria, seed: int) -> Comparison | None:
    pair = read_pair(population.sessions, metric)
    use = use & pair.is_known
    if not use.any():
        return None
    options = replace(
        _options(criteria, metric, seed),
        parents=mergeable_parents(population, criteria.estimand.min_sessions_per_version),
    )
    sample = population.sample(pair.y, pair.d, use, y_low=BY_NAME[metric].low)
    return compare(sample, with_population(options, population, criteria.estimand))


def _sessions(population: Population, use: Bools, criteria: Criteria, stamp: Stamp) -> Comparison | None:
    metric = criteria.outcomes.headline
    return _stratified(population, use, metric, criteria, stamp.seed(metric, "all", SESSIONS))


def _compared(found: Comparison, metric: str) -> Told:
    layer = compared_layer(found, is_higher_better=BY_NAME[metric].is_higher_better)
    if layer.known.sum() < 2:
        reasons = [why for each in found.reasons for why in each]
        return Told(None, reasons[0] if reasons else "no_comparator")
    open_ones = {
        k: why for k, (state, why) in enumerate(zip(found.status, found.reasons, strict=True)) if state != "ok"
    }
    return Told(_barred(layer, open_ones), limits=open_ones)


def _barred(layer: Layer, versions: Mapping[int, object]) -> Layer:
    """A layer in which nothing is established of some versions."""
    better = layer.better.copy()
    better[list(versions), :] = False
    better[:, list(versions)] = False
    return replace(layer, better=better)


def barred(told: Told, limits: Mapping[int, tuple[str, ...]]) -> Told:
    """The same with nothing established of versions whose headline number is not to be decided on."""
    if told.layer is None:
        return told
    return Told(_barred(told.layer, limits), limits={**(told.limits or {}), **limits})


def _tasks(population: Population, use: Bools, criteria: Criteria, stamp: Stamp) -> Told:
    """Success on tasks that all versions tried; each task counts once, however often it was tried.

    Trials of a task that were drawn count within it for those that they stand for. The task itself weighs
    what any other does: a task set is no traffic. Where outcomes are stated and no task is named, they are
    compared as the headline is, in strata.
    """
    pair = read_pair(population.sessions, OBJECTIVE)
    seed = stamp.seed(OBJECTIVE, "all", TASKS)
    named = use & pair.is_known & (pair.d > 0) & population.sessions["task_id"].is_not_null().to_numpy()
    if not named.any():
        found = _stratified(population, use, OBJECTIVE, criteria, seed)
        if found is None or not (found.n_sessions > 0).any():
            return Told(None, "no_controlled_tasks")
        return _compared(found, OBJECTIVE)
    task = population.sessions.select(pl.struct(TASK).rank("dense").alias("t"))["t"].to_numpy()
    task, version = task[named].astype(np.int64) - 1, population.version[named].astype(np.int64)
    inside, chosen = _common(task, version, len(population.versions), criteria.estimand.min_sessions_per_version)
    if not inside.any():
        return Told(None, "few_common_tasks" if chosen > 1 else "no_comparator")
    task, version = task[inside], version[inside]
    _, trial = np.unique(task * len(population.versions) + version, return_inverse=True)
    drawn = _drawn(population)[named][inside]
    zero = np.zeros(len(task), dtype=np.int32)
    sample = Sample(
        y=pair.y[named][inside],
        d=pair.d[named][inside],
        version=version.astype(np.int32),
        stratum=zero,
        user=np.unique(task, return_inverse=True)[1].astype(np.int32),
        epoch=zero,
        n_versions=len(population.versions),
        n_strata=1,
        weight=drawn / np.bincount(trial, drawn)[trial],
    )
    return _compared(compare(sample, _options(criteria, OBJECTIVE, seed)), OBJECTIVE)


def _common(task: np.ndarray, version: np.ndarray, k: int, min_sessions: int) -> tuple[Bools, int]:
    """Sessions of tasks that all versions tried, and how many versions have sessions enough.

    While they have fewer than :data:`MIN_TASKS` in common, the version that tried fewest of the tasks
    leaves, of two the later by name.
    """
    tried = np.zeros((k, int(task.max()) + 1), dtype=bool)
    tried[version, task] = True
    chosen = np.flatnonzero(np.bincount(version, minlength=k) >= min_sessions)
    n_enough = len(chosen)
    while len(chosen) >= 2 and tried[chosen].all(axis=0).sum() < MIN_TASKS:
        n_tried = tried[chosen].sum(axis=1)
        chosen = np.delete(chosen, np.flatnonzero(n_tried == n_tried.min())[-1])
    if len(chosen) < 2:
        return np.zeros(len(task), dtype=bool), n_enough
    is_common: Bools = np.asarray(tried[chosen].all(axis=0))
    return np.isin(version, chosen) & is_common[task], n_enough


def _audit(
    population: Population,
    use: Bools,
    found: Comparison | None,
    counts: pl.DataFrame,
    reviewed: pl.DataFrame,
    criteria: Criteria,
    stamp: Stamp,
) -> Told:
    """Turns that people judge negative, over the common traffic of the sessions and at its weights.

    Only versions with labels of their own count: errors of the detector pooled over versions would say
    again what the detector counted, which the sessions were scored by.
    """
    if reviewed.filter(signal=NEGATIVE, unit=UNIT).is_empty():
        return Told(None, "no_reviews")
    weight = _standardised(population, use, found) if found else np.zeros(population.n)
    sessions = sessions_of(population, weight).filter(pl.col("weight") > 0)
    if sessions.is_empty():
        return Told(None, "no_common_support")
    judged = reviewed.filter(unit=UNIT).join(sessions, on="session_id", how="inner", maintain_order="left")
    k, estimand = len(population.versions), criteria.estimand
    rates = corrected_rates(*units_of(sessions, counts, judged, NEGATIVE, UNIT), k, estimand.alpha)
    is_own = np.array(
        [method == PPI and state == "ok" for method, state in zip(rates.method, rates.status, strict=True)]
    )
    if is_own.sum() < 2:
        return Told(None, "labels")
    level = np.where(is_own, -rates.estimate, np.nan)
    seed = stamp.seed(NEGATIVE, "all", AUDIT)
    return Told(measured_layer(level, rates.cov, alpha=estimand.alpha, draws=estimand.simultaneous_draws, seed=seed))


def _standardised(population: Population, use: Bools, found: Comparison) -> Floats:
    """(N,) what a session counts for, so that each version's work has the mix of the comparison; 0 outside."""
    target = np.where(found.merged_into >= 0, found.merged_into, np.arange(len(population.strata)))
    stratum = target[population.stratum]
    is_compared: Bools = np.isfinite(found.estimate)
    inside = use & is_compared[population.version] & (np.nan_to_num(found.weights)[stratum] > 0)
    cell = population.version.astype(np.int64) * len(population.strata) + stratum
    drawn = _drawn(population)
    n = np.bincount(cell[inside], drawn[inside], len(population.versions) * len(population.strata))
    total = np.bincount(population.version[inside], minlength=len(population.versions))
    weight = np.zeros(population.n)
    share = drawn[inside] / n[cell[inside]]
    weight[inside] = found.weights[stratum[inside]] * total[population.version[inside]] * share
    return weight


def _drawn(population: Population) -> Floats:
    """(N,) sessions of all traffic that each one stands for."""
    return np.ones(population.n) if population.weight is None else population.weight
