"""Which days the data health of a report counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any

from evalpipe.steps.report import health_days


@dataclass
class Slice:
    """A masked slice with so many sessions."""

    n_sessions: int

    def rows(self, table: str) -> int:
        assert table == "masked.sessions"
        return self.n_sessions


@dataclass
class Home:
    """Masked slices by day, as a context shows them."""

    slices: dict[date, Slice]
    lake: Any = field(init=False)

    def __post_init__(self) -> None:
        self.lake = self

    def days(self, step: str) -> list[date]:
        assert step == "masked"
        return sorted(self.slices)

    def lookup(self, _step: str, day: date) -> Slice | None:
        return self.slices.get(day)


@dataclass
class Analysis:
    """An analysis of outcomes of some days."""

    inputs: dict[str, str]


def test_a_file_that_nothing_could_read_is_counted_on_the_day_it_landed() -> None:
    first, later, landed, before = date(2026, 1, 5), date(2026, 1, 6), date(2026, 3, 1), date(2025, 12, 1)
    home: Any = Home({before: Slice(0), first: Slice(9), later: Slice(4), landed: Slice(0)})
    analysis: Any = Analysis({f"outcomes {first}": "x"})
    # A day of sessions outside the window stays out, and so does what landed before it.
    assert health_days(home, analysis, first) == [first, landed]
