"""What unknown outcomes could do to a net improvement at worst.

Belongs here: bounds that assume nothing of the unknown. Does not belong here: how often outcomes are
unknown, or whether versions differ in it.
"""

from __future__ import annotations

import numpy as np

from evalpipe.inference.cells import Ints, divide, tally
from evalpipe.inference.model import Bools, Floats


def worst_case_bounds(
    y: Floats,
    is_known: Bools,
    version: Ints,
    stratum: Ints,
    weights: Floats,
    n_versions: int,
    v: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Bounds of net improvement against the uniform mean (Manski, 1990).

    Args:
        y: (N,) outcomes in [0, 1]; read where known. is_known: (N,).
        version, stratum: (N,) codes. n_versions: K.
        weights: (S,) traffic weights of the strata; NaN or 0 leaves one out.
        v: (N,) sampling weights of the sessions; 1 by default.

    Returns:
        (K,) lower bounds, each version's unknown outcomes all 0 and those of the others all 1, and
        upper bounds the other way round; NaN where a version lacks a stratum that counts.
    """
    used = np.isfinite(weights) & (weights > 0)
    if not used.any():
        return np.full(n_versions, np.nan), np.full(n_versions, np.nan)
    w = np.where(used, weights, 0.0) / weights[used].sum()
    size = n_versions * len(weights)
    cell = version.astype(np.int64) * len(weights) + stratum
    v = np.ones(len(y)) if v is None else v
    n = tally(cell, v, size)
    found = tally(cell, np.where(is_known, v * y, 0.0), size)
    unknown = tally(cell, np.where(is_known, 0.0, v), size)
    low, high = (
        (divide(top, n).reshape(n_versions, -1)[:, used] @ w[used]) for top in (found, found + unknown)
    )  # fmt: skip
    share = 1.0 / n_versions
    lower = low - share * (low + high.sum() - high)
    upper = high - share * (high + low.sum() - low)
    return np.asarray(lower), np.asarray(upper)
