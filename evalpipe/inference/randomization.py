"""The randomization test: choose an engine by cost, run it, turn replicates into p-values.

Belongs here: the choice, the counting, the fallbacks. Does not belong here: the engines themselves
(``tables``, ``shuffle``, ``units``, ``arrangements``). The statistic is studentized, which keeps the
test of "no effect at all" approximately valid for "no net improvement" (Chung and Romano, 2013; Wu
and Ding, 2021); labels are permuted the way they were assigned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import special

from evalpipe.inference import arrangements, shuffle, tables, units
from evalpipe.inference.model import Floats, Options
from evalpipe.inference.studentize import Layout

USER_REPLICATES = 1_999
CHECK_SHUFFLES = 200
_TOLERANCE = 1e-12
_VARIANCE_BAND = (0.8, 1.25)
_TAIL_BAND = (0.01, 0.10)
_FEWEST = 199
_MAX_REDRAWN = 0.5


@dataclass(frozen=True, slots=True)
class TestResult:
    """Randomization evidence on K versions.

    Attributes:
        p: (K,) p-values, NaN when unavailable. p_normal: their large-sample values.
        n: Replicates or arrangements behind ``p``; 0 for the Gaussian limit.
        engine: table, shuffle, gaussian, units, exact or none.
        reasons: Why ``p`` is missing or approximate.
    """

    p: Floats
    p_normal: Floats
    n: int
    engine: str
    reasons: tuple[str, ...] = ()


def randomization_test(layout: Layout, design: str, options: Options, seed: np.random.SeedSequence) -> TestResult:
    """Test every version's net improvement by re-assigning labels.

    Args:
        layout: Sessions of the compared versions in the kept strata.
        design: ``randomized_session``: labels of sessions are permuted within strata.
            ``randomized_user``: labels of (user, epoch) units are permuted within epochs, and all
            sessions of a unit travel together. ``observational``: nothing was randomized.
        options: Replicates, budget and threads.
        seed: Parent of one stream a chunk.

    Returns:
        p-values with the observed arrangement counted in (Phipson and Smyth, 2010); the plain
        fraction when all arrangements are enumerated.
    """
    nan = np.full(layout.ell.shape[1], np.nan)
    if design == "observational":
        return TestResult(nan, nan, 0, "none", ("not_randomized",))
    if design == "randomized_user":
        return _by_units(layout, options, seed)
    return _by_sessions(layout, options, seed)


def p_values(observed: Floats, replicates: Iterable[Floats], *, is_exact: bool = False) -> tuple[Floats, int]:
    """Two-sided p-values from blocks of replicates.

    Args:
        observed: (K,) statistics; NaN where there is none.
        replicates: Blocks (b, K).
        is_exact: Whether the blocks hold all arrangements, the observed one among them.

    Returns:
        (K,) p-values and the number of replicates.
    """
    limit = np.abs(observed) - _TOLERANCE
    exceed, total = np.zeros(len(observed)), 0
    for block in replicates:
        exceed += (np.abs(block) >= limit).sum(axis=0)
        total += len(block)
    p = exceed / total if is_exact else (1.0 + exceed) / (total + 1.0)
    return np.where(np.isnan(observed), np.nan, p), total


def run_chunks(
    kernel: Callable[[int, np.random.Generator], Floats],
    n: int,
    chunk: int,
    seed: np.random.SeedSequence,
    threads: int,
) -> Iterable[Floats]:
    """Run a kernel over fixed chunks with one spawned stream each: threads change nothing."""
    sizes = [min(chunk, n - start) for start in range(0, n, chunk)]
    streams = [np.random.Generator(np.random.PCG64(child)) for child in seed.spawn(len(sizes))]
    if threads <= 1 or len(sizes) == 1:
        return map(kernel, sizes, streams)
    with ThreadPoolExecutor(max_workers=threads) as pool:
        return list(pool.map(kernel, sizes, streams))


def _by_sessions(layout: Layout, options: Options, seed: np.random.SeedSequence) -> TestResult:
    observed = layout.observed()
    normal = normal_p(observed)
    if np.isnan(observed).all():
        return TestResult(normal, normal, 0, "none", ("no_variation",))
    if arrangements.count_session_arrangements(layout) <= arrangements.MAX_ARRANGEMENTS:
        p, n = p_values(observed, arrangements.session_statistics(layout), is_exact=True)
        return TestResult(p, normal, n, "exact")
    wanted, threads = options.permutations, options.threads
    table = tables.table_sampler(layout)
    if table is not None:
        p, n = p_values(observed, run_chunks(table.draw, wanted, table.chunk, seed, threads))
        return TestResult(p, normal, n, "table")
    shuffler = shuffle.Shuffler(layout)
    if shuffler.n_sessions * wanted <= options.shuffle_budget:
        p, n = p_values(observed, run_chunks(shuffler.draw, wanted, shuffler.chunk, seed, threads))
        return TestResult(p, normal, n, "shuffle")
    checked, drawn = seed.spawn(2)
    replicates = np.concatenate(list(run_chunks(shuffler.draw, CHECK_SHUFFLES, shuffler.chunk, checked, threads)))
    if _is_normal(replicates[:, ~np.isnan(observed)]):
        return TestResult(normal, normal, 0, "gaussian", ("gaussian_limit",))
    fewer = max(_FEWEST, int(options.shuffle_budget // shuffler.n_sessions))
    p, n = p_values(observed, run_chunks(shuffler.draw, fewer, shuffler.chunk, drawn, threads))
    return TestResult(p, normal, n, "shuffle", ("fewer_replicates",))


def _by_units(layout: Layout, options: Options, seed: np.random.SeedSequence) -> TestResult:
    table = units.UnitTable.build(layout)
    observed = table.statistic(table.label)
    normal = normal_p(observed)
    mixed = ("mixed_units",) if table.mixed_share > units.MAX_MIXED else ()
    if np.isnan(observed).all():
        return TestResult(normal, normal, 0, "none", ("no_variation", *mixed))
    if arrangements.count_arrangements(table.epoch, table.label) <= arrangements.MAX_ARRANGEMENTS:
        every = arrangements.all_labels(table.epoch, table.label)
        blocks = (table.statistic(label)[None] for label in every if table.is_complete(label))
        p, n = p_values(observed, blocks, is_exact=True)
        return TestResult(p, normal, n, "exact", mixed)
    wanted = min(options.permutations, USER_REPLICATES)
    affordable = int(options.shuffle_budget // (2 * table.n_rows))
    n_replicates = min(wanted, max(_FEWEST, affordable))
    reasons = (*mixed, "fewer_replicates") if n_replicates < wanted else mixed
    drawn = run_chunks(table.draw, n_replicates, units.CHUNK, seed, options.threads)
    p, n = p_values(observed, drawn)
    # A chunk gives up when most of its draws empty a cell: then too few arrangements are legal.
    if n < n_replicates:
        nan = np.full(len(p), np.nan)
        return TestResult(nan, normal, 0, "none", (*mixed, "permutation_empties_cells"))
    return TestResult(p, normal, n, "units", reasons)


def _is_normal(replicates: Floats) -> bool:
    """Whether replicates of the statistic look standard normal, pooled over versions.

    One version's variance of 200 replicates strays by 10 %, so versions are pooled. Variance alone
    would pass a statistic that one huge session holds near 1 in every replicate: tails count too.
    """
    variance = float(np.mean(np.square(replicates)))
    tail = float(np.mean(np.abs(replicates) > special.ndtri(0.975)))
    return _VARIANCE_BAND[0] <= variance <= _VARIANCE_BAND[1] and _TAIL_BAND[0] <= tail <= _TAIL_BAND[1]


def normal_p(statistic: Floats) -> Floats:
    """Two-sided normal p-values; NaN where the statistic is not finite."""
    p = 2.0 * special.ndtr(-np.abs(statistic))
    return np.where(np.isfinite(statistic), p, np.nan)
