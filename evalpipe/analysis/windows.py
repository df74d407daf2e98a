"""Which days a named window of an as-of day holds.

Belongs here: date arithmetic. Does not belong here: which days have data (``store``) or whether a
session is settled (a column of its outcome row).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, timedelta

from evalpipe.contracts.errors import EvalpipeError

ALL = "all"
_TRAILING = re.compile(r"([1-9][0-9]{0,3})d")


def window_bounds(
    as_of: date, window: str, settle_days: int, available_days: Iterable[date]
) -> tuple[date, date] | None:
    """First and last day of a window.

    A trailing window ends ``settle_days`` before the as-of day, because outcomes of younger days may
    still change, and keeps its full length whether or not every day has data: two windows of one
    name are of one length. ``all`` runs from the first to the last day with data up to the as-of
    day; single sessions that may still change are left out by their own ``is_settled``.

    Args:
        as_of: Day that is scored.
        window: ``all``, or a number of days such as ``28d``.
        settle_days: Days until an outcome is final.
        available_days: Days with outcomes, in any order.

    Returns:
        Both days inclusive, or ``None`` where no available day lies in the window.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT`` for another form of ``window``.
    """
    if window == ALL:
        days = [day for day in available_days if day <= as_of]
        return (min(days), max(days)) if days else None
    match = _TRAILING.fullmatch(window)
    if match is None:
        raise EvalpipeError(
            "BAD_ARGUMENT", f"{window!r} is not a window.", where="--window", fix="Write all, or days such as 28d."
        )
    end = as_of - timedelta(days=settle_days)
    start = end - timedelta(days=int(match[1]) - 1)
    return (start, end) if any(start <= day <= end for day in available_days) else None
