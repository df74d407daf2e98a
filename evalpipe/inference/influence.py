"""Variance from influence: what each session, and then each user, moves an estimate by.

Belongs here: sums of influence by user and their covariance. Does not belong here: any estimator.
"""

from __future__ import annotations

import numpy as np

from evalpipe.inference.cells import Ints, tally
from evalpipe.inference.model import Floats


def clustered_covariance(influence: Floats, user: Ints | None = None, *, is_centred: bool = False) -> Floats:
    """Covariance of F estimates from their influence.

    Args:
        influence: (N, F) share of each session in each estimate; columns sum to about 0.
        user: (N,) cluster codes; None when every session is its own.
        is_centred: Whether the mean over clusters is taken out first, as for totals of a survey
            (Binder, 1983), whose influence does not sum to 0.

    Returns:
        (F, F) G/(G - 1) sum over clusters of the products of their sums; NaN with fewer than two.
    """
    influence = np.asarray(influence, dtype=np.float64)
    if user is not None:
        _, code = np.unique(user, return_inverse=True)
        size = int(code.max(initial=-1)) + 1
        influence = np.stack([tally(code, column, size) for column in influence.T], axis=1)
    g = len(influence)
    if g < 2:
        return np.full((influence.shape[1],) * 2, np.nan)
    if is_centred:
        influence = influence - influence.mean(axis=0)
    return np.asarray(g / (g - 1.0) * (influence.T @ influence))
