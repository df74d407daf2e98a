"""Claude Code: one JSON object a line, ``~/.claude/projects/<folder>/<session>.jsonl``.

Belongs here: which session a line belongs to, what is noise, and what is settled when a session is
over. Does not belong here: what a line adds to a session (``claude_lines.py``).

What makes the format hard, and what is done: one response is split over lines that share
``message.id`` and repeat its usage, so a response is one step and the last usage counts; results of
calls stand in later lines of type "user"; words typed while the agent works stand in
``queue-operation`` lines only; sub-agents appear in ``progress`` lines.
"""

from __future__ import annotations

import re
from typing import Any

from evalpipe.sources.readers.base import (
    KEPT,
    NO_SESSION_ID,
    NOISE,
    NOT_A_RECORD,
    FileContext,
    Parser,
    Reader,
    Record,
    user_of,
    word_of,
)
from evalpipe.sources.readers.claude_calls import SOURCE, ClaudeSession
from evalpipe.sources.readers.claude_lines import HANDLERS
from evalpipe.sources.readers.claude_queue import DROPPED
from evalpipe.sources.session import (
    CACHE_READ,
    CACHE_WRITE,
    CACHE_WRITE_1H,
    ERROR,
    INPUT,
    KIND,
    OUTPUT_TOKENS,
    PARENT,
    TEXT,
    Session,
    count,
    text_or_none,
)
from evalpipe.sources.times import normal_time

#: Line types that carry nothing to analyse: backups, titles, settings, statistics of the harness.
NOISE_TYPES = frozenset({
    "file-history-snapshot", "summary", "pr-link", "custom-title", "ai-title", "agent-name", "agent-color",
    "agent-setting", "last-prompt", "permission-mode", "mode", "tag", "task-summary", "saved_hook_context",
    "marble-origami-commit", "marble-origami-snapshot", "speculation-accept", "content-replacement",
    "attribution-snapshot", "worktree-state", "started", "result",
})  # fmt: skip


class ClaudeParser(Parser):
    """Parser of one Claude Code file."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self._current_id: str | None = None
        #: The session that each forked one was copied from.
        self._origins: dict[str, str] = {}

    def feed(self, record: Record) -> str:
        """Take one line. Written for speed: this runs for every line of every log."""
        try:
            kind: str = record["type"]
            handler = HANDLERS[kind]
        except (KeyError, TypeError):
            return _is_noise(record.get("type"))
        session_id: str = record.get("sessionId", "")
        session: Any = self.current
        if session is None or session_id != self._current_id:
            if type(session_id) is not str or not session_id:
                return NO_SESSION_ID
            session = self.sessions.get(session_id) or ClaudeSession(session_id)
        if "forkedFrom" in record and self._is_copied(record["forkedFrom"], session_id):
            return NOISE
        uuid = record.get("uuid")
        if type(uuid) is not str:
            uuid = f"{kind}-{session.n_records}"
        elif uuid in session.seen:
            return NOISE
        at = record.get("timestamp")
        if type(at) is not str or len(at) != 24 or at[23] != "Z" or at[10] != "T":
            at = normal_time(at)
        status = handler(record, session, uuid, at)
        if status is not KEPT:
            return status
        if session is not self.current:
            self.sessions[session_id] = session
            self.current, self._current_id = session, session_id
            session.parent_session_id = self._origins.get(session_id)
        if not session.is_described:
            _describe(session, record)
        session.seen.add(uuid)
        session.n_records += 1
        # Sub-agents run beside the agent, so their times do not run with the log's.
        if at is not None and kind != "progress":
            session.see(at)
        return KEPT

    def _is_copied(self, origin: object, session_id: str) -> bool:
        """Whether a line was copied from another session, where it counts."""
        if type(origin) is not dict or type(origin.get("sessionId")) is not str or origin["sessionId"] == session_id:
            return False
        self._origins[session_id] = f"{SOURCE}:{origin['sessionId']}"
        known = self.sessions.get(session_id)
        if known is not None:
            known.parent_session_id = self._origins[session_id]
        return True

    def empty(self, session: Session) -> None:
        """Let go of the rows, wherever they are held."""
        super().empty(session)
        assert isinstance(session, ClaudeSession)
        session.responses.clear()

    def finish(self, session: Session) -> None:
        """Settle tokens, calls without a result, and queued messages that arrived after all."""
        assert isinstance(session, ClaudeSession)
        for row in session.responses.values():
            usage = row[INPUT]
            if usage is not None:
                row[INPUT] = count(usage.get("input_tokens"))
                row[OUTPUT_TOKENS] = count(usage.get("output_tokens"))
                row[CACHE_READ] = count(usage.get("cache_read_input_tokens"))
                row[CACHE_WRITE] = count(usage.get("cache_creation_input_tokens"))
                lives = usage.get("cache_creation")
                row[CACHE_WRITE_1H] = count(lives.get("ephemeral_1h_input_tokens")) if type(lives) is dict else None
            elif row[TEXT] is None:
                row[KIND] = DROPPED
        for row in session.open_calls.values():
            if row[ERROR] is None:
                row[ERROR] = "no_result"
        session.rows = [row for row in session.rows if row[KIND] is not DROPPED]
        if session.rows and all(row[PARENT] is not None for row in session.rows):
            # A sub-agent alone is a part of its session, and without the rest of it no session of its own.
            session.parent_session_id = session.session_id


def _is_noise(kind: object) -> str:
    return NOISE if type(kind) is str and kind in NOISE_TYPES else NOT_A_RECORD


def _describe(session: ClaudeSession, record: Record) -> None:
    if session.agent_release is None:
        session.agent_release = text_or_none(record.get("version"))
    if session.workspace is None:
        session.workspace = text_or_none(record.get("cwd"))
        session.user_id = user_of(session.workspace)
    session.is_described = session.agent_release is not None and session.workspace is not None


def _recognise(record: Record) -> bool:
    kind = word_of(record.get("type"))
    if kind in HANDLERS:
        return type(record.get("sessionId")) is str
    return kind in ("file-history-snapshot", "summary") and ("messageId" in record or "leafUuid" in record)


def _hint(head: bytes) -> bool:
    return b'"sessionId"' in head and b'"uuid"' in head and b'"parentUuid"' in head


READER = Reader(
    name=SOURCE,
    version="5",
    shape="lines",
    recognise=_recognise,
    hint=_hint,
    parser=ClaudeParser,
    session_key=re.compile(rb'"sessionId"\s*:\s*"([^"\\]*(?:\\.[^"\\]*)*)"'),
)
