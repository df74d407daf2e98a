"""Events of an Inspect sample: what they add to its messages, and conversations made of events alone.

Belongs here: model and tool events, spans, sub-agents. Does not belong here: headers, scores, limits
(``inspect_log.py``).

A model event whose answer stands in the messages gives that message its time, model and tokens.
One below a scorer is the grader's and no step. Every other one was asked beside the conversation,
by a sub-agent or a helper: a child step of the span or tool call around it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from evalpipe.sources.readers.base import Record, block_text, json_text, word_of
from evalpipe.sources.readers.usage import put_usage
from evalpipe.sources.session import (
    END,
    ERROR,
    IS_ERROR,
    KIND,
    OUTPUT,
    START,
    STEP_ID,
    Row,
    Session,
    agent_row,
    text_or_none,
    tool_row,
)
from evalpipe.sources.times import normal_time

_GRADERS = frozenset({"scorer", "scorers"})
_ERRORS = {"timeout": "timeout", "approval": "refused"}
_MAX_DEPTH = 20


@dataclass(slots=True)
class Events:
    """The events of a sample, sorted by what they tell.

    Attributes:
        models: Model events with the spans they lie in, the innermost last.
        tools: Tool events likewise.
        times: First and last time of the sample.
    """

    models: list[tuple[Record, tuple[str, ...]]] = field(default_factory=list)
    tools: list[tuple[Record, tuple[str, ...]]] = field(default_factory=list)
    times: list[str] = field(default_factory=list)


def sort_events(events: object) -> Events:
    """Walk events in order, with the spans (``step`` events in older logs) around each.

    Args:
        events: The sample's ``events``; anything that is no event is passed over.
    """
    found = Events()
    _walk(events, (), found, 0)
    return found


def _walk(events: object, outer: tuple[str, ...], found: Events, depth: int) -> None:
    spans: dict[str, tuple[tuple[str, ...], bool]] = {}
    stack: list[tuple[str, bool]] = []
    for event in events if type(events) is list else ():
        if type(event) is not dict:
            continue
        kind = event.get("event")
        for name in ("timestamp", "completed"):
            if (at := normal_time(event.get(name))) is not None:
                found.times.append(at)
        if kind == "span_begin":
            span = word_of(event.get("id"))
            above, is_grading = spans.get(word_of(event.get("parent_id")), (outer, False))
            spans[span] = (*above, span), is_grading or word_of(event.get("type")) in _GRADERS
        elif kind == "step":
            _step(event, stack)
        elif kind in ("model", "tool"):
            path, is_grading = spans.get(word_of(event.get("span_id")), (outer, False))
            if is_grading or any(grading for _, grading in stack):
                continue
            (found.models if kind == "model" else found.tools).append((event, path))
            # Older logs nest what a tool's agent did inside the tool's event.
            if kind == "tool" and depth < _MAX_DEPTH and event.get("events"):
                _walk(event["events"], (*path, call_id(event)), found, depth + 1)


def _step(event: Record, stack: list[tuple[str, bool]]) -> None:
    if event.get("action") == "begin":
        stack.append((word_of(event.get("name")), word_of(event.get("type")) in _GRADERS))
    elif stack:
        stack.pop()


def call_id(event: Record) -> str:
    """Id of the call that a tool event is of."""
    return text_or_none(event.get("id")) or text_or_none(event.get("uuid")) or "tool"


def answer_of(event: Record) -> Record:
    """The message that a model event brought; empty if it brought none."""
    output = event.get("output")
    choices = output.get("choices") if type(output) is dict else None
    first = choices[0] if type(choices) is list and choices else None
    message = first.get("message") if type(first) is dict else None
    return message if type(message) is dict else {}


def usage_of(event: Record) -> object:
    """The tokens of a model event."""
    output = event.get("output")
    return output.get("usage") if type(output) is dict else None


def match(messages: list[Record], found: Events) -> dict[int, Record]:
    """Which model event brought which of the messages, by id where both have one, else by content.

    Matched events are taken out of ``found.models``.
    """
    by_id: dict[str, int] = {}
    by_content: dict[str, list[int]] = {}
    for place, message in enumerate(messages):
        if message.get("role") == "assistant":
            if (message_id := text_or_none(message.get("id"))) is not None:
                by_id[message_id] = place
            by_content.setdefault(_content(message), []).append(place)
    matched: dict[int, Record] = {}
    rest: list[tuple[Record, tuple[str, ...]]] = []
    # The outermost first: a sub-agent may have answered in the very words of the agent.
    for event, path in sorted(found.models, key=lambda item: len(item[1])):
        answer = answer_of(event)
        position = by_id.get(text_or_none(answer.get("id")) or "")
        if position is None and answer:
            position = next((p for p in by_content.get(_content(answer), []) if p not in matched), None)
        elif position in matched:
            continue  # logged twice
        if position is None:
            rest.append((event, path))
        else:
            matched[position] = event
    found.models = rest
    return matched


def _content(message: Record) -> str:
    calls = message.get("tool_calls")
    ids = [c.get("id") for c in calls if type(c) is dict] if type(calls) is list else []
    return f"{block_text(message.get('content'))}|{json_text(ids) if ids else ''}"


def add_tool_times(session: Session, found: Events) -> None:
    """Give calls the times and errors of their tool events, which are taken out of ``found.tools``."""
    rows = {row[STEP_ID]: row for row in session.rows if row[KIND] == "tool"}
    rest = []
    for event, path in found.tools:
        row = rows.get(call_id(event))
        if row is None:
            rest.append((event, path))
        else:
            row[START] = normal_time(event.get("timestamp")) or row[START]
            row[END] = normal_time(event.get("completed")) or row[END]
    found.tools = rest


def add_children(session: Session, found: Events) -> None:
    """Put in what was asked and called beside the conversation, as child steps at their time."""
    rows: list[Row] = []
    calls = {row[STEP_ID] for row in session.rows}
    for n, (event, path) in enumerate(found.models):
        at = normal_time(event.get("timestamp"))
        answer = answer_of(event)
        step_id = text_or_none(event.get("uuid")) or text_or_none(answer.get("id")) or f"model{n}"
        parent = _parent(path, calls, event)
        model = text_or_none(event.get("model"))
        row = agent_row(step_id, block_text(answer.get("content")) or None, at, model, parent)
        row[END] = normal_time(event.get("completed")) or at
        put_usage(row, usage_of(event))
        if text_or_none(event.get("error")) is not None:
            row[ERROR] = "api_error"
        rows.append(row)
    rows += [tool_event_row(event, _parent(path, calls, event)) for event, path in found.tools]
    rows.sort(key=lambda row: row[START] or "")
    session.rows = _merged(session.rows, rows)


def _merged(main: list[Row], children: list[Row]) -> list[Row]:
    merged: list[Row] = []
    waiting = children[::-1]
    for row in main:
        while waiting and row[START] is not None and (waiting[-1][START] or "") < row[START]:
            merged.append(waiting.pop())
        merged.append(row)
    return merged + waiting[::-1]


def _parent(path: tuple[str, ...], calls: set[str], event: Record) -> str:
    """The call of the conversation that a child step hangs from, else its span."""
    call = next((span for span in reversed(path) if span in calls), None)
    return call or (path[-1] if path else text_or_none(event.get("span_id")) or "beside")


def tool_event_row(event: Record, parent: str | None) -> Row:
    """The step of a tool event."""
    arguments = json_text(event.get("arguments"))
    name = text_or_none(event.get("function")) or "unknown"
    row = tool_row(call_id(event), name, arguments, normal_time(event.get("timestamp")), parent)
    result = event.get("result")
    text = block_text(result)
    row[OUTPUT] = text if text is not None else json_text(result)
    row[END] = normal_time(event.get("completed")) or row[START]
    put_error(row, event.get("error"))
    return row


def put_error(row: Row, error: object) -> None:
    """Put a tool error, an object with type and message, into its step."""
    if type(error) is dict:
        row[IS_ERROR], row[ERROR] = True, _ERRORS.get(word_of(error.get("type")), "tool_error")
        row[OUTPUT] = row[OUTPUT] or text_or_none(error.get("message"))
