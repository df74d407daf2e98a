"""Gemini CLI's chat recordings: one document a session, or (newer) JSON lines of one session.

Belongs here: the two layouts and their records. Does not belong here: texts and results
(``gemini_text.py``), or the history that is sent to the model (``gemini_history.py``).

Lines begin with a header; then a message is written again whenever it changes (the last wins),
``$set`` changes the header, and ``$rewindTo`` takes messages back. What was taken back was said all
the same: it is kept, and the rewind is a ``command`` of the user. ``$set.messages`` replaces the
history with a shortened one: messages known already keep their first, full content.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

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
    json_readers,
    json_text,
    user_of,
    word_of,
)
from evalpipe.sources.readers.gemini_text import ACKNOWLEDGEMENTS, put_result, result_of, split_parts, texts_of
from evalpipe.sources.readers.values import id_of, object_of, objects_of, text_of, uncached
from evalpipe.sources.session import (
    CACHE_READ,
    END,
    ERROR,
    INPUT,
    KIND,
    MODEL,
    ORIGIN,
    OUTPUT_TOKENS,
    REASONING,
    Session,
    agent_row,
    count,
    tool_row,
    user_row,
)
from evalpipe.sources.times import normal_time

SOURCE = "gemini_cli"

#: Messages of the harness to the person at the terminal.
_NOTICES = frozenset({"info", "warning", "error"})


@dataclass
class _Recording:
    """A session while its lines come: messages by id in the order in which they were first seen."""

    messages: dict[str, Record] = field(default_factory=dict)
    started: str | None = None
    updated: str | None = None
    directories: object = None


class GeminiParser(Parser):
    """Parser of one file; lines belong to the session of the last header."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self._recordings: dict[str, _Recording] = {}
        self._is_sub_agent = False

    def feed(self, record: Record) -> str:
        """Take one record."""
        if "sessionId" in record and "projectHash" in record:
            return self._header(record)
        if self._is_sub_agent:
            return NOISE
        if "$set" not in record and "$rewindTo" not in record and not _is_message(record):
            return NOT_A_RECORD
        session = self.current
        if session is None:
            return NO_SESSION_ID
        recording = self._recordings[session.session_id]
        if type(changes := record.get("$set")) is dict:
            self._set(recording, changes)
        elif type(target := record.get("$rewindTo")) is str:
            last = next(reversed(recording.messages.values()), {})
            key = f"{target}.rewind{len(recording.messages)}"
            recording.messages[key] = {"type": "$rewindTo", "timestamp": last.get("timestamp")}
        elif _is_message(record):
            _put(recording, record)
        else:
            return BAD_FIELD
        session.n_records += 1
        return KEPT

    def _header(self, record: Record) -> str:
        session_id = text_of(record.get("sessionId"))
        if session_id is None:
            return NO_SESSION_ID
        messages = record.get("messages")
        if messages is not None and type(messages) is not list:
            return BAD_FIELD
        # What a sub-agent said stands in a file of its own that does not name its session.
        self._is_sub_agent = record.get("kind") == "subagent"
        if self._is_sub_agent:
            return NOISE
        session = self.sessions.get(session_id) or Session(SOURCE, session_id, "gemini-cli")
        self.sessions[session_id] = self.current = session
        recording = self._recordings.setdefault(session.session_id, _Recording())
        session.workspace = text_of(record.get("projectHash")) or session.workspace
        self._set(recording, {key: value for key, value in record.items() if key != "messages"})
        for message in objects_of(messages):
            _put(recording, message)
        session.n_records += 1
        return KEPT

    def _set(self, recording: _Recording, changes: Record) -> None:
        recording.started = normal_time(changes.get("startTime")) or recording.started
        recording.updated = normal_time(changes.get("lastUpdated")) or recording.updated
        recording.directories = changes.get("directories") or recording.directories
        if not (told := list(objects_of(changes.get("messages")))):
            return  # most changes are of the time alone, and there is one after every message
        known = {said for message in recording.messages.values() if (said := _said(message))}
        for message in told:
            if id_of(message.get("id")) not in recording.messages and _said(message) not in known:
                _put(recording, message)

    def finish(self, session: Session) -> None:
        """Turn the messages into steps."""
        recording = self._recordings.pop(session.session_id)
        for key, message in recording.messages.items():
            _add(session, key, message)
        if not session.first_at and recording.started:
            session.see(recording.started)
        if recording.updated and session.first_at:
            session.greatest_at = max(session.greatest_at, recording.updated)
        session.n_messages = len(recording.messages)
        folders = recording.directories if type(recording.directories) is list else []
        session.user_id = next((user for folder in folders if (user := user_of(text_of(folder)))), None)


def _is_message(record: Record) -> bool:
    return type(record.get("type")) is str and "timestamp" in record and ("content" in record or "toolCalls" in record)


def _said(message: Record) -> str | None:
    texts = texts_of(message.get("content"))
    return f"{word_of(message.get('type'))}\n{''.join(texts)}" if any(texts) else None


def _put(recording: _Recording, message: Record) -> None:
    recording.messages[id_of(message.get("id")) or f"#{len(recording.messages)}"] = message


def _add(session: Session, key: str, message: Record) -> None:
    at = normal_time(message.get("timestamp"))
    if at is not None:
        session.see(at)
    kind = text_of(message.get("type"))
    if kind == "user":
        _user(session, key, message, at)
    elif kind == "gemini":
        _gemini(session, key, message, at)
    elif kind == "$rewindTo":
        session.rows.append(user_row(key, "command", "/rewind", at))
    elif kind in _NOTICES:
        text = "\n".join(texts_of(message.get("content")))
        row = user_row(key, "system", text or None, at)
        row[KIND], row[ERROR] = "system", "api_error" if kind == "error" else None
        session.rows.append(row)


def _user(session: Session, key: str, message: Record, at: str | None) -> None:
    # What the user typed, where the harness expanded it before sending.
    typed = texts_of(message.get("displayContent")) or texts_of(message.get("content"))
    for index, (origin, text) in enumerate(split_parts(typed)):
        session.rows.append(user_row(f"{key}.{index}" if index else key, origin, text, at))


def _gemini(session: Session, key: str, message: Record, at: str | None) -> None:
    tokens = object_of(message.get("tokens"))
    text = "".join(texts_of(message.get("content")))
    row = agent_row(key, text or None, at, text_of(message.get("model")))
    if text in ACKNOWLEDGEMENTS and row[MODEL] is None:
        row[ORIGIN] = "synthetic"
    thoughts, spoken, used = count(tokens.get("thoughts")), count(tokens.get("output")), count(tokens.get("tool"))
    row[CACHE_READ] = count(tokens.get("cached"))
    row[INPUT] = uncached(tokens.get("input"), row[CACHE_READ])
    if row[INPUT] is not None:
        row[INPUT] += used or 0
    row[OUTPUT_TOKENS] = None if spoken is None else spoken + (thoughts or 0)
    row[REASONING] = thoughts
    session.rows.append(row)
    for index, call in enumerate(objects_of(message.get("toolCalls"))):
        _call(session, f"{key}.{index}", call, at)


def _call(session: Session, key: str, call: Record, at: str | None) -> None:
    row = tool_row(
        id_of(call.get("id")) or key, text_of(call.get("name")) or "unknown", json_text(call.get("args")), at
    )
    session.rows.append(row)
    end, response, status = normal_time(call.get("timestamp")), result_of(call.get("result")), call.get("status")
    if end is not None:
        session.see(end)
    if response is None and status not in ("success", "error", "cancelled"):
        # Still waiting, or asking for leave, when the recording ended.
        row[ERROR] = "no_result"
        return
    row[END] = end
    put_result(row, response, status)


def _recognise(record: Record) -> bool:
    return type(record.get("sessionId")) is str and type(record.get("projectHash")) is str


LINES = Reader(name=SOURCE, version="2", shape="lines", recognise=_recognise, parser=GeminiParser)
READERS: tuple[Reader, ...] = (
    *json_readers(
        replace(
            LINES,
            recognise=lambda record: _recognise(record) and type(record.get("messages")) is list,
            is_one_record_a_session=True,
        )
    ),
    LINES,
)
