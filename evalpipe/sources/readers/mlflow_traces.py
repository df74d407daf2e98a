"""MLflow 3 traces: ``info`` and ``data.spans``, one trace a line or a document.

A record is a whole trace. Attributes of spans are JSON inside text. Session and user stand in
``trace_metadata``; assessments that code or a person made state the outcome (``outcomes.py``).
"""

from __future__ import annotations

from typing import Any

from evalpipe.sources.readers.base import BAD_FIELD, KEPT, NOT_A_RECORD, Reader, Record, json_readers, word_of
from evalpipe.sources.readers.chat import read_messages
from evalpipe.sources.readers.outcomes import Score, state
from evalpipe.sources.readers.ratings import Rating, given, rating
from evalpipe.sources.readers.span_attributes import agent_name, fill
from evalpipe.sources.readers.span_usage import tool_names, usage
from evalpipe.sources.readers.span_values import any_time, flatten, loads_text, unquoted
from evalpipe.sources.readers.spans import Span, SpanParser
from evalpipe.sources.readers.values import content_id, text_of
from evalpipe.sources.session import count

SOURCE = "mlflow"

_TOKENS = (
    "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "reasoning_tokens",
    "total_tokens",
)  # fmt: skip
_STATE_ERROR = ("ERROR", "STATUS_CODE_ERROR")
_STATE_OK = ("OK", "STATUS_CODE_OK")
_RELEASE = ("mlflow.modelId", "mlflow.source.git.commit")
_WHOLE = ("mlflow.spanInputs", "mlflow.spanOutputs")
_MODEL = ("mlflow.llm.model", "mlflow.chat.model", "gen_ai.response.model", "gen_ai.request.model", "llm.model_name")


class MlflowParser(SpanParser):
    """Parser of one file of traces."""

    source = SOURCE
    is_trace_a_part = True

    def feed(self, record: Record) -> str:
        """Take one trace."""
        info, data = _parts(record)
        if type(info) is not dict or type(data) is not dict:
            return NOT_A_RECORD
        spans = loads_text(data.get("spans"))
        if type(spans) is not list or any(type(span) is not dict for span in spans):
            return BAD_FIELD
        self.n_records += 1
        trace_id = text_of(info.get("trace_id")) or text_of(info.get("request_id")) or content_id(record)
        found = [_span(span, trace_id) for span in spans]
        if found:
            root = next((span for span in found if span.parent_id is None), found[0])
            _trace(root, info)
        for span in found:
            self.add(span)
        return KEPT


def _parts(record: Record) -> tuple[Any, Any]:
    """``info`` and ``data``, which the rows of a search hold side by side."""
    if "spans" in record and "trace_id" in record and ("trace_metadata" in record or "request_metadata" in record):
        return record, record
    return record.get("info"), record.get("data")


def _span(record: Record, trace_id: str) -> Span:
    get = record.get
    raw = get("attributes")
    inside = raw if type(raw) is dict else {}
    flat = flatten({key: loads_text(value) for key, value in inside.items() if key not in _WHOLE})
    status = get("status")
    code = status.get("code") if type(status) is dict else get("status_code")
    context = get("context")
    context = context if type(context) is dict else {}
    span = Span(
        text_of(get("span_id")) or text_of(context.get("span_id")) or content_id(record),
        trace_id,
        "chain",
        text_of(get("parent_span_id")) or text_of(get("parent_id")),
        text_of(get("name")),
        any_time(get("start_time_unix_nano", get("start_time"))),
        any_time(get("end_time_unix_nano", get("end_time"))),
        is_error=True if code in _STATE_ERROR else False if code in _STATE_OK else None,
    )
    # Inputs and outputs are read whole, not by their dotted names, and text stays as it was.
    whole = {key: unquoted(inside[key]) for key in _WHOLE if key in inside}
    fill(span, {**flat, **whole}, get("events"))
    if span.kind == "llm" or span.kind == "agent":
        used = loads_text(inside.get("mlflow.chat.tokenUsage"))
        if type(used) is dict:
            span.tokens = usage(*[count(used.get(key)) for key in _TOKENS])
        span.model = span.model or next((m for key in _MODEL if (m := text_of(flat.get(key)))), None)
        if span.model is None:
            given = loads_text(whole.get("mlflow.spanInputs"))
            span.model = text_of(given.get("model")) if type(given) is dict else None
        offered = loads_text(inside.get("mlflow.chat.tools"))
        span.tools = span.tools or tool_names(offered)
    if type(status) is dict:
        span.error_text = text_of(status.get("message")) or span.error_text
    return span


def _trace(root: Span, info: Record) -> None:
    """What the trace as a whole says, put into its root."""
    metadata, tags = (_texts(loads_text(info.get(key))) for key in ("trace_metadata", "tags"))
    metadata = metadata or _texts(info.get("request_metadata"))
    root.session_id = metadata.get("mlflow.trace.session") or root.session_id
    root.user_id = metadata.get("mlflow.trace.user") or root.user_id
    root.service = agent_name(text_of(tags.get("mlflow.traceName"))) or root.service or agent_name(root.name)
    root.release = next((metadata[key] for key in _RELEASE if metadata.get(key)), root.release)
    root.facts = {**root.facts, **metadata, **tags}
    if info.get("state", info.get("status")) in _STATE_ERROR:
        root.is_error = True
    if root.start is None:
        root.start = any_time(info.get("request_time", info.get("timestamp_ms")))
    if not root.inputs:
        root.inputs = read_messages(metadata.get("mlflow.traceInputs") or info.get("request"), "user")
    if not root.outputs:
        root.outputs = read_messages(metadata.get("mlflow.traceOutputs") or info.get("response"), "assistant")
    assessed = loads_text(info.get("assessments"))
    assessed = assessed if type(assessed) is list else []
    state(root, [score for item in assessed if (score := _score(item)) is not None])
    root.ratings = given(_rating(item) for item in assessed)


def _texts(value: Any) -> dict[str, Any]:
    """Metadata or tags: an object, or the older list of keys and values."""
    if type(value) is list:
        return {word_of(item.get("key")): item.get("value") for item in value if type(item) is dict}
    return {key: member for key, member in value.items() if type(member) is str} if type(value) is dict else {}


def _score(item: Any) -> Score | None:
    if type(item) is not dict or item.get("valid") is False:
        return None
    feedback, source = item.get("feedback"), item.get("source")
    name = item.get("assessment_name", item.get("name"))
    if type(feedback) is not dict or type(name) is not str:
        return None
    kind = source.get("source_type") if type(source) is dict else None
    return Score(name, feedback.get("value"), kind not in ("LLM_JUDGE", "AI_JUDGE"))


def _rating(item: Any) -> Rating | None:
    """A mark that a person gave through the program, not an assessment by code."""
    score, source = _score(item), item.get("source") if type(item) is dict else None
    if score is None or type(source) is not dict or source.get("source_type") != "HUMAN":
        return None
    return rating(
        score.name, score.value, item.get("rationale"), any_time(item.get("create_time", item.get("create_time_ms")))
    )


def _recognise(record: Record) -> bool:
    info, data = _parts(record)
    is_info = type(info) is dict and ("trace_id" in info or "request_id" in info)
    return is_info and (data is None or (type(data) is dict and (not data or "spans" in data)))


READERS = json_readers(Reader(name=SOURCE, version="6", shape="lines", recognise=_recognise, parser=MlflowParser))
