"""Release gates: pass, fail or inconclusive.

Belongs here: the decision rule of one gate. Does not belong here: which gates exist (criteria) or
what else bars a decision (passed in as ``blockers``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import optimize, stats

from evalpipe.inference.model import GateResult
from evalpipe.inference.monitor.confidence_sequence import sequence_half_width

#: One-sided level of every gate.
GATE_ALPHA = 0.05
GATE_KINDS = ("non_inferiority", "superiority")
MIN_DF = 4.0
#: Power at which a gate that is asked more than once has its narrowest bounds.
PLANNED_POWER = 0.8


def gate(
    estimate: float,
    se: float,
    df: float,
    gstar: float,
    margin: float,
    kind: str,
    *,
    alpha: float = 0.05,
    blockers: Sequence[str] = (),
    n_earlier: int = 0,
) -> GateResult:
    """Decide one gate from a difference, signed so that positive is better.

    Args:
        estimate: Candidate minus baseline. se: its standard error.
        df: Bell-McCaffrey degrees of freedom. gstar: effective clusters (NaN: unknown). The smaller
            decides: it never under-covers.
        margin: For ``non_inferiority`` the loss that is tolerated, positive. For ``superiority``
            the gain that is asked for, 0 or more.
        kind: One of :data:`GATE_KINDS`.
        alpha: One-sided error rate.
        blockers: Reasons that bar a decision whatever the numbers say, such as ``suspect``.
        n_earlier: Days on which the same was decided before. With any, the bounds are those of a
            sequence that holds on all days at once, since a gate that is asked every night until it
            passes would pass a loss of its whole margin in one month of four.

    Returns:
        ``pass`` if the lower bound is above the line (``-margin``, or ``+margin`` for superiority),
        ``fail`` if the upper bound is below it, else ``inconclusive`` with reasons.

    Raises:
        ValueError: Unknown kind or a margin outside its range.
    """
    if kind not in GATE_KINDS:
        raise ValueError(f"kind must be one of {', '.join(GATE_KINDS)}; got {kind!r}")
    if not math.isfinite(margin) or margin < 0 or (margin == 0 and kind == "non_inferiority"):
        raise ValueError("margin must be positive (0 is allowed for superiority)")
    used = df if math.isnan(gstar) else min(df, gstar)
    if not math.isfinite(estimate):
        return GateResult("inconclusive", math.nan, math.nan, used, (*blockers, "no_estimate"))
    if not (math.isfinite(se) and se > 0 and used > 0):
        return GateResult("inconclusive", math.nan, math.nan, used, (*blockers, "no_variation"))
    half = _half_width(se, used, margin, alpha) if n_earlier else float(stats.t.ppf(1.0 - alpha, used)) * se
    lower, upper = estimate - half, estimate + half
    reasons = list(blockers)
    if used < MIN_DF:
        reasons.append("few_degrees_of_freedom")
    line = margin if kind == "superiority" else -margin
    if reasons:
        return GateResult("inconclusive", lower, upper, used, tuple(reasons))
    if lower > line:
        return GateResult("pass", lower, upper, used)
    if upper < line:
        return GateResult("fail", lower, upper, used)
    return GateResult("inconclusive", lower, upper, used, ("interval_crosses_margin",))


def _half_width(se: float, df: float, margin: float, alpha: float) -> float:
    """Half-width of the confidence sequence, narrowest at the error at which the gate has its planned power.

    Sessions go as the inverse square of the error, so the planned number of sessions need not be known.
    """
    planned = margin / float(stats.norm.ppf(1.0 - alpha) + stats.norm.ppf(PLANNED_POWER)) if margin > 0 else se
    # The sequence is a limit in many users; few of them widen it as they widen a fixed bound.
    few = float(stats.t.ppf(1.0 - alpha, df) / stats.norm.ppf(1.0 - alpha))
    return few * float(sequence_half_width(se, np.square(planned / se), 1.0, alpha))


def nightly_error(margin: float, *, alpha: float = 0.05, power: float = PLANNED_POWER) -> float:
    """Standard error at which a gate that is asked every night passes a candidate that is like the baseline.

    Args:
        margin: Loss that is tolerated, positive, in the metric's units.
        alpha: One-sided level. power: chance of a pass on one such night.

    Returns:
        The error, in the metric's units: sessions go as its inverse square.
    """
    beyond = float(stats.norm.ppf(power))

    def left(se: float) -> float:
        return _half_width(se, math.inf, margin, alpha) + beyond * se - margin

    # A fixed bound passes at an error that is never smaller than this one's.
    fixed = margin / (float(stats.norm.ppf(1.0 - alpha)) + beyond)
    return float(optimize.brentq(left, fixed * 1e-3, fixed))


def margin_p_values(estimate: float, se: float, df: float, margin: float) -> tuple[float, float]:
    """One-sided p-values of a difference against a loss of ``margin``.

    Args:
        estimate, se, df: As in :func:`gate`. margin: loss that is tolerated, positive.

    Returns:
        p of "worse by the margin or more" (small: not inferior) and of "not worse by the margin"
        (small: inferior); NaN without a positive standard error.
    """
    if not (math.isfinite(estimate) and se > 0 and df > 0):
        return math.nan, math.nan
    t = (estimate + margin) / se
    return float(stats.t.sf(t, df)), float(stats.t.cdf(t, df))
