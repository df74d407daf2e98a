"""Turns from a correction to being back on track.

Belongs here: one episode's score, and the share recovered within k turns over many episodes. Does
not belong here: what a correction or a success is (``signals``).
"""

from __future__ import annotations

from collections.abc import Sequence

from evalpipe.inference.durations.kaplan_meier import Curve, kaplan_meier
from evalpipe.inference.model import Bools, Floats


def steerability_score(turns: Sequence[object], correction_index: int) -> float:
    """1 / turns from a correction to the first success after it; 0 if there is none.

    Args:
        turns: Whether each turn was a success, in order.
        correction_index: Place of the correction, from 0.

    Raises:
        ValueError: The correction lies outside the turns.
    """
    if not 0 <= correction_index < len(turns):
        raise ValueError(f"correction_index must lie in 0..{len(turns) - 1}")
    for k, is_success in enumerate(turns[correction_index + 1 :], start=1):
        if is_success:
            return 1.0 / k
    return 0.0


def recovery_curve(turns: Floats, is_recovered: Bools, alpha: float = 0.05) -> Curve:
    """Share of corrections still not recovered after k = 1, 2, ... turns.

    A session that ends before it is back on track says only that recovery took longer: its episode
    is censored at the turns that were seen, which a mean of 1/k with zeros for them cannot say.

    Args:
        turns: (E,) turns to recovery, or turns seen after the correction; whole numbers.
        is_recovered: (E,) whether recovery was seen.
        alpha: Error rate of the band.

    Returns:
        The curve in discrete time (Kaplan and Meier, 1958); 1 - S(k) recovered within k turns.

    Raises:
        ValueError: As :func:`kaplan_meier`; a number of turns is not whole.
    """
    curve = kaplan_meier(turns, is_recovered, alpha)
    if (curve.time != curve.time.round()).any():
        raise ValueError("turns must be whole numbers")
    return curve
