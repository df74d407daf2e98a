"""The plain judge: bounds against numbers.

Belongs here: verdicts. It is the reference that the Great Expectations judge is tested against, and
what runs where Great Expectations is too slow to import.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from evalpipe.quality.rules import Rule


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one rule.

    Attributes:
        table, column: Table and profile column.
        value: The number that was judged; ``None`` where it does not exist.
        low, high: The rule's bounds.
        passed: Whether the number lies in the bounds; false if it could not be judged.
        severity: ``error`` or ``warn``.
        could_run: False where there was nothing to judge, or the judge failed.
        why: What a broken rule means.
    """

    table: str
    column: str
    value: float | None
    low: float | None
    high: float | None
    passed: bool
    severity: str
    could_run: bool
    why: str

    @property
    def bounds(self) -> str:
        """The bounds as an interval; an open side is a dot."""
        low, high = (f"{value:g}" if value is not None else "." for value in (self.low, self.high))
        return f"[{low}, {high}]"

    @property
    def is_broken(self) -> bool:
        """Whether the rule was judged and did not hold; a rule that could not run is not broken."""
        return self.could_run and not self.passed

    @property
    def is_blocking(self) -> bool:
        """Whether what is downstream must stop."""
        return self.is_broken and self.severity == "error"


def judge(profile: pl.DataFrame, rules: Sequence[Rule]) -> list[Verdict]:
    """Judge a profile.

    Args:
        profile: One row, as :func:`evalpipe.quality.profiles.profile` makes it.
        rules: Rules, of which those of the profile's table are judged.

    Returns:
        One verdict a rule, in order.
    """
    values = measured(profile, rules)
    return [verdict(rule, value, passed=_holds(rule, value), could_run=value is not None) for rule, value in values]


def measured(profile: pl.DataFrame, rules: Sequence[Rule]) -> list[tuple[Rule, float | None]]:
    """Each rule of the profile's table with its number; ``None`` where there is no such number."""
    row = profile.row(0, named=True)
    return [(rule, row.get(rule.column)) for rule in rules if rule.table == row["table"]]


def verdict(rule: Rule, value: float | None, *, passed: bool, could_run: bool) -> Verdict:
    """The verdict on a rule; one that could not run did not pass."""
    return Verdict(
        table=rule.table,
        column=rule.column,
        value=value,
        low=rule.low,
        high=rule.high,
        passed=passed and could_run,
        severity=rule.severity,
        could_run=could_run,
        why=rule.why,
    )


def _holds(rule: Rule, value: float | None) -> bool:
    if value is None:
        return False
    return (rule.low is None or value >= rule.low) and (rule.high is None or value <= rule.high)
