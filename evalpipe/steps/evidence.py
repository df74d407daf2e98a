"""Whether the days of a window rest on the same signals: those that reviews left in, on every day.

Belongs here: telling it from manifests of outcomes. Does not belong here: what is demoted
(``steps/reviews.py``), making outcomes without it (``steps/signals.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.signals.demotion import names
from evalpipe.steps.context import Context
from evalpipe.steps.signals import DEMOTED
from evalpipe.store.manifest import Manifest


def demoted_in(outcomes: Sequence[Manifest]) -> list[str]:
    """Signals that reviews kept out of some outcomes, as signal@language."""
    return sorted({name for m in outcomes for name in m.stats.get(DEMOTED, ())})


def overtaken(context: Context, outcomes: Sequence[Manifest]) -> list[date]:
    """Days whose outcomes count what reviews have demoted since, or leave out what they have not.

    Args:
        context: The open home.
        outcomes: Outcome slices.
    """
    return [m.key.day for m in outcomes if m.inputs.get(DEMOTED, "") != names(context.demoted_on(m.key.day))]


def require_one_evidence(context: Context, outcomes: Sequence[Manifest], where: str) -> None:
    """Refuse a window of which some days count a signal and others do not.

    Args:
        context: The open home.
        outcomes: Outcome slices of the window.
        where: The window.

    Raises:
        EvalpipeError: ``MIXED_SIGNALS``, with the days to recompute.
    """
    days = overtaken(context, outcomes)
    if days:
        what = f"{len(days)} of {len(outcomes)} days were made before the last reviews."
        fix = f"Recompute them: evalpipe backfill {min(days)}..{max(days)}"
        raise EvalpipeError("MIXED_SIGNALS", what, where=where, fix=fix)
