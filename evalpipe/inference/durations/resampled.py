"""Intervals of quantiles of waiting times where sessions of a user are alike: users drawn again.

Belongs here: the user bootstrap of Kaplan-Meier quantiles, which are not smooth and have no closed form
with clusters. Does not belong here: the curve and the band of independent sessions (``kaplan_meier``),
the bootstrap of contrasts of means (``bootstrap``).
"""

from __future__ import annotations

import numpy as np

from evalpipe.inference.cells import Ints
from evalpipe.inference.durations.kaplan_meier import checked
from evalpipe.inference.model import Bools, Floats

#: Replicates, and the fewest where sessions are many: sessions times replicates stay below the budget.
RESAMPLES, FEWEST = 1_000, 200
BUDGET = 20_000_000
_CHUNK_CELLS = 2_000_000
#: As in the quantile of a curve: a step that meets the level but for rounding has reached it.
_ROUNDING = 1e-12


def resampled_quantiles(
    time: Floats, is_event: Bools, user: Ints, q: Floats, seed: int, *, alpha: float = 0.05, n: int = RESAMPLES
) -> tuple[Floats, Floats]:
    """Percentile limits of quantiles over users drawn with replacement (Efron, 1981; Field and Welsh, 2007).

    Args:
        time, is_event: As :func:`~evalpipe.inference.durations.kaplan_meier.kaplan_meier`.
        user: (N,) codes; a user comes with all sessions.
        q: (Q,) shares in (0, 1).
        seed: Non-negative.
        alpha: Error rate. n: replicates, fewer where there are many sessions.

    Returns:
        (Q,) lower and upper limits. A replicate in which the share is not reached counts as later than any
        time, so a limit that so many replicates do not reach is NaN; so is all with fewer than two users.
    """
    time, is_event = checked(time, is_event)
    q = np.asarray(q, dtype=np.float64)
    _, code = np.unique(user, return_inverse=True)
    users = int(code.max(initial=-1)) + 1
    if users < 2:
        return np.full(len(q), np.nan), np.full(len(q), np.nan)
    order = np.argsort(time, kind="stable")
    distinct, first = np.unique(time[order], return_index=True)
    code, event = code[order], is_event[order].astype(np.float64)
    n = min(n, max(FEWEST, BUDGET // len(time)))
    rng = np.random.Generator(np.random.PCG64(seed))
    step = max(1, _CHUNK_CELLS // len(time))
    found = []
    for start in range(0, n, step):
        drawn = rng.multinomial(users, np.full(users, 1.0 / users), size=min(step, n - start))
        weight = drawn[:, code].astype(np.float64)
        leaving = np.add.reduceat(weight, first, axis=1)
        events = np.add.reduceat(weight * event, first, axis=1)
        at_risk = leaving[:, ::-1].cumsum(axis=1)[:, ::-1]
        survival = np.cumprod(1.0 - events / np.maximum(at_risk, 1.0), axis=1)
        for_each = []
        for level in 1.0 - q + _ROUNDING:
            is_below = survival <= level
            at = is_below.argmax(axis=1)
            for_each.append(np.where(is_below.any(axis=1), distinct[at], np.inf))
        found.append(np.stack(for_each, axis=1))
    limits = np.quantile(np.concatenate(found), [alpha / 2.0, 1.0 - alpha / 2.0], axis=0, method="inverted_cdf")
    limits = np.where(np.isfinite(limits), limits, np.nan)
    return limits[0], limits[1]
