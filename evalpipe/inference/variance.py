"""User-clustered variance of cell-mean contrasts in closed form, with degrees of freedom.

Belongs here: CR0 to CR3, Bell-McCaffrey degrees of freedom, effective clusters, HC2. Does not
belong here: intervals or decisions. For cell means the block of a user in the hat matrix has rank
one per cell, so the inverse (I - H_gg)^-1 of the general formula collapses to the scalar
1/(1 - h_gc), h_gc = m_gc / D_c, and nothing is inverted (Bell and McCaffrey, 2002; Pustejovsky and
Tipton, 2018; MacKinnon, Nielsen and Webb, 2023). CR3 equals the jackknife over users.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from evalpipe.inference.cells import CellSums, UserCells, divide
from evalpipe.inference.model import Floats

_ADJUSTMENT_POWER = {"CR0": 0.0, "CR1": 0.0, "CR2": 0.5, "CR3": 1.0}
_BLOCK_BYTES = 64_000_000
_LARGEST_DENSE = 3_000
_ROUNDING = 1e-14
#: Time of one product in a sparse matrix product, in products of a dense one.
_SPARSE_TO_DENSE = 60.0


@dataclass(frozen=True, slots=True)
class ContrastVariance:
    """Variance of F contrasts.

    Attributes:
        cov: (F, F) covariance. df: (F,) Bell-McCaffrey. gstar: (F,) effective clusters.
        pair_df, pair_gstar: (F, F) of the difference of two contrasts; NaN unless asked for.
    """

    cov: Floats
    df: Floats
    gstar: Floats
    pair_df: Floats
    pair_gstar: Floats


@dataclass(frozen=True, slots=True)
class _UserMatrices:
    """Sparse G x C matrices that share one pattern: psi, E, F, leverage and q of each user."""

    psi: sparse.csr_array
    E: sparse.csr_array
    F: sparse.csr_array
    h: sparse.csr_array
    q: sparse.csr_array


class ClusterVariance:
    """Variance engine of one set of (user, cell) rows.

    Args:
        rows: Sufficient statistics.
        sums: Sums per cell of the same sessions.
        kind: CR0, CR1, CR2 or CR3.
    """

    def __init__(self, rows: UserCells, sums: CellSums, kind: str = "CR3") -> None:
        D = sums.D[rows.cell]
        leverage = rows.m / D
        # A user who fills a cell has leverage 1: no jackknife exists. Such a cell has one user and
        # never enters the support; the floor keeps a leverage of 1 - 1e-17 finite.
        rest = np.maximum(1.0 - leverage, np.finfo(float).eps)
        adj = rest ** -_ADJUSTMENT_POWER[kind]
        residual = rows.t - sums.mean[rows.cell] * rows.m
        self.leverage = leverage
        self._scale = rows.n_users / max(rows.n_users - 1, 1) if kind == "CR1" else 1.0
        indptr = np.searchsorted(rows.user, np.arange(rows.n_users + 1))
        shape = (rows.n_users, rows.n_cells)

        def matrix(values: Floats) -> sparse.csr_array:
            return sparse.csr_array((values, rows.cell, indptr), shape=shape)

        self._users = _UserMatrices(
            psi=matrix(adj * residual / D),
            E=matrix(adj**2 * rows.m / D**2),
            F=matrix(adj**2 * rows.m**2 / D**3),
            h=matrix(leverage),
            q=matrix(adj * rows.m / D**1.5),
        )
        self._qq2 = _squared_gram(self._users.q)

    def contrasts(self, ell: Floats, *, pairs: bool = False) -> ContrastVariance:
        """Covariance, degrees of freedom and effective clusters of linear contrasts.

        Args:
            ell: (C, F) coefficients of the cell means.
            pairs: Also the degrees of freedom of all differences of two contrasts, which must then
                touch disjoint cells (the means of different versions do).

        Returns:
            Degrees of freedom under the working variance 1/(weight x denominator) (Bell and
            McCaffrey, 2002); G* after Carter, Schnepel and Steigerwald (2017).
        """
        sums = self._accumulate(ell, pairs=pairs)
        squared = ell**2
        middle = squared.T @ (self._qq2 @ squared)
        if not pairs:
            middle = np.diag(middle)
        tr2 = sums["AA"] - sums["AB"] - sums["BA"] + middle
        nan = np.full((ell.shape[1],) * 2, np.nan)
        cov = sums["V"] * self._scale
        if not pairs:
            return ContrastVariance(cov, divide(sums["tr"] ** 2, tr2), divide(sums["u2"] ** 2, sums["u4"]), nan, nan)
        tr, diagonal = sums["tr"], np.diag(tr2)
        pair_tr2 = diagonal[:, None] + diagonal[None, :] + 2.0 * tr2
        u11, u22, u31 = sums["u11"], sums["u22"], sums["u31"]
        u2, u4 = np.diag(u11), np.diag(u22)
        pair_u2 = u2[:, None] + u2[None, :] - 2.0 * u11
        pair_u4 = u4[:, None] + u4[None, :] - 4.0 * (u31 + u31.T) + 6.0 * u22
        off = ~np.eye(len(tr), dtype=bool)
        return ContrastVariance(
            cov,
            divide(tr**2, diagonal),
            divide(u2**2, u4),
            np.where(off, divide((tr[:, None] + tr[None, :]) ** 2, pair_tr2), np.nan),
            np.where(off, divide(pair_u2**2, pair_u4), np.nan),
        )

    def influence(self, ell: Floats) -> Floats:
        """What each user moves each contrast by, (G, F), in the order of the rows' users.

        Args:
            ell: (C, F) coefficients of the cell means.
        """
        return np.asarray((self._users.psi @ ell) * np.sqrt(self._scale))

    def _accumulate(self, ell: Floats, *, pairs: bool) -> dict[str, Floats]:
        """Sums over users, in fixed blocks that bound memory."""
        squared = ell**2
        n_users, n_functions = self._users.psi.shape[0], ell.shape[1]
        block = max(1, _BLOCK_BYTES // (8 * 6 * n_functions))
        total: dict[str, Floats] = {}
        # One empty block where there is no user: sums of nothing are 0.
        for start in range(0, max(n_users, 1), block):
            part = slice(start, start + block)
            psi = self._users.psi[part] @ ell
            A, B = self._users.E[part] @ squared, self._users.F[part] @ squared
            u = self._users.h[part] @ ell
            # Where a user's versions balance exactly, what is left is rounding.
            u[np.abs(u) < _ROUNDING] = 0.0
            add = {"V": psi.T @ psi, "tr": (A - B).sum(axis=0)}
            if pairs:
                uu = u * u
                add |= {"AA": A.T @ A, "AB": A.T @ B, "u11": u.T @ u, "u22": uu.T @ uu, "u31": (uu * u).T @ u}
                add["BA"] = add["AB"].T
            else:
                uu = u * u
                add |= {"AA": (A * A).sum(axis=0), "AB": (A * B).sum(axis=0)}
                add |= {"u2": uu.sum(axis=0), "u4": (uu * uu).sum(axis=0)}
                add["BA"] = add["AB"]
            for name, value in add.items():
                total[name] = total[name] + value if name in total else value
        return total


def hc2(sums: CellSums, ell: Floats) -> Floats:
    """Unclustered variance of contrasts of cell means.

    Args:
        sums: Sums per cell.
        ell: (C, F) coefficients.

    Returns:
        (F,) sum over cells of ell^2 s^2/n, s^2 with n - 1 (MacKinnon and White, 1985). For ratios
        and weighted means, s^2 is that of the residuals ``t - mu m``, scaled by the mean
        denominator. NaN where a cell with a coefficient has one session.
    """
    return np.asarray((ell**2).T @ np.where((ell != 0).any(axis=1), cell_variance(sums), 0.0))


def cell_variance(sums: CellSums) -> Floats:
    """Unclustered variance of each cell mean, (C,); NaN with fewer than two sessions."""
    mean = np.where(sums.D > 0, sums.mean, 0.0)
    spread = sums.yy - 2.0 * mean * sums.yd + mean**2 * sums.dd
    # Cancellation may leave a residue of rounding where all values are equal.
    spread = np.where(spread <= 1e-12 * np.maximum(sums.yy, mean**2 * sums.dd), 0.0, spread)
    n = sums.n.astype(np.float64)
    return np.asarray(spread * divide(n, (n - 1.0) * sums.D**2))


def _squared_gram(q: sparse.csr_array) -> Floats | sparse.csr_array:
    """Q o Q with Q = q'q, dense in blocks where that is cheaper than sparse products."""
    n_users, n_cells = q.shape
    per_user = np.diff(q.indptr).astype(float)
    sparse_cost = float((per_user**2).sum()) * _SPARSE_TO_DENSE
    if n_cells > _LARGEST_DENSE:
        product = (q.T @ q).tocsr()
        return product.multiply(product).tocsr()
    if float(n_users) * n_cells**2 > sparse_cost:
        return np.asarray((q.T @ q).toarray() ** 2)
    block = max(1, _BLOCK_BYTES // (8 * n_cells))
    total = np.zeros((n_cells, n_cells))
    for start in range(0, n_users, block):
        dense = q[start : start + block].toarray()
        total += dense.T @ dense
    return total**2
