"""Days that a blocking check refused, kept so that they are shown and not tried again in vain.

Belongs here: the record of a refusal. A record holds counts, field and rule names, and the receipt
of what was refused; never a value.
"""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.store.files import write_atomically
from evalpipe.store.lake import Lake


def record(lake: Lake, day: date, *, step: str, receipt: str, error: EvalpipeError) -> None:
    """Record that a step refused a day's slice.

    Args:
        lake: The home's lake.
        day: Day refused.
        step: Step that refused it.
        receipt: What it was made from; the day is tried again when this changes.
        error: Code, counts and names; an ``EvalpipeError`` never carries text of a log.
    """
    entry = {"day": day.isoformat(), "step": step, "receipt": receipt, "code": error.code, "what": error.what}
    write_atomically(lake.rejected / f"day={day}.json", json.dumps(entry, sort_keys=True, indent=1))


def clear(lake: Lake, day: date, step: str) -> None:
    """Forget a refusal once the same step passes."""
    path = lake.rejected / f"day={day}.json"
    if path.is_file() and json.loads(path.read_text("utf-8"))["step"] == step:
        path.unlink(missing_ok=True)


def rejected(lake: Lake) -> dict[date, dict[str, Any]]:
    """All recorded refusals by day."""
    entries = (json.loads(path.read_text("utf-8")) for path in sorted(lake.rejected.glob("day=*.json")))
    return {date.fromisoformat(entry["day"]): entry for entry in entries}


def rejected_receipts(lake: Lake) -> dict[date, str]:
    """Receipts of refused days."""
    return {day: str(entry["receipt"]) for day, entry in rejected(lake).items()}
