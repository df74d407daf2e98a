"""Files that must be read from more than one place: Parquet, zip archives, Inspect's ``.eval``, folders
of events.

Belongs here: turning such a file into streams of JSON lines or of member bytes. Does not belong
here: wrappings that stream from front to back (``streams.py``), or what the records mean.

Rows of Parquet become JSON lines, so that every reader of lines reads Parquet too; places in
quarantine then count rows. An ``.eval`` is a zip whose header says who ran, and whose samples each
lie in a file of their own: it becomes one stream, the header on the first line.
"""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import copy
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from evalpipe.contracts.names import printable_name
from evalpipe.sources.event_folders import event_lines
from evalpipe.sources.inflate import Readable
from evalpipe.sources.readers.base import json_text
from evalpipe.sources.streams import BLOCK, Member, Peeked, open_members, plain_text

PARQUET_MAGIC, ZIP_MAGIC = b"PAR1", b"PK\x03\x04"

#: Keys of the two kinds of line that an ``.eval`` becomes.
EVAL_HEADER, EVAL_SAMPLE = "evalpipe_inspect_header", "evalpipe_inspect_sample"

_EVAL_HEADERS = ("header.json", "_journal/start.json")
_SAMPLES = "samples/"
_EVAL_OWN = (*_EVAL_HEADERS, _SAMPLES, "_journal/", "summaries.json", "reductions.json")
#: Rows of Parquet that are held at once, and the bytes of them.
_ROWS, _BATCH_BYTES = 256, 8_000_000
_PARSED_BYTES = 64_000_000
_ZIP_ZSTANDARD = 93
_BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error, lzma.LZMAError, ValueError)


def open_file(path: Path, stack: ExitStack) -> Iterator[Member]:
    """The streams of a file of any kind, one by one; each must be read before the next is asked for.

    Args:
        path: The file.
        stack: Closes what is opened.

    Raises:
        OSError, EOFError, zlib.error: The file cannot be opened, or its wrapping is broken.
    """
    if path.is_dir():
        yield _one(lambda _: event_lines(path), stack)
        return
    with path.open("rb") as file:
        magic = file.read(len(ZIP_MAGIC))
    if magic == PARQUET_MAGIC:
        yield _one(lambda _: _parquet_lines(path), stack)
    elif magic == ZIP_MAGIC:
        yield from _zip_members(path, stack)
    else:
        yield from open_members(path, stack)


def _zip_members(path: Path, stack: ExitStack) -> Iterator[Member]:
    archive = _open_zip(path, stack)
    # By hand: ``is_dir`` of Python 3.11 fails for a member without a name.
    names = [info for info in archive.infolist() if not info.filename.endswith("/")]
    header = next((name for name in _EVAL_HEADERS if any(info.filename == name for info in names)), None)
    if header is not None and any(info.filename.startswith(_SAMPLES) for info in names):
        yield _one(lambda inner: _eval_lines(_open_zip(path, inner), header), stack)
        # What somebody put beside the run is read, or told, as in any other archive.
        names = [info for info in names if not info.filename.startswith(_EVAL_OWN)]
    used: dict[str, int] = {}
    for info in names:
        yield _zip_member(path, archive, info, used, stack)


def _one(lines: Callable[[ExitStack], Iterator[bytes]], stack: ExitStack) -> Member:
    """A container that holds one stream of lines."""
    return Member("", Peeked(_Lines(lines(stack))), lambda again: Peeked(_Lines(lines(again))))


def _open_zip(path: Path, stack: ExitStack) -> zipfile.ZipFile:
    try:
        return stack.enter_context(zipfile.ZipFile(path))
    except _BROKEN as error:
        raise OSError("broken zip archive") from error


def _zip_member(
    path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, used: dict[str, int], stack: ExitStack
) -> Member:
    name = printable_name(info.filename) or "(damaged)"
    used[name] = used.get(name, 0) + 1
    shown = name if used[name] == 1 else f"{name}#{used[name]}"

    def reopen(again: ExitStack) -> Peeked:
        return plain_text(_ZipStream(_open_zip(path, again), info, again))

    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or name[1:2] == ":":
        return Member(shown, None, reopen, "UNSAFE_PATH")
    return Member(shown, plain_text(_ZipStream(archive, info, stack)), reopen)


class _ZipStream:
    """The bytes of one member of a zip archive; whatever breaks is an ``OSError``."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, stack: ExitStack) -> None:
        self._archive, self._info, self._stack = archive, info, stack
        self._file: Readable | None = None

    def read(self, size: int, /) -> bytes:
        try:
            if self._file is None:
                # An archive stays open until all of its members are closed.
                self._file = _opened(self._archive, self._info, self._stack)
            return self._file.read(size)
        except _BROKEN as error:
            raise OSError("broken member of a zip archive") from error


def _opened(archive: zipfile.ZipFile, info: zipfile.ZipInfo, stack: ExitStack) -> Readable:
    """A member as a stream; Zstandard, which Inspect uses, is unknown to the standard library before 3.14."""
    if info.compress_type != _ZIP_ZSTANDARD:
        return stack.enter_context(archive.open(info))
    frame = copy(info)
    # As if it were stored: the frame's own bytes, which the archive's checksum is not of.
    frame.compress_type, frame.file_size, frame.CRC = zipfile.ZIP_STORED, info.compress_size, None  # type: ignore[assignment]
    bare = pa.PythonFile(stack.enter_context(archive.open(frame)), mode="r")
    stream: Readable = stack.enter_context(pa.CompressedInputStream(bare, "zstd"))
    return stream


class _Lines:
    """Lines as a stream; the rest of a long line is kept for the next read."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._left = b""

    def read(self, size: int, /) -> bytes:
        while not self._left:
            line = next(self._lines, None)
            if line is None:
                return b""
            self._left = line
        block, self._left = self._left[:size], self._left[size:]
        return block


def _parquet_lines(path: Path) -> Iterator[bytes]:
    try:
        with pq.ParquetFile(path, pre_buffer=False, memory_map=False) as file:
            for batch in file.iter_batches(_rows_at_once(file.metadata)):
                for row in batch.to_pylist():
                    yield _line(row)
    except (pa.ArrowException, ValueError, OverflowError, LookupError) as error:
        # Values that Python has no type for, too: a year beyond 9999, text that is not UTF-8.
        raise OSError("broken Parquet file") from error


def _rows_at_once(metadata: pq.FileMetaData) -> int:
    """Rows that make about :data:`_BATCH_BYTES` together, by what the file says of its size."""
    n_bytes = sum(metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups))
    return int(max(1, min(_ROWS, _BATCH_BYTES * metadata.num_rows // max(n_bytes, 1))))


def _line(row: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(row, default=_plain, option=orjson.OPT_NON_STR_KEYS) + b"\n"
    except TypeError:
        return (json_text(row) or "null").encode("utf-8", "replace") + b"\n"


def _plain(value: object) -> object:
    """Values that JSON does not know: bytes as text, all others as they print."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _eval_lines(archive: zipfile.ZipFile, header: str) -> Iterator[bytes]:
    yield from _wrapped(EVAL_HEADER, archive, header)
    for info in archive.infolist():
        if info.filename.startswith(_SAMPLES) and info.filename.endswith(".json"):
            yield from _wrapped(EVAL_SAMPLE, archive, info.filename)


def _wrapped(key: str, archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """One JSON file of the archive on a line of its own, in pieces where it is large.

    What is no JSON, or breaks, stays visible as one bad line, and the files after it are read.
    """
    begun = b'{"%s": ' % key.encode()
    with ExitStack() as own:
        stream = _ZipStream(archive, archive.getinfo(name), own)
        data = b""
        try:
            while len(data) <= _PARSED_BYTES and (block := stream.read(BLOCK)):
                data += block
            if len(data) <= _PARSED_BYTES:
                yield _one_line(key, data)
                return
            # Too large to be parsed here: the reader of lines passes over it while it streams.
            yield begun + _flat(data)
            while block := stream.read(BLOCK):
                yield _flat(block)
            yield b"}\n"
        except OSError:
            yield begun + _flat(data) + b"\n"


def _one_line(key: str, data: bytes) -> bytes:
    try:
        return orjson.dumps({key: orjson.loads(data)}) + b"\n"
    except (orjson.JSONDecodeError, TypeError):
        return b'{"%s": %s}\n' % (key.encode(), _flat(data))


def _flat(data: bytes) -> bytes:
    return data.replace(b"\r", b" ").replace(b"\n", b" ")
