"""Views of a text: what a reader of it would see once escapes are undone.

Belongs here: the JSON view (same length, so offsets need no map), the decoded view with its map, and
finding out whether a text is JSON. Does not belong here: rules. Redactors that look at raw lines leak
behind ``\\u0040`` or eat a letter after ``\\n``; that is why these views exist.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass

import orjson

# The class in front lets the scanner skip from one candidate byte to the next; twice as fast as the
# alternation alone.
_HIDDEN = re.compile(
    rb"[\\%&\xe2\xef\xc2\xd9\xdb\xe0\x1b\x00=\xe3\xf0](?:"
    rb"(?P<gone>(?<=\x1b)\[[0-9;:?]{0,24}[A-Za-z]|(?<=\\)\\{0,3}(?:u001[bB]|x1[bB]|033|e)\[[0-9;:?]{0,24}[A-Za-z]"
    rb"|(?<=[A-Za-z0-9@._=\-]\x00))"
    rb"|(?<=\\)\\{0,3}u([0-9a-fA-F]{4})|(?<=\\)\\{0,3}x([2-7][0-9a-fA-F])|(?<=%)([2-7][0-9A-Fa-f])"
    rb"|(?<=&)#(?:[xX]([0-9a-fA-F]{1,8})|([0-9]{1,10}));|((?<=\xe2)(?:\x80[\x8b-\x8f]|\x81\xa0)|(?<=\xef)\xbb\xbf|(?<=\xc2)\xad)"
    rb"|(?<=\xef)(\xbc[\x81-\xbf]|\xbd[\x80-\x9e])|(?<=&)(quot|apos|amp|lt|gt|commat|period|colon|equals|lowbar|sol);"
    rb"|(?P<digit>(?<=\xd9)[\xa0-\xa9]|(?<=\xdb)[\xb0-\xb9]|(?<=\xe0)(?:\xa5[\xa6-\xaf]|\xb9[\x90-\x99])"
    rb"|(?<=\xf0)\x9d\x9f[\x8e-\xbf])"
    rb"|(?<=\\)\\{0,3}(?:u\{(?P<brace>[0-9a-fA-F]{1,6})\}|U000(?P<long>[0-9a-fA-F]{5})|(?P<octal>100|056))"
    # Where a domain follows: any key may begin with 40 or 2e behind its equals sign.
    rb"|(?<==)(?P<printable>40(?=[A-Za-z][A-Za-z0-9\-]{0,62}(?:\.|=2[eE])[A-Za-z])|2E(?=[A-Za-z]{2,24}(?![A-Za-z0-9\-\\&%])))"
    rb"|(?P<at>(?<=\xef)\xb9\xab)|(?P<dot>(?<=[A-Za-z0-9]\xe3)\x80\x82(?=[A-Za-z])))"
)
#: What a view still hides is looked for once more only where it shows one of these.
_DEEPER = re.compile(rb"[%&][2-7#a-z][0-9A-Za-z#]|\\[uxU][0-9a-fA-F{]|\x1b\[")
#: What escapes stand for, as far as they were met; there are no more than a few thousand in any language.
_ESCAPES_FLOOR = 65_536
_BYTES_PER_ESCAPE = 32
_KNOWN_ESCAPES = 65_536
_UNKNOWN = b"not met yet"
_KNOWN: dict[bytes, bytes | None] = {}
_NAMED = {b"quot": b'"', b"apos": b"'", b"amp": b"&", b"lt": b"<", b"gt": b">", b"commat": b"@", b"period": b"."}
_NAMED |= {b"colon": b":", b"equals": b"=", b"lowbar": b"_", b"sol": b"/"}
_ROUNDS = 3
_FULLWIDTH_SHIFT = 0xFEE0
_INVISIBLE = frozenset((0xAD, 0xFEFF, 0x2060, *range(0x200B, 0x2010)))


def looks_like_json(raw: bytes) -> bool:
    """Whether a text can be a JSON document: a guess by its first character."""
    return raw[:1] in (b"{", b"[") or raw.lstrip()[:1] in (b"{", b"[")


def is_json(raw: bytes) -> bool:
    """Whether a text is a JSON document."""
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError:
        return False
    return True


def json_view(raw: bytes) -> bytes:
    """A JSON text with its white-space escapes undone, byte for byte as long as the text.

    ``\\n`` becomes two line feeds and so on, so that an offset in the view is an offset in the text.
    Escaped quotes and backslashes stay: rules read ``\\"`` like ``"``.
    """
    if b"\\" not in raw:
        return raw
    view = raw.replace(b"\\\\", b"\0\0")
    for escape, char in ((b"\\n", b"\n\n"), (b"\\t", b"\t\t"), (b"\\r", b"\n\n"), (b"\\/", b"//")):
        if escape in view:
            view = view.replace(escape, char)
    return view.replace(b"\0\0", b"\\\\")


class TooManyEscapesError(Exception):
    """A text hides so many characters that a second view costs more than its bytes may."""


@dataclass(frozen=True, slots=True)
class DecodedView:
    """A decoded text with a map of its offsets back to the original."""

    data: bytes
    _starts: list[int]
    _segments: list[tuple[int, int, bool]]
    _of: DecodedView | None = None

    def end_of(self, start: int) -> int:
        """Where the run of unchanged bytes, or the escape, ends that holds an offset of the view."""
        at = bisect_right(self._starts, start)
        return self._starts[at] if at < len(self._starts) else len(self.data)

    def back(self, start: int, end: int) -> tuple[int, int]:
        """The original (start, end) of a decoded span; a character is taken with its whole escape."""
        at = bisect_right(self._starts, start) - 1
        raw, _, is_literal = self._segments[at]
        first = raw + (start - self._starts[at] if is_literal else 0)
        at = bisect_right(self._starts, end - 1) - 1
        raw, raw_end, is_literal = self._segments[at]
        last = raw + (end - self._starts[at]) if is_literal else raw_end
        return (first, last) if self._of is None else self._of.back(first, last)


def decoded_view(raw: bytes) -> DecodedView | None:
    """Undo ``\\uXXXX``, ``\\xXX``, ``%XX``, ``&#NN;``, full-width forms and zero-width characters.

    Named entities, colour codes, quoted-printable signs, the NULs of UTF-16 and digits of other scripts are undone
    as well, and again what was hidden twice or thrice (``%2540``).

    Args:
        raw: The text (or its JSON view, which has the same offsets).

    Returns:
        The view, or ``None`` if there is nothing to undo.

    Raises:
        TooManyEscapesError: Beyond some 400 KB of nothing but escapes; an answer in Chinese or Russian that a tool
            escaped whole is far below.
    """
    view = _once(raw, None)
    for _ in range(_ROUNDS - 1):
        again = _once(view.data, view) if view is not None and _DEEPER.search(view.data) else None
        if again is None:
            break
        view = again
    return view


def _once(raw: bytes, of: DecodedView | None) -> DecodedView | None:
    budget = _ESCAPES_FLOOR + len(raw) // _BYTES_PER_ESCAPE
    pieces: list[bytes] = []
    starts: list[int] = []
    segments: list[tuple[int, int, bool]] = []
    at = length = 0
    # In line and without calls: a text may consist of escapes only.
    for hidden in _HIDDEN.finditer(raw):
        start, end = hidden.span()
        escape = hidden.group()
        plain = _KNOWN.get(escape, _UNKNOWN)
        if plain is _UNKNOWN:
            plain = _plain(hidden)
            if len(_KNOWN) < _KNOWN_ESCAPES:
                _KNOWN[escape] = plain
        if plain is None:
            continue
        if start > at:
            pieces.append(raw[at:start])
            starts.append(length)
            segments.append((at, start, True))
            length += start - at
        if plain:
            pieces.append(plain)
            starts.append(length)
            segments.append((start, end, False))
            length += len(plain)
        at = end
        if len(starts) > budget:
            raise TooManyEscapesError
    if at == 0:
        return None
    if at < len(raw):
        pieces.append(raw[at:])
        starts.append(length)
        segments.append((at, len(raw), True))
    return DecodedView(b"".join(pieces), starts, segments, of)


def _digit(raw: bytes) -> bytes | None:
    value = unicodedata.digit(raw.decode(), None)
    return None if value is None else str(value).encode()


def _plain(hidden: re.Match[bytes]) -> bytes | None:
    gone, unicode4, hex2, percent, entity_hex, entity, invisible, fullwidth, named, *_ = hidden.groups()
    if named is not None:
        return _NAMED[named]
    if hidden["digit"] is not None:
        return _digit(hidden.group())
    if invisible is not None or gone is not None:
        return b""
    if hidden["at"] or hidden["dot"]:
        return b"@" if hidden["at"] else b"."
    if fullwidth is not None:
        code = ord(hidden.group().decode())
    else:
        number = unicode4 or hex2 or percent or entity_hex or hidden["brace"] or hidden["long"] or hidden["printable"]
        code = int(number, 16) if number else int(entity) if entity else int(hidden["octal"], 8)
    # An escape may itself stand for a look-alike: \\uff11 is a full-width one.
    if code in _INVISIBLE:
        return b""
    if 0xFF01 <= code <= 0xFF5E:
        code -= _FULLWIDTH_SHIFT
    if code < 0x20 or 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        return None
    return chr(code).encode()
