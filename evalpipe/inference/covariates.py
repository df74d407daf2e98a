"""Outcomes adjusted for what was known before assignment.

Belongs here: the pooled within-cell slope and outcomes cleared of it. Does not belong here: which
covariates may be used: one that the version itself changes removes part of the effect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalpipe.inference.cells import Ints, tally
from evalpipe.inference.model import Floats

#: Share of a variance that an adjustment must save before it is used.
MIN_GAIN = 0.05


@dataclass(frozen=True, slots=True)
class Adjusted:
    """Outcomes cleared of covariates.

    Attributes:
        y: (N,) adjusted outcomes. slope: (P,) pooled within-cell slope; 0 for a covariate that does
            not vary within cells.
        is_changed: Whether anything could be adjusted for.
    """

    y: Floats
    slope: Floats
    is_changed: bool


def cuped(y: Floats, X: Floats, cell: Ints, weight: Floats | None = None) -> Adjusted:
    """Regression adjustment with one slope for all cells (Deng, Xu, Kohavi and Walker, 2013; Lin, 2013).

    Comparing the adjusted outcomes estimates the same thing as comparing the outcomes, with less
    noise: cell means are moved by theta times how far the cell's covariates lie from the mean of all.

    Args:
        y: (N,) outcomes. X: (N, P) covariates known before assignment.
        cell: (N,) codes of (version, stratum).
        weight: (N,) sampling weights; 1 by default.

    Returns:
        y - theta'(x - xbar).

    Raises:
        ValueError: Shapes do not fit, or a number is NaN or infinite: give a missing covariate the
            stratum's mean and a column that says so.
    """
    y = np.asarray(y, dtype=np.float64)
    X = np.asarray(X, dtype=np.float64)
    X = X[:, None] if X.ndim == 1 else X
    v = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    if len(X) != len(y) or len(cell) != len(y) or v.shape != y.shape:
        raise ValueError("y, X, cell and weight must have one length")
    if not (np.isfinite(X).all() and np.isfinite(y).all() and np.isfinite(v).all()):
        raise ValueError("y, X and weight must be finite")
    if len(y) == 0:
        return Adjusted(y, np.zeros(X.shape[1]), is_changed=False)
    _, code = np.unique(cell, return_inverse=True)
    within_X = np.stack([_centred(column, code, v) for column in X.T], axis=1) if X.shape[1] else X
    spread = (v[:, None] * within_X**2).sum(axis=0)
    varies = spread > 1e-12 * np.maximum((v[:, None] * X**2).sum(axis=0), 1e-300)
    slope = np.zeros(X.shape[1])
    if varies.any():
        kept = within_X[:, varies]
        right = kept.T @ (v * _centred(y, code, v))
        slope[varies] = np.linalg.lstsq(kept.T @ (v[:, None] * kept), right, rcond=None)[0]
    centre = (v[:, None] * X).sum(axis=0) / v.sum()
    return Adjusted(y - (X - centre) @ slope, slope, is_changed=bool(varies.any()))


def _centred(x: Floats, code: Ints, v: Floats) -> Floats:
    size = int(code.max()) + 1
    return np.asarray(x - (tally(code, v * x, size) / tally(code, v, size))[code])
