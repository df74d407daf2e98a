"""What validation found: one quantity of one scenario, beside its target.

Belongs here: the value object, its verdict, its simulation error, and its row. Does not belong here: where
a number comes from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evalpipe.contracts import render
from evalpipe.contracts.tables.validation import VALIDATION
from evalpipe.inference import wilson

Floats = NDArray[np.float64]
_Z95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Finding:
    """One quantity of one scenario.

    Attributes:
        part: ``grid`` (simulated worlds), ``guard`` (what must be refused or counted) or ``replay``
            (the user's own sessions).
        scenario, quantity: What was tried, and what was counted.
        question: One sentence.
        estimate: NaN where there is no number. lo, hi: its 95 % Monte-Carlo interval.
        target: Inclusive range that it should lie in; ``None`` for a number shown for contrast.
        replications: Independent repetitions behind it.
        n_trials: Things that were counted in them, such as intervals.
        note: Why there is no number, or what it stands for.
        limit: Range that is documented where the target is known to be missed.
    """

    part: str
    scenario: str
    quantity: str
    question: str
    estimate: float
    lo: float
    hi: float
    target: tuple[float, float] | None
    replications: int
    n_trials: int
    note: str = ""
    limit: tuple[float, float] | None = None

    @property
    def is_met(self) -> bool | None:
        """Whether the estimate lies in the target.

        ``None`` where nothing is asked, where there is no number, and where the estimate lies outside
        while its Monte-Carlo interval reaches in: more replications would tell.
        """
        if self.target is None or not math.isfinite(self.estimate):
            return None
        low, high = self.target
        if low <= self.estimate <= high:
            return True
        return None if self.lo <= high and self.hi >= low else False

    @property
    def is_known(self) -> bool:
        """Whether the target is not met in the way that is documented, and not by more."""
        if self.limit is None or self.is_met is True:
            return False
        return self.limit[0] <= self.estimate <= self.limit[1]


def share(hits: Floats, trials: Floats) -> tuple[float, float, float]:
    """A share over replications with its 95 % interval.

    Args:
        hits, trials: Counts of each replication, (R,). Trials of one replication are not independent.

    Returns:
        Estimate and Wilson limits on the effective number of trials; NaN without trials.
    """
    total = float(trials.sum())
    if total == 0:
        return math.nan, math.nan, math.nan
    p, n = float(hits.sum()) / total, len(hits)
    spread = float(np.square(hits - p * trials).sum()) / total**2 * n / max(n - 1, 1)
    # Alike replications hold one trial each; no replication holds more than what it counted.
    effective = min(p * (1.0 - p) / spread, total) if spread > 0 else float(n)
    lo, hi = wilson(p * effective, effective)
    return p, float(lo), float(hi)


def average(values: Floats) -> tuple[float, float, float]:
    """A mean over replications, (R,), with its 95 % interval; NaN without any."""
    if not len(values):
        return math.nan, math.nan, math.nan
    mean = float(values.mean())
    half = _Z95 * float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    return mean, mean - half, mean + half


def finding_rows(findings: Iterable[Finding], *, seed: int, code_version: str, data: str = "") -> pl.DataFrame:
    """Rows of ``analysis.validation``.

    Args:
        findings: What was found.
        seed: Seed of the run.
        code_version: Version of the estimates that were validated.
        data: Digest of the sessions that were replayed; empty without any.
    """
    rows: list[dict[str, object]] = [
        {
            "part": one.part,
            "scenario": one.scenario,
            "quantity": one.quantity,
            "question": one.question,
            "estimate": _known(one.estimate),
            "lo": _known(one.lo),
            "hi": _known(one.hi),
            "target_lo": one.target[0] if one.target else None,
            "target_hi": one.target[1] if one.target else None,
            "is_met": one.is_met,
            "is_known": one.is_known,
            "replications": one.replications,
            "n_trials": one.n_trials,
            "note": one.note,
            "seed": seed,
            "code_version": code_version,
            "data_digest": data if one.part == "replay" else "",
        }
        for one in findings
    ]
    return render.conform(VALIDATION, render.frame(VALIDATION, rows)).sort(VALIDATION.sort)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
