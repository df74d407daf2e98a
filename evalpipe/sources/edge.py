"""Edge files: sessions that come with their signals in place of steps.

Belongs here: reading the lines of an edge file into frames, strictly. Does not belong here: the form
of the file (``contracts/edge.py``), logs of agents (``readers/``). A line that is not of the form is
quarantined: what comes from elsewhere may hold anything, and nothing of it may pass for masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import orjson
import polars as pl

from evalpipe.contracts.edge import FORMAT, HEAD, MARKER, SESSION, TIME, TIMES, TOKENS, EdgeTerms
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.render import conform, polars_schema
from evalpipe.contracts.tables import masked, raw
from evalpipe.contracts.vectors import pack, unpack
from evalpipe.sources.chunk import ChunkBuilder
from evalpipe.sources.containers import open_file
from evalpipe.sources.discover import unwelcome
from evalpipe.sources.ledger import Ledger
from evalpipe.sources.lines import Block, line_blocks
from evalpipe.sources.model import SourceFile
from evalpipe.sources.readers.base import Parser, Reader
from evalpipe.sources.streams import STREAM_ERRORS, Peeked

#: The source that edge files stand under in the reading balance; its sessions keep their own.
READER = Reader(MARKER, FORMAT, "lines", lambda record: MARKER in record, Parser)

#: A header is shorter than this.
_HEAD_BYTES = 65_536
_LINES = 2_000
_BAD = (EvalpipeError, pl.exceptions.PolarsError, ValueError, TypeError, KeyError, OverflowError)


def objection_to(file: SourceFile, terms: EdgeTerms) -> str:
    """Code of what keeps an edge file from being read; empty for one that is welcome, and for any other file."""
    if file.code or not file.n_bytes:
        return ""
    with ExitStack() as stack:
        try:
            member = next(iter(open_file(file.path, stack)), None)
            # Members of an archive are judged when they are read, each by itself.
            stream = member.stream if member is not None and not member.name else None
            head = stream.peek(_HEAD_BYTES) if stream is not None else b""
        except STREAM_ERRORS:
            return ""
    return terms.objection(_header(head)) if head.startswith(HEAD) else ""


def welcome(file: SourceFile, terms: EdgeTerms) -> SourceFile:
    """A file as it can be read now: an edge file that cannot goes by its place, and may be read another time.

    Args:
        file: A file as fingerprinted.
        terms: What an edge file must have in common with the home.
    """
    code = objection_to(file, terms)
    return unwelcome(file, code) if code else file


def _header(head: bytes) -> Mapping[str, Any]:
    try:
        header = orjson.loads(head.partition(b"\n")[0])
    except orjson.JSONDecodeError:
        return {}
    return header if isinstance(header, dict) else {}


@dataclass(frozen=True, slots=True)
class _Line:
    offset: int
    number: int
    data: bytes
    record: dict[str, Any]


def read_edge(stream: Peeked, ledger: Ledger, builder: ChunkBuilder) -> Iterator[None]:
    """Read an edge file into the builder; yields whenever the builder is full.

    Args:
        stream: The decompressed file.
        ledger: Balance of the file.
        builder: Takes sessions and rows of other balances.
    """
    ledger.reader = READER
    terms = ledger.options.edge
    header = _header(stream.peek(_HEAD_BYTES))
    code = terms.objection(header) if terms else "EDGE_OTHER_KEY"
    if code:
        ledger.quarantine_rest(stream, code)
        return
    extraction = str(header["extraction"])
    waiting: list[_Line] = []
    try:
        for line in _lines(stream, ledger):
            waiting.append(line)
            if len(waiting) >= _LINES:
                _take(waiting, extraction, ledger, builder)
                waiting = []
                if builder.is_full:
                    yield
    except STREAM_ERRORS:
        ledger.quarantine_file("UNREADABLE_FILE")
    _take(waiting, extraction, ledger, builder)
    ledger.n_bytes = stream.n_read
    if not ledger.n_sessions and not ledger.n_quarantined and not ledger.n_erased:
        ledger.quarantine_file("NO_SESSION")


def _lines(stream: Peeked, ledger: Ledger) -> Iterator[_Line]:
    """Lines that are objects, behind the header; others are quarantined here."""
    for block in line_blocks(stream, ledger.options.max_record_bytes, ledger.hasher):
        if not isinstance(block, Block):
            ledger.n_read += 1
            ledger.quarantine("RECORD_TOO_LARGE", block.offset, block.number, block.n_bytes, block.digest)
            continue
        offset = block.offset
        for number, data in enumerate(block.lines, block.number):
            if data.strip():
                ledger.n_read += 1
                if number == 1:
                    ledger.n_noise += 1
                elif (record := _record(data)) is not None:
                    yield _Line(offset, number, data, record)
                else:
                    _refuse(_Line(offset, number, data, {}), "BAD_JSON", ledger)
            offset += len(data) + 1


def _record(data: bytes) -> dict[str, Any] | None:
    try:
        record = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None


def _refuse(line: _Line, code: str, ledger: Ledger) -> None:
    ledger.quarantine(code, line.offset, line.number, len(line.data), ledger.digest(line.data))


def _take(lines: list[_Line], extraction: str, ledger: Ledger, builder: ChunkBuilder) -> None:
    _sessions([line for line in lines if line.record.get("type") == "session"], extraction, ledger, builder)
    for line in lines:
        kind = line.record.get("type")
        if kind == "session":
            continue
        try:
            if kind == "file":
                builder.add_file(*_balance(line.record, ledger))
            elif kind == "quarantine":
                day, row = _bad_row(line.record, ledger)
                builder.add_quarantine(day, [row])
            else:
                raise ValueError("no such type")
        except _BAD:
            _refuse(line, "BAD_FIELD", ledger)
        else:
            ledger.n_kept += 1


def _sessions(lines: list[_Line], extraction: str, ledger: Ledger, builder: ChunkBuilder) -> None:
    """Take sessions together; where that fails, halves of them, until those that are bad stand alone."""
    if not lines:
        return
    try:
        rows = _frame(lines, extraction, ledger.file.digest)
    except _BAD:
        if len(lines) == 1:
            _refuse(lines[0], "BAD_FIELD", ledger)
            return
        half = len(lines) // 2
        _sessions(lines[:half], extraction, ledger, builder)
        _sessions(lines[half:], extraction, ledger, builder)
        return
    options = ledger.options
    ids = rows.select("user_id", "tenant", "source", "session_id", "parent_session_id").iter_rows()
    erased = [who[3] for who in ids if options.is_erased(*who)]
    if erased:
        lines = [line for line in lines if line.record["session"]["session_id"] not in erased]
        rows = rows.filter(~pl.col("session_id").is_in(erased))
        ledger.n_noise += len(erased)
        ledger.n_erased += len(erased)
    codes = {line.record["session"]["session_id"]: line for line in lines}
    late = {
        session_id: code for session_id, day, is_dated in rows.select("session_id", "day", "is_dated").iter_rows()
        if is_dated and (code := options.out_of_range(day))
    }  # fmt: skip
    for session_id, code in late.items():
        _refuse(codes[session_id], code, ledger)
    kept = rows.filter(~pl.col("session_id").is_in(list(late)))
    ledger.n_kept += len(lines) - len(late)
    ledger.n_sessions += kept.height
    if kept.height:
        ledger.first_day = ledger.first_day or kept["day"].min()  # type: ignore[assignment]
        builder.add_rows(kept)


def _frame(lines: list[_Line], extraction: str, file_id: str) -> pl.DataFrame:
    """``raw.sessions`` with what tells copies apart and the packed signals.

    Raises:
        EvalpipeError, PolarsError, ValueError, TypeError, KeyError: A line is not of the form.
    """
    records = [line.record for line in lines]
    sessions = pl.DataFrame([record["session"] for record in records], schema=SESSION, strict=True)
    for name, kind in TOKENS.items():
        if not sessions[name].drop_nulls().str.contains(rf"\A{kind}_[a-p]{{20}}\z").all():
            raise ValueError("an id that is no token")
    marks = {"said_digest": "said", "content_digest": "digest"}
    heads = [
        pl.Series(name, [record[key] for record in records], dtype=pl.String, strict=True)
        for name, key in marks.items()
    ]
    sessions = sessions.with_columns(
        *heads,
        *(pl.col(name).str.to_datetime(TIME, time_unit="us", time_zone="UTC", strict=True) for name in TIMES),
        file_id=pl.lit(file_id),
    )
    given = sessions.select("session_id").with_columns(
        extraction=pl.lit(extraction),
        signals=pl.Series([orjson.dumps(record["signals"]).decode() for record in records], dtype=pl.String),
    )
    # Packed anew, so that it holds what the contracts know and nothing else.
    packed = pack(unpack(conform(masked.VECTORS, given)), extraction)
    conform(raw.SESSIONS, sessions.drop("said_digest"))
    if packed.height != sessions.height:
        raise ValueError("not one row of features for every session")
    # Without steps, a session is no part of one that lies in several files.
    no_step = pl.lit(None, pl.Datetime("us", "UTC"))
    return sessions.join(packed, on="session_id").with_columns(
        day=pl.col("started_at").dt.date(), first_step_at=no_step
    )


def _balance(record: Mapping[str, Any], ledger: Ledger) -> tuple[date, tuple[Any, ...]]:
    day, row = _row(record, masked.FILES.names, raw.FILES)
    return day, (ledger.file.digest, ledger.source_file, _member(row), *(row[n] for n in raw.FILES.names[3:]))


def _bad_row(record: Mapping[str, Any], ledger: Ledger) -> tuple[date, tuple[Any, ...]]:
    day, row = _row(record, masked.QUARANTINE.names, raw.QUARANTINE)
    return day, (ledger.file.digest, ledger.source_file, _member(row), *(row[n] for n in raw.QUARANTINE.names[3:]))


def _row(record: Mapping[str, Any], names: tuple[str, ...], table: Any) -> tuple[date, dict[str, Any]]:
    row = {name: record["row"][name] for name in names}
    # The contract's types, before the row waits among rows of other files.
    conform(table, pl.DataFrame([{**row, "source_file": ""}], schema=polars_schema(table), strict=True))
    return datetime.strptime(record["day"], "%Y-%m-%d").date(), row


def _member(row: Mapping[str, Any]) -> str:
    """The file beside the agent, as a member of this one: its token, and that of its own member."""
    return "/".join(part for part in (row["file_id"], row["member"]) if part)
