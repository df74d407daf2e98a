"""Adjusted p-values of families of independent reports.

Belongs here: rules that read p-values alone. Does not belong here: the step-down over versions,
which reads their joint covariance (``simultaneous``).
"""

from __future__ import annotations

import numpy as np

from evalpipe.inference.model import Floats

P_METHODS = ("bonferroni", "holm", "hochberg", "bh", "by")


def adjust(p: Floats, method: str) -> Floats:
    """Adjust p-values.

    Args:
        p: (M,) p-values; NaN entries stay NaN and are not counted.
        method: Family-wise error: ``bonferroni``, ``holm`` (Holm, 1979), ``hochberg`` (Hochberg,
            1988; not under negative dependence). False discovery rate: ``bh`` (Benjamini and
            Hochberg, 1995), ``by`` (Benjamini and Yekutieli, 2001; under any dependence).

    Returns:
        (M,) adjusted p-values.

    Raises:
        ValueError: Unknown method.
    """
    if method not in P_METHODS:
        raise ValueError(f"method must be one of {', '.join(P_METHODS)}; got {method!r}")
    p = np.asarray(p, dtype=float)
    out = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    m = len(known)
    if m == 0:
        return out
    order = known[np.argsort(p[known], kind="stable")]
    ranks = np.arange(1, m + 1)
    if method == "bonferroni":
        adjusted = m * p[order]
    elif method == "holm":
        adjusted = np.maximum.accumulate((m - ranks + 1) * p[order])
    elif method == "hochberg":
        adjusted = np.minimum.accumulate(((m - ranks + 1) * p[order])[::-1])[::-1]
    else:
        penalty = float((1.0 / ranks).sum()) if method == "by" else 1.0
        adjusted = np.minimum.accumulate((penalty * m / ranks * p[order])[::-1])[::-1]
    out[order] = np.minimum(adjusted, 1.0)
    return out
