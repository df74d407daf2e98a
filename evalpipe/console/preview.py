"""What a backfill would do: stale days, how each would be made, and what new masking rules would add.

Belongs here: looking and showing. Does not belong here: making anything.
"""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from evalpipe.console import show
from evalpipe.settings import Settings
from evalpipe.steps import rescan
from evalpipe.steps.context import open_context


def preview(settings: Settings, span: tuple[date, date], *, as_json: bool) -> None:
    """Show what a backfill of a range would do.

    Args:
        settings: Settings of the home.
        span: First and last day.
        as_json: Print JSON for a script.
    """
    with open_context(settings) as context:
        stale = {day: why for day, why in context.plan().stale.items() if span[0] <= day <= span[1]}
        days = [
            {"day": day.isoformat(), "from": step, "why": why, "how": _how(step, sealed=rescan.is_sealed(context, day))}
            for day, (step, why) in stale.items()
        ]
        moved = rescan.preview(context, [day for day, (step, _) in stale.items() if step in ("raw", "masked")])
    counts: list[dict[str, Any]] = moved.with_columns(moved["day"].cast(str)).to_dicts()
    if as_json:
        print(json.dumps({"days": days, "masking": counts}))
        return
    if not days:
        show.line("No day of the range is stale.")
        return
    show.table(days, title="what would be made")
    if counts:
        show.table(counts, title="what the rules of today would add to masked text")
    show.line("Nothing was made.")


def _how(step: str, *, sealed: bool) -> str:
    return "masked text is scanned again: raw text is gone" if sealed else f"made anew from {step}"
