"""Events of Anthropic's managed agents: one a line, bare or as recorded calls of the client.

Belongs here: event types to steps. A recorded call is a line ``[method, payload]``; what the client
sent comes back in the stream, so sent events are noise. Dates, ids and tokens are the log's;
tokens stand in the event that ends a request to the model, and go to the message of that request.

Mapping: ``user.message`` human; a denied confirmation makes the call ``refused``, one that allows it is
feedback; threads other than the first are sub-agents, their steps' parent is the thread. ``session.error`` is an API
error; ``status_terminated`` and exhausted retries end the session with an error. An idle session
is not an ended one.
"""

from __future__ import annotations

from evalpipe.sources.decode import decode
from evalpipe.sources.readers.base import (
    KEPT,
    NOISE,
    NOT_A_RECORD,
    FileContext,
    Parser,
    Reader,
    Record,
    block_text,
    digest_of,
    json_text,
)
from evalpipe.sources.readers.openai_messages import version_of
from evalpipe.sources.readers.ratings import approval_row
from evalpipe.sources.readers.usage import put_usage
from evalpipe.sources.session import (
    END,
    ERROR,
    IS_ERROR,
    KIND,
    OUTPUT,
    TEXT,
    Row,
    Session,
    agent_row,
    text_or_none,
    tool_row,
    user_row,
)
from evalpipe.sources.times import normal_time

SOURCE = "anthropic_events"

_CALLS = frozenset({"agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use"})
_RESULTS = frozenset({"agent.tool_result", "agent.mcp_tool_result", "user.custom_tool_result"})
_CALL_IDS = ("tool_use_id", "mcp_tool_use_id", "custom_tool_use_id")
_PREFIXES = ("user.", "agent.", "session.", "span.")
_STREAM = "events.stream"


class EventsSession(Session):
    """A session with what its later events refer back to."""

    def __init__(self, session_id: str) -> None:
        super().__init__(SOURCE, session_id, SOURCE)
        self.harness = "managed_agents"
        self.calls: dict[str, Row] = {}
        self.answer: Row | None = None
        self.thread: str | None = None
        self.seen: set[str] = set()


class EventsParser(Parser):
    """Parser of one file; an event that names no session belongs to the last one that was named."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        #: Sessions by the id that events bear.
        self._named: dict[str, EventsSession] = {}

    def feed(self, record: Record) -> str:
        """Take one event, or one recorded call (``{"text": line}``)."""
        line = record.get("text")
        if type(line) is str and len(record) == 1:
            values, code, _ = decode(line.encode())
            if code or len(values) != 1:
                return code or NOT_A_RECORD
            value = values[0][2]
            return self._recorded(value) if type(value) is list else NOT_A_RECORD
        return self._event(record)

    def _recorded(self, value: list[object]) -> str:
        if len(value) != 2:
            return NOT_A_RECORD
        method, payload = value
        if type(method) is not str:
            return NOT_A_RECORD
        if method.endswith("sessions.create") and type(payload) is dict:
            return self._create(payload)
        if method.endswith(_STREAM) and type(payload) is dict:
            return self._event(payload)
        return NOISE

    def _create(self, payload: Record) -> str:
        name = text_or_none(payload.get("id")) or digest_of(payload)
        session = self._named.get(name) or self._open(name)
        self._named[name] = session
        self.current = session
        agent = payload.get("agent")
        if type(agent) is dict:
            session.agent = text_or_none(agent.get("name")) or SOURCE
            version = agent.get("version")
            session.agent_release = str(version) if type(version) in (int, str) else None
            model = agent.get("model")
            session.model = text_or_none(model.get("id")) if type(model) is dict else text_or_none(model)
            prompt = agent.get("system")
            session.prompt_version = version_of(prompt) if type(prompt) is str and prompt else None
        _see(session, normal_time(payload.get("created_at")))
        return KEPT

    def _open(self, session_id: str) -> EventsSession:
        session = self.sessions[session_id] = EventsSession(session_id)
        return session

    def _session_of(self, event: Record) -> EventsSession:
        name = text_or_none(event.get("session_id"))
        session = self._named.get(name) if name else self._last()
        if session is None and name and self.current is not None and not self._named:
            # What came before named none: the file begins with events that do not.
            session = self._last()
        if session is None:
            session = self._open(name or f"{self.context.stem}/{digest_of(event)}")
        if name:
            self._named[name] = session
        return session

    def _last(self) -> EventsSession | None:
        return self.current if isinstance(self.current, EventsSession) else None

    def _event(self, event: Record) -> str:
        kind = event.get("type")
        if type(kind) is not str or not kind.startswith(_PREFIXES):
            return NOT_A_RECORD
        session = self.current = self._session_of(event)
        event_id = text_or_none(event.get("id"))
        if event_id is not None and event_id in session.seen:
            return NOISE
        if event_id is not None:
            session.seen.add(event_id)
        at = normal_time(event.get("processed_at"))
        _see(session, at)
        thread = text_or_none(event.get("session_thread_id"))
        session.thread = session.thread or thread
        parent = thread if thread != session.thread else None
        step_id = event_id or str(len(session.rows))
        self._step(session, event, step_id, at, parent)
        return KEPT

    def _step(self, session: EventsSession, event: Record, step_id: str, at: str | None, parent: str | None) -> None:
        kind = event["type"]
        text = block_text(event.get("content"))
        if kind == "user.message" and text:
            session.rows.append(user_row(step_id, "human", text, at, parent))
        elif kind == "user.interrupt":
            session.rows.append(user_row(step_id, "interrupt", text, at, parent))
        elif kind == "agent.message":
            session.answer = agent_row(step_id, text, at, session.model, parent)
            session.rows.append(session.answer)
        elif kind in _CALLS:
            name = text_or_none(event.get("name")) or "unknown"
            row = tool_row(step_id, name, json_text(event.get("input")), at, parent)
            session.rows.append(row)
            session.calls[step_id] = row
        elif kind in _RESULTS:
            self._result(session, event, text, at)
        elif kind == "user.tool_confirmation":
            self._confirmed(session, event, approval_row(step_id, at, parent))
        elif kind == "span.model_request_end":
            self._usage(session, event, step_id, at, parent)
        elif kind == "session.error":
            row = user_row(step_id, "system", _message_of(event.get("error")), at, parent)
            row[KIND], row[ERROR] = "system", "api_error"
            session.rows.append(row)
        elif kind == "agent.thread_context_compacted":
            session.rows.append(user_row(step_id, "compaction", text, at, parent))
        elif kind.startswith("session.status_"):
            self._status(session, event, kind)
        else:
            return
        session.n_messages += 1

    def _confirmed(self, session: EventsSession, event: Record, approval: Row) -> None:
        """What the user said to a call that waited."""
        if event.get("result") == "allow":
            session.rows.append(approval)
        elif event.get("result") == "deny" and (call := session.calls.get(_call_id(event))) is not None:
            call[ERROR], call[TEXT] = "refused", text_or_none(event.get("deny_message"))

    def _result(self, session: EventsSession, event: Record, text: str | None, at: str | None) -> None:
        call_id = _call_id(event)
        row = session.calls.get(call_id)
        if row is None:
            row = tool_row(call_id, None, None, None)
            session.rows.append(row)
        row[OUTPUT], row[END] = text, at
        flag = event.get("is_error")
        row[IS_ERROR] = flag if type(flag) is bool else None

    def _usage(self, session: EventsSession, event: Record, step_id: str, at: str | None, parent: str | None) -> None:
        row, session.answer = session.answer, None
        if row is None:
            row = agent_row(step_id, None, at, session.model, parent)
            session.rows.append(row)
        put_usage(row, event.get("model_usage"))
        if event.get("is_error") is True:
            row[ERROR] = "api_error"

    @staticmethod
    def _status(session: Session, event: Record, kind: str) -> None:
        reason = event.get("stop_reason")
        why = reason.get("type") if type(reason) is dict else None
        is_over = kind == "session.status_terminated" or why == "retries_exhausted"
        session.end_status = "error" if is_over else None

    def finish(self, session: Session) -> None:
        """Mark calls that never got a result."""
        assert isinstance(session, EventsSession)
        for row in session.calls.values():
            if row[OUTPUT] is None and row[END] is None and row[ERROR] is None:
                row[ERROR] = "no_result"


def _see(session: Session, at: str | None) -> None:
    session.n_records += 1
    if at is not None:
        session.see(at)


def _call_id(event: Record) -> str:
    return next((found for name in _CALL_IDS if (found := text_or_none(event.get(name)))), "")


def _message_of(error: object) -> str | None:
    return text_or_none(error.get("message")) if type(error) is dict else text_or_none(error)


def _recognise(record: Record) -> bool:
    kind = record.get("type")
    return type(kind) is str and kind.startswith(_PREFIXES) and "processed_at" in record


def _hint(head: bytes) -> bool:
    return any(line.startswith(b'["client.beta.') for line in head.split(b"\n", 20)[:20])


LINES_READER = Reader(name=SOURCE, version="3", shape="lines", recognise=_recognise, parser=EventsParser)
RECORDED_READER = Reader(
    name=SOURCE,
    version="3",
    shape="text",
    recognise=lambda _: False,
    hint=_hint,
    cut=lambda _: True,
    parser=EventsParser,
)
READERS = (LINES_READER, RECORDED_READER)
