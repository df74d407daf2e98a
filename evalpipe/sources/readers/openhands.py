"""OpenHands: a stream of events, or the record of one evaluated instance that holds such a history.

Belongs here: the layouts and what the record around a history says. Does not belong here: events
(``openhands_events.py``, and ``openhands_sdk.py`` for those of the agent SDK).

Layouts: an array of events (a trajectory as downloaded, or under ``trajectory``), an event a line,
and evaluation outputs with a ``history`` of events or, in 2024, of (action, observation) pairs. An
event stream names no session: it is named by its first event, whose time has microseconds, so that a
longer copy of the same stream is the same session. Times have no zone and are taken for UTC.

A server keeps each event in a file of its own: ``event_folders.py`` joins them to lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    KEPT,
    NOT_A_RECORD,
    FileContext,
    Parser,
    Reader,
    Record,
    json_readers,
)
from evalpipe.sources.readers.openhands_events import SOURCE, EventSession, add_event, is_event
from evalpipe.sources.readers.openhands_sdk import add_sdk_event, is_sdk_event
from evalpipe.sources.readers.values import content_id, cost_of, flag_of, forget_zero_cost, id_of, object_of, text_of
from evalpipe.sources.session import Session
from evalpipe.sources.times import normal_time

_AGENT = "openhands"
#: Phrases of errors by which a run ran into a limit of its own; others came from outside the agent.
_LIMITS = ("maximum iteration", "max_iterations", "budget", "stuck in a loop", "AgentStuckInLoop")


class OpenhandsParser(Parser):
    """Parser of one file: events of one session, or whole instances."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self._stream: EventSession | None = None
        self._last_id = -1
        self._n_streams = 0
        self._n_events = 0

    def feed(self, record: Record) -> str:
        """Take one event, or one evaluated instance."""
        history = record.get("history", record.get("trajectory"))
        if type(history) is list:
            return self._instance(record, history)
        if not is_any_event(record):
            return NOT_A_RECORD
        return self._event(record)

    def _event(self, record: Record) -> str:
        number = record.get("id")
        is_restart = type(number) is int and number == 0 and self._last_id > 0
        if self._stream is None or is_restart:
            at = normal_time(record.get("timestamp"))
            self._n_streams += 1
            self._n_events = 0
            key = content_id(record)
            self._stream = EventSession(key, _AGENT)
            self._stream.is_named = at is not None
        if type(number) is int:
            self._last_id = number
        self.current = self._stream
        status = _add(self._stream, record)
        if status is KEPT:
            self._stream.n_records += 1
        self._n_events += 1
        if self._n_events > 1 and self._stream.n_records:
            # A copy of the same stream has the same id; the longest is chosen later.
            self.sessions[str(self._n_streams)] = self._stream
        return status

    def _instance(self, record: Record, history: list[object]) -> str:
        events = list(_events(history))
        if history and not events:
            return BAD_FIELD
        task = id_of(record.get("instance_id")) or id_of(record.get("id")) or id_of(record.get("question_id"))
        if task is None and not any(map(is_any_event, events)):
            return NOT_A_RECORD
        session = EventSession(f"{task or 'instance'}/{content_id(events)}", _AGENT)
        session.task_id = task
        session.n_records = 1
        _about(session, record)
        for event in events:
            _add(session, event)
        _outcome(session, record)
        self.sessions[session.session_id] = session
        self.current = session
        return KEPT

    def finish(self, session: Session) -> None:
        """Note calls left open, and name streams that have no times by what was said."""
        assert isinstance(session, EventSession)
        session.close()
        forget_zero_cost(session)
        if not session.is_named:
            session.session_id = f"{SOURCE}:{content_id(session.rows)}"


def is_any_event(record: Record) -> bool:
    """Whether a record is an event of the server or of the agent SDK."""
    return is_event(record) or is_sdk_event(record)


def _add(session: EventSession, event: Record) -> str:
    return add_sdk_event(session, event) if is_sdk_event(event) else add_event(session, event)


def _events(history: list[object]) -> Iterator[Record]:
    """Events one by one; pairs of 2024 hold an action and its observation."""
    for item in history:
        for event in item if type(item) is list else (item,):
            if type(event) is dict:
                yield event


def _about(session: EventSession, record: Record) -> None:
    """What the evaluation says of the run as a whole."""
    metadata = object_of(record.get("metadata"))
    session.model = (
        text_of(object_of(metadata.get("llm_config")).get("model"))
        or text_of(metadata.get("model_name"))
        or text_of(record.get("model_id"))
    )
    session.scenario = text_of(metadata.get("dataset"))
    session.harness = text_of(metadata.get("agent_class"))


def _outcome(session: EventSession, record: Record) -> None:
    cost = cost_of(object_of(record.get("metrics")).get("accumulated_cost"))
    session.cost_usd = session.cost_usd if cost is None else cost
    session.is_success = _is_solved(record)
    error = text_of(record.get("error"))
    if error:
        is_limit = any(phrase.lower() in error.lower() for phrase in _LIMITS)
        session.end_status = "timeout" if is_limit else "error"
        if not is_limit and session.is_success is False:
            session.is_success = None


def _is_solved(record: Record) -> bool | None:
    result = object_of(record.get("test_result"))
    report = object_of(result.get("report")) or object_of(record.get("report"))
    inner = object_of(result.get("result"))
    for value in (
        record.get("resolved"),
        report.get("resolved"),
        inner.get("resolved"),
        inner.get("success"),
        result.get("result"),
        record.get("correct"),
        record.get("success"),
    ):
        if (flag := flag_of(value)) is not None:
            return flag
    return None


def _recognise_event(record: Record) -> bool:
    return is_any_event(record) and "source" in record


def _recognise_instance(record: Record) -> bool:
    history = record.get("history", record.get("trajectory"))
    return type(history) is list and any(map(is_any_event, _events(history[:3])))


LINES = Reader(name=SOURCE, version="1", shape="lines", recognise=_recognise_event, parser=OpenhandsParser)
READERS: tuple[Reader, ...] = (
    *json_readers(replace(LINES, recognise=_recognise_instance, is_one_record_a_session=True)),
    LINES,
    replace(LINES, shape="items"),
)
