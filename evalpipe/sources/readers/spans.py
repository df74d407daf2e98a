"""Spans of a trace in one form, gathered into sessions: what all trace formats share.

Belongs here: :class:`Span`, and the parser that collects the spans of a file, finds the session of
each, and hands whole sessions on. Does not belong here: any format (each has a module of its own),
or the way from spans to steps (``span_steps.py``).

A session is a conversation where the trace names one, else the trace. The id of a span's highest
ancestor counts, so that sub-agents with ids of their own stay in the session that started them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from evalpipe.sources.readers.base import FileContext, Parser, Record
from evalpipe.sources.readers.chat import Message
from evalpipe.sources.readers.span_steps import build
from evalpipe.sources.session import Session

#: Kinds of spans. Only the first four make a trace a session; the others give structure.
KINDS = ("llm", "agent", "tool", "retriever", "chain")
_ACTS = frozenset({"llm", "agent", "tool"})


@dataclass(slots=True, eq=False)
class Span:
    """One span, whatever format it came from.

    Attributes:
        span_id, parent_id, trace_id: As logged. ``parent_id`` is ``None`` for a root.
        kind: One of ``KINDS``.
        name: Tool name for tools, agent name for agents, else the name of the span.
        start, end: ISO text with six digits, or ``None``.
        session_id, user_id: Where the span itself names them.
        is_error: The span's own status; ``None`` where it says nothing.
        error_text: What the span says went wrong.
        inputs, outputs: Messages in and out, for model calls, and for what a user talks to.
        call_id, arguments, output: Of tools and retrievers.
        model, tokens, cost_usd, first_token_ms: Of model calls; tokens in the order of the steps' columns.
        agent, service, release: What answered: agent, program, and its release.
        tools: Names of the tools offered.
        facts: Metadata that may declare scenario, task and trial.
        reward, is_success: Outcome that the trace states.
        records: Numbers of the records it came from.
    """

    span_id: str
    trace_id: str
    kind: str
    parent_id: str | None = None
    name: str | None = None
    start: str | None = None
    end: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    is_error: bool | None = None
    error_text: str | None = None
    inputs: list[Message] = field(default_factory=list)
    outputs: list[Message] = field(default_factory=list)
    call_id: str | None = None
    arguments: str | None = None
    output: str | None = None
    model: str | None = None
    tokens: tuple[int | None, ...] | None = None
    cost_usd: float | None = None
    first_token_ms: int | None = None
    agent: str | None = None
    service: str | None = None
    release: str | None = None
    tools: tuple[str, ...] = ()
    facts: Record = field(default_factory=dict)
    reward: float | None = None
    is_success: bool | None = None
    records: list[int] = field(default_factory=list)


class SpanParser(Parser):
    """Collects the spans of one file; formats fill ``feed``."""

    #: Name of the source, set by each format.
    source = ""
    #: Whether a file with a single trace is a download of one trace out of a longer session.
    is_trace_a_part = False

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self.traces: dict[str, dict[str, Span]] = {}
        self._of_session: dict[str, list[Span]] = {}
        self._pool: dict[Message, Message] = {}
        self.n_records = 0

    def add(self, span: Span) -> None:
        """Take a span. Of two with one id the one that ended counts, else the later."""
        spans = self.traces.setdefault(span.trace_id, {})
        known = spans.get(span.span_id)
        if known is not None and known.end is not None and span.end is None:
            return
        span.records = span.records or [self.n_records]
        # History is resent with every call: one object for each message, however often it is logged.
        share = self._pool.setdefault
        span.inputs = [share(message, message) for message in span.inputs]
        span.outputs = [share(message, message) for message in span.outputs]
        spans[span.span_id] = span

    def close(self) -> int:
        """Sort the spans into sessions, after the last record.

        Returns:
            Number of records that were kept and turn out to carry nothing to analyse: those of
            traces in which no model, agent or tool acts.
        """
        used: set[int] = set()
        for trace_id, spans in self.traces.items():
            of_session = _sessions_of(trace_id, spans)
            for session_id, members in of_session.items():
                if any(span.kind in _ACTS for span in members):
                    used.update(number for span in members for number in span.records)
                    self._of_session.setdefault(session_id, []).extend(members)
        if self.is_trace_a_part and len(self.traces) == 1:
            trace_id = next(iter(self.traces))
            self._of_session = {
                key if key == trace_id else f"{key}/{trace_id}": spans for key, spans in self._of_session.items()
            }
        self.traces, self._pool = {}, {}
        for key in self._of_session:
            self.sessions[key] = Session(self.source, key, self.source)
        return self.n_records - len(used)

    def finish(self, session: Session) -> None:
        """Turn the spans of a session into steps."""
        key = session.session_id.removeprefix(f"{self.source}:")
        spans = self._of_session.pop(key, [])
        session.n_records = len({number for span in spans for number in span.records})
        build(session, spans)


def _sessions_of(trace_id: str, spans: dict[str, Span]) -> dict[str, list[Span]]:
    """Spans of a trace by session: the id of the highest ancestor that has one, else the trace's only one."""
    found: dict[str, str | None] = {}
    for span in spans.values():
        path = [span]
        seen = {span.span_id}
        while path[-1].span_id not in found and (above := spans.get(path[-1].parent_id or "")) is not None:
            if above.span_id in seen:
                break
            seen.add(above.span_id)
            path.append(above)
        inherited = found.get(path[-1].span_id)
        for member in reversed(path):
            inherited = inherited or member.session_id
            found[member.span_id] = inherited
    named = {session_id for session_id in found.values() if session_id}
    rest = next(iter(named)) if len(named) == 1 else trace_id
    sessions: dict[str, list[Span]] = {}
    for span in spans.values():
        sessions.setdefault(found[span.span_id] or rest, []).append(span)
    return sessions


def first(values: Iterable[Any]) -> Any:
    """The first value that is not ``None``."""
    return next((value for value in values if value is not None), None)
