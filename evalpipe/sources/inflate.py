"""gzip and zstd undone as streams that give all they can before they fail.

Belongs here: decompression in bounded memory. Does not belong here: recognising a wrapping
(``streams.py``). The ready-made file objects of both libraries either throw away what they had
decompressed when the input ends too early, or take a cut file for a whole one; a log that is being
copied or whose disk ran full is cut quite often.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Protocol

import zstandard

GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"

_GZIP_BLOCK = 1 << 16
#: Four bytes of zstd can stand for 128 KB, so this much can stand for 64 MB.
_ZSTD_BLOCK = 1 << 11


class Readable(Protocol):
    """The least that a stream must do."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; empty at the end."""
        ...


class Gunzipped:
    """The content of one or more gzip members."""

    def __init__(self, source: Readable) -> None:
        self._source = source
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._input = b""
        self._is_begun = False
        self._is_careful = False

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes.

        Raises:
            EOFError: The stream is cut; everything before was given.
            zlib.error: The stream is damaged; everything before was given.
        """
        while True:
            if self._inflater.eof and not self._next_member():
                return b""
            if not self._input:
                self._input = self._source.read(_GZIP_BLOCK)
                if not self._input and self._is_begun:
                    # What is still inside the inflater, up to the cut.
                    if rest := self._inflater.decompress(b"", size):
                        return rest
                    if self._inflater.eof:
                        continue
                    raise EOFError("gzip stream is cut")
                if not self._input:
                    return b""
            self._is_begun = True
            if data := self._inflated(size):
                return data

    def _inflated(self, size: int) -> bytes:
        before = None if self._is_careful else self._inflater.copy()
        try:
            data = self._inflater.decompress(self._input, 1 if self._is_careful else size)
        except zlib.error:
            if before is None:
                raise
            # A failing call gives nothing: go on byte by byte from the state before it.
            self._is_careful, self._inflater = True, before
            return self._inflated(size)
        self._input = self._inflater.unconsumed_tail
        return data

    def _next_member(self) -> bool:
        rest = self._inflater.unused_data
        # Zeros pad a member to a block of a tape.
        while not (rest := rest.lstrip(b"\0")):
            if not (rest := self._source.read(_GZIP_BLOCK)):
                return False
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._input = rest
        return True


class Unzstd:
    """The content of one or more zstd frames."""

    def __init__(self, source: Readable) -> None:
        self._source = source
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._input = b""
        self._ready = memoryview(b"")

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes.

        Raises:
            EOFError: The stream is cut; all whole blocks before were given.
            OSError: The stream is damaged; all whole blocks before were given.
        """
        while not self._ready:
            self._input = self._input or self._source.read(_ZSTD_BLOCK)
            if not self._input:
                if self._frame is not None:
                    raise EOFError("zstd stream is cut")
                return b""
            self._decompress()
        data, self._ready = self._ready[:size], self._ready[size:]
        return bytes(data)

    def _decompress(self) -> None:
        frame = self._frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
        try:
            self._ready = memoryview(frame.decompress(self._input))
        except zstandard.ZstdError as bad:
            raise OSError("zstd stream is damaged") from bad
        self._input = b""
        if frame.eof:
            self._frame, self._input = None, frame.unused_data


def unwrapper(magic: bytes) -> Callable[[Readable], Readable] | None:
    """What undoes the compression that begins with these four bytes, if any does."""
    if magic[:2] == GZIP_MAGIC:
        return Gunzipped
    return Unzstd if magic == ZSTD_MAGIC else None
