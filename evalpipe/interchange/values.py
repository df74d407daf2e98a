"""Values that the forms share: times, arguments, sums.

Belongs here: small conversions. Does not belong here: the shape of any form.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


def known(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are known; what is unknown is left out rather than made null."""
    return {name: value for name, value in values.items() if value is not None}


def iso(at: datetime | None) -> str | None:
    """A time as ISO text."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def arguments_of(text: str | None) -> Any:
    """Arguments as the object that they were; text that is no JSON object stays text under ``input``."""
    if text is None:
        return {}
    try:
        value = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return {"input": text}
    return value if isinstance(value, dict) else {"input": value}


def total(rows: Iterable[Mapping[str, Any]], *names: str) -> int | None:
    """Sum of columns; unknown where every summand is."""
    found = [row[name] for row in rows for name in names if row[name] is not None]
    return sum(found) if found else None


def has_failed(step: Mapping[str, Any]) -> bool:
    """Whether a call failed itself, as far as the log says so; a call that the user refused did not."""
    if step["error"] in ("refused", "interrupted", "cascade", "no_result"):
        return False
    return bool(step["error"] or step["is_error"] or step["exit_code"])
