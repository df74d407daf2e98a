"""Bytes of a file, whatever wraps them: plain, gzip, zstd, tar, and tar inside either.

Belongs here: recognising a wrapping by its first bytes and undoing it as a stream. Does not belong
here: what the bytes mean. The wrapping is read from the bytes, not from the file's name, because
exports are often misnamed.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from evalpipe.sources.archive import TAR_BLOCK, is_tar, tar_members
from evalpipe.sources.inflate import Readable, unwrapper

#: Read size. Small enough that what is lost when a stream breaks in the middle is little.
BLOCK = 1 << 18

#: What a broken wrapping raises while it is read.
STREAM_ERRORS = (OSError, EOFError, zlib.error)


class Peeked:
    """A stream whose first bytes can be looked at before they are read.

    Where the source breaks, what came before is given first: looking ahead must not lose a short log.
    """

    def __init__(self, source: Readable) -> None:
        self._source = source
        self._ahead = b""
        self._error: Exception | None = None
        #: Bytes read so far.
        self.n_read = 0

    def peek(self, size: int) -> bytes:
        """The next ``size`` bytes, or all that are left or can be read, without moving on."""
        try:
            while len(self._ahead) < size and self._error is None and (block := self._source.read(BLOCK)):
                self._ahead += block
        except STREAM_ERRORS as error:
            self._error = error
        return self._ahead[:size]

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; empty at the end."""
        if self._ahead:
            block, self._ahead = self._ahead[:size], self._ahead[size:]
        elif self._error is not None:
            raise self._error
        else:
            try:
                block = self._source.read(size)
            except STREAM_ERRORS as error:
                self._error = error
                raise
        self.n_read += len(block)
        return block


class Utf8(Peeked):
    """A stream of UTF-16 text as UTF-8; broken units become U+FFFD rather than end the file."""

    def __init__(self, source: Readable, codec: str) -> None:
        super().__init__(source)
        self._decoder = codecs.getincrementaldecoder(codec)("replace")

    def read(self, size: int, /) -> bytes:
        """Up to about ``size`` bytes of UTF-8."""
        while block := super().read(size):
            if text := self._decoder.decode(block):
                return text.encode()
        return self._decoder.decode(b"", True).encode()


@dataclass(frozen=True, slots=True)
class Member:
    """One stream of a file: the file itself, or a member of an archive.

    Attributes:
        name: Path inside the archive; empty for a plain file.
        stream: The bytes, decompressed; ``None`` where they must not or cannot be read.
        code: Quarantine code, where ``stream`` is ``None``.
        reopen: Opens the same bytes anew, for a second pass; the stack closes what it opens.
    """

    name: str
    stream: Peeked | None
    reopen: Callable[[ExitStack], Peeked]
    code: str = ""


def open_members(path: Path, stack: ExitStack) -> Iterator[Member]:
    """The streams of a file, one by one; each must be read before the next is asked for.

    Raises:
        OSError, EOFError, zlib.error: The file cannot be opened, or the archive is broken.
    """
    outer = _unwrapped(stack.enter_context(path.open("rb", buffering=0)))
    if not is_tar(outer.peek(TAR_BLOCK)):
        yield Member("", _as_utf8(outer), partial(_reopen, path, -1))
        return
    for index, (name, stream, code) in enumerate(tar_members(outer)):
        inner = None if stream is None else plain_text(stream)
        yield Member(name, inner, partial(_reopen, path, index), code)


def _reopen(path: Path, index: int, stack: ExitStack) -> Peeked:
    outer = _unwrapped(stack.enter_context(path.open("rb", buffering=0)))
    if index < 0:
        return _as_utf8(outer)
    for position, (_, stream, _) in enumerate(tar_members(outer)):
        if position == index and stream is not None:
            return plain_text(stream)
    raise EOFError(path)


def plain_text(source: Readable) -> Peeked:
    """The bytes behind a compression, if there is one, as UTF-8."""
    return _as_utf8(_unwrapped(source))


def _unwrapped(source: Readable) -> Peeked:
    stream = Peeked(source)
    undo = unwrapper(stream.peek(4))
    return Peeked(undo(stream)) if undo else stream


def _as_utf8(stream: Peeked) -> Peeked:
    head = stream.peek(3)
    if head == codecs.BOM_UTF8:
        stream.read(3)
        stream.n_read = 0
        return stream
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return Peeked(Utf8(stream, "utf-16"))
    return stream
