"""Family-wise error from permuted statistics: how large the largest of them gets by chance.

Belongs here: Westfall-Young step-down and single-step adjustment, given replicates. Does not belong
here: how replicates are drawn, or the step-down from a covariance (``simultaneous``), which holds
where only some of the nulls are true.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalpipe.inference.model import Floats

_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class MaximaP:
    """p-values of M hypotheses, each (M,); NaN where the observed statistic is.

    Attributes:
        raw: Of each hypothesis alone. single_step: against the largest of all.
        step_down: Algorithm 4.1 of Westfall and Young (1993).
    """

    raw: Floats
    single_step: Floats
    step_down: Floats


def westfall_young(observed: Floats, replicates: Floats, *, is_exact: bool = False) -> MaximaP:
    """Adjust p-values by the permutation law of the maximum.

    Args:
        observed: (M,) statistics, read without sign.
        replicates: (B, M) statistics under permutation of one labelling at a time, so that rows
            keep the dependence of the hypotheses.
        is_exact: Whether the rows are all arrangements, the observed one among them; otherwise the
            observed one is counted in, (1 + #)/(B + 1).

    Returns:
        The p-values.

    Raises:
        ValueError: Shapes do not fit, or there is no replicate.
    """
    t, drawn = np.abs(np.asarray(observed, dtype=np.float64)), np.abs(np.asarray(replicates, dtype=np.float64))
    if drawn.ndim != 2 or drawn.shape[1:] != t.shape or len(drawn) == 0:
        raise ValueError(f"observed has shape {t.shape}, replicates {drawn.shape}")
    raw, single, down = (np.full(len(t), np.nan) for _ in range(3))
    at = np.flatnonzero(~np.isnan(t))
    if len(at) == 0:
        return MaximaP(raw, single, down)
    order = at[np.argsort(-t[at], kind="stable")]
    limit = t[order] - _TOLERANCE
    ordered = np.nan_to_num(drawn[:, order], nan=0.0)
    # open_peak[:, i]: largest statistic among hypothesis i and all that are less extreme.
    open_peak = np.maximum.accumulate(ordered[:, ::-1], axis=1)[:, ::-1]
    raw[order] = _share(ordered >= limit, is_exact=is_exact)
    single[order] = _share(open_peak[:, :1] >= limit, is_exact=is_exact)
    down[order] = np.maximum.accumulate(_share(open_peak >= limit, is_exact=is_exact))
    return MaximaP(raw, single, down)


def _share(exceeds: np.ndarray, *, is_exact: bool) -> Floats:
    count, n = exceeds.sum(axis=0), len(exceeds)
    return np.asarray(count / n if is_exact else (1.0 + count) / (n + 1.0))
