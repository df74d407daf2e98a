"""The reading of a batch: files to chunks of frames.

Belongs here: opening, sniffing, taking finished sessions, dates out of range. Does not belong here:
any format (``readers/``), the loop over records (``feed.py``), frames (``chunk.py``).

The rule that everything here serves: rows read = rows kept + rows noise + rows quarantined, for
every file and archive member, whatever the bytes.
"""

from __future__ import annotations

import gc
from collections.abc import Container, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import PurePath

from evalpipe.contracts.edge import HEAD as EDGE_HEAD
from evalpipe.contracts.names import printable_name
from evalpipe.sources.chunk import ChunkBuilder
from evalpipe.sources.containers import open_file
from evalpipe.sources.edge import read_edge
from evalpipe.sources.feed import READER_FAILED, failure_of, feed
from evalpipe.sources.holding import Holding
from evalpipe.sources.ledger import Ledger
from evalpipe.sources.model import Batch, Chunk, ReadOptions, SourceFile
from evalpipe.sources.readers.base import FileContext, Parser, Reader
from evalpipe.sources.registry import HEAD_BYTES, sniff
from evalpipe.sources.spool import SpoolOptions
from evalpipe.sources.streams import STREAM_ERRORS, Member, Peeked

#: Why a session of somebody who was erased is left out; it is in no table, since a row would name it.
ERASED = "ERASED"


def parse_batch(batch: Batch, options: ReadOptions, *, share: int = 0, n_shares: int = 1) -> Iterator[Chunk]:
    """Parse the files of a batch, one after the other, in bounded memory.

    Args:
        batch: Files from :func:`~evalpipe.sources.discover.plan_batches`.
        options: Dates, key and limits.
        share, n_shares: Which share of the members of each file is read, where several workers read
            one archive; a file that is no archive is wholly in the first.

    Yields:
        Chunks of about ``options.chunk_bytes`` of text. A session is whole in one chunk, and
        each copy of it that a file holds is kept.

    Raises:
        EvalpipeError: ``ROWS_UNACCOUNTED`` if a reader loses a record.
    """
    chunks = _chunks(batch, options, (share, n_shares))
    while True:
        with _collector_paused():
            chunk = next(chunks, None)
        if chunk is None:
            return
        yield chunk


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep the cycle collector out: reading makes no cycles, and it would walk all rows again and again."""
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_collecting:
            gc.enable()


def _chunks(batch: Batch, options: ReadOptions, share: tuple[int, int]) -> Iterator[Chunk]:
    builder = ChunkBuilder(options)
    for file in batch.files:
        for _ in _read_file(file, options, builder, share):
            yield builder.build()
    if not builder.is_empty:
        yield builder.build()


def _read_file(file: SourceFile, options: ReadOptions, builder: ChunkBuilder, share: tuple[int, int]) -> Iterator[None]:
    """Read one file, or a share of its members, into the builder; yields whenever the builder is full."""
    if file.code and share[0] > 0:
        return
    if file.code:
        ledger = Ledger(file, "", options)
        ledger.quarantine_file(file.code)
        ledger.close(builder)
        return
    n_members = 0
    with ExitStack() as stack:
        try:
            for member in open_file(file.path, stack):
                n_members += 1
                if (n_members - 1) % share[1] != share[0]:
                    continue
                yield from _read_member(file, member, options, builder)
        except STREAM_ERRORS:
            # The file or the archive itself is broken here; members before this place were kept.
            if share[0] > 0:
                return
            ledger = Ledger(file, "(rest of the archive)" if n_members else "", options)
            ledger.quarantine_file("UNREADABLE_FILE")
            ledger.close(builder)
            return
    if not n_members and share[0] == 0:
        # An archive of nothing, or of folders only, is no file that was never there.
        ledger = Ledger(file, "", options)
        ledger.quarantine_file("NO_SESSION")
        ledger.close(builder)


def _read_member(file: SourceFile, member: Member, options: ReadOptions, builder: ChunkBuilder) -> Iterator[None]:
    ledger = Ledger(file, member.name, options)
    if member.code:
        ledger.quarantine_file(member.code)
    elif member.stream is not None:
        head = member.stream.peek(HEAD_BYTES)
        is_edge = head.startswith(EDGE_HEAD)
        failed: list[Reader] = []
        ledger.reader = None if is_edge else sniff(head, failed)
        if is_edge:
            yield from read_edge(member.stream, ledger, builder)
        elif ledger.reader is None and failed:
            # Whether it is a log of this reader, nobody knows.
            ledger.reader = failed[0]
            ledger.quarantine_rest(member.stream, READER_FAILED)
        elif ledger.reader is None:
            ledger.quarantine_rest(member.stream, "UNKNOWN_FORMAT" if head.strip() else "EMPTY_FILE")
        else:
            try:
                yield from _read_sessions(member, member.stream, ledger.reader, ledger, builder)
            except Exception as error:  # noqa: BLE001 - the other files are read whatever a reader does
                ledger.quarantine_file(failure_of(error))
    ledger.close(builder)
    if builder.is_full:
        yield


def _read_sessions(
    member: Member, stream: Peeked, reader: Reader, ledger: Ledger, builder: ChunkBuilder
) -> Iterator[None]:
    place = PurePath(ledger.file.name.removeprefix("s3://"))
    folders = tuple(map(printable_name, place.parent.parts[-4:]))
    options = ledger.options
    name = member.name or printable_name(place.name)
    context = FileContext(name, folders, _spool_options(options))
    parser = reader.parser(context)
    holding = Holding(member, reader, ledger)
    rejected: dict[str, str] = {}
    n_spilled = 0
    for n_bytes, next_line in feed(member, stream, reader, parser, ledger):
        if holding.is_too_much(parser, n_bytes):
            names = [session.session_id for session in parser.sessions.values()]
            ledger.quarantine_all(stream, "SESSION_TOO_LARGE", names[0] if len(names) == 1 else "")
            return
        done = holding.over(parser, n_bytes, next_line)
        if options.spool is not None and n_bytes - n_spilled > options.held_bytes:
            parser.spill()
            n_spilled = n_bytes
        yield from _take(done, parser, reader, ledger, builder, rejected, holding.put_off)
        ledger.flush(builder, is_end=False)
    n_empty = parser.close()
    ledger.n_kept -= n_empty
    ledger.n_noise += n_empty
    for _ in parser.rest():
        yield from _take(list(parser.sessions), parser, reader, ledger, builder, rejected, holding.put_off)
    too_large = parser.too_large
    not_found: list[str] = []
    for again, key in holding.second_reading(context, too_large, not_found):
        yield from _take([key], again, reader, ledger, builder, rejected)
    rejected.update((f"{reader.name}:{key}", "SESSION_TOO_LARGE") for key in too_large)
    rejected.update((f"{reader.name}:{key}", READER_FAILED) for key in not_found)
    if rejected:
        _quarantine_rejected(member, reader, reader.parser(FileContext(name, folders)), ledger, rejected)
    if not ledger.n_sessions and not ledger.n_quarantined and not ledger.n_erased:
        ledger.quarantine_file("NO_SESSION")


def _spool_options(options: ReadOptions) -> SpoolOptions | None:
    if options.spool is None:
        return None
    return SpoolOptions(options.spool, options.held_bytes, options.max_session_bytes)


def _take(
    keys: list[str],
    parser: Parser,
    reader: Reader,
    ledger: Ledger,
    builder: ChunkBuilder,
    rejected: dict[str, str],
    put_off: Container[str] = (),
) -> Iterator[None]:
    """Move sessions that are whole from the parser to the builder."""
    for key in keys:
        session = parser.sessions.pop(key)
        if session is parser.current:
            parser.current = None
        code = ""
        try:
            parser.finish(session)
        except Exception as error:  # noqa: BLE001 - readers of other packages raise what they like
            code = failure_of(error)
        if key in put_off:
            continue
        if code:
            rejected[session.session_id] = code
            continue
        dates = session.dates(ledger.options.undated_day)
        code = ledger.options.out_of_range(dates[0].date()) if dates[2] else ""
        who = (session.user_id, session.tenant, reader.name, session.session_id, session.parent_session_id)
        if ledger.options.is_erased(*who):
            # The file's own row stands where it would have stood.
            ledger.first_day = ledger.first_day or (None if code else dates[0].date())
            ledger.n_erased += 1
            code = ERASED
        if code:
            rejected[session.session_id] = code
            continue
        ledger.n_sessions += 1
        ledger.first_day = ledger.first_day or dates[0].date()
        builder.add_session(session, reader.name, reader.version, ledger.file.digest, dates)
        if builder.is_full:
            yield


def _quarantine_rejected(
    member: Member, reader: Reader, parser: Parser, ledger: Ledger, rejected: dict[str, str]
) -> None:
    """Move the records of rejected sessions from kept to quarantined, those of erased people to noise.

    Which records those are is not remembered while reading, since it is hardly ever asked: the file
    is read a second time instead.
    """
    shadow = Ledger(ledger.file, ledger.member, ledger.options)
    placed: set[str] = set()

    def watch(offset: int, line: int, data: bytes) -> None:
        session_id = parser.current.session_id if parser.current else ""
        if (code := rejected.get(session_id)) is not None:
            placed.add(session_id)
            ledger.n_kept -= 1
            if code == ERASED:
                ledger.n_noise += 1
                return
            ledger.quarantine(code, offset, line, len(data), ledger.digest(data), session_id)

    with ExitStack() as stack:
        stream = member.reopen(stack)
        for _ in feed(member, stream, reader, parser, shadow, watch):
            parser.forget()
    for session_id, code in rejected.items():
        if session_id not in placed and code != ERASED:
            # Its records hold other sessions too, or do not name it: it stands there by itself.
            ledger.n_read += 1
            place = f"{ledger.file.digest}/{ledger.member}/{session_id}".encode()
            ledger.quarantine(code, 0, 0, 0, ledger.digest(place), session_id)
