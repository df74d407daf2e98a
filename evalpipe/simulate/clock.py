"""Times and ids as logs write them.

Belongs here: formatting milliseconds and random bytes, fast. Does not belong here: deciding when things
happen.
"""

from __future__ import annotations

from datetime import date, timedelta

from evalpipe.simulate.text import Draw, as_uuid

DAY_MS = 86_400_000


class Clock:
    """Formats milliseconds since midnight (UTC) of the first day."""

    __slots__ = ("_days", "_start")

    def __init__(self, start: date) -> None:
        self._start = start
        self._days: dict[int, str] = {}

    def day(self, ms: int) -> str:
        """The UTC day, ISO."""
        index = ms // DAY_MS
        if index not in self._days:
            self._days[index] = (self._start + timedelta(days=index)).isoformat()
        return self._days[index]

    def iso(self, ms: int) -> str:
        """ISO 8601 with milliseconds and Z."""
        seconds, milli = divmod(ms % DAY_MS, 1000)
        minutes, second = divmod(seconds, 60)
        return f"{self.day(ms)}T{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}.{milli:03d}Z"


class Ids:
    """Ids of one session, cut from one run of random digits."""

    __slots__ = ("_at", "_digits", "_draw")

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._digits = draw.hex(4096)
        self._at = 0

    def take(self, n: int) -> str:
        """``n`` hexadecimal digits."""
        if self._at + n > len(self._digits):
            self._digits, self._at = self._draw.hex(4096), 0
        self._at += n
        return self._digits[self._at - n : self._at]

    def uuid(self) -> str:
        """A version-4 UUID."""
        return as_uuid(self.take(32))
