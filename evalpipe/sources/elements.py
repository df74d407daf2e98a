"""Elements of one big JSON document, cut out of the bytes while they stream.

Belongs here: finding where a value ends. Does not belong here: parsing it (orjson does) or knowing
any format. Memory is bounded by the largest element kept, not by the document.

The scanner counts brackets outside strings. It does not validate: what it cuts out is parsed
afterwards, so a malformed element is found there and the elements after it are still reached.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from evalpipe.sources.inflate import Readable
from evalpipe.sources.lines import Hasher, TooLarge
from evalpipe.sources.streams import BLOCK

# Everything up to the next bracket outside a string. Possessive, so that it never backtracks.
_TO_BRACKET = re.compile(rb'[^"{}\[\]]*+(?:"(?:[^"\\]++|\\.)*+"[^"{}\[\]]*+)*+', re.S)
_STRING_END = re.compile(rb'(?:[^"\\]++|\\.)*+"', re.S)
_QUOTE, _OPENING = ord('"'), b"{["
_SPACE = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Element:
    """One value: its key (for a member of the top object) or list key, place and bytes.

    Attributes:
        key: Top-level key the value stands under; empty for a top-level array.
        is_item: Whether it is an item of an array rather than the value of the key itself.
        offset, number: Byte offset, and position in its array from 1.
        data: The bytes of the value.
    """

    key: str
    is_item: bool
    offset: int
    number: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Broken:
    """The document ends too early, or leaves the grammar, at this place; all that follows is unread."""

    offset: int
    number: int
    n_bytes: int
    digest: str


class _Cursor:
    """A window on the stream that forgets what lies behind it."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self.data = b""
        self.at = 0
        self.base = 0

    @property
    def offset(self) -> int:
        return self.base + self.at

    def more(self) -> bool:
        """Drop what is behind and read on; False at the end of the stream."""
        block = self._stream.read(BLOCK)
        self.base += self.at
        self.data = self.data[self.at :] + block
        self.at = 0
        return bool(block)

    def peek(self) -> bytes:
        """The next byte that is not white space; empty at the end."""
        while True:
            while self.at < len(self.data):
                if self.data[self.at] not in _SPACE:
                    return self.data[self.at : self.at + 1]
                self.at += 1
            if not self.more():
                return b""


class _Sink:
    """Collects the bytes of one value, or only their digest once they are too many."""

    def __init__(self, max_bytes: int, hasher: Callable[[], Hasher]) -> None:
        self._parts: list[bytes] = []
        self._max_bytes = max_bytes
        self._hasher = hasher
        self._digest: Hasher | None = None
        self.n_bytes = 0

    def take(self, data: bytes) -> None:
        self.n_bytes += len(data)
        if self._digest is None and self.n_bytes > self._max_bytes:
            self._digest = self._hasher()
            for part in self._parts:
                self._digest.update(part)
            self._parts.clear()
        if self._digest is None:
            self._parts.append(data)
        else:
            self._digest.update(data)

    @property
    def data(self) -> bytes:
        return b"".join(self._parts)

    def too_large(self, offset: int, number: int) -> TooLarge | None:
        if self._digest is None:
            return None
        return TooLarge(offset, number, self.n_bytes, self._digest.hexdigest())

    def broken(self, cursor: _Cursor, offset: int, number: int) -> Broken:
        """What was taken and everything up to the end of the stream."""
        if self._digest is None:
            self._digest = self._hasher()
            self._digest.update(self.data)
            self._parts.clear()
        while True:
            self.take(_step(cursor, len(cursor.data) - cursor.at))
            if not cursor.more():
                return Broken(offset, number, self.n_bytes, self._digest.hexdigest())


def elements(
    stream: Readable, lists: frozenset[str], max_bytes: int, hasher: Callable[[], Hasher]
) -> Iterator[Element | TooLarge | Broken]:
    """Cut a JSON document into the items of its lists.

    Args:
        stream: UTF-8 bytes of one JSON array, or of one JSON object.
        lists: Keys of the top object whose arrays are cut into items; other values come whole.
        max_bytes: Largest value that is kept; a larger one is passed over.
        hasher: Makes the keyed digest that stands for a value that is passed over.

    Yields:
        Values in document order. ``Broken`` ends the document.
    """
    cursor = _Cursor(stream)
    if cursor.peek() == b"[":
        found = _items(cursor, "", max_bytes, hasher)
    else:
        found = _members(cursor, lists, max_bytes, hasher)
    last: Element | TooLarge | Broken | None = None
    for last in found:
        yield last
    if not isinstance(last, Broken) and cursor.peek():
        yield _Sink(max_bytes, hasher).broken(cursor, cursor.offset, 0)


def _members(
    cursor: _Cursor, lists: frozenset[str], max_bytes: int, hasher: Callable[[], Hasher]
) -> Iterator[Element | TooLarge | Broken]:
    cursor.at += 1
    number = 0
    while (char := cursor.peek()) and char != b"}":
        if char == b",":
            cursor.at += 1
            continue
        number += 1
        start = cursor.offset
        key, is_whole = _value(cursor, max_bytes, hasher)
        if char != b'"' or not is_whole or cursor.peek() != b":":
            yield key.broken(cursor, start, number)
            return
        cursor.at += 1
        name = key.data[1:-1].decode("utf-8", "replace")
        if name in lists and cursor.peek() == b"[":
            is_broken = False
            for item in _items(cursor, name, max_bytes, hasher):
                is_broken = isinstance(item, Broken)
                yield item
            if is_broken:
                return
            continue
        cursor.peek()
        start = cursor.offset
        value, is_whole = _value(cursor, max_bytes, hasher)
        if not is_whole:
            yield value.broken(cursor, start, number)
            return
        yield value.too_large(start, number) or Element(name, False, start, number, value.data)
    if not char:
        yield _Sink(max_bytes, hasher).broken(cursor, cursor.offset, number + 1)
    cursor.at += 1


def _items(
    cursor: _Cursor, key: str, max_bytes: int, hasher: Callable[[], Hasher]
) -> Iterator[Element | TooLarge | Broken]:
    cursor.at += 1
    number = 0
    while (char := cursor.peek()) and char != b"]":
        if char == b",":
            cursor.at += 1
            continue
        number += 1
        start = cursor.offset
        value, is_whole = _value(cursor, max_bytes, hasher)
        if not is_whole or not value.n_bytes:
            yield value.broken(cursor, start, number)
            return
        yield value.too_large(start, number) or Element(key, True, start, number, value.data)
    if not char:
        yield _Sink(max_bytes, hasher).broken(cursor, cursor.offset, number + 1)
    cursor.at += 1


def _value(cursor: _Cursor, max_bytes: int, hasher: Callable[[], Hasher]) -> tuple[_Sink, bool]:
    """The value at the cursor, and whether it is whole."""
    sink = _Sink(max_bytes, hasher)
    char = cursor.peek()
    if char == b'"':
        sink.take(_step(cursor, 1))
        return sink, _string(cursor, sink)
    if char not in (b"{", b"["):
        return sink, _scalar(cursor, sink)
    return sink, _nested(cursor, sink)


def _nested(cursor: _Cursor, sink: _Sink) -> bool:
    """Pass an object or array, taking what of it lies in one window at once."""
    depth = 0
    while True:
        data, start = cursor.data, cursor.at
        at, size = start, len(data)
        while (at := _TO_BRACKET.match(data, at).end()) < size:  # type: ignore[union-attr]
            char = data[at]
            at += 1
            if char == _QUOTE:
                # A string that goes on beyond the window.
                sink.take(_step(cursor, at - start))
                if not _string(cursor, sink):
                    return False
                data, start = cursor.data, cursor.at
                at, size = start, len(data)
                continue
            depth += 1 if char in _OPENING else -1
            if depth == 0:
                sink.take(_step(cursor, at - start))
                return True
        sink.take(_step(cursor, size - start))
        if not cursor.more():
            return False


def _step(cursor: _Cursor, n: int) -> bytes:
    start = cursor.at
    cursor.at += n
    return cursor.data[start : cursor.at]


def _string(cursor: _Cursor, sink: _Sink) -> bool:
    """Pass the rest of a string whose opening quote is behind the cursor."""
    while True:
        if match := _STRING_END.match(cursor.data, cursor.at):
            sink.take(_step(cursor, match.end() - cursor.at))
            return True
        # A backslash at the border escapes what comes next, unless it is escaped itself.
        rest = cursor.data[cursor.at :]
        ready = len(cursor.data) - (len(rest) - len(rest.rstrip(b"\\"))) % 2
        sink.take(_step(cursor, ready - cursor.at))
        if not cursor.more():
            return False


def _scalar(cursor: _Cursor, sink: _Sink) -> bool:
    while True:
        end = cursor.at
        while end < len(cursor.data) and cursor.data[end] not in b" \t\r\n,:]}":
            end += 1
        sink.take(_step(cursor, end - cursor.at))
        if cursor.at < len(cursor.data):
            return True
        if not cursor.more():
            return sink.n_bytes > 0
