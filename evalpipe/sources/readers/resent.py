"""History that every model call resends, read once.

Belongs here: remembering what items of a list, and lists that are written as text, were read as. Does
not belong here: what an item means (``chat.py``).

A trace of n calls holds the first message n times. What is remembered is a pure function of the
bytes, so it is the same for all files and sessions; it is bounded by bytes, and forgotten at once
when it is full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import orjson

from evalpipe.sources.readers.base import Record
from evalpipe.sources.readers.span_values import loads_text

T = TypeVar("T")

_MAX_BYTES = 16_000_000
#: Conversations whose calls may alternate in a log without losing their place, and the longest kept.
_MAX_TEXTS = 8
_MAX_TEXT = 2_000_000


class Items(Generic[T]):
    """Objects in lists, by their content.

    Args:
        read: Reads one object: value, role and depth.
    """

    def __init__(self, read: Callable[[Record, str, int], Iterable[T]]) -> None:
        self._read = read
        self._known: dict[tuple[bytes, str, int], tuple[T, ...]] = {}
        self._n_bytes = 0

    def read(self, value: Record, role: str, depth: int) -> tuple[T, ...]:
        """What the object is read as."""
        try:
            # As bytes, because true, 1 and 1.0 are equal as objects.
            key = orjson.dumps(value), role, depth
        except TypeError:
            return tuple(self._read(value, role, depth))
        found = self._known.get(key)
        if found is None:
            found = tuple(self._read(value, role, depth))
            self._n_bytes += len(key[0])
            if self._n_bytes > _MAX_BYTES:
                self._known.clear()
                self._n_bytes = len(key[0])
            self._known[key] = found
        return found


class Texts(Generic[T]):
    """Lists written as JSON text, of which a later one often begins like one before.

    Args:
        read: Reads a list: its items and role.
    """

    def __init__(self, read: Callable[[list[Any], str], list[T]]) -> None:
        self._read = read
        #: Text without its closing bracket, and what it was read as; the latest last.
        self._known: dict[tuple[str, str], list[T]] = {}

    def read(self, text: str, role: str) -> list[T]:
        """What the list is read as.

        Args:
            text: Begins with a bracket; may turn out to be no JSON.
            role: Who wrote what has no role of its own.
        """
        found = None
        place = next((key for key in reversed(self._known) if key[1] == role and text.startswith(key[0])), None)
        if place is not None:
            found = self._after(text[len(place[0]) :], self._known[place], role)
        if found is None:
            try:
                listed = orjson.loads(text)
            except orjson.JSONDecodeError:
                value = loads_text(text)
                return self._read(value if type(value) is list else [value], role)
            found = self._read(listed, role)
        if found and text[-1] == "]" and len(text) < _MAX_TEXT:
            if place is not None:
                del self._known[place]
            self._known[text[:-1], role] = found
            if len(self._known) > _MAX_TEXTS:
                del self._known[next(iter(self._known))]
        return list(found)

    def _after(self, rest: str, items: list[T], role: str) -> list[T] | None:
        """What a known list and its rest are read as; ``None`` where the text does not go on as a list."""
        if rest == "]":
            return items
        try:
            more = orjson.loads(f"[{rest[1:]}") if rest[:1] == "," else []
        except orjson.JSONDecodeError:
            return None
        return items + self._read(more, role) if more else None
