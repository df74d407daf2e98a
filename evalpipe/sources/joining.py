"""One session from its parts, as if all of its lines had stood in one file.

Belongs here: the order of steps of several parts, halves of calls and answers that were cut apart, and
what a session's row says then. Does not belong here: which copies are parts (``store/parts.py``).

Everything that follows from rows is computed from the rows of the whole, with the functions that read a
file. What a header states is taken from the first part that states it, what an end states from the last.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any

import polars as pl

from evalpipe.sources.chunk import ChunkBuilder
from evalpipe.sources.model import Chunk, ReadOptions
from evalpipe.sources.registry import span_parser
from evalpipe.sources.session import (
    ARGUMENTS,
    CACHE_WRITE_1H,
    END,
    ERROR,
    INPUT,
    KIND,
    NAME,
    OUTPUT,
    SLOTS,
    START,
    STEP_ID,
    Row,
    Session,
    summarise,
)

#: Columns of a session as attributes of :class:`Session`: what is stated before, and what after the fact.
_STATED_FIRST = {
    **{name: name for name in (
        "agent_release", "user_id", "tenant", "workspace", "parent_session_id", "task_id", "trial", "harness",
        "tools", "prompt_version", "retrieval_version", "assignment_policy", "assignment_unit",
        "assignment_probability", "routing_epoch",
    )},
    "scenario_declared": "scenario",
}  # fmt: skip
_STATED_LAST = {
    "end_status_logged": "end_status", "objective_reward": "reward", "is_objective_success": "is_success",
    "logged_cost_usd": "cost_usd",
}  # fmt: skip
#: The agent of a part whose header stands in another one.
_NO_AGENT = "unknown"

_Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Part:
    """One part: a row of sessions, and its steps in order, in the columns of the contracts; of a trace its spans."""

    session: pl.DataFrame
    steps: pl.DataFrame
    spans: str | None = None


def join_parts(sessions: Iterable[tuple[str, Sequence[Part], int]]) -> Chunk:
    """Sessions made of parts.

    Args:
        sessions: Of each session its id, its parts in order of time, and the number of its messages, which is
            counted anew where the parts hold spans.

    Returns:
        A chunk of sessions and steps; nothing was quarantined, and no file was read.
    """
    # Limits and dates were looked at when the parts were read.
    builder = ChunkBuilder(ReadOptions(date.min, date.max, date.min, b""))
    for session_id, parts, n_messages in sessions:
        stated = [part.session.row(0, named=True) for part in parts]
        largest = max(stated, key=lambda row: (row["n_messages"], row["content_digest"]))
        spans = [part.spans for part in parts if part.spans is not None]
        # Without the text that was withdrawn from some part only their steps are left.
        if len(spans) == len(parts):
            session = _of_spans(session_id, spans)
        else:
            session = _of_steps(session_id, stated, parts, n_messages)
        builder.add_session(
            session, largest["source"], largest["reader_version"], largest["file_id"], session.dates(date.min)
        )
    return builder.build()


def _of_spans(session_id: str, spans: list[str]) -> Session:
    source, _, native = session_id.partition(":")
    session = Session(source, native, source)
    span_parser(source).join(session, spans)
    return session


def _of_steps(session_id: str, stated: list[dict[str, Any]], parts: Sequence[Part], n_messages: int) -> Session:
    rows = [[_texts(row) for row in part.steps.select(SLOTS).rows()] for part in parts]
    session = _session(session_id, stated, rows)
    session.n_messages = n_messages
    session.rows = _one_after_the_other(rows)
    session.first_at = _text(min(row["started_at"] for row in stated))
    session.greatest_at = _text(max(row["ended_at"] for row in stated))
    return session


def _session(session_id: str, stated: list[dict[str, Any]], rows: list[list[Row]]) -> Session:
    source, _, native = session_id.partition(":")
    agents = [row["agent"] for row in stated if row["agent"] != _NO_AGENT]
    session = Session(source, native, agents[0] if agents else _NO_AGENT)
    for column, name in _STATED_FIRST.items():
        setattr(session, name, _first(row[column] for row in stated))
    if session.parent_session_id == session_id:
        # Some part is of a sub-agent alone: what it names as its parent is the whole.
        session.parent_session_id = _first(
            row["parent_session_id"] for row in stated if row["parent_session_id"] != session_id
        )
    for column, name in _STATED_LAST.items():
        setattr(session, name, _first(row[column] for row in reversed(stated)))
    consents = [row["consent"] for row in stated if row["consent"] is not None]
    # Whoever withdraws does so for the whole session.
    session.consent = "withdrawn" if "withdrawn" in consents else _first(consents)
    session.model = _first(
        row["model"] for row, own in zip(stated, rows, strict=True) if row["model"] != _answering(own)
    )
    return session


def _answering(rows: list[Row]) -> object:
    """The model that follows from steps: another one in the session's row is what a header states."""
    session = Session("", "", "")
    session.rows = rows
    return summarise(session)["model"]


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _one_after_the_other(parts: list[list[Row]]) -> list[Row]:
    """Rows of all parts in order, each step once.

    Parts of which one ends before the next begins keep their order; others were written side by side, and
    are ordered by the times of their steps.
    """
    known: dict[_Key, Row] = {}
    own: list[list[Row]] = []
    for rows in parts:
        counted: Counter[tuple[str, str]] = Counter()
        fresh: list[Row] = []
        for row in rows:
            key = (row[STEP_ID], row[KIND])
            number = counted[key]
            counted[key] += 1
            before = known.get((*key, number))
            if before is None:
                known[*key, number] = row
                fresh.append(row)
            else:
                _complete(before, row)
        own.append(fresh)
    own = [rows for rows in own if rows]
    if all(_is_after(later, earlier) for earlier, later in pairwise(own)):
        return [row for rows in own for row in rows]
    timed = [[(at, place, row) for at, row in _times(rows)] for place, rows in enumerate(own)]
    return [row for _, _, row in heapq.merge(*timed, key=lambda item: item[:2])]


def _complete(row: Row, other: Row) -> None:
    """Fill in what another part says of the same step: the result of a call, or the rest of an answer."""
    if row[KIND] == "tool":
        is_open = row[ERROR] == "no_result" and row[OUTPUT] is None
        is_result = other[NAME] is None and other[ARGUMENTS] is None
        if is_open and (is_result or other[ERROR] != "no_result"):
            row[ERROR] = other[ERROR]
    elif other[INPUT] is not None:
        # The last line of a response states its final usage.
        row[INPUT : CACHE_WRITE_1H + 1] = other[INPUT : CACHE_WRITE_1H + 1]
    for slot, value in enumerate(other):
        if row[slot] is None and slot != ERROR:
            row[slot] = value


def _is_after(later: list[Row], earlier: list[Row]) -> bool:
    for slot in (START, END):
        before = [row[slot] for row in earlier if row[slot] is not None]
        after = [row[slot] for row in later if row[slot] is not None]
        if before and after and max(before) <= min(after):
            return True
    return False


def _times(rows: list[Row]) -> Iterator[tuple[str, Row]]:
    """Rows with a time that never runs back, so that each part keeps its order."""
    at = ""
    for row in rows:
        at = max(at, row[START] or row[END] or "")
        yield at, row


def _texts(row: tuple[Any, ...]) -> Row:
    """A row as readers make it, with times as text that sorts as it runs."""
    values = list(row)
    for slot in (START, END):
        values[slot] = None if row[slot] is None else _text(row[slot])
    return values


def _text(moment: datetime) -> str:
    unit = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=unit) + "Z"
