"""Whole sessions gathered into frames of the contracts.

Belongs here: columns, dates, the numbering of copies of one session inside a chunk. Does not belong
here: where sessions come from, which copy counts (that is decided over all chunks).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import chain
from typing import Any

import polars as pl

from evalpipe.contracts.render import polars_schema
from evalpipe.contracts.tables import raw
from evalpipe.sources.model import Chunk, ReadOptions
from evalpipe.sources.said import said_digest
from evalpipe.sources.session import END, SLOTS, START, Row, Session, TraceText, summarise
from evalpipe.sources.times import parse_time, time_column

_DAY = {"day": pl.Date()}
_COPY = {**_DAY, "copy": pl.Int32()}
#: Columns of a trace; null for all else.
TRACE = {
    "spans": pl.String(), "span_bytes": pl.Int64(), "traces": pl.List(pl.String()), "span_keys": pl.List(pl.UInt64()),
    "span_began": pl.List(pl.UInt64()), "span_is_ended": pl.List(pl.Boolean()),
}  # fmt: skip
_NO_TRACE = (None,) * len(TRACE)
#: Columns that a log tells and an edge file does not.
LOGGED = {**TRACE, "trial_name": pl.String()}
_KNOWN = {
    "said_digest": pl.String(), "first_step_at": pl.Datetime("us", "UTC"), "extraction": pl.String(), **LOGGED,
}  # fmt: skip
_SESSIONS = pl.Schema({**_COPY, **_KNOWN, **polars_schema(raw.SESSIONS)})
_STEPS = pl.Schema({**_COPY, **polars_schema(raw.STEPS)})
_QUARANTINE = pl.Schema({**_DAY, **polars_schema(raw.QUARANTINE)})
_FILES = pl.Schema({**_DAY, **polars_schema(raw.FILES)})
_VECTORS = pl.Schema({**_COPY, **polars_schema(raw.VECTORS)})

# Rows become columns in pieces of this many values: few enough to be still in the processor's cache.
_PIECE_VALUES = 8192 * len(SLOTS)
_PIECE_BYTES = 4_000_000

# What a row of quarantine weighs, so that a file of nothing but bad lines closes chunks too.
_BYTES_PER_BAD_ROW = 256


@dataclass(slots=True)
class _Copy:
    rank: tuple[int, str, str]
    day: date
    said_digest: str | None
    first_step_at: datetime | None
    trace: TraceText | None
    trial_name: str | None
    values: tuple[Any, ...]
    first_row: int


@dataclass(slots=True)
class ChunkBuilder:
    """Gathers sessions until there is enough text for a chunk."""

    options: ReadOptions
    n_bytes: int = 0
    _copies: dict[str, list[_Copy]] = field(default_factory=dict)
    #: Steps in the order in which they came: finished pieces, and the values of the next one.
    _pieces: list[pl.DataFrame] = field(default_factory=list)
    _flat: list[Any] = field(default_factory=list)
    _flat_bytes: int = 0
    _n_rows: int = 0
    _quarantine: list[tuple[Any, ...]] = field(default_factory=list)
    _files: list[tuple[Any, ...]] = field(default_factory=list)
    #: Sessions that came with signals in place of steps.
    _ready: list[pl.DataFrame] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Whether the chunk has reached its size."""
        return self.n_bytes >= self.options.chunk_bytes

    @property
    def is_empty(self) -> bool:
        """Whether the chunk holds nothing at all."""
        return not (self._copies or self._quarantine or self._files or self._ready)

    def add_session(
        self, session: Session, source: str, reader_version: str, file_id: str, dates: tuple[datetime, datetime, bool]
    ) -> None:
        """Take a whole session, or another copy of one."""
        facts = summarise(session)
        self.n_bytes += facts["text_bytes"]
        rank = (-session.n_messages, facts["content_digest"], file_id)
        start, end, is_dated = dates
        values = (
            session.session_id, source, reader_version, file_id, session.agent, session.agent_release,
            facts["model"], facts["n_models"], session.user_id, session.tenant, session.workspace,
            session.parent_session_id, start, end, is_dated, facts["is_clock_repaired"], session.end_status,
            session.scenario, session.task_id, session.trial, session.reward, session.is_success, session.harness,
            session.tools, session.prompt_version, session.retrieval_version, session.assignment_policy,
            session.assignment_unit, session.assignment_probability, session.routing_epoch, session.consent,
            facts["n_turns"], len(session.rows), facts["n_tool_calls"], session.n_messages, *facts["tokens"],
            session.cost_usd, facts["content_digest"],
        )  # fmt: skip
        self.n_bytes += 0 if session.trace is None else len(session.trace.text)
        first_at = _first(session.rows)
        told = (said_digest(session.rows), first_at, session.trace, session.trial_name)
        copy = _Copy(rank, start.date(), *told, values, self._n_rows)
        self._copies.setdefault(session.session_id, []).append(copy)
        self._n_rows += len(session.rows)
        self._flat += chain.from_iterable(session.rows)
        self._flat_bytes += facts["text_bytes"]
        if len(self._flat) > _PIECE_VALUES or self._flat_bytes > _PIECE_BYTES:
            self._close_piece()

    def _close_piece(self) -> None:
        if self._flat:
            self._pieces.append(_piece(self._flat))
        self._flat, self._flat_bytes = [], 0

    def add_quarantine(self, day: date, rows: list[tuple[Any, ...]]) -> None:
        """Take quarantine rows (contract order) of one file."""
        self._quarantine += [(day, *row) for row in rows]
        self.n_bytes += _BYTES_PER_BAD_ROW * len(rows)

    def add_file(self, day: date, row: tuple[Any, ...]) -> None:
        """Take the balance (contract order) of one file or member."""
        self._files.append((day, *row))

    def add_rows(self, sessions: pl.DataFrame) -> None:
        """Take sessions that came with signals in place of steps.

        Args:
            sessions: ``raw.sessions`` with ``day``, ``said_digest``, ``extraction`` and ``signals``.
        """
        self._ready.append(sessions)
        self.n_bytes += int(sessions["signals"].str.len_bytes().sum())

    def build(self) -> Chunk:
        """The frames, in the contracts' sort order; the builder is empty afterwards."""
        self._close_piece()
        # Numbered by size, so that the order of files is no matter.
        copies = [
            (number, copy)
            for session_id in sorted(self._copies)
            for number, copy in enumerate(sorted(self._copies[session_id], key=lambda copy: copy.rank))
        ]
        sessions = _sessions(
            [
                (
                    *(copy.day, number, copy.said_digest, copy.first_step_at, None),
                    *_trace(copy.trace),
                    *(copy.trial_name, *copy.values),
                )
                for number, copy in copies
            ]
        )
        ready = _numbered(self._ready)
        chunk = Chunk(
            pl.concat([sessions, ready.select(list(_SESSIONS))]).sort("session_id", maintain_order=True),
            _steps(sessions, [copy.first_row for _, copy in copies], self._pieces),
            pl.DataFrame(self._quarantine, schema=_QUARANTINE, orient="row").sort(raw.QUARANTINE.sort),
            pl.DataFrame(self._files, schema=_FILES, orient="row").sort(raw.FILES.sort),
            ready.select(list(_VECTORS)),
        )
        self._copies, self._quarantine, self._files, self._ready = {}, [], [], []
        self._pieces, self._n_rows = [], 0
        self.n_bytes = 0
        return chunk


def _first(rows: list[Row]) -> datetime | None:
    """When the first step of a session began, or came back; not when a header says that it did."""
    started = min(filter(None, (row[START] or row[END] for row in rows)), default=None)
    return None if started is None else parse_time(started)


def _trace(trace: TraceText | None) -> tuple[Any, ...]:
    return _NO_TRACE if trace is None else (trace.text, len(trace.text), *trace[1:])


def _sessions(values: list[tuple[Any, ...]]) -> pl.DataFrame:
    if not values:
        return pl.DataFrame(schema=_SESSIONS)
    return pl.DataFrame([
        _lists(name, column) if dtype == pl.List(pl.String) else pl.Series(name, column, dtype=dtype)
        for (name, dtype), column in zip(_SESSIONS.items(), zip(*values, strict=True), strict=True)
    ])  # fmt: skip


def _numbered(ready: list[pl.DataFrame]) -> pl.DataFrame:
    """Sessions from edge files in order, copies of one session numbered by size."""
    if not ready:
        return pl.DataFrame(schema={**_SESSIONS, **_VECTORS})
    order = ["session_id", "n_messages", "content_digest", "file_id"]
    rows = pl.concat(ready, how="diagonal").sort(order, descending=[False, True, False, False])
    unsaid = {name: pl.lit(None, dtype) for name, dtype in LOGGED.items()}
    return rows.with_columns(copy=pl.int_range(pl.len(), dtype=pl.Int32).over("session_id"), **unsaid)


def _lists(name: str, values: tuple[list[str] | None, ...]) -> pl.Series:
    """Lists of texts, each different one converted once: Polars takes them slowly, and most sessions offer the same."""
    places: dict[tuple[str, ...], int] = {}
    index = [None if value is None else places.setdefault(tuple(value), len(places)) for value in values]
    different = pl.Series(name, list(map(list, places)), dtype=pl.List(pl.String))
    return different.gather(pl.Series(index, dtype=pl.UInt32))


def _piece(flat: list[Any]) -> pl.DataFrame:
    """Columns of steps from the values of whole rows, one after the other."""
    # Strides through one flat list are twice as fast as zip(*rows).
    return pl.DataFrame([
        time_column(name, flat[slot :: len(SLOTS)])
        if slot in (START, END)
        else pl.Series(name, flat[slot :: len(SLOTS)], dtype=_STEPS[name])
        for slot, name in enumerate(SLOTS)
    ])  # fmt: skip


def _steps(sessions: pl.DataFrame, first_rows: list[int], pieces: list[pl.DataFrame]) -> pl.DataFrame:
    """The steps of the sessions, in their order."""
    if not pieces:
        return pl.DataFrame(schema=_STEPS)
    of_step = sessions.select(
        "day",
        "copy",
        "session_id",
        seq=pl.int_ranges(0, pl.col("n_steps"), dtype=pl.Int32),
        place=pl.Series(first_rows),
    ).explode("seq", empty_as_null=False)
    places = of_step.select(pl.col("place") + pl.col("seq")).to_series()
    steps = pl.concat(pieces, rechunk=True)
    if places.len() < steps.height or not places.is_sorted():
        steps = steps[places]
    return of_step.select("day", "copy", "session_id", "seq").hstack(steps).select(list(_STEPS))
