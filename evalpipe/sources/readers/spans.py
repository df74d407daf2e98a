"""Spans of a trace in one form, gathered into sessions: what all trace formats share.

Belongs here: :class:`Span`, and the parser that collects the spans of a file, finds the session of
each, and hands whole sessions on. Does not belong here: any format (each has a module of its own),
or the way from spans to steps (``span_steps.py``).

A session is a conversation where the trace names one, else the trace; under a short id, such as a
number, that of each user is another session. The id of a span's highest ancestor counts, so that
sub-agents with ids of their own stay in the session that started them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any

from evalpipe.contracts.ids import is_long_id
from evalpipe.sources.readers.base import FileContext, Record
from evalpipe.sources.readers.chat import Message
from evalpipe.sources.readers.gathering import GatheringParser
from evalpipe.sources.readers.ratings import Rating
from evalpipe.sources.readers.span_sessions import Users, sessions_of
from evalpipe.sources.readers.span_steps import build
from evalpipe.sources.readers.span_text import from_text, marks, to_text
from evalpipe.sources.session import Session, TraceText
from evalpipe.sources.spool import Spool

#: Kinds of spans. Only the first four make a trace a session; the others give structure.
KINDS = ("llm", "agent", "tool", "retriever", "chain")
_ACTS = frozenset({"llm", "agent", "tool"})


#: Spans that are moved from one spool to another at a time; they may be too many to be held.
_SPANS_GIVEN = 256


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
        ratings: Marks that users gave it.
        records: Numbers of the records it came from.
        place: Place of its first appearance among the spans of the file, from 1.
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
    ratings: tuple[Rating, ...] = ()
    records: list[int] = field(default_factory=list)
    place: int = 0

    def __reduce__(self) -> tuple[type[Span], tuple[Any, ...]]:
        # A third of the time that copying by the names of the slots takes.
        return Span, _values(self)


_values = attrgetter(*(item.name for item in fields(Span)))
#: What no version of a span leaves out, and what one may.
_CERTAIN = frozenset({"span_id", "trace_id", "kind", "records", "place"})
_OPTIONAL = tuple(item.name for item in fields(Span) if item.name not in _CERTAIN)


class SpanParser(GatheringParser):
    """Collects the spans of one file; formats fill ``feed``.

    Attributes:
        traces: Spans by trace and id: those read since the last spill, then those of one group of traces.
        n_records: Records that were kept.
    """

    #: Whether a file with a single trace is a download of one trace out of a longer session.
    is_trace_a_part = False

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self.traces: dict[str, dict[str, Span]] = {}
        self.n_records = 0
        self._n_spans = 0
        self._pool: dict[Message, Message] = {}
        #: Spans, and what else a format gathers, by trace. Those of a session are gathered with the trace's place.
        self._by_trace = Spool(context.spool)
        self._users = Users()
        #: Spans of sessions under short ids that name no user, until all users are known.
        self._nobodys = Spool(context.spool)
        #: Stands behind the ids of all sessions, where a file is a part of them.
        self._part = ""

    def add(self, span: Span) -> None:
        """Take a span. Of two with one id the one that ended counts, else the later."""
        spans = self.traces.setdefault(span.trace_id, {})
        known = spans.get(span.span_id)
        if known is not None and known.end is not None and span.end is None:
            return
        self._n_spans += 1
        span.place = known.place if known is not None else span.place or self._n_spans
        span.records = span.records or [self.n_records]
        # History is resent with every call: one object for each message, however often it is logged.
        share = self._pool.setdefault
        span.inputs = [share(message, message) for message in span.inputs]
        span.outputs = [share(message, message) for message in span.outputs]
        spans[span.span_id] = span

    def spill(self) -> None:
        """Put the spans read so far on disk."""
        for trace_id, spans in self.traces.items():
            for span in spans.values():
                self._by_trace.put(trace_id, span)
        for trace_id, item in self.beside():
            self._by_trace.put(trace_id, item)
        self._by_trace.spill()
        self.traces, self._pool = {}, {}

    def beside(self) -> Iterable[tuple[str, Any]]:
        """Give away what is gathered beside the spans, with the trace it belongs to (see :meth:`take_beside`)."""
        return ()

    def take_beside(self, trace_id: str, item: Any) -> None:
        """Take back one item of :meth:`beside`, in the order in which they were given."""

    def settle(self) -> None:
        """Called with traces that are whole, before their spans are sorted into sessions."""

    def close(self) -> int:
        """Sort the spans into sessions, after the last record.

        Returns:
            Number of records that were kept and turn out to carry nothing to analyse: those of
            traces in which no model, agent or tool acts.
        """
        used = bytearray(self.n_records + 1)
        n_traces, a_trace = 0, ""
        for _ in self._whole_traces(used):
            self.settle()
            for trace_id, spans in self.traces.items():
                n_traces, a_trace = n_traces + 1, trace_id
                self._sort(trace_id, spans, used)
            self.traces = {}
            if self._by_trace.is_spilled:
                self._nobodys.spill()
                self.gathered.spill()
        self._pool = {}
        self._give_nobodys()
        if self.is_trace_a_part and n_traces == 1:
            self._part = a_trace
        super().close()
        return self.n_records - sum(used)

    def _give_nobodys(self) -> None:
        """Gather spans that name no user with those of the first one, now that all users are known."""
        is_spilled = self._nobodys.is_spilled
        n_spans = 0
        for group, too_large in self._nobodys.groups():
            for session_id, items in (*group.items(), *((one.key, one.items) for one in too_large)):
                for item in items:
                    self.gathered.put(self._users.key_of_nobody(session_id), item)
                    n_spans += len(item[1])
                    if is_spilled and n_spans >= _SPANS_GIVEN:
                        self.gathered.spill()
                        n_spans = 0
            if is_spilled:
                self.gathered.spill()

    def _whole_traces(self, used: bytearray) -> Iterator[None]:
        """Fill ``traces`` with as many as can be held at a time."""
        if not self._by_trace.is_spilled:
            yield
            return
        self.spill()
        for group, too_large in self._by_trace.groups():
            for trace in too_large:
                self.too_large.append(trace.key)
                _mark((span for span in trace.items if isinstance(span, Span)), used)
            for trace_id, items in group.items():
                for item in items:
                    if not isinstance(item, Span):
                        self.take_beside(trace_id, item)
                for span in sorted((item for item in items if isinstance(item, Span)), key=_place):
                    self.add(span)
            yield
            self._pool = {}

    def _sort(self, trace_id: str, spans: dict[str, Span], used: bytearray) -> None:
        place = next(iter(spans.values())).place
        for session_id, members in sessions_of(trace_id, spans).items():
            if any(span.kind in _ACTS for span in members):
                _mark(members, used)
                key = self._users.key(session_id, trace_id, place, members)
                if key is None:
                    self._nobodys.put(session_id, (place, members))
                else:
                    self.gathered.put(key, (place, members))

    def name_of(self, key: str) -> str:
        """The id of a session; a short one gets that of the trace, where the file holds a single one."""
        key = self._users.name(key)
        return key if self._part in ("", key) or is_long_id(key) else f"{key}/{self._part}"

    def assemble(self, session: Session, items: list[tuple[int, list[Span]]]) -> None:
        """Turn the spans of a session into steps."""
        spans = [span for _, members in sorted(items, key=_first_place) for span in members]
        session.n_records = len({number for span in spans for number in span.records})
        session.trace = TraceText(to_text(spans), sorted({span.trace_id for span in spans}), *marks(spans))
        build(session, spans)

    def join(self, session: Session, parts: Iterable[str]) -> None:
        """Make a session of the spans of all its parts.

        Of two versions of a span the one that ended counts, else that of the later part; what it leaves
        out is taken from the other.

        Args:
            session: Gets rows and all fields that spans tell.
            parts: What :func:`~evalpipe.sources.readers.span_text.to_text` made of each, in order of time.
        """
        for text in parts:
            for span in from_text(text, Span):
                known = self.traces.get(span.trace_id, {}).get(span.span_id)
                if known is not None:
                    _complete(known, span)
                self.add(span)
        self.settle()
        build(session, [span for spans in self.traces.values() for span in spans.values()])
        session.n_messages = len(session.rows)

    def forget(self) -> None:
        """Let go of all spans."""
        super().forget()
        self.traces, self._pool = {}, {}
        self._nobodys = Spool(None)
        for _ in self.beside():
            pass


def _complete(known: Span, later: Span) -> None:
    """Tell each of two versions of a span what only the other says: one may be the begin, the other the end."""
    for name in _OPTIONAL:
        one, other = getattr(known, name), getattr(later, name)
        if not one and one is not False and one != 0:
            setattr(known, name, other)
        elif not other and other is not False and other != 0:
            setattr(later, name, one)


def _place(span: Span) -> int:
    return span.place


def _first_place(piece: tuple[int, list[Span]]) -> int:
    return piece[0]


def _mark(spans: Iterable[Span], used: bytearray) -> None:
    for span in spans:
        for number in span.records:
            used[number] = 1


def first(values: Iterable[Any]) -> Any:
    """The first value that is not ``None``."""
    return next((value for value in values if value is not None), None)
