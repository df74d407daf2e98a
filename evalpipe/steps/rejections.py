"""Days that a blocking check refused, kept so that they are shown and not tried again in vain.

Belongs here: the record of a refusal. A record holds counts, field and rule names, and the receipt
of what was refused; never a value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.store.day_input import DayInput
from evalpipe.store.files import write_atomically
from evalpipe.store.lake import Lake
from evalpipe.store.landing import Landing


def record(lake: Lake, day: date, *, step: str, receipt: str, error: EvalpipeError) -> None:
    """Record that a step refused a day's slice.

    Args:
        lake: The home's lake.
        day: Day refused.
        step: Step that refused it.
        receipt: What it was made from; the day is tried again when this changes.
        error: Code, counts and names; an ``EvalpipeError`` never carries text of a log.
    """
    entry = {"day": day.isoformat(), "step": step, "receipt": receipt, "code": error.code}
    entry |= {"what": error.what, "where": error.where}
    write_atomically(lake.rejected / f"day={day}.json", json.dumps(entry, sort_keys=True, indent=1))


def clear(lake: Lake, day: date, step: str) -> None:
    """Forget a refusal once the same step passes."""
    path = lake.rejected / f"day={day}.json"
    if rejected(lake).get(day, {}).get("step") == step:
        path.unlink(missing_ok=True)


def rejected(lake: Lake) -> dict[date, dict[str, Any]]:
    """All recorded refusals by day.

    Raises:
        EvalpipeError: ``HOME_DAMAGED`` for a record that cannot be read.
    """
    out: dict[date, dict[str, Any]] = {}
    for path in sorted(lake.rejected.glob("day=*.json")):
        try:
            entry = json.loads(path.read_text("utf-8"))
            out[date.fromisoformat(entry["day"])] = {
                name: str(entry[name]) for name in ("day", "step", "receipt", "code", "what")
            }
        except (ValueError, KeyError, TypeError):
            what = "the record of a refused day cannot be read."
            raise EvalpipeError("HOME_DAMAGED", what, where=str(path), fix="Delete the file and run again.") from None
    return out


def waiting_receipts(lake: Lake, landing: Landing, inputs: Mapping[date, DayInput]) -> dict[date, str]:
    """Receipts of refused days, without those that wanted landed text which is there again.

    Args:
        lake: The home's lake.
        landing: The home's landing zone.
        inputs: Landing parts of every day.
    """
    return {
        day: entry["receipt"]
        for day, entry in rejected(lake).items()
        if entry["code"] != "INPUT_EXPIRED" or day not in inputs or not landing.is_whole(day, inputs[day])
    }
