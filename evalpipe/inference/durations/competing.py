"""Times that may end in one of several ways, and groups of times compared.

Belongs here: cumulative incidence by cause and the log-rank test. Does not belong here: one cause
(``kaplan_meier``). A timeout is an end of its own, not a censoring: who timed out will not succeed.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from evalpipe.inference.cells import Ints
from evalpipe.inference.durations.kaplan_meier import checked
from evalpipe.inference.model import Bools, Floats


def cumulative_incidence(time: Floats, cause: Ints, times: Floats, n_causes: int) -> Floats:
    """Share that has ended by each cause, by given times (Aalen and Johansen, 1978).

    Args:
        time: (N,) times to the end or to the last look.
        cause: (N,) 1..n_causes, 0 where the time is censored.
        times: (T,) times to report.
        n_causes: J.

    Returns:
        (J, T); NaN without observations, and beyond the longest time while somebody was still
        waiting there.

    Raises:
        ValueError: As :func:`kaplan_meier`; a cause is out of range.
    """
    cause = np.asarray(cause, dtype=np.int64)
    time, ended = checked(time, cause > 0)
    if len(cause) and (cause.min() < 0 or cause.max() > n_causes):
        raise ValueError(f"cause must lie in 0..{n_causes}")
    times = np.asarray(times, dtype=np.float64)
    if len(time) == 0:
        return np.full((n_causes, len(times)), np.nan)
    distinct, code = np.unique(time, return_inverse=True)
    leaving = np.bincount(code, minlength=len(distinct))
    at_risk = len(time) - np.concatenate(([0], np.cumsum(leaving)[:-1]))
    hazard = np.bincount(code, ended.astype(np.float64), len(distinct)) / at_risk
    after = np.cumprod(1.0 - hazard)
    before = np.concatenate(([1.0], after[:-1]))
    place = np.searchsorted(distinct, times, side="right")
    out = np.empty((n_causes, len(times)))
    for j in range(n_causes):
        mine = np.bincount(code, (cause == j + 1).astype(np.float64), len(distinct)) / at_risk
        out[j] = np.concatenate(([0.0], np.cumsum(before * mine)))[place]
    out[:, (times > distinct[-1]) & (after[-1] > 0)] = np.nan
    return out


def logrank(time: Floats, is_event: Bools, group: Ints) -> tuple[float, int, float]:
    """Log-rank test of equal waiting times (Mantel, 1966; Peto and Peto, 1972).

    Args:
        time, is_event: As :func:`kaplan_meier`.
        group: (N,) codes from 0.

    Returns:
        Chi-square, degrees of freedom and p-value; NaN with fewer than two groups or no events.
    """
    time, is_event = checked(time, is_event)
    _, group = np.unique(np.asarray(group), return_inverse=True)
    n_groups = int(group.max(initial=-1)) + 1
    if n_groups < 2 or not is_event.any():
        return math.nan, max(n_groups - 1, 0), math.nan
    distinct, code = np.unique(time, return_inverse=True)
    shape = (len(distinct), n_groups)
    key = code * n_groups + group
    leaving = np.bincount(key, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    events = np.bincount(key, is_event.astype(np.float64), shape[0] * shape[1]).reshape(shape)
    at_risk = np.cumsum(leaving[::-1], axis=0)[::-1]
    n, d = at_risk.sum(axis=1), events.sum(axis=1)
    share = at_risk / n[:, None]
    gap = (events - d[:, None] * share).sum(axis=0)
    # Hypergeometric variance of who had the events at each time.
    scale = np.where(n > 1, d * (n - d) / np.maximum(n - 1.0, 1.0), 0.0)
    cov = np.diag(scale @ share) - np.einsum("t,ti,tj->ij", scale, share, share)
    kept = slice(0, n_groups - 1)
    statistic = float(gap[kept] @ np.linalg.pinv(cov[kept, kept]) @ gap[kept])
    return statistic, n_groups - 1, float(stats.chi2.sf(statistic, n_groups - 1))
