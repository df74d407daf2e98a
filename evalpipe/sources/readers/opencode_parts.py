"""One message of OpenCode with its parts to steps.

Belongs here: parts and what their states say. Does not belong here: which session a message belongs
to (``opencode.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evalpipe.sources.readers.base import Record, json_text
from evalpipe.sources.readers.values import add_cost, add_counts, id_of, object_of, text_of
from evalpipe.sources.session import (
    END,
    ERROR,
    EXIT_CODE,
    IS_ERROR,
    KIND,
    MODEL,
    ORIGIN,
    OUTPUT,
    PARENT,
    TEXT,
    Row,
    Session,
    agent_row,
    count,
    exit_code,
    tool_row,
    user_row,
)
from evalpipe.sources.times import normal_time

_REFUSED = re.compile(r"rejected permission|user (?:has )?rejected|user dismissed", re.I)
_REASON = re.compile(r"with the following feedback: (.*)\Z", re.S)
_ABORTED = re.compile(r"\b(?:abort(?:ed)?|interrupted|cancelled)\b", re.I)
_TIMEOUT = re.compile(r"timed out|exceeding timeout|timeout", re.I)
_ABORT_ERRORS = frozenset({"MessageAbortedError", "AbortError"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message stands: below which step, and whether a sub-agent works there."""

    parent: str | None
    is_sub_agent: bool = False


def sub_session(part: Record) -> str | None:
    """Id of the session that a call of a sub-agent started."""
    metadata = object_of(object_of(part.get("state")).get("metadata"))
    return text_of(metadata.get("sessionId") or metadata.get("sessionID"))


def add_message(
    session: Session, key: str, message: Record, parts: list[Record], place: Place
) -> Iterator[tuple[Row, Record]]:
    """Append the steps of one message.

    Yields:
        Each call with its part, right after its step, so that the steps of a sub-agent can follow it.
    """
    times = object_of(message.get("time"))
    at = normal_time(times.get("created"))
    if at is not None and place.parent is None:
        session.see(at)
    if place.parent is None:
        session.n_messages += 1
    if message.get("role") == "user":
        _user(session, key, parts, at, place)
        return
    yield from _assistant(session, key, message, parts, at, place)
    done = normal_time(times.get("completed"))
    if done is not None:
        session.greatest_at = max(session.greatest_at, done)


def _user(session: Session, key: str, parts: list[Record], at: str | None, place: Place) -> None:
    if place.parent is None:
        session.end_status = None
    for index, part in enumerate(parts):
        step_id = id_of(part.get("id")) or f"{key}.{index}"
        text = text_of(part.get("text"))
        if part.get("type") == "compaction":
            session.rows.append(user_row(step_id, "command", "/compact", at, place.parent))
        elif part.get("type") == "text" and text and part.get("ignored") is not True:
            is_put_in = part.get("synthetic") is True
            origin = "injected" if is_put_in else "meta" if place.is_sub_agent else "human"
            session.rows.append(user_row(step_id, origin, text, at, place.parent))


def _assistant(
    session: Session, key: str, message: Record, parts: list[Record], at: str | None, place: Place
) -> Iterator[tuple[Row, Record]]:
    texts = [p["text"] for p in parts if p.get("type") == "text" and text_of(p.get("text"))]
    text = "\n".join(texts).strip() or None
    row = agent_row(key, text, at, text_of(message.get("modelID")), place.parent)
    if message.get("summary") is True:
        # A summary of the conversation so far, which replaces it.
        session.rows.append(user_row(f"{key}.summary", "compaction", text, at, place.parent))
        row[TEXT] = None
    _usage(session, row, message, parts)
    failure = message.get("error")
    is_aborted = text_of(object_of(failure).get("name")) in _ABORT_ERRORS
    if type(failure) is dict and not is_aborted:
        row[ERROR] = "api_error"
        if text is None:
            row[TEXT] = text_of(object_of(failure.get("data")).get("message")) or text_of(failure.get("name"))
            row[MODEL], row[ORIGIN] = None, "synthetic"
    session.rows.append(row)
    for index, part in enumerate(parts):
        step_id = id_of(part.get("id")) or f"{key}.{index}"
        if part.get("type") == "tool":
            yield _call(session, step_id, part, at, place), part
        elif part.get("type") == "retry":
            wait = user_row(step_id, "system", None, normal_time(object_of(part.get("time")).get("created")) or at)
            wait[KIND], wait[ERROR], wait[PARENT] = "system", "api_error", place.parent
            wait[TEXT] = text_of(object_of(object_of(part.get("error")).get("data")).get("message"))
            session.rows.append(wait)
    if place.parent is None:
        session.end_status = "interrupted" if is_aborted else "error" if failure else None
    if is_aborted:
        session.rows.append(user_row(f"{key}.aborted", "interrupt", None, at, place.parent))


def _usage(session: Session, row: Row, message: Record, parts: list[Record]) -> None:
    """Tokens of the steps of a response: older releases keep only the last step's in the message."""
    steps = [p.get("tokens") for p in parts if p.get("type") == "step-finish"]
    for tokens in [t for t in steps if type(t) is dict] or [object_of(message.get("tokens"))]:
        cache = object_of(tokens.get("cache"))
        counts = [count(v) for v in (tokens.get("input"), tokens.get("output"), cache.get("read"), cache.get("write"))]
        reasoning = count(tokens.get("reasoning"))
        if reasoning and counts[1] is not None:
            total = count(tokens.get("total"))
            # Releases differ in whether the output holds the reasoning; the total tells.
            if total is not None and total == sum(n or 0 for n in counts) + reasoning:
                counts[1] += reasoning
        add_counts(row, (*counts, reasoning))
    add_cost(session, message.get("cost"), row)


def _call(session: Session, step_id: str, part: Record, at: str | None, place: Place) -> Row:
    state = object_of(part.get("state"))
    times, status = object_of(state.get("time")), state.get("status")
    row = tool_row(
        id_of(part.get("callID")) or step_id,
        text_of(part.get("tool")) or "unknown",
        json_text(state.get("input")),
        normal_time(times.get("start")) or at,
        place.parent,
    )
    row[END] = normal_time(times.get("end"))
    metadata = object_of(state.get("metadata"))
    row[EXIT_CODE] = exit_code(metadata.get("exit"))
    if status == "completed":
        row[OUTPUT], row[IS_ERROR] = json_text(state.get("output")), False
        if row[EXIT_CODE] is None and _TIMEOUT.search(_metadata_tail(row[OUTPUT])):
            row[ERROR] = "timeout"
    elif status == "error":
        text = json_text(state.get("error")) or ""
        row[OUTPUT], row[IS_ERROR] = json_text(metadata.get("output")) or text, True
        _failure(row, text, metadata)
    else:
        row[ERROR] = "no_result"
    session.rows.append(row)
    return row


def _metadata_tail(output: str | None) -> str:
    """What the harness adds to the output of a command, such as that it ran out of time."""
    _, mark, tail = (output or "").rpartition("<bash_metadata>")
    return tail if mark else ""


def _failure(row: Row, text: str, metadata: Record) -> None:
    if _REFUSED.search(text):
        row[ERROR] = "refused"
        if match := _REASON.search(text):
            row[TEXT], row[OUTPUT] = match.group(1).strip() or None, None
    elif metadata.get("interrupted") is True or _ABORTED.search(text[:200]):
        row[ERROR] = "interrupted"
    elif row[EXIT_CODE] is None:
        row[ERROR] = "timeout" if _TIMEOUT.search(text[:200]) else "tool_error"
