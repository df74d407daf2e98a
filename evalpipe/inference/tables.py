"""Table sampler: permuted labels drawn as contingency tables, at a cost free of sample size.

Belongs here: the multivariate hypergeometric engine. Does not belong here: outcomes with many
levels or ratios (``shuffle``). Permuting labels within a stratum makes the (version x level) table
multivariate hypergeometric, so drawing the table is drawing the permutation: the law is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalpipe.inference.cells import Ints
from evalpipe.inference.model import Floats
from evalpipe.inference.studentize import Layout, plain_statistic

MAX_LEVELS = 8
_MAX_STRATUM = 10**9
_BUFFER_BYTES = 64_000_000
_MAX_CHUNK = 1_250


@dataclass(frozen=True, slots=True)
class TableSampler:
    """Draws (version x level) tables of all strata.

    Attributes:
        levels: (L,) distinct outcomes. totals: (L, S) sessions of each level in each stratum.
        counts: (K, S) sessions of each cell. ell: (C, K) coefficients.
        chunk: Replicates a chunk: fixed by the problem's size, so that buffers stay bounded.
    """

    levels: Floats
    totals: Ints
    counts: Ints
    ell: Floats
    chunk: int

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """(n, K) replicates of the statistic."""
        T, TT = self.sums(n, rng)
        return plain_statistic(T, TT, self.counts.ravel(), self.ell)

    def sums(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """(n, C) sums of y and of y^2 in each cell, for n permutations."""
        n_versions, n_strata = self.counts.shape
        T = np.zeros((n, n_versions, n_strata))
        TT = np.zeros_like(T)
        left = np.repeat(self.totals[:, None, :], n, axis=1)
        for k in range(n_versions):
            taken = list(left) if k == n_versions - 1 else _take(left, self.counts[k], rng)
            for level, count in zip(self.levels, taken, strict=True):
                T[:, k, :] += level * count
                TT[:, k, :] += level**2 * count
        return T.reshape(n, -1), TT.reshape(n, -1)


def table_sampler(layout: Layout) -> TableSampler | None:
    """A sampler for the layout, or None if it needs another engine.

    Args:
        layout: Denominators must be 1 and outcomes have at most :data:`MAX_LEVELS` levels.
    """
    if not layout.is_plain or len(np.unique(layout.t[:1_000])) > MAX_LEVELS:
        return None
    levels = np.unique(layout.t)
    counts = layout.counts()
    # The library's sampler refuses populations of 1e9 and more.
    if len(levels) > MAX_LEVELS or counts.sum(axis=0).max() >= _MAX_STRATUM:
        return None
    code = np.searchsorted(levels, layout.t) * layout.n_strata + layout.stratum
    totals = np.bincount(code, minlength=len(levels) * layout.n_strata).reshape(len(levels), -1)
    a_replicate = 8 * (6 * counts.size + 2 * totals.size)
    chunk = max(1, min(_MAX_CHUNK, _BUFFER_BYTES // a_replicate))
    return TableSampler(levels, totals, counts, layout.ell, chunk)


def _take(left: Ints, size: Ints, rng: np.random.Generator) -> list[Ints]:
    """Draw one version's sessions from what remains; ``left`` (L, n, S) is reduced in place."""
    n_levels = len(left)
    need = np.broadcast_to(size, left.shape[1:])
    after = left.sum(axis=0)
    taken: list[Ints] = []
    for level in range(n_levels - 1):
        after = after - left[level]
        count = rng.hypergeometric(left[level], after, need)
        need = need - count
        taken.append(count)
        left[level] -= count
    taken.append(np.array(need))
    left[n_levels - 1] -= need
    return taken
