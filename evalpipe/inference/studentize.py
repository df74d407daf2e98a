"""The statistic of the randomization test, from sums per cell.

Belongs here: the sessions of a test laid out by cell, and NI / se_HC2 for blocks of replicates.
Does not belong here: how replicates are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalpipe.inference.cells import Ints, tally
from evalpipe.inference.model import Floats

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Layout:
    """Sessions of the compared versions in the kept strata, with a positive denominator.

    Attributes:
        version, stratum: Codes 0..K-1 and 0..S-1, (N,), every cell filled.
        user, epoch: Codes, (N,).
        m, t: Weight x denominator and weight x numerator, (N,).
        ell: (C, K) coefficients of the cell means. contrast, weights: (K, K) and (S,) such that
            ``ell[(j, s), k] = weights[s] * contrast[k, j]``, or None where no such form exists.
        is_plain: Whether every ``m`` is 1.
    """

    version: Ints
    stratum: Ints
    user: Ints
    epoch: Ints
    m: Floats
    t: Floats
    ell: Floats
    contrast: Floats | None
    weights: Floats | None
    is_plain: bool

    @property
    def n_versions(self) -> int:
        """K."""
        return int(self.ell.shape[1])

    @property
    def n_strata(self) -> int:
        """S."""
        return int(self.ell.shape[0] // self.ell.shape[1])

    @property
    def cell(self) -> Ints:
        """Cell codes, (N,)."""
        return self.version * self.n_strata + self.stratum

    @property
    def varies(self) -> bool:
        """Whether outcomes differ at all: otherwise there is nothing to test."""
        gap = np.abs(self.t - self.t.sum() / self.m.sum() * self.m)
        return bool((gap > _ROUNDING * np.abs(self.t).max()).any())

    def counts(self) -> Ints:
        """Sessions of each cell, (K, S)."""
        size = self.n_versions * self.n_strata
        return np.bincount(self.cell, minlength=size).reshape(self.n_versions, self.n_strata)

    def observed(self) -> Floats:
        """(K,) observed statistics; NaN if nothing varies or the version is its own reference."""
        cell, size = self.cell, self.ell.shape[0]

        def total(values: Floats) -> Floats:
            return tally(cell, values, size)[None]

        t, m = self.t, self.m
        n = self.counts().ravel()
        if self.is_plain:
            statistic = plain_statistic(total(t), total(t * t), n, self.ell)[0]
        else:
            sums = tuple(total(values) for values in (t, m, t * t, t * m, m * m))
            statistic = ratio_statistic(sums, n, self.ell)[0]
        return np.where((self.ell != 0).any(axis=0) & self.varies, statistic, np.nan)


def plain_statistic(T: Floats, TT: Floats, n: Ints, ell: Floats) -> Floats:
    """NI / se_HC2 of replicates with denominators 1.

    Args:
        T, TT: (b, C) sums of y and of y^2 in each cell.
        n: (C,) sessions of each cell.
        ell: (C, K) coefficients.

    Returns:
        (b, K). A numerator of 0 over a studentizer of 0 is 0; otherwise it is infinite.
    """
    mean = T / n
    spread = TT - mean * T
    spread[spread <= _ROUNDING * TT] = 0.0
    return _studentize(mean, spread / (n * np.maximum(n - 1.0, 1.0)), ell)


def ratio_statistic(sums: tuple[Floats, ...], n: Ints, ell: Floats) -> Floats:
    """NI / se_HC2 of replicates of ratio or weighted means.

    Args:
        sums: (b, C) sums of t, m, t^2, t m and m^2.
        n: (C,) sessions of each cell.
        ell: (C, K) coefficients.

    Returns:
        (b, K), as :func:`plain_statistic`.
    """
    T, D, TT, TD, DD = sums
    mean = T / D
    scale = TT + mean**2 * DD
    spread = scale - 2.0 * mean * TD
    spread[spread <= _ROUNDING * scale] = 0.0
    return _studentize(mean, spread * n / (np.maximum(n - 1.0, 1.0) * D**2), ell)


def _studentize(mean: Floats, variance: Floats, ell: Floats) -> Floats:
    return quotient(mean @ ell, variance @ ell**2, np.abs(mean) @ np.abs(ell))


def quotient(numerator: Floats, variance: Floats, scale: Floats) -> Floats:
    """numerator / sqrt(variance), with 0/0 = 0 and x/0 infinite.

    Args:
        numerator, variance: Same shape.
        scale: Size of the terms in the numerator: what is below rounding of it counts as 0.
    """
    numerator = np.where(np.abs(numerator) <= _ROUNDING * scale, 0.0, numerator)
    flat = variance <= (_ROUNDING * scale) ** 2
    safe = np.where(flat, 1.0, variance)
    return np.where(flat, np.where(numerator == 0.0, 0.0, np.copysign(np.inf, numerator)), numerator / np.sqrt(safe))
