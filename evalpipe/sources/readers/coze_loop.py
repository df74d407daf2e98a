"""Coze Loop trajectories: ``root_step``, ``agent_steps`` and their ``steps``, one trajectory a record.

The root is the whole run and the first agent is usually the same span; a sub-agent stands as a step
of the agent that started it and again among ``agent_steps``. Steps of other types than agent, model
and tool give structure. Times are microseconds or milliseconds since 1970, told by their size, and
durations are in the same unit. Go's own names (``RootStep``) are read as well. A model's name stands
in the metadata, if anywhere.
"""

from __future__ import annotations

from typing import Any

from evalpipe.sources.readers.base import BAD_FIELD, KEPT, NOT_A_RECORD, Reader, Record, json_readers, word_of
from evalpipe.sources.readers.chat import read_messages
from evalpipe.sources.readers.span_attributes import agent_name, result
from evalpipe.sources.readers.span_usage import usage
from evalpipe.sources.readers.span_values import any_time, as_json, flatten, known, loads_text, number_of
from evalpipe.sources.readers.spans import Span, SpanParser
from evalpipe.sources.readers.values import content_id, text_of
from evalpipe.sources.session import count

SOURCE = "coze_loop"

_KINDS = {"agent": "agent", "model": "llm", "tool": "tool"}
_TOKENS = (
    "input_tokens", "output_tokens", "input_read_cached_tokens", "input_creation_cached_tokens", "reasoning_tokens",
    "total_tokens",
)  # fmt: skip
_SESSION = ("session_id", "thread_id", "conversation_id")
_RELEASE = ("agent_version", "psm_env", "version", "release")
#: Smallest number of microseconds since 1970 that is no sensible number of milliseconds.
_MICROSECONDS = 10**14


class CozeLoopParser(SpanParser):
    """Parser of one file of trajectories."""

    source = SOURCE

    def feed(self, record: Record) -> str:
        """Take one trajectory."""
        record = _trajectory(record)
        root, agents = _of(record, "root_step"), _of(record, "agent_steps")
        if root is None and agents is None:
            return NOT_A_RECORD
        listed = [] if agents is None else agents
        if (root is not None and type(root) is not dict) or not _are_objects(listed):
            return BAD_FIELD
        if not all(_are_objects(_of(agent, "steps") or []) for agent in listed):
            return BAD_FIELD
        self.n_records += 1
        root_id = _id(root or {}, "id")
        trace_id = _id(record, "id") or root_id or content_id(record)
        spans: dict[str, Span] = {}
        for agent in listed:
            for step in _of(agent, "steps") or []:
                span = _span(step, trace_id, word_of(_of(step, "type")), _id(agent, "id"))
                spans.setdefault(span.span_id, span)
            # A sub-agent stood among the steps of the one that started it already.
            span = _span(agent, trace_id, "agent", None)
            spans.setdefault(span.span_id, span)
        if root is not None:
            above = _span(root, trace_id, "agent", None)
            same = spans.get(above.span_id)
            above.parent_id = None
            above.inputs = above.inputs or (same.inputs if same is not None else [])
            above.outputs = above.outputs or (same.outputs if same is not None else [])
            spans[above.span_id] = above
            for span in spans.values():
                # Parents that the trajectory leaves out were plain spans below the root.
                if span is not above and span.parent_id not in spans:
                    span.parent_id = above.span_id
        for span in spans.values():
            self.add(span)
        return KEPT


def _trajectory(record: Record) -> Record:
    """The trajectory itself, which sets of evaluation data keep as text under its name."""
    inner = loads_text(record.get("trajectory"))
    return inner if type(inner) is dict and _of(record, "root_step") is None else record


def _of(value: Record, name: str) -> Any:
    """A field by its name in JSON, or by that of the Go structure."""
    if name in value:
        return value[name]
    return value.get("".join("ID" if part == "id" else part.capitalize() for part in name.split("_")))


def _id(value: Record, name: str) -> str | None:
    found = known(_of(value, name))
    return str(found) if type(found) in (str, int) and found not in ("0", 0) else None


def _are_objects(value: Any) -> bool:
    return type(value) is list and all(type(item) is dict for item in value)


def _span(step: Record, trace_id: str, kind: str, parent_id: str | None) -> Span:
    basic = _of(step, "basic_info")
    basic = basic if type(basic) is dict else {}
    begun, lasted = number_of(_of(basic, "started_at")), number_of(_of(basic, "duration"))
    start = any_time(begun) if begun else None
    end = any_time(begun + lasted) if begun and lasted is not None and 0 <= lasted < 10**17 else None
    error = _of(basic, "error")
    code = _of(error, "code") if type(error) is dict else None
    metadata = _of(step, "metadata")
    facts = flatten(metadata) if type(metadata) is dict else {}
    span = Span(
        _id(step, "id") or content_id(step),
        trace_id,
        _KINDS.get(kind, "chain"),
        _id(step, "parent_id") or parent_id,
        text_of(_of(step, "name")),
        start,
        end,
        next((text for key in _SESSION if (text := text_of(facts.get(key)))), None),
        text_of(facts.get("user_id")),
        facts=facts,
    )
    span.release = next((text for key in _RELEASE if (text := text_of(facts.get(key)))), None)
    if type(error) is dict and code not in (0, "0"):
        span.is_error, span.error_text = True, text_of(_of(error, "msg"))
    if span.kind == "tool" or span.kind == "chain":
        span.arguments = as_json(_of(step, "input"))
        result(span, known(_of(step, "output")))
    if span.kind != "tool":
        span.inputs = read_messages(known(_of(step, "input")), "user")
        span.outputs = read_messages(known(_of(step, "output")), "assistant")
    if span.kind == "agent":
        span.agent = agent_name(span.name)
    if span.kind == "llm":
        _model(span, step, facts, begun)
    return span


def _model(span: Span, step: Record, facts: Record, begun: float | None) -> None:
    info = _of(step, "model_info")
    info = info if type(info) is dict else {}
    span.tokens = usage(*[count(number_of(_of(info, key))) for key in _TOKENS])
    given, back = loads_text(_of(step, "input")), loads_text(_of(step, "output"))
    for place in (facts, back, given):
        inside = place if type(place) is dict else {}
        span.model = span.model or text_of(inside.get("model_name")) or text_of(inside.get("model"))
    wait = number_of(_of(info, "latency_first_resp"))
    if wait is not None and 0 < wait < 10**15 and begun:
        span.first_token_ms = round(wait / 1000 if begun >= _MICROSECONDS else wait)


def _recognise(record: Record) -> bool:
    record = _trajectory(record)
    root, agents = _of(record, "root_step"), _of(record, "agent_steps")
    return type(root) is dict or (type(agents) is list and (not agents or _are_objects(agents)))


READERS = json_readers(Reader(name=SOURCE, version="4", shape="lines", recognise=_recognise, parser=CozeLoopParser))
