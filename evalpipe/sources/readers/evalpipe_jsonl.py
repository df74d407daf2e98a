"""evalpipe's own JSON lines, for agents that no other reader knows (docs/evalpipe-jsonl.md).

Belongs here: the four record types and their fields. The format is flat and says everything in
the words of the tables, so this is also the shortest example of a reader.
"""

from __future__ import annotations

import re
from typing import Any

from evalpipe.contracts.tables.raw import (
    APPROVAL,
    CONSENT_WITHDRAWN,
    END_STATUS_LOGGED,
    FEEDBACK,
    RATING,
    STEP_ERRORS,
    STEP_KINDS,
    STEP_ORIGINS,
)
from evalpipe.sources.readers.base import (
    BAD_FIELD,
    KEPT,
    NO_SESSION_ID,
    NOT_A_RECORD,
    FileContext,
    Parser,
    Reader,
    Record,
    json_text,
)
from evalpipe.sources.session import (
    ARGUMENTS,
    END,
    ERROR,
    EXIT_CODE,
    FIRST_TOKEN,
    IS_ERROR,
    NAME,
    OUTPUT,
    START,
    STEP_ID,
    TEXT,
    Row,
    Session,
    count,
    exit_code,
    number_or_none,
    small_count,
    text_or_none,
)
from evalpipe.sources.times import normal_time

SOURCE = "evalpipe_jsonl"
UNKNOWN = "unknown"
MARKER = "evalpipe"

_ORIGIN_OF_KIND = {
    kind: {"user": "human", "tool": "tool", "system": "system"}.get(kind, "agent") for kind in STEP_KINDS
}
_INTS = frozenset({int})
#: Fields that few kinds of steps have besides tool calls.
_CALL_FIELDS = frozenset({
    "name", "arguments", "output", "exit_code", "is_error", "started_at", "ended_at", "first_token_ms",
})  # fmt: skip
_NO_TOKENS = (None,) * 6
OpenCalls = dict[str, dict[str, Row]]
_TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")
_TEXT_FIELDS = (
    "agent_release", "model", "user_id", "tenant", "workspace", "scenario", "task_id", "harness",
    "prompt_version", "retrieval_version",
)  # fmt: skip


class EvalpipeParser(Parser):
    """Parser of one file; its sessions may interleave, and a step may precede its session."""

    _current_id = ""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        #: Calls whose result is yet to come, by session and step.
        self.open_calls: OpenCalls = {}

    def feed(self, record: Record) -> str:
        """Take one record. Written for speed: this runs for every line of every log."""
        try:
            handler = _HANDLERS[record["type"]]
        except (KeyError, TypeError):
            return NOT_A_RECORD
        session_id = record.get("session_id")
        session = self.current
        if session is None or session_id != self._current_id:
            if type(session_id) is not str or not session_id:
                return NO_SESSION_ID
            session = self.sessions.get(session_id) or Session(SOURCE, session_id, UNKNOWN)
        status = handler(record, session, self.open_calls)
        # What a header says that is wrong in one field holds all the same, a withdrawal above all.
        if status is KEPT or handler is _session:
            if session is not self.current:
                self.sessions[session_id] = session
                self.current, self._current_id = session, session_id
            session.n_records += status is KEPT
        return status

    def finish(self, session: Session) -> None:
        """Mark the calls for which no result came."""
        for row in self.open_calls.pop(session.session_id.partition(":")[2], {}).values():
            row[ERROR] = "no_result"


def _session(record: Record, session: Session, _: OpenCalls) -> str:
    """What is stated of the session, whatever it holds beside.

    A field that cannot be read is the fault of its record (``BAD_FIELD``) and not of the others. A second header
    adds what the first left out, as a part of a session adds to those before it (``sources/joining.py``).
    """
    status = _consent(record.get("consent"), session)
    for name in _TEXT_FIELDS:
        value = record.get(name)
        if type(value) is int:
            value = str(value)  # ids are numbers in many databases
        if type(value) is str:
            if getattr(session, name) is None:
                setattr(session, name, value)
        elif value is not None:
            status = BAD_FIELD
    agent, started = record.get("agent"), record.get("started_at")
    if type(agent) is str and agent:
        session.agent = agent if session.agent == UNKNOWN else session.agent
    elif agent is not None or session.agent == UNKNOWN:
        status = BAD_FIELD
    _facts(record, session)
    _assignment(record.get("assignment"), session)
    at = normal_time(started)
    if at is not None:
        session.first_at = min(session.first_at or at, at)
        session.greatest_at = max(session.greatest_at, at)
    elif started is not None:
        status = BAD_FIELD
    return status


def _facts(record: Record, session: Session) -> None:
    if session.trial is None:
        session.trial = small_count(record.get("trial"))
    if session.parent_session_id is None and (parent := text_or_none(record.get("parent_session_id"))):
        session.parent_session_id = f"{SOURCE}:{parent}"
    tools = record.get("tools")
    if type(tools) is list and session.tools is None:
        session.tools = sorted({tool for tool in tools if type(tool) is str})


def _consent(value: object, session: Session) -> str:
    """A withdrawal stays, whatever is said later; what cannot be read allows nothing."""
    if value is None or session.consent == CONSENT_WITHDRAWN:
        return KEPT
    is_read = type(value) is str
    is_withdrawn = not is_read or str(value).strip().lower() == CONSENT_WITHDRAWN
    session.consent = CONSENT_WITHDRAWN if is_withdrawn else session.consent or str(value)
    return KEPT if is_read else BAD_FIELD


def _assignment(value: object, session: Session) -> None:
    told = (session.assignment_policy, session.assignment_unit, session.assignment_probability, session.routing_epoch)
    # What belongs to one assignment is taken from one header.
    if type(value) is not dict or any(one is not None for one in told):
        return
    session.assignment_policy = text_or_none(value.get("policy"))
    unit = value.get("unit")
    session.assignment_unit = unit if type(unit) is str and unit in ("session", "user") else None
    probability = number_or_none(value.get("probability"))
    session.assignment_probability = probability if probability is not None and 0 <= probability <= 1 else None
    session.routing_epoch = text_or_none(value.get("epoch"))


def _step(record: Record, session: Session, open_calls: OpenCalls) -> str:
    get = record.get
    kind = get("kind")
    try:
        origin = get("origin", _ORIGIN_OF_KIND[kind])  # type: ignore[index]
    except (KeyError, TypeError):
        return BAD_FIELD
    error, text, at = get("error"), get("text"), get("at")
    if origin not in STEP_ORIGINS or (error is not None and error not in STEP_ERRORS):
        return BAD_FIELD
    if type(text) is not str and text is not None:
        return BAD_FIELD
    if at is not None:
        at = normal_time(at)
    step_id, parent, model, tokens = get("step_id"), get("parent_id"), get("model"), get("tokens")
    row: Row = [
        step_id if type(step_id) is str and step_id else str(len(session.rows)),
        parent if type(parent) is str else None,
        0, kind, origin, None, text, None, None, None, None, error, at, at, None,
        model if type(model) is str else None,
        *(_NO_TOKENS if tokens is None else _tokens(tokens)),
    ]  # fmt: skip
    if kind == "tool" or not _CALL_FIELDS.isdisjoint(record):
        _call(record, row, at)
        if get("is_open") is True and error is None:
            open_calls.setdefault(record["session_id"], {})[row[STEP_ID]] = row
            row[END] = None
        at = row[END] or row[START]
        if row[START] is not None:
            session.see(row[START])
    if origin == FEEDBACK:
        mark = get("rating")
        if kind != "user" or type(mark) is not int or mark not in (-1, 0, 1):
            return BAD_FIELD
        row[NAME], row[ARGUMENTS] = APPROVAL if get("name") == APPROVAL else RATING, f'{{"rating":{mark}}}'
    session.rows.append(row)
    session.n_messages += 1
    if at is not None and at > session.greatest_at:
        session.see(at)
    return KEPT


def _call(record: Record, row: Row, at: str | None) -> None:
    """The fields that calls have beyond what all steps have; other kinds may have them too."""
    get = record.get
    name, flag, started, ended = get("name"), get("is_error"), get("started_at"), get("ended_at")
    row[NAME] = name if type(name) is str else None
    row[ARGUMENTS] = json_text(get("arguments"))
    row[OUTPUT] = json_text(get("output"))
    row[EXIT_CODE] = exit_code(get("exit_code"))
    row[IS_ERROR] = flag if type(flag) is bool else None
    row[START] = at if started is None else normal_time(started) or at
    row[END] = at if ended is None else normal_time(ended) or at
    row[FIRST_TOKEN] = count(get("first_token_ms"))


def _result(record: Record, session: Session, open_calls: OpenCalls) -> str:
    """The result of a call that was logged when it began."""
    step_id, error, text = record.get("step_id"), record.get("error"), record.get("text")
    calls = open_calls.get(record["session_id"], {})
    row = calls.get(step_id) if type(step_id) is str else None
    if row is None or (error is not None and error not in STEP_ERRORS) or (text is not None and type(text) is not str):
        return BAD_FIELD
    del calls[row[STEP_ID]]
    row[OUTPUT] = json_text(record.get("output"))
    row[EXIT_CODE] = exit_code(record.get("exit_code"))
    flag = record.get("is_error")
    row[IS_ERROR] = flag if type(flag) is bool else None
    row[ERROR], row[TEXT] = error, text
    row[END] = normal_time(record.get("ended_at"))
    if row[END] is not None:
        session.see(row[END])
    return KEPT


def _tokens(value: object) -> tuple[int | None, ...]:
    if type(value) is not dict:
        return _NO_TOKENS
    counts: tuple[Any, ...] = tuple(map(value.get, _TOKENS))
    # One look at all types together: what is not a plain count goes the long way.
    if _INTS.issuperset(map(type, counts)) and min(counts) >= 0 and max(counts) < 2**53:
        return (*counts, count(value.get("cache_write_1h")))
    return (*map(count, counts), count(value.get("cache_write_1h")))


def _end(record: Record, session: Session, _: OpenCalls) -> str:
    status = record.get("status")
    if status is not None and status not in END_STATUS_LOGGED:
        return BAD_FIELD
    session.end_status = status
    at = normal_time(record.get("at"))
    if at is not None:
        session.see(at)
    outcome = record.get("outcome")
    if type(outcome) is dict:
        session.reward = number_or_none(outcome.get("reward"))
        success = outcome.get("success")
        session.is_success = success if type(success) is bool else None
    cost = number_or_none(record.get("cost_usd"))
    session.cost_usd = cost if cost is not None and cost >= 0 else None
    return KEPT


_HANDLERS = {"session": _session, "step": _step, "result": _result, "end": _end}


def _recognise(record: Record) -> bool:
    kind = record.get("type")
    if kind == "step":  # the rest of a log that was rotated begins with any step
        return record.get("kind") in STEP_KINDS and type(record.get("session_id")) is str and "step_id" in record
    return kind == "session" and MARKER in record


READER = Reader(
    name=SOURCE,
    version="9",
    shape="lines",
    recognise=_recognise,
    hint=lambda head: re.search(rb'"evalpipe"\s*:\s*1\b', head) is not None,
    parser=EvalpipeParser,
    session_key=re.compile(rb'"session_id"\s*:\s*"([^"\\]*(?:\\.[^"\\]*)*)"'),
)
