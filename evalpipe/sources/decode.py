"""One record's bytes to objects, and what is wrong with them if they are not.

Belongs here: the slow path for bytes that orjson refuses. Does not belong here: the fast path,
which is orjson itself inside the reading loop (``parse.py``).
"""

from __future__ import annotations

import json
from typing import Any

#: What json.loads and the walk over its result survive; orjson's own limit is 1024.
_TOO_DEEP = 1000

_decoder = json.JSONDecoder(parse_constant=lambda _: None)


def decode(data: bytes) -> tuple[list[tuple[int, int, Any]], str, int]:
    """Read a record that orjson refuses.

    Accepts what real writers produce and strict JSON forbids: several values on one line (two
    processes appended to one file), halves of surrogate pairs (a text cut in the middle of a
    character; they become U+FFFD), and NaN or Infinity (they become null).

    Args:
        data: One line or element.

    Returns:
        (values with their start and end in ``data``, quarantine code of what is left, where that
        starts). The code is empty if nothing is left.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return [], "BAD_ENCODING", 0
    values: list[tuple[int, int, Any]] = []
    at = end = start = 0
    while (at := _skip_space(text, at)) < len(text):
        start += at - end
        try:
            value, end = _decoder.raw_decode(text, at)
            value = _clean(value, 0)
        except RecursionError:
            return values, "TOO_DEEP", start
        except ValueError:
            return values, "TOO_DEEP" if _is_too_deep(text, at) else "BAD_JSON", start
        stop = start + len(text[at:end].encode())
        values.append((start, stop, value))
        start, at = stop, end
    return values, "", len(data)


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _is_too_deep(text: str, at: int) -> bool:
    depth = 0
    is_string = is_escaped = False
    for char in text[at:]:
        if is_string:
            is_string = is_escaped or char != '"'
            is_escaped = char == "\\" and not is_escaped
        elif char == '"':
            is_string = True
        elif char in "[{":
            depth += 1
            if depth > _TOO_DEEP:
                return True
        elif char in "]}":
            depth -= 1
    return False


def _clean(value: Any, depth: int) -> Any:
    if depth > _TOO_DEEP:
        raise RecursionError
    if type(value) is str:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if type(value) is list:
        return [_clean(item, depth + 1) for item in value]
    if type(value) is dict:
        return {_clean(key, depth): _clean(item, depth + 1) for key, item in value.items()}
    if type(value) is int and not -(2**63) <= value < 2**64:
        return float(value) if abs(value) < 10**300 else None
    return value
