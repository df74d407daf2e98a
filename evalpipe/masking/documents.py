"""JSON as logs hold it: with NaN, half characters, a document a line, documents in strings, or cut short.

Belongs here: reading and writing such documents. Does not belong here: what is done with them (``arguments``).
A reader that is stricter than the writer of a log would let pass what it cannot read.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

#: What a text that is no document reads as.
NOTHING = object()


def read(text: str) -> Any:
    """The document of a text, or ``NOTHING``: by the strict reader, then by the one that takes NaN and halves."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return NOTHING


def write(document: Any) -> str:
    """A document without blanks; what the strict writer refuses is written as Python does."""
    if _is_plain(document):
        try:
            return orjson.dumps(document).decode()
        except TypeError:  # too deep, or an integer or character that it does not know
            pass
    return json.dumps(document, separators=(",", ":"))


def _is_plain(document: Any) -> bool:
    """Whether no number is lost in the strict writer, which makes null of NaN."""
    todo = [document]
    while todo:
        value = todo.pop()
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            return False
        todo += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return True
