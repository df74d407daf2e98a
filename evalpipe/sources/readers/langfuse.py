"""Langfuse: a trace with its observations, or observations and traces apart.

A record is what the interface and the exports hold: ``{"trace", "observations"}``, a trace with its
observations inside, a trace alone, or one observation (in the interface's names or the blob export's:
``traceId`` or ``trace_id``). The trace becomes the root above its observations. Scores that code or a
person gave state the outcome (``outcomes.py``) or are a user's mark (``ratings.py``); those of Langfuse's own
judges and of its annotators are no user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from evalpipe.sources.readers.base import BAD_FIELD, KEPT, NOISE, NOT_A_RECORD, Reader, Record, json_readers, word_of
from evalpipe.sources.readers.chat import read_messages
from evalpipe.sources.readers.outcomes import Score, state
from evalpipe.sources.readers.ratings import Rating, given, rating
from evalpipe.sources.readers.span_attributes import agent_name, fill, result
from evalpipe.sources.readers.span_usage import tool_names, usage
from evalpipe.sources.readers.span_values import any_time, as_json, flatten, known, loads_text, number_of
from evalpipe.sources.readers.spans import Span, SpanParser
from evalpipe.sources.readers.values import content_id, text_of
from evalpipe.sources.session import count, number_or_none

SOURCE = "langfuse"

_KINDS = {"GENERATION": "llm", "TOOL": "tool", "AGENT": "agent", "RETRIEVER": "retriever"}
_TYPES = frozenset({
    "SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL",
})  # fmt: skip
#: Names of the kinds of usage: input, output, cache read, cache write, reasoning, total.
_USAGE = (
    ("input", "prompt_tokens", "promptTokens", "input_tokens"),
    ("output", "completion_tokens", "completionTokens", "output_tokens"),
    (
        "input_cache_read", "input_cached_tokens", "cache_read_input_tokens", "prompt_details.cache_read",
        "input_cached", "prompt_tokens_details.cached_tokens",
    ),
    ("input_cache_creation", "cache_creation_input_tokens", "prompt_details.cache_write"),
    (
        "output_reasoning", "output_reasoning_tokens", "completion_details.reasoning",
        "completion_tokens_details.reasoning_tokens",
    ),
    ("total", "total_tokens", "totalTokens"),
)  # fmt: skip
_WORD = re.compile(r"(?<!^)(?=[A-Z])")


class LangfuseParser(SpanParser):
    """Parser of one file."""

    source = SOURCE
    is_trace_a_part = True

    def feed(self, record: Record) -> str:
        """Take one trace, or one observation."""
        inner = record.get("trace")
        if type(inner) is dict:
            observations = record.get("observations", inner.get("observations"))
            return self._trace(_snake(inner), observations, record.get("scores"))
        value = _snake(record)
        if _is_observation(value):
            self.n_records += 1
            self.add(_observation(value, None))
            return KEPT
        if _is_trace(value):
            return self._trace(value, value.get("observations"), None)
        return NOISE if _is_score(value) else NOT_A_RECORD

    def _trace(self, trace: Record, observations: Any, scores: Any) -> str:
        listed = observations if type(observations) is list else []
        if any(type(item) not in (dict, str) for item in listed):
            return BAD_FIELD
        # A trace of the list view names its observations by id only.
        inside = [_snake(item) for item in listed if type(item) is dict]
        trace_id = text_of(trace.get("id")) or content_id(trace)
        self.n_records += 1
        root = _root(trace, trace_id)
        scored = scores if type(scores) is list else trace.get("scores")
        scored = scored if type(scored) is list else []
        state(root, [score for item in scored if (score := _score(item)) is not None])
        marks: dict[str | None, list[Record]] = {}
        of_observations = {span_id for item in inside if (span_id := text_of(item.get("id"))) is not None}
        for mark in (_snake(item) for item in scored if type(item) is dict):
            about = text_of(mark.get("observation_id"))
            marks.setdefault(about if about in of_observations else None, []).append(mark)
        root.ratings = _ratings(marks.get(None, []))
        self.add(root)
        for item in inside:
            span = _observation(item, trace_id)
            span.ratings = _ratings(marks.get(span.span_id, []))
            self.add(span)
        return KEPT

    def settle(self) -> None:
        """Put each trace above its observations, wherever in the file they stood."""
        for trace_id, spans in self.traces.items():
            root = spans.get(f"trace:{trace_id}")
            if root is None or len(spans) == 1:
                continue
            # Those that stand below it already were put there in a part of the trace.
            below = [span for span in spans.values() if span.parent_id in (None, root.span_id) and span is not root]
            root.kind = "chain"
            for span in below:
                span.parent_id = root.span_id
            if len(below) == 1:
                root.end, root.is_error, root.error_text = below[0].end, below[0].is_error, below[0].error_text
            else:
                root.end = root.is_error = root.error_text = None


def _snake(value: Record) -> Record:
    """Names of the interface as those of the blob export."""
    return {_snake_name(key): member for key, member in value.items()}


@lru_cache(1024)
def _snake_name(key: str) -> str:
    return _WORD.sub("_", key).lower() if not key.isupper() else key


def _root(trace: Record, trace_id: str) -> Span:
    """The trace itself: what the user and the agent said, if the export holds no more."""
    get = trace.get
    flat = _metadata(get("metadata"))
    name = text_of(get("name"))
    return Span(
        f"trace:{trace_id}",
        trace_id,
        "agent",
        None,
        name,
        any_time(get("timestamp")),
        None,
        text_of(get("session_id")),
        text_of(get("user_id")),
        inputs=read_messages(get("input"), "user"),
        outputs=read_messages(get("output"), "assistant"),
        service=_service(flat) or agent_name(name),
        release=text_of(get("release")) or text_of(get("version")),
        cost_usd=_cost(get("total_cost")),
        facts=flat,
    )


def _service(flat: Record) -> str | None:
    name = text_of(flat.get("resourceAttributes.service.name"))
    return None if name is None or name.startswith("unknown_service") else name


def _metadata(value: Any) -> Record:
    found = loads_text(value)
    return flatten(found) if type(found) is dict else {}


def _observation(record: Record, trace_id: str | None) -> Span:
    get = record.get
    span_id = text_of(get("id")) or content_id(record)
    flat = _metadata(get("metadata"))
    span = Span(span_id, trace_id or text_of(get("trace_id")) or span_id, "chain")
    attributes = {key.removeprefix("attributes."): v for key, v in flat.items() if key.startswith("attributes.")}
    fill(span, attributes)
    span.kind = _KINDS.get(word_of(get("type")).upper(), "chain")
    span.parent_id = text_of(known(get("parent_observation_id")))
    span.name = text_of(get("name"))
    span.start, span.end = any_time(get("start_time")), any_time(get("end_time"))
    # Sessions and users are facts of the trace; its row may be missing from this export.
    span.session_id = text_of(get("session_id")) or (None if trace_id else text_of(flat.get("thread_id")))
    span.user_id = text_of(get("user_id"))
    span.is_error = True if get("level") == "ERROR" else None
    span.error_text = text_of(get("status_message"))
    span.release = text_of(get("release")) or text_of(get("version"))
    span.agent = span.agent or (agent_name(span.name) if span.kind == "agent" else None)
    span.facts = {**flat, **_metadata(get("trace_metadata"))}
    if span.kind in ("tool", "retriever") or (span.kind == "chain" and get("input") is not None):
        name = text_of(attributes.get("gen_ai.tool.name"))
        span.name = name if name is not None and span.kind == "tool" else span.name
        span.arguments = as_json(get("input"))
        span.output, span.is_error = None, span.is_error
        result(span, known(get("output")))
    if span.kind not in ("tool", "retriever"):
        span.inputs = read_messages(known(get("input")), "user") or span.inputs
        span.outputs = read_messages(known(get("output")), "assistant") or span.outputs
    _usage(span, record)
    return span


def _usage(span: Span, record: Record) -> None:
    get = record.get
    span.model = text_of(get("model")) or text_of(get("provided_model_name")) or span.model
    if span.kind not in ("llm", "agent"):
        return
    span.cost_usd = _cost(get("total_cost")) or _cost(_first_of(loads_text(get("cost_details")), ("total",)))
    used = loads_text(get("usage_details"))
    used = used if type(used) is dict and used else loads_text(get("usage"))
    span.tokens = _tokens(used) if type(used) is dict else span.tokens
    offered = loads_text(get("tool_definitions"))
    span.tools = tuple(offered) if type(offered) is dict else tool_names(offered) or span.tools
    wait = number_of(get("time_to_first_token"))
    span.first_token_ms = round(wait * 1000) if wait is not None and 0 <= wait < 10**9 else span.first_token_ms


def _tokens(used: Record) -> tuple[int | None, ...] | None:
    """Usage by kind. Langfuse's own integrations keep the kinds apart, others count cached input in.

    Where the parts add up to the total they are apart, and reasoning is no part of the output.
    """
    fresh, output, read, write, reasoning, total = (_first_of(used, keys) for keys in _USAGE)
    parts = (fresh or 0) + (output or 0) + (read or 0) + (write or 0)
    if output is not None and reasoning and total is not None and total == parts + reasoning:
        return fresh, output + reasoning, read, write, reasoning
    return usage(fresh, output, read, write, reasoning, total)


def _first_of(used: Any, keys: tuple[str, ...]) -> int | None:
    values = used if type(used) is dict else {}
    return next((n for key in keys if (n := count(number_of(values.get(key)))) is not None), None)


def _cost(value: object) -> float | None:
    number = number_or_none(number_of(value))
    return number if number is not None and number >= 0 else None


def _score(item: Any) -> Score | None:
    value = _snake(item) if type(item) is dict else {}
    name = text_of(value.get("name"))
    if name is None:
        return None
    found: object = number_of(value.get("value"))
    kind = value.get("data_type")
    if kind == "BOOLEAN" and found in (0, 1):
        found = bool(found)
    elif kind == "CATEGORICAL":
        found = text_of(value.get("string_value"))
    return Score(name, found, value.get("source") != "EVAL")


def _ratings(marks: Iterable[Record]) -> tuple[Rating, ...]:
    """Marks of users: those that came through the interface, in the order in which they were given."""
    return given(
        rating(
            mark.get("name"), _mark(mark), mark.get("comment"), any_time(mark.get("timestamp", mark.get("created_at")))
        )
        for mark in marks
        if mark.get("source") not in ("EVAL", "ANNOTATION")
    )


def _mark(mark: Record) -> object:
    word, value = text_of(mark.get("string_value")), mark.get("value")
    if mark.get("data_type") == "BOOLEAN" and value in (0, 1):
        return bool(value)
    return value if word is None else word


def _is_observation(value: Record) -> bool:
    is_dated = "start_time" in value and ("trace_id" in value or "parent_observation_id" in value)
    return is_dated and type(value.get("type")) is str and value["type"].upper() in _TYPES


def _is_trace(value: Record) -> bool:
    if "trace_id" in value or "timestamp" not in value or "id" not in value:
        return False
    return not value.keys().isdisjoint({"project_id", "bookmarked", "html_path", "observations"}) and (
        "input" in value or "session_id" in value or "observations" in value
    )


def _is_score(value: Record) -> bool:
    return "data_type" in value and "trace_id" in value and "value" in value


def _recognise(record: Record) -> bool:
    inner = record.get("trace")
    if type(inner) is dict and ("observations" in record or "observations" in inner or _is_trace(_snake(inner))):
        return True
    value = _snake(record)
    return _is_observation(value) or _is_trace(value)


_LINES, _ITEMS, _WHOLE = json_readers(
    Reader(name=SOURCE, version="6", shape="lines", recognise=_recognise, parser=LangfuseParser)
)

#: Pages of the interface hold ``data``, a downloaded session ``traces``.
READERS = (_LINES, replace(_ITEMS, lists=frozenset({"data", "traces"})), _WHOLE)
