"""Times as logs write them, as one layout of text that sorts as it runs.

Belongs here: ISO 8601 and RFC 3339 in all their spellings, and counts since 1970. Does not belong
here: which time of a record means what (``readers/``).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_DAY_AND_TIME = re.compile(r"(.{8,10})[Tt ](\d\d)(:?)(\d\d)(?:\3(\d\d)(.*)|(.*))")
_FINE = re.compile(r"[.,][0-9]{4}")
_DIGITS = re.compile(r"[0-9]{10}(?:[0-9]{3}){0,3}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: Counts per second, by the smallest count that is taken for that unit. Each band is the years 1973
#: to 5138 in its unit, so no count of one unit can be meant for another.
_COUNTS = ((10**17, 10**9), (10**14, 10**6), (10**11, 10**3), (10**8, 1))


def normal_time(value: object) -> str | None:
    """A logged time as ISO text of the one layout that sorts as it runs; ``None`` if it is none.

    Args:
        value: ISO text, or a number of seconds, milli-, micro- or nanoseconds since 1970, also as
            text of 10, 13, 16 or 19 digits.
    """
    if type(value) is str:
        if len(value) == 24 and value[23] == "Z" and value[10] == "T" and value[4] == "-":
            return value
        is_fine = _FINE.search(value) is not None
        if _DIGITS.fullmatch(value):
            return normal_time(int(value))
        moment = parse_time(value)
    elif type(value) is int or type(value) is float:
        is_fine = value >= _COUNTS[1][0]
        moment = _of_count(value)
    else:
        return None
    if moment is None:
        return None
    # One log writes one unit. Milliseconds unless it writes finer ones, since that is what most do:
    # ".853Z" and ".853092Z" do not sort as they run.
    unit = "microseconds" if is_fine or moment.microsecond % 1000 else "milliseconds"
    return moment.replace(tzinfo=None).isoformat(timespec=unit) + "Z"


def parse_time(value: str) -> datetime | None:
    """An ISO time as UTC; without a zone it is taken for UTC. ``None`` where it is not a time.

    Year 1 with a zone that leads out of the calendar is the calendar's first moment, so that it is
    seen to be out of range rather than taken for no date at all.
    """
    try:
        return _utc(datetime.fromisoformat(value))
    except ValueError:
        return _odd_time(value)


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return (datetime.min if moment.year == 1 else datetime.max).replace(tzinfo=UTC)


def _odd_time(value: str) -> datetime | None:
    """What RFC 3339 or ISO 8601 allow and Python refuses: small letters, 24:00, leap seconds."""
    match = _DAY_AND_TIME.fullmatch(value)
    if match is None:
        return None
    day, hour, colon, minute, second, after, bare_zone = match.groups()
    later = timedelta()
    is_leap = second == "60"
    if hour == "24":
        if minute != "00" or (second or "00") != "00" or re.match(r"[.,]0*[1-9]", after or ""):
            return None
        hour, later = "00", timedelta(days=1)
    elif is_leap:
        second, later = "59", timedelta(seconds=1)
    clock = hour + colon + minute + ("" if second is None else colon + second)
    try:
        moment = _utc(datetime.fromisoformat(f"{day}T{clock}{(after or bare_zone or '').upper()}")) + later
    except (ValueError, OverflowError):
        return None
    # A leap second is the last of a UTC day; it is taken for the first of the next, as POSIX does.
    return None if is_leap and (moment.hour or moment.minute) else moment


def _of_count(count: float) -> datetime | None:
    for smallest, per_second in _COUNTS:
        if smallest <= count < smallest * 1000:
            # Whole numbers as such: a float of nanoseconds has lost its last digits.
            micros = round(count * 10**6 / per_second) if type(count) is float else int(count) * 10**6 // per_second
            return _EPOCH + timedelta(microseconds=micros)
    return None
