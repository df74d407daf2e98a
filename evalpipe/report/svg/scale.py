"""A linear scale with round ticks, in percent of a drawing's width."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_PAD = 3.0
#: A range below this is rounding noise around zero; no tick label could tell it.
_LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from ``lo`` to ``hi`` mapped to percent; mirrored where fewer is better.

    Attributes:
        lo, hi: Ends of the domain.
        ticks: Round values inside it, zero among them.
        is_mirrored: Whether larger values lie further left.
    """

    lo: float
    hi: float
    ticks: tuple[float, ...]
    is_mirrored: bool = False

    def x(self, value: float) -> float:
        """Position of a value in percent; values outside the domain stop at its ends."""
        share = (min(max(value, self.lo), self.hi) - self.lo) / (self.hi - self.lo)
        if self.is_mirrored:
            share = 1 - share
        return _PAD + share * (100 - 2 * _PAD)

    def mirrored(self) -> Scale:
        """The scale of the same values with the other sign, so that right stays better."""
        return Scale(-self.hi, -self.lo, tuple(-tick or 0.0 for tick in reversed(self.ticks)), not self.is_mirrored)

    def pct(self, value: float) -> str:
        """Position of a value as text."""
        return percent(self.x(value))


def percent(position: float) -> str:
    """A position in percent, shortest text at two decimals."""
    return f"{position:.2f}".rstrip("0").rstrip(".") + "%"


def around(values: Iterable[float | None], *, most_ticks: int = 10, is_mirrored: bool = False) -> Scale:
    """A scale that holds zero and every value, rounded outward to a tick.

    Args:
        values: Ends of all intervals that are drawn; None is skipped.
        most_ticks: Upper limit of the number of ticks.
        is_mirrored: Draw larger values further left.
    """
    shown = [0.0, *(value for value in values if value is not None)]
    low, high = min(shown), max(shown)
    if high - low < _LEAST:
        low, high = -1.0, 1.0
    step = _step((high - low) / max(1, most_ticks - 2))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(n * step, 12) for n in range(first, last + 1))
    return Scale(ticks[0], ticks[-1], ticks, is_mirrored)


def _step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= rough * (1 - 1e-9))
