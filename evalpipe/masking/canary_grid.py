"""The grid of canaries: every value x carrier x way of hiding it x place, and whose turn it is on a day.

Belongs here: reading ``canaries.toml`` and ``canaries_more.toml``, the ways to hide a value, the turns.
Does not belong here: rows (``canaries``), rules, or any knowledge of how masking undoes what is hidden.

The whole grid holds some ten thousand cells, too many for every part of every slice. Every canary is
planted every day; its cells take turns, so that within ``PERIOD_DAYS`` days every cell had its turn.
"""

from __future__ import annotations

import base64
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import product
from typing import Any

from evalpipe.locations import data_dir

PERIOD_DAYS = 56
_ODD = re.compile(r"[^A-Za-z0-9]")
#: Where in a step a canary stands: its text, a value or a key of its arguments, a document inside of a
#: document in its output, or its output.
PLACES = ("text", "arguments", "key", "nested", "output")
_FULLWIDTH = 0xFEE0
#: What addresses and forms write with a percent sign; letters and digits never are.
_PERCENT_ENCODED = "@:/=+& ()-._,"
#: Ways to write one character of a value; 0 is the character, 1 its code.
_ONE = {
    "json": "\\u{1:04x}",
    "hex": "\\x{1:02x}",
    "percent": "%{1:02X}",
    "entity": "&#{1};",
    "entity_hex": "&#x{1:x};",
    "zerowidth": "{0}\u200b",
    "softhyphen": "{0}\u00ad",
}
#: Ways to write all of it. Two are spellings, not ways to hide.
_WHOLE: dict[str, Callable[[str], str]] = {
    "plain": lambda value: value,
    "json_all": lambda value: "".join(f"\\u{ord(c):04x}" for c in value),
    "fullwidth": lambda value: re.sub("[0-9]", lambda d: chr(ord(d.group()) + _FULLWIDTH), value),
    "fullwidth_all": lambda value: "".join(chr(ord(c) + _FULLWIDTH) if "!" <= c <= "~" else c for c in value),
    "upper": str.upper,
    "compact": lambda value: value.replace(" ", ""),
}
_SPELLINGS = ("upper", "compact")
ENCODINGS = (*(name for name in _WHOLE if name not in _SPELLINGS), *_ONE, "base64")


@dataclass(frozen=True, slots=True)
class Entry:
    """One canary of the data files; see there for what its keys mean."""

    id: str
    entity: str
    subtype: str
    value: str
    carriers: tuple[str, ...]
    hidden: str = ""
    again: str = ""
    base64: bool = False
    short: bool = False
    skip: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Witness:
    """One person in several spellings."""

    entity: str
    value: str
    carrier: str
    spellings: tuple[str, ...]
    hidden: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One place in the grid of an entry."""

    carrier: str
    encoding: str
    place: str


@lru_cache(maxsize=1)
def entries() -> tuple[Entry, ...]:
    """The canaries of both data files."""
    more = _read("canaries_more.toml")
    carriers = more["carriers"]
    out = [
        Entry(**{**row, "subtype": row.get("subtype", "")}) for row in map(_tuples, _read("canaries.toml")["canary"])
    ]
    out += [
        Entry(f"shaped.{subtype}", "SECRET", subtype, value, (carriers[n % len(carriers)],))
        for n, (subtype, value) in enumerate(more["shaped"])
    ]
    out += [
        Entry(f"cued.{n}", entity, subtype, value, (carrier,), short="{" not in value)
        for n, (entity, subtype, carrier, value) in enumerate(more["cued"])
    ]
    return tuple(out)


@lru_cache(maxsize=1)
def witnesses() -> tuple[Witness, ...]:
    """The people that are spelled in several ways."""
    return tuple(Witness(**_tuples(row)) for row in _read("canaries.toml")["witness"])


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((data_dir() / "masking" / name).read_text("utf-8"))


@lru_cache(maxsize=1024)
def cells(entry: Entry) -> tuple[Cell, ...]:
    """All cells of an entry, places in turn first."""
    encodings = [encoding for encoding in ENCODINGS if _applies(entry, encoding)]
    return tuple(Cell(*cell) for cell in product(entry.carriers, encodings, PLACES))


def turn(number: int, entry: Entry, day: date) -> tuple[Cell, ...]:
    """The cells of an entry that are planted on a day.

    Args:
        number: Position of the entry among :func:`entries`; it shifts the turn, so that all places and
            encodings are met on every day.
        entry: The entry.
        day: Day of the slice.
    """
    every = cells(entry)
    n = -(-len(every) // PERIOD_DAYS)
    first = (day.toordinal() * n + number * 7) % len(every)
    return tuple(every[(first + k) % len(every)] for k in range(n))


def _mark(template: str) -> str:
    """The first character of a template's value that is no letter or digit, where it is no slot's."""
    found = _ODD.search(re.sub(r"\{[^}]*\}", "0", template.replace("<~>", "")))
    return found.group() if found else "\0"


def _applies(entry: Entry, encoding: str) -> bool:
    if encoding in entry.skip:
        return False
    if encoding == "percent":
        return (entry.hidden or _mark(entry.value)) in _PERCENT_ENCODED
    if encoding == "fullwidth":
        return bool(re.search(r"\{d|\{(?:luhn|cn|cpf|cnpj|nhs)|[0-9]", entry.value))
    return encoding != "base64" or entry.base64


def hide(value: str, encoding: str, hidden: str) -> str:
    """A value as an encoding writes it.

    Args:
        value: The value.
        encoding: One of :data:`ENCODINGS` other than ``base64``, or ``upper`` or ``compact`` (no spaces).
        hidden: The character that is escaped; empty for the first that is no letter or digit.

    Raises:
        ValueError: No such encoding.
    """
    if encoding in _WHOLE:
        return _WHOLE[encoding](value)
    if encoding not in _ONE:
        raise ValueError(f"unknown encoding {encoding}")
    found = _ODD.search(value)
    at = value.index(hidden) if hidden else found.start() if found else 0
    return value[:at] + _ONE[encoding].format(value[at], ord(value[at])) + value[at + 1 :]


def in_base64(text: str, phase: int) -> str:
    """A text in base64 behind 0, 1 or 2 further bytes, as a larger document would hold it."""
    return base64.b64encode(b"~" * phase + text.encode()).decode()
