"""Times as logs write them, as one layout of text that sorts as it runs.

Belongs here: ISO 8601 and RFC 3339 in all their spellings, what other programs write in their place,
counts since 1970, and columns of times. Does not belong here: which time of a record means what (``readers/``).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import numpy as np
import polars as pl

_DAY_AND_TIME = re.compile(r"(.{8,10})[Tt ](\d\d)(:?)(\d\d)(?:\3(\d\d)(.*)|(.*))")
_FINE = re.compile(r"[.,][0-9]{4}")
_DIGITS = re.compile(r"[0-9]{10}(?:[0-9]{3}){0,3}")
_FRACTION = re.compile(r"[0-9]{10}\.[0-9]{1,9}")
#: "2026/01/05 10:00:00", "2026-01-05 10:00:00 UTC", Go's "… +0100 CET m=+0.1", Java's "…+01:00[Europe/Berlin]".
_NAMED_ZONE = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?([+-]\d\d:?\d\d)?"
    r" ?([A-Za-z]{1,5})?(?:\[[\w/+-]{1,40}\])?(?: m=[+-][\d.]{1,20})?"
)
_ZERO_ZONES = frozenset({None, "UTC", "GMT", "Z", "z"})
#: RFC 2822, as mail and HTTP write times.
_MAIL = re.compile(r"(?:[A-Z][a-z]{2}, ?)?\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d(?::\d\d)? (?:[A-Z]{1,4}|[+-]\d{4})\Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: Counts per second, by the smallest count that is taken for that unit. Each band is the years 1973
#: to 5138 in its unit, so no count of one unit can be meant for another.
_COUNTS = ((10**17, 10**9), (10**14, 10**6), (10**11, 10**3), (10**8, 1))

#: Places of digits and of all other characters in the two layouts that ``normal_time`` writes.
_LAYOUTS = {
    len(layout): (
        [n for n, c in enumerate(layout) if c == "0"],
        [(n, ord(c)) for n, c in enumerate(layout) if c != "0"],
    )
    for layout in ("0000-00-00T00:00:00.000Z", "0000-00-00T00:00:00.000000Z")
}
_ZERO, _NINE = ord("0"), ord("9")


def normal_time(value: object) -> str | None:
    """A logged time as ISO text of the one layout that sorts as it runs; ``None`` if it is none, or was not set.

    Args:
        value: ISO text and what databases and mail make of it, or a number of seconds, milli-, micro- or
            nanoseconds since 1970, also as text of 10, 13, 16 or 19 digits.
    """
    if type(value) is str:
        if len(value) == 24 and value[23] == "Z" and value[10] == "T" and value[4] == "-" and value[0] != "0":
            return value
        if len(value) == 19 and value.isascii() and value.isdecimal():
            return normal_time(int(value))  # nanoseconds of a trace
        is_fine = _FINE.search(value) is not None
        if _DIGITS.fullmatch(value):
            return normal_time(int(value))
        if _FRACTION.fullmatch(value):
            return normal_time(float(value))
        moment = parse_time(value)
    elif type(value) is int or type(value) is float:
        is_fine = value >= _COUNTS[1][0]
        moment = _of_count(value)
    else:
        return None
    if moment is None or moment.year == 1:
        # The zero of Go and .NET: a time that was never set.
        return None
    # One log writes one unit. Milliseconds unless it writes finer ones, since that is what most do:
    # ".853Z" and ".853092Z" do not sort as they run.
    unit = "microseconds" if is_fine or moment.microsecond % 1000 else "milliseconds"
    return moment.replace(tzinfo=None).isoformat(timespec=unit) + "Z"


def parse_time(value: str) -> datetime | None:
    """An ISO time as UTC; without a zone it is taken for UTC. ``None`` where it is not a time.

    Year 1 with a zone that leads out of the calendar is the calendar's first moment.
    """
    try:
        return _utc(datetime.fromisoformat(value))
    except ValueError:
        return _odd_time(value) or _foreign_time(value)


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


def _foreign_time(value: str) -> datetime | None:
    """What other languages, databases and mail write: a zone by its name, slashes, names of months."""
    if _MAIL.match(value):
        try:
            return _utc(parsedate_to_datetime(value))
        except (ValueError, OverflowError):
            return None
    match = _NAMED_ZONE.fullmatch(value)
    if match is None:
        return None
    year, month, day, clock, zone, name = match.groups()
    if zone is None and name not in _ZERO_ZONES:
        return None
    try:
        return _utc(datetime.fromisoformat(f"{year}-{month}-{day}T{clock}{zone or ''}"))
    except ValueError:
        return None


def _of_count(count: float) -> datetime | None:
    for smallest, per_second in _COUNTS:
        if smallest <= count < smallest * 1000:
            # Whole numbers as such: a float of nanoseconds has lost its last digits.
            micros = round(count * 10**6 / per_second) if type(count) is float else int(count) * 10**6 // per_second
            return _EPOCH + timedelta(microseconds=micros)
    return None


def time_column(name: str, values: list[str | None]) -> pl.Series:
    """ISO texts as a column of UTC times; null where a text is not a time.

    Args:
        name: Name of the column.
        values: What ``normal_time`` gave, which is read all at once; other texts are read one by one.
    """
    moments = _all_at_once([value for value in values if value is not None])
    if moments is None:
        parsed = [None if value is None else parse_time(value) for value in values]
        return pl.Series(name, parsed, dtype=pl.Datetime("us", "UTC"))
    if len(moments) < len(values):
        stated = np.array([value is not None for value in values], dtype=bool)
        spread = np.full(len(values), np.datetime64("NaT"), dtype="datetime64[us]")
        spread[stated] = moments
        moments = spread
    return pl.Series(name, moments, dtype=pl.Datetime("us")).dt.replace_time_zone("UTC")


def _all_at_once(values: list[str]) -> np.ndarray[tuple[int], np.dtype[np.datetime64]] | None:
    """Times of one layout; ``None`` where one of them has another, or is no time."""
    width = len(values[0]) if values else 24
    text = "".join(values)
    if width not in _LAYOUTS or len(text) != width * len(values) or not text.isascii():
        return None
    codes = np.frombuffer(text.encode(), dtype=np.uint8).reshape(len(values), width)
    digits, others = _LAYOUTS[width]
    found = codes[:, digits]
    if found.min(initial=_ZERO) < _ZERO or found.max(initial=_ZERO) > _NINE:
        return None
    if any((codes[:, place] != code).any() for place, code in others):
        return None
    # Without the Z: numpy knows no zones.
    bare = np.ascontiguousarray(codes[:, :-1]).view(f"S{width - 1}").reshape(-1)
    try:
        return bare.astype("datetime64[us]")
    except ValueError:
        return None
