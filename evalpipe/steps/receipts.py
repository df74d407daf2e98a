"""What an analysis was made from, as its manifest keeps it.

Belongs here: the names of these receipts, and reading them. Does not belong here: what is computed from
the inputs (``steps/analysis.py``). Numbers that decide rest on outcomes; reviews and another measurement
move only what stands beside them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

from evalpipe.steps.bridge import Overlap
from evalpipe.steps.context import Context
from evalpipe.steps.corrected import Evidence
from evalpipe.store.manifest import Manifest

_OUTCOMES, _BRIDGE = "outcomes ", "bridge "


class Receipts:
    """Receipts of windows of a home; what they are made of is read once."""

    def __init__(self, context: Context) -> None:
        self.seen, self.overlap = Evidence(context), Overlap(context)

    def of(self, window: Collection[Manifest]) -> dict[str, str]:
        """All inputs of an analysis of these outcome slices."""
        # Each by itself: a rotation of the key follows single digests of slices.
        bridge = {f"{_BRIDGE}{m.key.variant[0]} {m.key.day}": m.content for m in self.overlap.other(window)}
        return of_outcomes(window) | self.seen.receipt(m.key.day for m in window) | bridge


def of_outcomes(window: Collection[Manifest]) -> dict[str, str]:
    """Receipts of outcome slices."""
    return {f"{_OUTCOMES}{m.key.day}": m.content for m in window}


def outcome_days(inputs: Mapping[str, str]) -> dict[date, str]:
    """Content of the outcome slices among the inputs of an analysis, by their days."""
    mine = {name: content for name, content in inputs.items() if name.startswith(_OUTCOMES)}
    return {date.fromisoformat(name.removeprefix(_OUTCOMES)): content for name, content in sorted(mine.items())}
