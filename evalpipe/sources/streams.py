"""Bytes of a file, whatever wraps them: plain, gzip, zstd, tar, and tar inside either.

Belongs here: recognising a wrapping by its first bytes and undoing it as a stream. Does not belong
here: what the bytes mean. The wrapping is read from the bytes, not from the file's name, because
exports are often misnamed.
"""

from __future__ import annotations

import codecs
import gzip
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import pyarrow as pa

#: Read size. Small enough that what is lost when a stream breaks in the middle is little.
BLOCK = 1 << 18

#: What a broken wrapping raises while it is read.
STREAM_ERRORS = (OSError, EOFError, zlib.error)

_TAR_BLOCK = 512
_LONGEST_NAME = 1 << 16


class Readable(Protocol):
    """The least that a stream must do."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; empty at the end."""
        ...


class Peeked:
    """A stream whose first bytes can be looked at before they are read."""

    def __init__(self, source: Readable) -> None:
        self._source = source
        self._ahead = b""
        #: Bytes read so far.
        self.n_read = 0

    def peek(self, size: int) -> bytes:
        """The next ``size`` bytes, or all that are left, without moving on."""
        while len(self._ahead) < size and (block := self._source.read(BLOCK)):
            self._ahead += block
        return self._ahead[:size]

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; empty at the end."""
        if self._ahead:
            block, self._ahead = self._ahead[:size], self._ahead[size:]
        else:
            block = self._source.read(size)
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
        OSError, EOFError, zlib.error: The file cannot be opened, or its wrapping is broken.
    """
    outer = _unwrapped(stack.enter_context(path.open("rb", buffering=0)), stack)
    if not _is_tar(outer.peek(_TAR_BLOCK)):
        yield Member("", _as_utf8(outer), partial(_reopen, path, -1))
        return
    for index, (name, stream, code) in enumerate(_tar_members(outer)):
        reopen = partial(_reopen, path, index)
        if stream is None:
            yield Member(name, None, reopen, code)
            continue
        with ExitStack() as member_stack:
            try:
                inner = _as_utf8(_unwrapped(stream, member_stack))
            except STREAM_ERRORS:
                yield Member(name, None, reopen, "UNREADABLE_FILE")
            else:
                yield Member(name, inner, reopen)


def _reopen(path: Path, index: int, stack: ExitStack) -> Peeked:
    outer = _unwrapped(stack.enter_context(path.open("rb", buffering=0)), stack)
    if index < 0:
        return _as_utf8(outer)
    for position, (_, stream, _) in enumerate(_tar_members(outer)):
        if position == index and stream is not None:
            return _as_utf8(_unwrapped(stream, stack))
    raise EOFError(path)


def _unwrapped(source: Readable, stack: ExitStack) -> Peeked:
    stream = Peeked(source)
    magic = stream.peek(4)
    if magic[:2] == b"\x1f\x8b":
        return Peeked(stack.enter_context(gzip.GzipFile(fileobj=_AsFile(stream))))  # type: ignore[call-overload]
    if magic == b"\x28\xb5\x2f\xfd":
        # pyarrow, because the zstandard package takes a truncated file for a whole one.
        wrapped = pa.PythonFile(_AsFile(stream), mode="r")
        return Peeked(stack.enter_context(pa.CompressedInputStream(wrapped, "zstd")))
    return stream


def _as_utf8(stream: Peeked) -> Peeked:
    head = stream.peek(3)
    if head == codecs.BOM_UTF8:
        stream.read(3)
        stream.n_read = 0
        return stream
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return Peeked(Utf8(stream, "utf-16"))
    return stream


class _AsFile:
    """A stream with the few attributes that gzip and pyarrow ask of a file."""

    closed = False

    def __init__(self, source: Readable) -> None:
        self._source = source

    def read(self, size: int = BLOCK, /) -> bytes:
        return self._source.read(size)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


def _is_tar(block: bytes) -> bool:
    return len(block) == _TAR_BLOCK and block[257:262] == b"ustar"


class _Section:
    """The bytes of one archive member; what is left unread is skipped by ``drain``."""

    def __init__(self, source: Peeked, size: int) -> None:
        self._source = source
        self._left = size
        self._padding = -size % _TAR_BLOCK

    def read(self, size: int, /) -> bytes:
        if not self._left:
            return b""
        block = self._source.read(min(size, self._left))
        if not block:
            raise EOFError("archive ends inside a member")
        self._left -= len(block)
        return block

    def drain(self) -> None:
        while self.read(BLOCK):
            pass
        while self._padding and (block := self._source.read(self._padding)):
            self._padding -= len(block)


def _tar_members(source: Peeked) -> Iterator[tuple[str, _Section | None, str]]:
    """(name, stream, code) of each member.

    Reads headers itself: ``tarfile`` ends quietly at a damaged header and hides all later members.
    Here a damaged header is reported once, and reading goes on at the next header that is whole.
    """
    used: dict[str, int] = {}
    long_name = ""
    is_lost = False
    while block := _exactly(source, _TAR_BLOCK):
        if not block.strip(b"\0"):
            continue
        info = _header(block)
        if info is None:
            if not is_lost:
                yield _distinct("", used), None, "UNREADABLE_FILE"
            is_lost = True
            continue
        is_lost = False
        section = _Section(source, info.size)
        if info.type in (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE):
            long_name = _pax_name(section) if info.type == tarfile.XHDTYPE else _gnu_name(section)
        elif info.type in (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK):
            section.drain()
        elif not info.isdir():
            name = long_name or info.name
            long_name = ""
            is_safe = info.isreg() and _is_inside(name)
            yield _distinct(name, used), section if is_safe else None, "" if is_safe else "UNSAFE_PATH"
            section.drain()
        else:
            long_name = ""


def _header(block: bytes) -> tarfile.TarInfo | None:
    try:
        info = tarfile.TarInfo.frombuf(block, "utf-8", "replace")
    except tarfile.HeaderError:
        return None
    # A negative size can be written down, and would make the reader go back or on for ever.
    return info if info.size >= 0 else None


def _exactly(source: Peeked, size: int) -> bytes:
    block = source.read(size)
    while len(block) < size and (more := source.read(size - len(block))):
        block += more
    if 0 < len(block) < size:
        raise EOFError("archive ends inside a header")
    return block


def _whole(section: _Section) -> bytes:
    data = b""
    while len(data) < _LONGEST_NAME and (block := section.read(_LONGEST_NAME)):
        data += block
    section.drain()
    return data


def _gnu_name(section: _Section) -> str:
    return _whole(section).rstrip(b"\0").decode("utf-8", "replace")


def _pax_name(section: _Section) -> str:
    for record in _whole(section).split(b"\n"):
        _, _, pair = record.partition(b" ")
        if pair.startswith(b"path="):
            return pair[5:].decode("utf-8", "replace")
    return ""


def _is_inside(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")
    return bool(name) and not name.startswith(("/", "\\")) and ".." not in parts and name[1:2] != ":"


def _distinct(name: str, used: dict[str, int]) -> str:
    # Archives may hold a name twice, and the name is a key.
    name = name or "(damaged)"
    used[name] = used.get(name, 0) + 1
    return name if used[name] == 1 else f"{name}#{used[name]}"
