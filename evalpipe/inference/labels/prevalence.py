"""What the errors of a signal do to a rate and to a comparison.

Belongs here: correction of a rate for known sensitivity and specificity, and how different the
error rates of versions would have to be to explain an effect. Does not belong here: correction by
labels of each version (``ppi``), which is the better one where there are labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evalpipe.inference.proportions import wilson

#: Youden's index below which a signal says too little to correct a rate by it.
MIN_YOUDEN = 0.2


@dataclass(frozen=True, slots=True)
class Prevalence:
    """A rate corrected for the errors of the signal that counted it.

    Attributes:
        apparent: Rate that was counted. estimate, lo, hi: corrected, not cut to [0, 1].
        is_outside: Whether the estimate lies outside [0, 1]: the error rates cannot be right.
        status: ``ok`` or ``unavailable``. reason: ``no_sessions`` or ``signal_uninformative``.
    """

    apparent: float
    estimate: float
    lo: float
    hi: float
    is_outside: bool = False
    status: str = "ok"
    reason: str = ""

    @property
    def truncated(self) -> float:
        """The estimate cut to [0, 1], for display; NaN where unavailable."""
        return self.estimate if math.isnan(self.estimate) else min(max(self.estimate, 0.0), 1.0)


def rogan_gladen(
    positive: float,
    n: float,
    sensitivity: float,
    specificity: float,
    alpha: float = 0.05,
    *,
    min_youden: float = MIN_YOUDEN,
) -> Prevalence:
    """True rate behind an apparent one (Rogan and Gladen, 1978), with Wilson limits carried through.

    Args:
        positive: Sessions in which the signal fired. n: sessions.
        sensitivity, specificity: Error rates, taken as known.
        alpha: Error rate of the interval.
        min_youden: Smallest sensitivity + specificity - 1 that is corrected by.

    Returns:
        (p + Sp - 1) / (Se + Sp - 1).

    Raises:
        ValueError: An error rate lies outside [0, 1].
    """
    if not (0 <= sensitivity <= 1 and 0 <= specificity <= 1):
        raise ValueError("sensitivity and specificity must lie in [0, 1]")
    nan = math.nan
    if not n > 0:
        return Prevalence(nan, nan, nan, nan, status="unavailable", reason="no_sessions")
    youden, p = sensitivity + specificity - 1.0, positive / n
    if youden <= min_youden:
        return Prevalence(p, nan, nan, nan, status="unavailable", reason="signal_uninformative")
    limits = (float(limit) for limit in wilson(positive, n, alpha))
    estimate, lo, hi = ((value + specificity - 1.0) / youden for value in (p, *limits))
    return Prevalence(p, estimate, lo, hi, is_outside=not 0 <= estimate <= 1)


def misclassification_value(estimate: float, n_versions: int) -> float:
    """Smallest difference of error rates between versions that could explain a net improvement.

    If sensitivity and specificity of each version stay within delta of their averages, the true
    effect times Youden's index lies within 2 delta (1 - 1/K) of the observed one.

    Args:
        estimate: Net improvement against the uniform mean. n_versions: K.

    Returns:
        |estimate| / (2 (1 - 1/K)); NaN with fewer than two versions or without an estimate.
    """
    if n_versions < 2 or not math.isfinite(estimate):
        return math.nan
    return abs(estimate) / (2.0 * (1.0 - 1.0 / n_versions))
