"""How strong an unmeasured cause would have to be, on the scale of risk ratios.

Belongs here: E-values. Does not belong here: bounds on tests (``rosenbaum``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EValue:
    """An E-value of an estimate and of its interval.

    Attributes:
        point: Risk ratio that a hidden cause needs with both assignment and outcome to explain the
            estimate away. limit: the same for the limit nearer 1; 1 where the interval holds 1.
    """

    point: float
    limit: float


def e_value(ratio: float, lo: float = math.nan, hi: float = math.nan) -> EValue:
    """E-value of a risk ratio (VanderWeele and Ding, 2017).

    Args:
        ratio: Risk ratio, positive. lo, hi: its interval; NaN if there is none.

    Returns:
        RR + sqrt(RR (RR - 1)), of 1/RR where the ratio is below 1; NaN where a ratio is not
        positive or not known.
    """
    if not (ratio > 0 and math.isfinite(ratio)):
        return EValue(math.nan, math.nan)
    if math.isnan(lo) or math.isnan(hi):
        limit = math.nan
    elif lo <= 1.0 <= hi:
        limit = 1.0
    else:
        limit = _single(lo if ratio > 1 else hi)
    return EValue(_single(ratio), limit)


def _single(ratio: float) -> float:
    if not (ratio > 0 and math.isfinite(ratio)):
        return math.nan
    ratio = 1.0 / ratio if ratio < 1 else ratio
    return ratio + math.sqrt(ratio * (ratio - 1.0))
