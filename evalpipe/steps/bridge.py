"""Bridges between measurements of one home: outcomes of another measurement on the days of a window.

Belongs here: finding them. Does not belong here: the comparison (``analysis/bridge.py``).
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

import polars as pl

from evalpipe import analysis
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria.model import Criteria
from evalpipe.steps.context import Context
from evalpipe.steps.versions import LOGIC
from evalpipe.store.manifest import Manifest, SliceKey

_OUTCOMES = "signals.session_outcomes"
_STEP = "outcomes"


class Overlap:
    """Outcomes of other measurements in a home; each is listed once."""

    def __init__(self, context: Context) -> None:
        self._lake = context.lake
        mine = context.versions.variants["outcomes"]
        folder = self._lake.manifest_path(SliceKey(_STEP, date.min, mine)).parent
        names = sorted(path.name for path in folder.parent.glob("m=*") if path.is_dir() and path.name != folder.name)
        self._days = {(name,): set(self._lake.days(_STEP, (name,))) for name in names}

    def other(self, window: Collection[Manifest]) -> list[Manifest]:
        """Slices of the other measurement that covers most days of a window; of two, the later by name.

        Args:
            window: Outcome slices of the measurement in force.

        Returns:
            Those made by the same logic and under the same key; none without any.
        """
        found: list[list[Manifest]] = [[]]
        for variant, days in self._days.items():
            pairs = [(m, self._lake.manifest(SliceKey(_STEP, m.key.day, variant))) for m in window if m.key.day in days]
            found.append([other for mine, other in pairs if other is not None and _is_alike(mine, other)])
        return max(reversed(found), key=len)


def between(context: Context, old: Criteria) -> pl.DataFrame:
    """The bridge from old criteria to those in force, over all days that both have scored.

    Args:
        context: The open home, under the new criteria.
        old: The old criteria.

    Returns:
        Rows of ``analysis.bridges``.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT`` where both measure alike, ``NO_RESULT`` without an overlap.
    """
    new = context.criteria
    if old.measurement == new.measurement:
        what = f"{old.name} and {new.name} are one measurement: their numbers may be compared as they are."
        raise EvalpipeError("BAD_ARGUMENT", what, where="OLD NEW", fix="Name criteria that differ in more than gates.")
    lake = context.lake
    sides = [
        {day: m for day in lake.days(_STEP, variant) if (m := lake.manifest(SliceKey(_STEP, day, variant)))}
        for variant in ((f"m={old.measurement}",), context.versions.variants[_STEP])
    ]
    days = [day for day in sorted(sides[0].keys() & sides[1].keys()) if _is_alike(sides[0][day], sides[1][day])]
    made = pl.DataFrame()
    if days:
        before, after = (lake.read(_OUTCOMES, [side[day] for day in days]) for side in sides)
        stamp = analysis.Stamp.of(new, as_of=days[-1], window="all", start=days[0], end=days[-1])
        made = analysis.bridged(before, after, new, stamp)
    if made.is_empty():
        missing = sorted({*sides[0], *sides[1]} or {context.as_of})
        lacking = [one.name for one, side in zip((old, new), sides, strict=True) if len(side) < len(missing)]
        days_of = f"{missing[0]}..{missing[-1]} --criteria {(lacking or [old.name])[0]}"
        fix = f"Score days under both: evalpipe backfill {days_of}"
        raise EvalpipeError("NO_RESULT", "no settled session was scored under both.", where=str(new.name), fix=fix)
    return made


def _is_alike(one: Manifest, other: Manifest) -> bool:
    """Whether two slices differ in their criteria only: the same logic, and users under the same key."""
    logic = {m.code_version.partition("+")[0] for m in (one, other)}
    return logic == {LOGIC["outcomes"]} and one.inputs.get("key") == other.inputs.get("key")
