"""Running the grid: worlds are drawn in batches, and every replication goes through ``compare``.

Belongs here: batches, seeds, options and averaging. Does not belong here: scenarios or targets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evalpipe.analysis.population import sparse_parents
from evalpipe.inference import Comparison, Options, compare
from evalpipe.validation.finding import Finding, share
from evalpipe.validation.guards import guards, n_guard_steps
from evalpipe.validation.measures import ALPHA, Measure
from evalpipe.validation.scenarios import SCENARIOS, Scenario
from evalpipe.validation.stream import Advance, stream
from evalpipe.validation.worlds import Draws, World, draw, sample_of

#: Raise it when the same seed would give other numbers.
VERSION = "1"

#: Replications that are drawn at once; part of what a seed means.
BATCH = 50
#: With 199 replicates p = 10/200 is attained, so that a right test rejects exactly 5 %. The product draws
#: more, which makes p steadier and its error rate no other.
PERMUTATIONS = 199
DRAWS = 2_000
#: As in the default criteria.
MIN_SESSIONS = 20
MIN_SUPPORT = 0.8

Codes = NDArray[np.int32]


def n_steps(replications: int) -> int:
    """Comparisons that :func:`validate` makes: what a progress bar counts."""
    return sum(one.replications(replications) for one in SCENARIOS) + n_guard_steps(replications)


def validate(replications: int, seed: int, advance: Advance = lambda _: None) -> list[Finding]:
    """Run the grid and the guards.

    Args:
        replications: Replications of a scenario, at least 2; some scenarios take a share of them.
        seed: Non-negative. Equal seeds give equal findings, whatever else is run.
        advance: Told how many steps are done.

    Returns:
        Findings in the order of the grid.
    """
    if replications < 2:
        raise ValueError("replications must be at least 2")
    found = [finding for one in SCENARIOS for finding in run_scenario(one, replications, seed, advance)]
    return [*found, *guards(replications, seed, advance)]


def run_scenario(scenario: Scenario, asked: int, seed: int, advance: Advance = lambda _: None) -> list[Finding]:
    """Run one scenario.

    Args:
        scenario: What is tried.
        asked: Replications before the scenario's share.
        seed: Seed of the run.
        advance: Told how many replications are done.

    Returns:
        One finding a measure.
    """
    n, world = scenario.replications(asked), scenario.world
    rng = stream(seed, scenario.name)
    counts = np.zeros((len(scenario.measures), 2, n))
    for start in range(0, n, BATCH):
        size = min(BATCH, n - start)
        draws = draw(world, size, rng)
        for at in range(size):
            found = compare_one(scenario, draws, at, int(rng.integers(1 << 62)))
            for place, measure in enumerate(scenario.measures):
                counts[place, :, start + at] = measure.count(found, world.truth)
        advance(size)
    return [_finding(scenario, measure, *counts[i]) for i, measure in enumerate(scenario.measures)]


def compare_one(scenario: Scenario, draws: Draws, at: int, seed: int) -> Comparison:
    """The product's comparison of one replication."""
    world = scenario.world
    stratum, parents = _strata(scenario, draws, at)
    sample = sample_of(world, draws, at, stratum=stratum, n_strata=len(parents))
    merged = sparse_parents(sample.version, stratum, sample.epoch, parents, world.n_versions, MIN_SESSIONS)
    options = Options(
        design=scenario.design,
        alpha=ALPHA,
        min_sessions_per_version=MIN_SESSIONS,
        min_support_share=MIN_SUPPORT,
        permutations=PERMUTATIONS,
        draws=DRAWS,
        seed=seed,
        parents=merged,
        is_rate=True,
    )
    return compare(sample, options)


def _strata(scenario: Scenario, draws: Draws, at: int) -> tuple[Codes, Codes]:
    """Strata of one replication and their parents: those of an epoch, all its kinds of work together."""
    world: World = scenario.world
    s, e = len(world.strata), len(world.epoch_offsets) if scenario.strata == "work_epoch" else 1
    epoch = draws.epoch[at] if scenario.strata == "work_epoch" else np.zeros(world.n_sessions, dtype=np.int32)
    stratum = (epoch * s + draws.stratum[at]).astype(np.int32)
    parents = np.concatenate([s * e + np.repeat(np.arange(e), s), np.full(e, -1)])
    return stratum, parents.astype(np.int32)


def _finding(scenario: Scenario, measure: Measure, hits: NDArray[np.float64], trials: NDArray[np.float64]) -> Finding:
    estimate, lo, hi = share(hits, trials)
    n, limit = int(trials.sum()), dict(scenario.limits).get(measure.name)
    return Finding(
        "grid",
        scenario.name,
        measure.name,
        measure.question,
        estimate,
        lo,
        hi,
        measure.target,
        len(hits),
        n,
        limit=limit,
    )
