"""What a caller gives, as the log can say it; what it cannot say raises at once.

Belongs here: turning values of an agent's own types (ids that are numbers, counts of numpy) into plain
ones. Does not belong here: what is recorded. A value that the log held in another form would be read as
absent, and a user, a consent or an outcome would be gone without a word.
"""

from __future__ import annotations

import math
import operator
import uuid
from typing import Any


def text_of(name: str, value: Any) -> str | None:
    """A text or an id.

    Raises:
        TypeError: It is neither text nor a whole number nor a UUID.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, uuid.UUID) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise TypeError(f"{name} is no text: {type(value).__name__}")


def said(name: str, value: Any) -> str | None:
    """What somebody said.

    Raises:
        TypeError: It is no text.
    """
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"{name} is no text: {type(value).__name__}")


def count_of(name: str, value: Any) -> int | None:
    """A whole number, of whatever type counts it.

    Raises:
        TypeError: It is no whole number.
    """
    if value is None:
        return None
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is no whole number: {type(value).__name__}") from None


def number_of(name: str, value: Any) -> float | None:
    """A finite number.

    Raises:
        TypeError: It is no number. ValueError: It is not finite.
    """
    if value is None:
        return None
    if isinstance(value, str | bytes | bool):
        raise TypeError(f"{name} is no number: {type(value).__name__}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is no number: {type(value).__name__}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} is not finite")
    return number


def flag_of(name: str, value: Any) -> bool | None:
    """Yes or no.

    Raises:
        TypeError: It is neither.
    """
    if value is None:
        return None
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):  # numpy's, which need not be here
        return bool(value)
    raise TypeError(f"{name} is neither True nor False: {type(value).__name__}")
