"""Records of one stream into a parser, each accounted for in the ledger.

Belongs here: the hot loop. Does not belong here: opening files, formats, frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import orjson

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.sources.decode import decode
from evalpipe.sources.elements import Broken, Element, elements
from evalpipe.sources.ledger import Ledger
from evalpipe.sources.lines import Block, TooLarge, line_blocks
from evalpipe.sources.readers.base import KEPT, NOISE, NOT_A_RECORD, Parser, Reader
from evalpipe.sources.streams import BLOCK, STREAM_ERRORS, Member, Peeked

READER_FAILED = "READER_FAILED"

#: Called for each kept record with code-independent facts: offset, line, bytes.
Watch = Callable[[int, int, bytes], None]

#: (bytes read, number of the next line) after each block.
Progress = tuple[int, int]


def feed(
    member: Member, stream: Peeked, reader: Reader, parser: Parser, ledger: Ledger, watch: Watch | None = None
) -> Iterator[Progress]:
    """Feed all records of a stream; yields now and then, so that finished sessions can be taken.

    A stream that breaks is quarantined ``UNREADABLE_FILE``; what was read before it is kept.
    """
    try:
        yield from _FEEDS[reader.shape](member, stream, reader, parser, ledger, watch)
        ledger.n_bytes = stream.n_read
    except STREAM_ERRORS:
        ledger.n_bytes = stream.n_read
        ledger.quarantine_file("UNREADABLE_FILE")


def _feed_lines(
    member: Member, stream: Peeked, reader: Reader, parser: Parser, ledger: Ledger, watch: Watch | None
) -> Iterator[Progress]:
    for block in line_blocks(stream, ledger.options.max_record_bytes, ledger.hasher):
        if isinstance(block, TooLarge):
            _too_large(block, ledger)
            yield stream.n_read, block.number + 1
            continue
        feed_block(block, reader, parser, ledger, watch)
        yield stream.n_read, block.number + len(block.lines)


def feed_block(block: Block, reader: Reader, parser: Parser, ledger: Ledger, watch: Watch | None) -> None:
    """Feed consecutive lines, each a record."""
    loads, feed_one = orjson.loads, parser.feed
    places = _Places(block)
    n_kept = n_noise = 0
    for index, line in enumerate(block.lines):
        try:
            record = loads(line)
        except orjson.JSONDecodeError:
            _feed_odd(line, *places.of(index), reader, parser, ledger, watch)
            continue
        try:
            status = feed_one(record) if type(record) is dict else _feed_other(record, reader, parser)
        except Exception as error:  # noqa: BLE001 - readers of other packages raise what they like
            status = failure_of(error)
        if status is KEPT:
            n_kept += 1
            if watch is not None:
                watch(*places.of(index), line)
        elif status is NOISE:
            n_noise += 1
        else:
            ledger.n_read += 1
            ledger.quarantine(status, *places.of(index), len(line), ledger.digest(line))
    ledger.n_read += n_kept + n_noise
    ledger.n_kept += n_kept
    ledger.n_noise += n_noise


def failure_of(error: Exception) -> str:
    """Why something is not kept on which a reader raised.

    Raises:
        Exception: The error itself, where it is none of the reader's: no memory, a stream that breaks, or
            one that evalpipe raises of itself.
    """
    if isinstance(error, (MemoryError, EvalpipeError, *STREAM_ERRORS)):
        raise error
    return READER_FAILED


def _fed(value: Any, reader: Reader, parser: Parser) -> str:
    try:
        return parser.feed(value) if type(value) is dict else _feed_other(value, reader, parser)
    except Exception as error:  # noqa: BLE001 - as above
        return failure_of(error)


def _feed_other(value: Any, reader: Reader, parser: Parser) -> str:
    """Feed a value that is not an object."""
    if type(value) is list and reader.array_key:
        return parser.feed({reader.array_key: value})
    return NOT_A_RECORD


class _Places:
    """Offsets and numbers of lines of a block, asked for in order, so that each line is measured once.

    A megabyte of two-byte lines that are all bad would take an hour if each were measured from the start.
    """

    def __init__(self, block: Block) -> None:
        self._block, self._index, self._offset = block, 0, block.offset

    def of(self, index: int) -> tuple[int, int]:
        self._offset += sum(map(len, self._block.lines[self._index : index])) + index - self._index
        self._index = index
        return self._offset, self._block.number + index


def _too_large(record: TooLarge, ledger: Ledger) -> None:
    ledger.n_read += 1
    ledger.quarantine("RECORD_TOO_LARGE", record.offset, record.number, record.n_bytes, record.digest)


def _feed_odd(
    data: bytes, offset: int, number: int, reader: Reader, parser: Parser, ledger: Ledger, watch: Watch | None
) -> None:
    """Feed what orjson refuses: several values, broken characters, or nothing that can be read."""
    values, code, rest = decode(data)
    for start, end, value in values:
        ledger.n_read += 1
        _note(_fed(value, reader, parser), data[start:end], offset + start, number, ledger, watch)
    if code:
        ledger.n_read += 1
        ledger.quarantine(code, offset + rest, number, len(data) - rest, ledger.digest(data[rest:]))


def _feed_document(
    member: Member, stream: Peeked, reader: Reader, parser: Parser, ledger: Ledger, watch: Watch | None
) -> Iterator[Progress]:
    is_headed = not reader.header_key
    for item in elements(stream, reader.lists, ledger.options.max_record_bytes, ledger.hasher):
        if isinstance(item, TooLarge):
            _too_large(item, ledger)
        elif isinstance(item, Broken):
            ledger.n_read += 1
            ledger.quarantine("BAD_JSON", item.offset, item.number, item.n_bytes, item.digest)
        elif not item.is_item:
            if item.key == reader.header_key:
                parser.header(_header(item.data))
                is_headed = True
        else:
            if not is_headed and item.key:
                # The header stands after the records: fetch it first.
                parser.header(_late_header(member, reader, ledger))
            is_headed = True
            _feed_value(item.data, item.offset, item.number, reader, parser, ledger, watch)
            yield stream.n_read, item.number + 1


def _feed_whole(
    member: Member, stream: Peeked, reader: Reader, parser: Parser, ledger: Ledger, watch: Watch | None
) -> Iterator[Progress]:
    limit = ledger.options.max_record_bytes
    parts: list[bytes] = []
    n_bytes = 0
    while block := stream.read(BLOCK):
        n_bytes += len(block)
        parts.append(block)
        if n_bytes > limit:
            digest = ledger.hasher()
            for part in parts:
                digest.update(part)
            parts.clear()
            while block := stream.read(BLOCK):
                n_bytes += len(block)
                digest.update(block)
            _too_large(TooLarge(0, 1, n_bytes, digest.hexdigest()), ledger)
            return
    _feed_value(b"".join(parts), 0, 1, reader, parser, ledger, watch)
    yield stream.n_read, 2


def _feed_text(
    member: Member, stream: Peeked, reader: Reader, parser: Parser, ledger: Ledger, watch: Watch | None
) -> Iterator[Progress]:
    limit = ledger.options.max_record_bytes
    held: list[bytes] = []
    n_held = start = 0
    number = 1

    def close() -> None:
        data = b"\n".join(held)
        if not data.strip():
            return
        ledger.n_read += 1
        try:
            record = {"text": data.decode()}
        except UnicodeDecodeError:
            ledger.quarantine("BAD_ENCODING", start, number, len(data), ledger.digest(data))
            return
        _note(_fed(record, reader, parser), data, start, number, ledger, watch)

    for block in line_blocks(stream, limit, ledger.hasher):
        if isinstance(block, TooLarge):
            # What follows a line that is left out does not continue what stood before it.
            if held:
                close()
                held.clear()
                n_held = 0
            _too_large(block, ledger)
            yield stream.n_read, block.number + 1
            continue
        offset = block.offset
        for index, line in enumerate(block.lines):
            if held and (reader.cut(line) or n_held + len(line) > limit):
                close()
                held.clear()
                n_held = 0
            if not held:
                start, number = offset, block.number + index
            held.append(line)
            n_held += len(line) + 1
            offset += len(line) + 1
        yield stream.n_read, block.number + len(block.lines)
    if held:
        close()


def _feed_value(
    data: bytes, offset: int, number: int, reader: Reader, parser: Parser, ledger: Ledger, watch: Watch | None
) -> None:
    """Feed one value of a document; what orjson refuses goes the slow way."""
    try:
        record = orjson.loads(data)
    except orjson.JSONDecodeError:
        _feed_odd(data, offset, number, reader, parser, ledger, watch)
        return
    ledger.n_read += 1
    _note(_fed(record, reader, parser), data, offset, number, ledger, watch)


def _note(status: str, data: bytes, offset: int, number: int, ledger: Ledger, watch: Watch | None) -> None:
    """Count what the parser said of one record."""
    if status is KEPT:
        ledger.n_kept += 1
        if watch is not None:
            watch(offset, number, data)
    elif status is NOISE:
        ledger.n_noise += 1
    else:
        ledger.quarantine(status, offset, number, len(data), ledger.digest(data))


def _header(data: bytes) -> dict[str, Any]:
    values, _, _ = decode(data)
    return values[0][2] if values and type(values[0][2]) is dict else {}


def _late_header(member: Member, reader: Reader, ledger: Ledger) -> dict[str, Any]:
    with ExitStack() as stack:
        stream = member.reopen(stack)
        # Of a cut document the header may be missing; its records are kept all the same.
        stack.enter_context(suppress(*STREAM_ERRORS))
        for item in elements(stream, reader.lists, ledger.options.max_record_bytes, ledger.hasher):
            if isinstance(item, Element) and not item.is_item and item.key == reader.header_key:
                return _header(item.data)
    return {}


_FEEDS = {"lines": _feed_lines, "items": _feed_document, "whole": _feed_whole, "text": _feed_text}
