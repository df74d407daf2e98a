"""Damage to the bytes of a file, whatever they mean.

Belongs here: cuts, other encodings, other line ends, bytes put in, files run together. Does not belong
here: edits that know records (``edits.py``), compression and archives (``wrapping.py``).
"""

from __future__ import annotations

import codecs
import random
from collections.abc import Callable

Damage = Callable[[bytes, bytes, random.Random], bytes]

_JUNK = (
    b"\x00", b"\x00" * 512, b"\xff", b"\xfe\xff", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe2\x80\xa8",
    b"\xef\xbb\xbf", b"\x1f\x8b\x08", b"\x1a", b"\\", b'"', b"'", b"{", b"}", b"[", b"]", b",", b":", b"\n", b"\r", b"\r\n", b"\n\n\n",
    b" ", b"{}", b"[]", b"{}\n", b"null\n", b"[[]]\n", b"\\ud800", b"\\u0000", b"\\u", b"1e999", b"-", b"#", b"//", b"\n---\n", b"```\n", b"\x85", b"\x0c",
)  # fmt: skip
_LINE_ENDS = (
    b"\r\n",
    b"\r",
    "\u2028".encode(),
    "\u2029".encode(),
    b"\x85",
    b"\x0b",
    b"\n\n",
    b"\n \n",
    b"\x00",
    b"",
    b" ",
    b"\n\r",
    b"\n\xef\xbb\xbf",
    b",\n",
    b"\x1e",
)
_STRUCTURE = b'{}[]",:\\\n'


def _at(data: bytes, choose: random.Random) -> int:
    return choose.randrange(len(data) + 1)


def _span(data: bytes, choose: random.Random) -> tuple[int, int]:
    start = _at(data, choose)
    return start, min(len(data), start + choose.choice((1, 1, 2, 5, 40, 400)))


def cut_end(data: bytes, _: bytes, choose: random.Random) -> bytes:
    return data[: _at(data, choose)]


def cut_start(data: bytes, _: bytes, choose: random.Random) -> bytes:
    return data[_at(data, choose) :]


def drop(data: bytes, _: bytes, choose: random.Random) -> bytes:
    start, end = _span(data, choose)
    return data[:start] + data[end:]


def double(data: bytes, _: bytes, choose: random.Random) -> bytes:
    start, end = _span(data, choose)
    return data[:end] + data[start:end] * choose.choice((1, 1, 3)) + data[end:]


def put_in(data: bytes, _: bytes, choose: random.Random) -> bytes:
    at = _at(data, choose)
    return data[:at] + choose.choice(_JUNK) + data[at:]


def overwrite(data: bytes, _: bytes, choose: random.Random) -> bytes:
    start, end = _span(data, choose)
    return (
        data[:start]
        + choose.choice((b"\x00", b" ", b"\xff", bytes([choose.randrange(256)]))) * (end - start)
        + data[end:]
    )


def overwrite_structure(data: bytes, _: bytes, choose: random.Random) -> bytes:
    """Another mark of JSON in place of one."""
    found = [at for at in range(min(len(data), 20_000)) if data[at] in _STRUCTURE]
    if not found:
        return data
    at = choose.choice(found)
    return data[:at] + bytes([choose.choice(_STRUCTURE)]) * choose.randrange(2) + data[at + 1 :]


def other_encoding(data: bytes, _: bytes, choose: random.Random) -> bytes:
    text = data.decode("utf-8", "surrogateescape" if choose.random() < 0.5 else "replace")
    name, mark = choose.choice((
        ("utf-16-le", codecs.BOM_UTF16_LE), ("utf-16-be", codecs.BOM_UTF16_BE), ("utf-16-le", b""), ("utf-16-be", b""),
        ("utf-8", codecs.BOM_UTF8), ("utf-8", codecs.BOM_UTF8 * 2), ("utf-32-le", codecs.BOM_UTF32_LE), ("utf-32-be", b""),
        ("latin-1", b""), ("utf-7", b""), ("cp1252", b""), ("utf-8", codecs.BOM_UTF16_LE), ("utf-16-le", codecs.BOM_UTF16_BE),
    ))  # fmt: skip
    return mark + text.encode(
        name,
        "replace"
        if name in ("latin-1", "cp1252", "utf-7")
        else "surrogatepass"
        if "surrogate" not in name
        else "strict",
    )


def other_line_ends(data: bytes, _: bytes, choose: random.Random) -> bytes:
    end = choose.choice(_LINE_ENDS)
    lines = data.split(b"\n")
    return b"".join(line + (end if choose.random() < 0.9 else b"\n") for line in lines)


def concatenate(data: bytes, other: bytes, choose: random.Random) -> bytes:
    parts = [data, other, data] if choose.random() < 0.3 else [data, other]
    choose.shuffle(parts)
    return choose.choice((b"", b"\n", b"\n\n", b"\x00", b",")).join(parts)


def interleave_lines(data: bytes, other: bytes, choose: random.Random) -> bytes:
    mine, theirs, out = data.split(b"\n"), other.split(b"\n"), []
    while mine or theirs:
        out.append((mine if mine and (not theirs or choose.random() < 0.5) else theirs).pop(0))
    return b"\n".join(out)


def interleave_bytes(data: bytes, other: bytes, choose: random.Random) -> bytes:
    """Two writers that appended to one file without a lock."""
    out: list[bytes] = []
    while data or other:
        n = choose.choice((7, 50, 512))
        out += [data[:n], other[:n]]
        data, other = data[n:], other[n:]
    return b"".join(out)


def order_lines(data: bytes, _: bytes, choose: random.Random) -> bytes:
    lines = data.split(b"\n")
    kind = choose.randrange(4)
    if kind == 0:
        lines.reverse()
    elif kind == 1:
        choose.shuffle(lines)
    elif kind == 2:
        lines = [line for line in lines for _ in range(choose.choice((1, 1, 2)))]
    else:
        lines.insert(choose.randrange(len(lines) + 1), choose.choice(lines))
    return b"\n".join(lines)


def lead(data: bytes, _: bytes, choose: random.Random) -> bytes:
    """Something before the first record, at times longer than what a format is recognised by."""
    start = choose.choice(
        (b"\n", b" ", b"\x00", b"\t\r\n", b"{}\n", b"x\n", b'{"type":"x"}\n', b"# log\n", b"[\n", b"null\n")
    )
    return start * choose.choice((1, 1, 3, 60, 70_000 // len(start))) + data


def trail(data: bytes, _: bytes, choose: random.Random) -> bytes:
    return data + choose.choice((b"\n", b" ", b"\x00", b"{", b"]", b"}", b"{}", b"x", b",")) * choose.choice(
        (1, 3, 500)
    )


DAMAGES: tuple[Damage, ...] = (
    cut_end, cut_end, cut_start, drop, drop, double, put_in, put_in, put_in, overwrite, overwrite_structure, overwrite_structure,
    other_encoding, other_line_ends, concatenate, interleave_lines, interleave_bytes, order_lines, lead, trail,
)  # fmt: skip
