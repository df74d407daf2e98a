"""Second looks at a text: the strings of a document as their reader has them, a list of arguments as a command line.

Belongs here: which further texts are scanned beside a text, and where their spans lie in it. Does not belong
here: single escapes (``decode``), rules. Each is made only of a text that has what it is for.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial

import orjson

from evalpipe.masking.decode import DecodedView, decoded_view, is_json, looks_like_json

#: From a span of a view to one of the text.
Back = Callable[[int, int], tuple[int, int]]
_STRING = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_ESCAPE = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)
_LEVELS = 3
_LEAST = 6
_FLAG_AHEAD = re.compile(rb"[\"'],[ \t\r\n]{0,16}[\"']-")
_BETWEEN = re.compile(rb"[\"'],[ \t\r\n]{0,16}[\"']")
_ARGUMENTS_BYTES = 400


class _Strings:
    """Strings of a document that hold escapes, unescaped and joined by line feeds."""

    def __init__(self, raw: bytes, ranges: list[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._sources: list[tuple[int, bytes, int]] = []
        self._maps: dict[int, DecodedView] = {}
        self.documents: list[tuple[int, int]] = []
        pieces: list[bytes] = []
        at = 0
        for first, last in ranges:
            for match in _STRING.finditer(raw, first, last):
                source = match.group(1)
                if b"\\" not in source or len(source) < _LEAST:
                    continue
                plain = orjson.loads(match.group()).encode()
                self._starts.append(at)
                self._sources.append((match.start(1), source, len(plain)))
                if b"\\" in plain and looks_like_json(plain) and is_json(plain):
                    self.documents.append((at, at + len(plain)))
                pieces.append(plain)
                at += len(plain) + 1
        self.data = b"\n".join(pieces)

    def back(self, start: int, end: int) -> tuple[int, int]:
        """Where a span lies; one that runs into the next string ends with its own."""
        index = bisect_right(self._starts, start) - 1
        origin, source, length = self._sources[index]
        low = self._starts[index]
        if index not in self._maps:
            self._maps[index] = _unescaped(source)
        first = min(start - low, length - 1)
        a, b = self._maps[index].back(first, max(first + 1, min(end - low, length)))
        return origin + a, origin + b


def _unescaped(source: bytes) -> DecodedView:
    """The map of one string; the characters themselves come from the parser."""
    starts: list[int] = []
    segments: list[tuple[int, int, bool]] = []
    at = length = 0
    for match in _ESCAPE.finditer(source):
        if match.start() > at:
            starts.append(length)
            segments.append((at, match.start(), True))
            length += match.start() - at
        starts.append(length)
        segments.append((match.start(), match.end(), False))
        length += len(orjson.loads(b'"' + match.group() + b'"').encode())
        at = match.end()
    if at < len(source):
        starts.append(length)
        segments.append((at, len(source), True))
    return DecodedView(b"", starts, segments)


def through(outer: Back, inner: Back) -> Back:
    """The way back from a view of a view."""
    return inner if outer is itself else partial(_both, outer, inner)


def _both(outer: Back, inner: Back, start: int, end: int) -> tuple[int, int]:
    return outer(*inner(start, end))


def itself(start: int, end: int) -> tuple[int, int]:
    """A view that is the text as long as it was."""
    return start, end


def strings(raw: bytes) -> Iterator[tuple[bytes, Back]]:
    """The strings of a JSON document, then those of documents inside of them, three levels deep.

    Args:
        raw: A JSON document.

    Yields:
        The unescaped strings that hold an escape, and the way back to the document.
    """
    back: Back = itself
    data, ranges = raw, [(0, len(raw))]
    for _ in range(_LEVELS):
        level = _Strings(data, ranges)
        if not level.data:
            return
        back = through(back, level.back)
        yield level.data, back
        data, ranges = level.data, level.documents
        if not ranges:
            return


def disguised(view: bytes) -> Iterator[tuple[str, bytes, Back]]:
    """What stands behind the tricks of a text: its characters, its lists of arguments as command lines.

    Raises:
        TooManyEscapesError: See ``decoded_view``.
    """
    hidden = decoded_view(view)
    if hidden is not None:
        yield "decoded", hidden.data, hidden.back
    words = _arguments(view)
    if words is not None:
        yield "arguments", words.data, partial(_one_word, words)


def _arguments(view: bytes) -> DecodedView | None:
    """The surroundings of flags in lists of quoted words, with a space between the words."""
    windows: list[tuple[int, int]] = []
    for match in _FLAG_AHEAD.finditer(view):
        first, last = max(0, match.start() - _ARGUMENTS_BYTES), min(len(view), match.end() + _ARGUMENTS_BYTES)
        if windows and first <= windows[-1][1]:
            windows[-1] = (windows[-1][0], last)
        else:
            windows.append((first, last))
    if not windows:
        return None
    pieces: list[bytes] = []
    starts: list[int] = []
    segments: list[tuple[int, int, bool]] = []
    length = 0
    for first, last in windows:
        at = first
        for match in _BETWEEN.finditer(view, first, last):
            for low, high, plain in ((at, match.start(), b""), (match.start(), match.end(), b" ")):
                if high > low:
                    pieces.append(plain or view[low:high])
                    starts.append(length)
                    segments.append((low, high, not plain))
                    length += len(pieces[-1])
            at = match.end()
        pieces += [view[at:last], b"\n"]
        starts.append(length)
        segments.append((at, last, True))
        length += last - at + 1
    return DecodedView(b"".join(pieces), starts, segments)


def _one_word(words: DecodedView, start: int, end: int) -> tuple[int, int]:
    """Where a span of a command line lies; one of several words ends with the first, or the list would break."""
    return words.back(start, max(start + 1, min(end, words.end_of(start))))
