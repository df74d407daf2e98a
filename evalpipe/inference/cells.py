"""Sufficient statistics: one group-by of sessions into (user, cell), which everything else reads.

Belongs here: the group-by and the sums per cell. Does not belong here: which cells count
(``support``) or what is estimated from them (``estimand``, ``variance``). A cell is a
(version, stratum) pair with code ``version * n_strata + stratum``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalpipe.inference.model import Floats

Ints = NDArray[np.int64]


def tally(codes: NDArray[np.integer], values: Floats, size: int) -> Floats:
    """Sums of ``values`` by code, (size,)."""
    return np.asarray(np.bincount(codes, values, size), dtype=np.float64)


def divide(top: Floats, bottom: Floats) -> Floats:
    """top / bottom; NaN where the bottom is not positive."""
    out = np.full(np.shape(top), np.nan)
    np.divide(top, bottom, out=out, where=bottom > 0)
    return out


@dataclass(frozen=True, slots=True)
class UserCells:
    """One row a (user, cell) pair with data, sorted by user, then cell.

    Attributes:
        user: Compact user codes 0..n_users-1, (R,).
        cell: Cell codes, (R,).
        m: Sum of weight x denominator, (R,), positive.
        t: Sum of weight x numerator, (R,).
        n_users: G.
        n_cells: C.
    """

    user: Ints
    cell: Ints
    m: Floats
    t: Floats
    n_users: int
    n_cells: int


@dataclass(frozen=True, slots=True)
class CellSums:
    """Sums per cell, each (C,).

    Attributes:
        n: Sessions. D: sum of weight x denominator. T: sum of weight x numerator.
        yy, yd, dd: Sums of squares and products of the weighted pair.
        users: Distinct users.
    """

    n: Ints
    D: Floats
    T: Floats
    yy: Floats
    yd: Floats
    dd: Floats
    users: Ints

    @property
    def mean(self) -> Floats:
        """Cell means T / D; NaN in an empty cell."""
        return divide(self.T, self.D)


def group(user: Ints, cell: Ints, m: Floats, t: Floats, n_cells: int) -> UserCells:
    """Sum sessions, or finer rows, into (user, cell) rows.

    Args:
        user: User codes from 0, (N,).
        cell: Cell codes 0..n_cells-1, (N,).
        m: Weight x denominator, (N,), positive.
        t: Weight x numerator, (N,).
        n_cells: C.

    Returns:
        Rows sorted by user, then cell. Users are renumbered without gaps.
    """
    key = user.astype(np.int64) * n_cells + cell
    # Stable, so that sums are formed in input order and do not depend on the processor's sort.
    order = np.argsort(key, kind="stable")
    key = key[order]
    is_first = np.empty(len(key), dtype=bool)
    is_first[:1] = True
    np.not_equal(key[1:], key[:-1], out=is_first[1:])
    starts = np.flatnonzero(is_first)
    if len(starts) == 0:
        none = np.zeros(0, dtype=np.int64)
        return UserCells(none, none, np.zeros(0), np.zeros(0), 0, n_cells)
    row_user, row_cell = np.divmod(key[starts], n_cells)
    is_new = np.empty(len(starts), dtype=bool)
    is_new[:1] = True
    np.not_equal(row_user[1:], row_user[:-1], out=is_new[1:])
    compact = np.cumsum(is_new) - 1
    return UserCells(
        user=compact,
        cell=row_cell,
        m=np.add.reduceat(m[order], starts),
        t=np.add.reduceat(t[order], starts),
        n_users=int(compact[-1]) + 1,
        n_cells=n_cells,
    )


def cell_sums(cell: Ints, m: Floats, t: Floats, rows: UserCells) -> CellSums:
    """Sum sessions into cells.

    Args:
        cell: Cell codes, (N,).
        m: Weight x denominator, (N,).
        t: Weight x numerator, (N,).
        rows: The same sessions, grouped.

    Returns:
        Sums over the C cells of ``rows``.
    """
    size = rows.n_cells
    return CellSums(
        n=np.bincount(cell, minlength=size),
        D=tally(cell, m, size),
        T=tally(cell, t, size),
        yy=tally(cell, t * t, size),
        yd=tally(cell, t * m, size),
        dd=tally(cell, m * m, size),
        users=np.bincount(rows.cell, minlength=size),
    )
