"""Shuffling engine: permutes sessions within strata, for any outcome.

Belongs here: blocks of shuffled sessions. Does not belong here: outcomes with few levels, which
``tables`` draws at a cost free of sample size.
"""

from __future__ import annotations

import numpy as np

from evalpipe.inference.model import Floats
from evalpipe.inference.studentize import Layout, plain_statistic, ratio_statistic

_BUFFER_BYTES = 64_000_000


class Shuffler:
    """Shuffles a layout whose sessions were sorted by (stratum, version) once.

    Args:
        layout: Sessions; ratio metrics are shuffled as (numerator, denominator) pairs.

    Attributes:
        n_sessions: N. chunk: replicates a chunk, fixed by the problem's size.
    """

    def __init__(self, layout: Layout) -> None:
        order = np.lexsort((layout.version, layout.stratum))
        self._t, self._m = layout.t[order], layout.m[order]
        counts = layout.counts()
        self._shape = counts.shape
        self._n = counts.ravel()
        self._cells = np.concatenate(([0], np.cumsum(counts.T.ravel())[:-1]))
        self._edges = np.concatenate(([0], np.cumsum(counts.sum(axis=0))))
        self._ell = layout.ell
        self._is_plain = layout.is_plain
        self.n_sessions = len(order)
        self.chunk = max(1, _BUFFER_BYTES // (8 * 4 * self.n_sessions))

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """(n, K) replicates of the statistic."""
        if self._is_plain:
            values = self._permuted(self._t, n, rng)
            T = self._by_cell(values)
            np.multiply(values, values, out=values)
            return plain_statistic(T, self._by_cell(values), self._n, self._ell)
        order = self._permuted(np.arange(self.n_sessions, dtype=np.float64), n, rng).astype(np.int64)
        t, m = self._t[order], self._m[order]
        sums = tuple(self._by_cell(values) for values in (t, m, t * t, t * m, m * m))
        return ratio_statistic(sums, self._n, self._ell)

    def _permuted(self, values: Floats, n: int, rng: np.random.Generator) -> Floats:
        block = np.repeat(values[None, :], n, axis=0)
        for lo, hi in zip(self._edges[:-1], self._edges[1:], strict=True):
            block[:, lo:hi] = rng.permuted(block[:, lo:hi], axis=1)
        return block

    def _by_cell(self, values: Floats) -> Floats:
        n_versions, n_strata = self._shape
        sums = np.add.reduceat(values, self._cells, axis=1)
        return sums.reshape(-1, n_strata, n_versions).transpose(0, 2, 1).reshape(len(values), -1)
