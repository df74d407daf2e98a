"""pi's session files: a header line, then entries in the order in which they happened.

Belongs here: the entries and their messages. Entries form a tree by ``parentId``, because the user
can go back and try another way. All ways were really taken, so all entries are kept, in the order
of the file. Older files have neither ids nor a tree.

Times are those of the entries: a message is written when it is complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    KEPT,
    NO_SESSION_ID,
    NOISE,
    NOT_A_RECORD,
    FileContext,
    Parser,
    Reader,
    Record,
    block_text,
    json_text,
    user_of,
    word_of,
)
from evalpipe.sources.readers.values import (
    add_cost,
    content_id,
    flag_of,
    forget_zero_cost,
    id_of,
    object_of,
    objects_of,
    text_of,
)
from evalpipe.sources.session import (
    ARGUMENTS,
    CACHE_READ,
    CACHE_WRITE,
    END,
    ERROR,
    EXIT_CODE,
    INPUT,
    IS_ERROR,
    MODEL,
    NAME,
    ORIGIN,
    OUTPUT,
    OUTPUT_TOKENS,
    REASONING,
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

SOURCE = "pi_agent"

_NOISE = frozenset({"thinking_level_change", "model_change", "custom", "label", "session_info"})
_EXIT = re.compile(r"^Command exited with code (-?\d{1,10})\s*\Z", re.M)
_ABORTED = re.compile(r"^(?:Command|Operation|Request) (?:was )?aborted\s*\Z", re.M | re.I)
_TIMEOUT = re.compile(r"^Command timed out after ", re.M)
_FILE_ID = re.compile(r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})")
_END_STATUS = {"aborted": "interrupted", "error": "error"}


class PiSession(Session):
    """A session with the calls that wait for their results, and those that the user stopped."""

    def __init__(self, session_id: str, started: str | None) -> None:
        super().__init__(SOURCE, session_id, "pi")
        self.started = started
        self.open_calls: dict[str, Row] = {}
        self.stopped_calls: dict[str, Row] = {}


class PiParser(Parser):
    """Parser of one file; entries belong to the last header before them."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self._session: PiSession | None = None

    def feed(self, record: Record) -> str:
        """Take one entry."""
        kind = text_of(record.get("type")) or ""
        if kind == "session":
            return self._header(record)
        if kind in _NOISE:
            return NOISE
        session = self._session
        if kind not in _ENTRIES:
            return NOT_A_RECORD
        if session is None:
            return NO_SESSION_ID
        at = normal_time(record.get("timestamp"))
        if session.parent_session_id is not None and at is not None and at < (session.started or ""):
            return NOISE  # copied by a fork: it counts in the session that it came from
        status = _ENTRIES[kind](record, session, id_of(record.get("id")) or str(session.n_records), at)
        if status is KEPT:
            self.current = session
            session.n_records += 1
        return status

    def _header(self, record: Record) -> str:
        started = normal_time(record.get("timestamp"))
        session_id = text_of(record.get("id")) or content_id(record)
        known = self.sessions.get(session_id)
        session = known if isinstance(known, PiSession) else PiSession(session_id, started)
        self.sessions[session_id] = session
        self.current = self._session = session
        session.workspace = text_of(record.get("cwd"))
        session.user_id = user_of(session.workspace)
        session.n_records += 1
        parent = text_of(record.get("parentSession"))
        if parent and (match := _FILE_ID.search(PurePath(parent.replace("\\", "/")).name)):
            session.parent_session_id = f"{SOURCE}:{match.group(1)}"
        return KEPT

    def finish(self, session: Session) -> None:
        """Note what is left open."""
        assert isinstance(session, PiSession)
        for row in session.open_calls.values():
            row[ERROR] = "interrupted" if session.end_status == "interrupted" else "no_result"
        forget_zero_cost(session)
        if not session.first_at and session.started:
            session.see(session.started)


def _message(entry: Record, session: PiSession, key: str, at: str | None) -> str:
    message = entry.get("message")
    if type(message) is not dict:
        return BAD_FIELD
    handler = _ROLES.get(word_of(message.get("role")))
    if handler is None:
        return NOT_A_RECORD
    at = at or normal_time(message.get("timestamp"))
    if at is not None:
        session.see(at)
    session.n_messages += 1
    handler(message, session, key, at)
    return KEPT


def _user(message: Record, session: PiSession, key: str, at: str | None) -> None:
    session.end_status = None
    text = block_text(message.get("content"))
    if text:
        session.rows.append(user_row(key, "human", text, at))


def _assistant(message: Record, session: PiSession, key: str, at: str | None) -> None:
    reason, failure = message.get("stopReason"), text_of(message.get("errorMessage"))
    session.end_status = _END_STATUS.get(reason) if type(reason) is str else None
    text = block_text(message.get("content"))
    row = agent_row(key, text or None, at, text_of(message.get("model")))
    usage = object_of(message.get("usage"))
    for slot, name in (
        (INPUT, "input"),
        (OUTPUT_TOKENS, "output"),
        (CACHE_READ, "cacheRead"),
        (CACHE_WRITE, "cacheWrite"),
        (REASONING, "reasoning"),
    ):
        row[slot] = count(usage.get(name))
    add_cost(session, object_of(usage.get("cost")).get("total"), row)
    if reason == "error":
        row[ERROR] = "api_error"
        if not text:
            row[TEXT], row[MODEL], row[ORIGIN] = failure, None, "synthetic"
    session.rows.append(row)
    for index, block in enumerate(objects_of(message.get("content"))):
        if block.get("type") == "toolCall":
            call_id = id_of(block.get("id")) or f"{key}.{index}"
            call = tool_row(call_id, text_of(block.get("name")) or "unknown", json_text(block.get("arguments")), at)
            session.rows.append(call)
            session.open_calls[call_id] = call
    if reason == "aborted":
        session.rows.append(user_row(f"{key}.aborted", "interrupt", failure, at))
        for call in session.open_calls.values():
            call[ERROR] = "interrupted"
        session.stopped_calls.update(session.open_calls)
        session.open_calls.clear()


def _result(message: Record, session: PiSession, key: str, at: str | None) -> None:
    call_id = id_of(message.get("toolCallId")) or key
    row = session.open_calls.pop(call_id, None) or session.stopped_calls.pop(call_id, None)
    if row is None:
        row = tool_row(call_id, None, None, None)
        session.rows.append(row)
    row[ERROR] = None
    row[OUTPUT], row[END] = block_text(message.get("content")), at
    row[IS_ERROR] = flag_of(message.get("isError"))
    if not row[IS_ERROR]:
        return
    text = row[OUTPUT] or ""
    if match := _EXIT.search(text):
        row[EXIT_CODE] = exit_code(int(match.group(1)))
    elif _ABORTED.search(text):
        row[ERROR] = "interrupted"
    else:
        row[ERROR] = "timeout" if _TIMEOUT.search(text) else "tool_error"


def _bash(message: Record, session: PiSession, key: str, at: str | None) -> None:
    """A command that the user ran inside the harness: none of the agent's calls."""
    row = user_row(key, "local_command", None, at)
    row[NAME], row[ARGUMENTS] = "bash", json_text({"command": message.get("command")})
    row[OUTPUT], row[EXIT_CODE] = text_of(message.get("output")), exit_code(message.get("exitCode"))
    row[ERROR] = "interrupted" if message.get("cancelled") is True else None
    session.rows.append(row)


def _injected(message: Record, session: PiSession, key: str, at: str | None) -> None:
    text = block_text(message.get("content"))
    if text:
        session.rows.append(user_row(key, "injected", text, at))


def _summary(message: Record, session: PiSession, key: str, at: str | None) -> None:
    session.rows.append(user_row(key, "compaction", text_of(message.get("summary")), at))


def _summary_entry(entry: Record, session: PiSession, key: str, at: str | None) -> str:
    if at is not None:
        session.see(at)
    session.n_messages += 1
    _summary(entry, session, key, at)
    return KEPT


def _injected_entry(entry: Record, session: PiSession, key: str, at: str | None) -> str:
    if at is not None:
        session.see(at)
    session.n_messages += 1
    _injected(entry, session, key, at)
    return KEPT


_ROLES: dict[str, Callable[[Record, PiSession, str, str | None], None]] = {
    "user": _user,
    "assistant": _assistant,
    "toolResult": _result,
    "bashExecution": _bash,
    "custom": _injected,
    "hookMessage": _injected,
    "branchSummary": _summary,
    "compactionSummary": _summary,
}
_ENTRIES: dict[str, Callable[[Record, PiSession, str, str | None], str]] = {
    "message": _message,
    "compaction": _summary_entry,
    "branch_summary": _summary_entry,
    "custom_message": _injected_entry,
}


def _recognise(record: Record) -> bool:
    if record.get("type") == "session":
        return type(record.get("id")) is str and type(record.get("cwd")) is str and "evalpipe" not in record
    role = object_of(record.get("message")).get("role")
    return record.get("type") == "message" and type(role) is str and "sessionId" not in record and "timestamp" in record


READER = Reader(name=SOURCE, version="2", shape="lines", recognise=_recognise, parser=PiParser)
