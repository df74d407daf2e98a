"""Two versions on the same tasks.

Belongs here: discordant pairs, McNemar's exact test, the paired difference. Does not belong here:
which tasks both were given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from evalpipe.inference.cells import Ints
from evalpipe.inference.model import Bools


@dataclass(frozen=True, slots=True)
class Paired:
    """What changed from the old version to the new one.

    Attributes:
        n: Tasks. fail_to_pass, pass_to_fail: places of the tasks that changed.
        p: Exact two-sided McNemar p-value; 1 where nothing changed, NaN without tasks.
        estimate, se, lo, hi: New minus old pass rate with its Wald interval.
        status: ``ok`` or ``unavailable``, which concerns the interval.
        reason: ``no_tasks`` or ``no_variation``.
    """

    n: int
    fail_to_pass: Ints
    pass_to_fail: Ints
    p: float
    estimate: float
    se: float
    lo: float
    hi: float
    status: str = "ok"
    reason: str = ""


def paired_difference(old: Bools, new: Bools, alpha: float = 0.05) -> Paired:
    """Compare two versions task by task (McNemar, 1947).

    Args:
        old, new: (N,) whether each version passed each task.
        alpha: Error rate of the interval.

    Returns:
        The change, se = sqrt(b + c - (b - c)^2/n)/n.

    Raises:
        ValueError: Lengths differ.
    """
    old, new = np.asarray(old, dtype=bool), np.asarray(new, dtype=bool)
    if old.shape != new.shape or old.ndim != 1:
        raise ValueError(f"old has shape {old.shape}, new {new.shape}")
    n, up, down = len(old), np.flatnonzero(~old & new), np.flatnonzero(old & ~new)
    b, c = len(up), len(down)
    if n == 0:
        nan = math.nan
        return Paired(0, up, down, nan, nan, nan, nan, nan, "unavailable", "no_tasks")
    p = float(stats.binomtest(b, b + c, 0.5).pvalue) if b + c else 1.0
    estimate = (b - c) / n
    se = math.sqrt(max(b + c - (b - c) ** 2 / n, 0.0)) / n
    if se == 0:
        return Paired(n, up, down, p, estimate, 0.0, math.nan, math.nan, "unavailable", "no_variation")
    half = float(special.ndtri(1.0 - alpha / 2.0)) * se
    return Paired(n, up, down, p, estimate, se, estimate - half, estimate + half)
