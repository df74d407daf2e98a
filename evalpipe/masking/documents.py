"""JSON as logs hold it: with NaN, half characters, a document a line, documents in strings, or cut short.

Belongs here: reading and writing such documents. Does not belong here: what is done with them (``arguments``).
A reader that is stricter than the writer of a log would let pass what it cannot read.
"""

from __future__ import annotations

import json
import re
import secrets
from typing import Any

import orjson

#: What a text that is no document reads as.
NOTHING = object()
#: What the fast reader does not give back as it was: numbers, and keys that masking has made the same.
_INEXACT = re.compile(r'[0-9][.eE]|[0-9]{16}|>"\s*:')
#: Integers of the writer.
_INTEGERS = range(-(2**63), 2**64)


class Exact(float):
    """A number that is written as it was read."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> Exact:
        """The number of a text."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str


def read(text: str) -> Any:
    """The document of a text, or ``NOTHING``: by the strict reader, then by the one that takes NaN and halves.

    :func:`write` writes each number of it as it was; of keys that masking has made the same, every one is kept.
    """
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _lenient(text)
    exact = _lenient(text) if is_inexact(text) else NOTHING
    return document if exact is NOTHING else exact  # which nests too deep for the other reader


def is_inexact(text: str) -> bool:
    """Whether the strict reader may not give back all that a document holds."""
    return _INEXACT.search(text) is not None


def _lenient(text: str) -> Any:
    try:
        return json.loads(text, parse_float=Exact, parse_int=_integer, parse_constant=Exact, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return NOTHING


def _integer(text: str) -> int | Exact:
    if len(text) <= len(str(_INTEGERS.start)) and text != "-0" and (value := int(text)) in _INTEGERS:
        return value
    return Exact(text)


def _object(pairs: list[tuple[str, Any]], out: dict[str, Any] | None = None) -> dict[str, Any]:
    out = {} if out is None else out
    last: dict[str, int] = {}
    for key, value in pairs:
        name, n = key, last.get(key, 1)
        # From the number that this key had last: from 2 each time, thousands of one key would take minutes.
        while name in out:
            n += 1
            name = f"{key} {n}"
        last[key] = n
        out[name] = value
    return out


def write(document: Any) -> str:
    """A document without blanks; what the strict writer refuses is written as Python does."""
    if _is_plain(document):
        try:
            return orjson.dumps(document, default=as_it_was).decode()
        except TypeError:  # too deep, or an integer or character that it does not know
            pass
    mark, texts = f"exact-{secrets.token_hex(16)}-", list[str]()
    written = json.dumps(_marked(document, mark, texts), separators=(",", ":"))
    return re.sub(rf'"{mark}([0-9]+)"', lambda found: texts[int(found[1])], written) if texts else written


def _marked(document: Any, mark: str, texts: list[str]) -> Any:
    """A copy with a name in place of each number that Python would write otherwise; without calls of its own, since
    such documents may nest as deep as the writer goes.
    """
    root = [document]
    todo: list[tuple[Any, Any]] = [(root, 0)]
    while todo:
        holder, at = todo.pop()
        value = holder[at]
        if isinstance(value, Exact):
            holder[at] = f"{mark}{len(texts)}"
            texts.append(value.text)
        elif isinstance(value, dict | list):
            holder[at] = copy = value.copy()
            todo += [(copy, key) for key in (copy if isinstance(copy, dict) else range(len(copy)))]
    return root[0]


def as_it_was(value: object) -> orjson.Fragment:
    """What the strict writer shall write of a number that it does not know; its ``default``."""
    if not isinstance(value, Exact):
        raise TypeError
    return orjson.Fragment(value.text)


def _is_plain(document: Any) -> bool:
    """Whether no number is lost in the strict writer, which makes null of NaN."""
    todo = [document]
    while todo:
        value = todo.pop()
        if type(value) is float and (value != value or value in (float("inf"), float("-inf"))):
            return False
        todo += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return True
