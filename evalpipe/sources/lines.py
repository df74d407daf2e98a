"""Lines of a stream in blocks, with bounded memory.

Belongs here: finding newlines. Does not belong here: what a line holds. A line above the limit is
passed over while it streams, so that a line of any size costs no more memory than one block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from evalpipe.sources.inflate import Readable
from evalpipe.sources.streams import STREAM_ERRORS

#: Lines are handed on in blocks of about this many bytes.
BLOCK_BYTES = 1 << 20


class Hasher(Protocol):
    """What a keyed digest must do."""

    def update(self, data: bytes, /) -> None:
        """Take more bytes."""
        ...

    def hexdigest(self) -> str:
        """The digest so far."""
        ...


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive lines without their newlines; ``offset`` and ``number`` are the first line's."""

    offset: int
    number: int
    lines: list[bytes]


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A record above the limit, passed over."""

    offset: int
    number: int
    n_bytes: int
    digest: str


def line_blocks(stream: Readable, max_bytes: int, hasher: Callable[[], Hasher]) -> Iterator[Block | TooLarge]:
    """Split a stream at newlines.

    Args:
        stream: UTF-8 bytes.
        max_bytes: Longest line that is kept, newline excluded.
        hasher: Makes the keyed digest that stands for a line that is passed over.

    Raises:
        OSError, EOFError, zlib.error: The stream broke; all lines before, and the line that it broke
            in as far as it came, were given.
    """
    offset, number = 0, 1
    parts: list[bytes] = []
    held = 0
    broken: Exception | None = None
    while True:
        try:
            block = stream.read(BLOCK_BYTES)
        except STREAM_ERRORS as error:
            broken, block = error, b""
        if not block:
            break
        if b"\n" not in block:
            parts.append(block)
            held += len(block)
            if held <= max_bytes:
                continue
            skipped = _skip(stream, parts, hasher())
            yield TooLarge(offset, number, skipped.n_bytes, skipped.digest)
            offset, number, held = offset + skipped.n_bytes + 1, number + 1, 0
            block = skipped.rest
        lines = block.split(b"\n")
        if parts:
            # Only the line that began before is copied, not the whole block.
            lines[0] = b"".join([*parts, lines[0]])
        rest = lines.pop()
        if lines:
            yield from _checked(lines, offset, number, max_bytes, hasher)
        offset += held + len(block) - len(rest)
        number += len(lines)
        parts = [rest] if rest else []
        held = len(rest)
    if held:
        yield from _checked([b"".join(parts)], offset, number, max_bytes, hasher)
    if broken is not None:
        raise broken


def _checked(
    lines: list[bytes], offset: int, number: int, max_bytes: int, hasher: Callable[[], Hasher]
) -> Iterator[Block | TooLarge]:
    if max(map(len, lines)) <= max_bytes:
        yield Block(offset, number, lines)
        return
    for line in lines:
        if len(line) > max_bytes:
            digest = hasher()
            digest.update(line)
            yield TooLarge(offset, number, len(line), digest.hexdigest())
        else:
            yield Block(offset, number, [line])
        offset += len(line) + 1
        number += 1


@dataclass(frozen=True, slots=True)
class _Skipped:
    n_bytes: int
    digest: str
    rest: bytes


def _skip(stream: Readable, parts: list[bytes], digest: Hasher) -> _Skipped:
    n_bytes = 0
    for part in parts:
        digest.update(part)
        n_bytes += len(part)
    parts.clear()
    with suppress(*STREAM_ERRORS):  # The next read raises it again.
        while block := stream.read(BLOCK_BYTES):
            head, newline, rest = block.partition(b"\n")
            digest.update(head)
            n_bytes += len(head)
            if newline:
                return _Skipped(n_bytes, digest.hexdigest(), rest)
    return _Skipped(n_bytes, digest.hexdigest(), b"")
