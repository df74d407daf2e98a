"""Values as exporters of traces write them: JSON inside text, Python's repr, dotted names, nanoseconds.

Belongs here: turning one such value into a plain one. Does not belong here: what the values mean.
"""

from __future__ import annotations

import ast
import json
import warnings
from typing import Any

import orjson

from evalpipe.sources.readers.base import Record, json_text
from evalpipe.sources.times import normal_time

#: Longest text that is tried as Python's repr: reading it costs far more than JSON.
_MAX_REPR = 4_000_000
#: Nothing that is nested deeper is looked into.
_MAX_DEPTH = 20


def known(value: object) -> Any:
    """The value, with the words that exporters write for "nothing" as ``None``."""
    return None if value is None or (type(value) is str and value in ("", "None", "nan", "null")) else value


def loads_text(value: Any) -> Any:
    """Text that holds JSON, or Python's repr of lists and dicts, as what it holds; all else unchanged."""
    if type(value) is not str:
        return value
    start = value.lstrip()[:1]
    if start == '"':
        inner = unquoted(value)
        return loads_text(inner) if inner[:1] in ("[", "{") else inner
    if start not in ("[", "{"):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return _from_repr(value)


def unquoted(value: Any) -> Any:
    """Text that was written as a JSON string, as the text that it was; all else unchanged."""
    if type(value) is not str or value.lstrip()[:1] != '"':
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def _from_repr(text: str) -> Any:
    if len(text) > _MAX_REPR or "'" not in text:
        return text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Odd escapes in foreign text are no concern of ours.
            found = ast.literal_eval(text.strip())
            # Sets, bytes and the like: what JSON does not know is no message.
            return orjson.loads(json.dumps(found)) if type(found) in (list, dict) else text
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def nest(flat: Record) -> Record:
    """Dotted names as nested objects; objects whose names are all numbers become lists.

    A name that is both a value and the beginning of another keeps the longer one.
    """
    top: Record = {}
    for name, value in flat.items():
        parts = name.split(".")[:_MAX_DEPTH]
        place = top
        for part in parts[:-1]:
            inner = place.get(part)
            if type(inner) is not dict:
                inner = place[part] = {}
            place = inner
        if not (type(place.get(parts[-1])) is dict and type(value) is not dict):
            place[parts[-1]] = nest(value) if type(value) is dict and len(parts) == 1 else value
    return {name: _listed(value, 0) for name, value in top.items()}


def _listed(value: Any, depth: int) -> Any:
    if type(value) is not dict or not value or depth > _MAX_DEPTH:
        return value
    inner = {name: _listed(member, depth + 1) for name, member in value.items()}
    if all(name.isdecimal() and len(name) < 10 for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner


def flatten(value: Record, prefix: str = "", depth: int = 0) -> Record:
    """Nested objects as dotted names; lists stay as they are."""
    flat: Record = {}
    for name, member in value.items():
        if type(member) is dict and member and depth < _MAX_DEPTH:
            flat.update(flatten(member, f"{prefix}{name}.", depth + 1))
        else:
            flat[f"{prefix}{name}"] = member
    return flat


def listed(flat: Record, prefix: str) -> Any:
    """The value of a name, or the list that names with numbers below it make up; ``None`` if neither is there."""
    whole = known(flat.get(prefix))
    if whole is not None:
        return loads_text(whole)
    start = f"{prefix}."
    below = {name[len(start) :]: value for name, value in flat.items() if name.startswith(start)}
    if not below:
        return None
    found = nest({f"x.{name}": value for name, value in below.items()})["x"]
    return found if type(found) is list else [found]


def number_of(value: object) -> int | float | None:
    """A number, also one that is written as text."""
    if type(value) is int or type(value) is float:
        return value
    if type(value) is str and len(value) < 32:
        try:
            return int(value) if value.strip().lstrip("-").isdecimal() else float(value)
        except ValueError:
            return None
    return None


def any_time(value: object) -> str | None:
    """A time as ISO text with six digits, which all times of a trace must have to sort as they run.

    Args:
        value: ISO text, or seconds to nanoseconds since 1970 as a number or as text. 0, which
            exporters write for "not set", is none.
    """
    at = normal_time(known(value))
    return f"{at[:23]}000Z" if at is not None and len(at) == 24 else at


def as_json(value: object) -> str | None:
    """Arguments or a result as JSON text; text that is no JSON stays, Python's repr becomes JSON."""
    value = unquoted(known(value))
    if type(value) is str and value.lstrip()[:1] in ("{", "["):
        found = loads_text(value)
        if type(found) is not str:
            return value if _is_json(value) else json_text(found)
    return json_text(value)


def is_same(one: str | None, other: str | None) -> bool:
    """Whether two texts say the same as JSON, however they are spaced."""
    if one == other:
        return True
    try:
        return bool(loads_text(one) == loads_text(other))
    except RecursionError:
        return False


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
