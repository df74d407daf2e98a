"""How alike sessions of one user are, and what that costs.

Belongs here: the intra-user correlation and Kish's design effect. Does not belong here: planning
(``power``) or the measured design effect of a comparison (``variance``).
"""

from __future__ import annotations

import math

import numpy as np

from evalpipe.inference.cells import Ints, tally
from evalpipe.inference.model import Floats


def anova_icc(y: Floats, user: Ints) -> float:
    """Intra-user correlation by one-way analysis of variance (Donner, 1986).

    Args:
        y: (N,) outcomes. user: (N,) cluster codes.

    Returns:
        (MSB - MSW) / (MSB + (n0 - 1) MSW), which may be negative; NaN where it is not defined: one
        user, one session a user, or outcomes that do not vary.
    """
    y = np.asarray(y, dtype=np.float64)
    _, code = np.unique(user, return_inverse=True)
    g, n = int(code.max(initial=-1)) + 1, len(y)
    if g < 2 or n <= g:
        return math.nan
    size = np.bincount(code).astype(np.float64)
    mean = tally(code, y, g) / size
    between = float((size * (mean - y.mean()) ** 2).sum()) / (g - 1)
    within = float(((y - mean[code]) ** 2).sum()) / (n - g)
    typical = (n - float((size**2).sum()) / n) / (g - 1)
    total = between + (typical - 1.0) * within
    return (between - within) / total if total > 1e-12 * float((y**2).sum()) else math.nan


def kish_design_effect(user: Ints, icc: float) -> float:
    """1 + (sum m^2 / sum m - 1) max(ICC, 0) for users of m sessions (Kish, 1965).

    It holds where users keep a version; where each session is assigned it plans too large.

    Args:
        user: (N,) cluster codes. icc: intra-user correlation.

    Returns:
        The factor; NaN without sessions or without a correlation.
    """
    size = np.unique(np.asarray(user), return_counts=True)[1].astype(np.float64)
    if len(size) == 0 or math.isnan(icc):
        return math.nan
    return 1.0 + (float((size**2).sum() / size.sum()) - 1.0) * max(icc, 0.0)
