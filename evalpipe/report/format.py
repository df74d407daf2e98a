"""How numbers, dates, intervals and labels are written. One place, so that all outputs agree.

Belongs here: pure functions from a value to plain text. Does not belong here: markup, and any
choice of words around a number (``words.py``).
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.metrics import BY_NAME

MINUS = "\u2212"
DASH = "\u2013"
NBSP = "\u00a0"
UNAVAILABLE = "unavailable"

#: Bidirectional controls: in a label they could make a name read as another one.
_BIDI = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class Unit:
    """How a metric is shown: its values times ``scale``, followed by ``suffix``."""

    name: str
    scale: float
    suffix: str


PP = Unit("pp", 100.0, f"{NBSP}pp")
COUNT = Unit("per session", 1.0, "")


def unit_of(metric: str) -> Unit:
    """The unit of a metric: percentage points for rates, plain counts otherwise.

    Raises:
        EvalpipeError: ``CONTRACT_BROKEN`` for a metric that the contracts do not know.
    """
    if metric not in BY_NAME:
        raise EvalpipeError("CONTRACT_BROKEN", "a metric that contracts do not declare", where="report.metric")
    return PP if BY_NAME[metric].is_rate else COUNT


def decimals(half_width: float | None, unit: Unit) -> int:
    """Decimals that an interval of this half-width (in metric units) supports."""
    if half_width is None or half_width <= 0:
        return 1 if unit is PP else 2
    shown = half_width * unit.scale
    if unit is PP:
        return 0 if shown >= 10 else 1
    return max(0, min(4, math.floor(0.5 - math.log10(shown / 10))))


def signed(value: float, unit: Unit, places: int) -> str:
    """A signed number with a true minus; zero has no sign."""
    text = f"{abs(value * unit.scale):,.{places}f}"
    if not any(digit in "123456789" for digit in text):
        return text
    return f"{'+' if value > 0 else MINUS}{text}"


def bound(value: float, unit: Unit, places: int) -> str:
    """An end of an interval: a signed number that keeps its sign where it rounds to zero.

    Whether 0 lies inside is what an interval is read for, and ``0.0`` would leave it open.
    """
    text = signed(value, unit, places)
    return f"{'+' if value > 0 else MINUS}{text}" if value and text[0] not in f"+{MINUS}" else text


def interval(lo: float | None, hi: float | None, unit: Unit, places: int) -> str:
    """An interval in square brackets, or the word where it does not exist."""
    if lo is None or hi is None:
        return "[interval unavailable]"
    return f"[{bound(lo, unit, places)}, {bound(hi, unit, places)}]"


def estimate(value: float | None, lo: float | None, hi: float | None, unit: Unit) -> str:
    """An estimate with its interval in one phrase, such as ``+3.9 pp [+0.9, +6.9]`` (no break before pp)."""
    if value is None:
        return UNAVAILABLE
    places = places_for(lo, hi, unit)
    return f"{signed(value, unit, places)}{unit.suffix} {interval(lo, hi, unit, places)}"


def places_for(lo: float | None, hi: float | None, unit: Unit) -> int:
    """Decimals for an interval given by its ends."""
    return decimals(None if lo is None or hi is None else (hi - lo) / 2, unit)


def size(value: float, unit: Unit, places: int | None = None) -> str:
    """An unsigned amount with its unit, such as a margin or a smallest visible gap."""
    digits = decimals(None, unit) if places is None else places
    return f"{abs(value) * unit.scale:,.{digits}f}{unit.suffix}"


def percent(share: float | None, places: int = 1) -> str:
    """A share of a whole, without space before the sign."""
    return UNAVAILABLE if share is None else f"{share * 100:.{places}f}%"


def level(value: float | None, lo: float | None, hi: float | None, unit: Unit) -> str:
    """A level (not a difference) with its interval, such as ``61.3% [58.1, 64.4]``."""
    if value is None:
        return UNAVAILABLE
    places, number = 1 if unit is PP else 2, level_value(value, unit)
    if lo is None or hi is None:
        return f"{number} [interval unavailable]"
    return f"{number} [{lo * unit.scale:.{places}f}, {hi * unit.scale:.{places}f}]"


def level_value(value: float, unit: Unit) -> str:
    """A level without its interval, such as ``61.3%``."""
    return f"{value * unit.scale:.1f}%" if unit is PP else f"{value * unit.scale:.2f}"


def count(value: int | None) -> str:
    """A count with thousands separators."""
    return UNAVAILABLE if value is None else f"{value:,}"


def number(value: float | None) -> str:
    """A plain value of a check: four significant digits, integers whole."""
    if value is None:
        return UNAVAILABLE
    if float(value).is_integer() and abs(value) < 1e15:
        text = f"{abs(int(value)):,}"
    else:
        text = f"{abs(value):,.4g}"
    return f"{MINUS}{text}" if value < 0 else text


def rank_set(lo: int | None, hi: int | None) -> str:
    """A rank set, ``1–4``, or a single rank."""
    if lo is None or hi is None:
        return UNAVAILABLE
    return str(lo) if lo == hi else f"{lo}{DASH}{hi}"


def day(value: date | None) -> str:
    """A day, such as ``8 Nov 2026``."""
    return UNAVAILABLE if value is None else f"{value.day} {_MONTHS[value.month - 1]} {value.year}"


def day_range(first: date | None, last: date | None) -> str:
    """Two days, without repeating a shared year."""
    if first is None or last is None:
        return "window unavailable"
    if first == last:
        return day(first)
    left = day(first) if first.year != last.year else f"{first.day} {_MONTHS[first.month - 1]}"
    return f"{left} {DASH} {day(last)}"


def listed(items: Sequence[str]) -> str:
    """``A``, ``A and B``, ``A, B and C``."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def plural(n: int, one: str, many: str | None = None) -> str:
    """A count with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def clean_label(text: str) -> str:
    """A label from a log, safe to show: controls and bidirectional marks become U+FFFD.

    Line breaks become spaces. Markup is not touched here: each output escapes for itself.
    """
    out = []
    for char in text:
        if char in "\t\n\r\u2028\u2029":
            out.append(" ")
        elif char in _BIDI or unicodedata.category(char) in {"Cc", "Cs"}:
            out.append("\ufffd")
        else:
            out.append(char)
    return "".join(out).strip() or "(no name)"
