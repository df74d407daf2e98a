"""Codex rollouts: ``rollout-<time>-<id>.jsonl``, wrapped lines since mid 2025, bare items before.

Belongs here: the envelopes around events and items, and what is settled at the end. Does not belong
here: what an event or item adds (``codex_lines.py``). What makes it hard: most things are logged twice, as an
event and as an item of the model's history; results carry their exit code inside a JSON string, or
in newer releases inside plain text; token counts are running totals of the session.
"""

from __future__ import annotations

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    KEPT,
    NO_SESSION_ID,
    NOISE,
    NOT_A_RECORD,
    Parser,
    Reader,
    Record,
    user_of,
    word_of,
)
from evalpipe.sources.readers.codex_lines import EVENTS, ITEMS, SOURCE, CodexSession, copied
from evalpipe.sources.session import ERROR, MODEL, Session, text_or_none
from evalpipe.sources.times import normal_time

_ENVELOPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})


class CodexParser(Parser):
    """Parser of one rollout, or of several one after the other; a rollout is one session."""

    def feed(self, record: Record) -> str:
        """Take one line."""
        kind = record.get("type")
        payload = record.get("payload")
        if type(kind) is str and kind in _ENVELOPES:
            if type(payload) is not dict:
                return BAD_FIELD
            if kind == "session_meta":
                return self._meta(payload, normal_time(record.get("timestamp")))
            body = {"type": kind, **payload} if kind in ("turn_context", "compacted") else payload
            return self._line(kind, body, normal_time(record.get("timestamp")))
        if record.get("record_type") == "state":
            return NOISE
        if "id" in record and "timestamp" in record and kind is None:
            return self._meta(record, normal_time(record.get("timestamp")))
        if type(kind) is str and kind in ITEMS:
            return self._line("response_item", record, normal_time(record.get("timestamp")))
        return NOT_A_RECORD

    def _meta(self, payload: Record, at: str | None) -> str:
        session_id = payload.get("id")
        if type(session_id) is not str or not session_id:
            return NO_SESSION_ID
        started = normal_time(payload.get("timestamp")) or at
        if self.current is not None and not self._is_next(session_id, started):
            # A fork repeats the header of the session that it came from.
            if f"{SOURCE}:{session_id}" != self.current.session_id and self.current.parent_session_id is None:
                self.current.parent_session_id = f"{SOURCE}:{session_id}"
            return NOISE
        session = CodexSession(session_id)
        parent = text_or_none(payload.get("forked_from_id"))
        source = payload.get("source")
        if type(source) is dict and "subagent" in source:
            session.is_sub_agent = True
            spawned = source["subagent"].get("thread_spawn") if type(source["subagent"]) is dict else None
            parent = text_or_none(spawned.get("parent_thread_id")) if type(spawned) is dict else parent
        session.agent_release = text_or_none(payload.get("cli_version"))
        session.harness = text_or_none(payload.get("originator"))
        session.workspace = text_or_none(payload.get("cwd"))
        session.user_id = user_of(session.workspace)
        session.parent_session_id = f"{SOURCE}:{parent}" if parent else None
        if started is not None:
            session.started = started
            session.see(started)
        session.n_records = 1
        self.sessions[session_id] = session
        self.current = session
        return KEPT

    def _is_next(self, session_id: str, started: str | None) -> bool:
        """Whether a header behind a conversation begins another one: rollouts that were put into one file."""
        now = self.current
        is_other = now is not None and now.n_messages > 0 and session_id not in self.sessions
        return is_other and started is not None and now is not None and started > now.first_at

    def _line(self, envelope: str, body: Record, at: str | None) -> str:
        session = self.current
        if not isinstance(session, CodexSession):
            return NO_SESSION_ID
        handlers = EVENTS if envelope == "event_msg" else ITEMS
        handler = handlers.get(word_of(body.get("type")))
        if handler is None:
            return NOISE if envelope == "event_msg" else NOT_A_RECORD
        if session.parent_session_id is not None and at is not None and at < session.started:
            copied(body, session)
            return NOISE
        status = handler(body, session, at)
        if status is KEPT:
            session.n_records += 1
            session.n_messages += 1
            if at is not None:
                session.see(at)
        return status

    def finish(self, session: Session) -> None:
        """Settle totals and calls without a result."""
        assert isinstance(session, CodexSession)
        session.usage.settle(session)
        if all(row[MODEL] is None for row in session.rows):
            # Nothing was answered, but the model was chosen: such sessions must not lose their label.
            session.model = session.turn_model
        for row in session.open_calls.values():
            row[ERROR] = row[ERROR] or "no_result"


def _recognise(record: Record) -> bool:
    if word_of(record.get("type")) in _ENVELOPES:
        return type(record.get("payload")) is dict
    is_header = "id" in record and "timestamp" in record and "type" not in record
    return is_header and ("git" in record or "instructions" in record)


def _hint(head: bytes) -> bool:
    return b'"payload"' in head and (b'"session_meta"' in head or b'"response_item"' in head)


READER = Reader(name=SOURCE, version="3", shape="lines", recognise=_recognise, hint=_hint, parser=CodexParser)
