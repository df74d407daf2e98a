"""LangSmith runs: one run a record, whole or as the pair of begin and end that clients send.

``dotted_order`` gives the tree. The session is the thread that the metadata names, else the trace.
Feedback statistics state the outcome (``outcomes.py``) or are a user's mark (``ratings.py``), as their names tell.
"""

from __future__ import annotations

from typing import Any

from evalpipe.sources.readers.base import KEPT, NOT_A_RECORD, FileContext, Reader, Record, json_readers
from evalpipe.sources.readers.chat import read_messages
from evalpipe.sources.readers.outcomes import Score, state
from evalpipe.sources.readers.ratings import Rating, given, rating
from evalpipe.sources.readers.span_attributes import agent_name, result
from evalpipe.sources.readers.span_usage import tool_names, usage
from evalpipe.sources.readers.span_values import any_time, as_json, known, loads_text, number_of
from evalpipe.sources.readers.spans import Span, SpanParser
from evalpipe.sources.readers.values import content_id, text_of
from evalpipe.sources.session import count, number_or_none
from evalpipe.sources.spool import Spool
from evalpipe.sources.times import parse_time

SOURCE = "langsmith"

_KINDS = {"llm": "llm", "tool": "tool", "retriever": "retriever"}
_RUN_TYPES = frozenset({"chain", "llm", "tool", "retriever", "embedding", "prompt", "parser"})
_JSON = frozenset({"inputs", "outputs", "extra", "events", "feedback_stats"})
_USAGE = ("prompt", "completion", "total")
_THREAD = ("session_id", "thread_id", "conversation_id")
_RELEASE = ("revision_id", "LANGSMITH_LANGGRAPH_API_REVISION", "version")


class LangsmithParser(SpanParser):
    """Parser of one file of runs."""

    source = SOURCE

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        #: Records of runs by id, because the other half of a run may stand anywhere.
        self._runs = Spool(context.spool)

    def feed(self, record: Record) -> str:
        """Take one run, or one half of it."""
        if not _recognise(record):
            return NOT_A_RECORD
        self.n_records += 1
        run_id = text_of(record.get("id")) or content_id(record)
        self._runs.put(run_id, (self.n_records, record))
        return KEPT

    def spill(self) -> None:
        """Put the runs read so far on disk."""
        self._runs.spill()
        super().spill()

    def forget(self) -> None:
        """Let go of all runs."""
        super().forget()
        self._runs = Spool(None)

    def close(self) -> int:
        """Join the halves and sort the runs into sessions."""
        is_spilled = self._runs.is_spilled
        for runs, too_large in self._runs.groups():
            self.too_large += [run.key for run in too_large]
            for run_id in list(runs):
                self.add(_joined(run_id, runs.pop(run_id)))
            if is_spilled:
                super().spill()
        return super().close()


def _joined(run_id: str, halves: list[tuple[int, Record]]) -> Span:
    span = Span(run_id, "", "chain", place=halves[0][0])
    for number, record in halves:
        span.records.append(number)
        _merge(span, record)
    # An end without its beginning is in no known trace: it stands alone.
    span.trace_id = span.trace_id or span.span_id
    return span


def _merge(span: Span, record: Record) -> None:
    """Take over what this record of the run says; the end repeats only some of the beginning."""
    # Tables hold JSON as text.
    record = {key: loads_text(value) if key in _JSON else value for key, value in record.items()}
    get = record.get
    extra = get("extra")
    extra = extra if type(extra) is dict else {}
    metadata = extra.get("metadata")
    metadata = metadata if type(metadata) is dict else {}
    kind = get("run_type")
    if type(kind) is str:
        span.kind = _KINDS.get(kind, "chain")
    order = text_of(get("dotted_order"))
    path = [part.partition("Z")[2] for part in order.split(".")] if order else []
    span.trace_id = text_of(get("trace_id")) or (path[0] if path else "") or span.trace_id
    span.parent_id = text_of(get("parent_run_id")) or (path[-2] if len(path) > 1 else None) or span.parent_id
    span.name = text_of(get("name")) or span.name
    span.start = any_time(get("start_time")) or span.start
    span.end = any_time(get("end_time")) or span.end
    session = next((text for key in _THREAD if (text := text_of(metadata.get(key)))), None)
    span.session_id = session or span.session_id
    span.user_id = text_of(metadata.get("user_id")) or span.user_id
    span.facts = {**span.facts, **metadata}
    if span.parent_id is None:
        graph = text_of(metadata.get("graph_id")) or agent_name(span.name)
        span.service = graph or span.service
    release = next((text for key in _RELEASE if (text := text_of(metadata.get(key)))), None)
    span.release = release or span.release
    error = text_of(known(get("error")))
    if error is not None or get("status") == "error":
        span.is_error, span.error_text = True, error
    _content(span, record)
    if span.kind == "llm":
        _call(span, record, extra, metadata)
    if span.parent_id is None:
        state(span, _scores(get("feedback_stats")))
    # Of a run in two halves either may hold them.
    span.ratings = _ratings(get("feedback_stats"), span.end) or span.ratings


def _content(span: Span, record: Record) -> None:
    inputs, outputs = known(record.get("inputs")), known(record.get("outputs"))
    if span.kind in ("tool", "retriever"):
        if inputs is not None:
            given = inputs.get("input", inputs.get("query", inputs)) if type(inputs) is dict else inputs
            span.arguments = as_json(given)
        if outputs is not None:
            result(span, outputs.get("output", outputs) if type(outputs) is dict else outputs)
        return
    if inputs is not None:
        span.inputs = read_messages(inputs, "user") or span.inputs
    if outputs is not None:
        span.outputs = read_messages(outputs, "assistant") or span.outputs


def _call(span: Span, record: Record, extra: Record, metadata: Record) -> None:
    """Model, tokens, cost and tools of a model call."""
    asked = extra.get("invocation_params")
    asked = asked if type(asked) is dict else {}
    outputs = record.get("outputs")
    answered, used = _response(outputs) if type(outputs) is dict else (None, None)
    named = text_of(metadata.get("ls_model_name")) or text_of(asked.get("model")) or text_of(asked.get("model_name"))
    span.model = answered or span.model or named
    if used is None:
        fresh, written, total = (count(number_of(record.get(f"{kind}_tokens"))) for kind in _USAGE)
        # Runs without usage bear zeros.
        used = usage(fresh, written, None, None, None, total) if total else None
    span.tokens = used or span.tokens
    cost = number_or_none(number_of(record.get("total_cost")))
    span.cost_usd = cost if cost is not None and cost > 0 else span.cost_usd
    span.tools = tool_names(asked.get("tools")) or span.tools
    events = record.get("events")
    for event in events if type(events) is list else []:
        if type(event) is dict and event.get("name") == "new_token" and span.first_token_ms is None:
            span.first_token_ms = _wait(span.start, any_time(event.get("time")))


def _wait(start: str | None, at: str | None) -> int | None:
    from_, to = parse_time(start or ""), parse_time(at or "")
    return None if from_ is None or to is None or to < from_ else round((to - from_).total_seconds() * 1000)


def _response(outputs: Record) -> tuple[str | None, tuple[int | None, ...] | None]:
    """The model that answered and its usage, which lie with the message or with the whole response."""
    model = used = None
    places: list[Any] = [outputs, outputs.get("llm_output"), outputs.get("usage_metadata")]
    listed = outputs.get("generations")
    for item in listed if type(listed) is list else []:
        for one in item if type(item) is list else [item]:
            message = one.get("message") if type(one) is dict else None
            kwargs = message.get("kwargs", message) if type(message) is dict else {}
            places += [one, kwargs]
    places += [outputs.get("message"), outputs.get("output")]
    for place in places:
        if type(place) is not dict:
            continue
        for key in ("response_metadata", "generation_info"):
            inner = place.get(key)
            if type(inner) is dict:
                model = model or text_of(inner.get("model_name")) or text_of(inner.get("model"))
        model = model or text_of(place.get("model_name"))
        for key in ("usage_metadata", "token_usage", "usage"):
            inner = place.get(key)
            used = used or (_tokens(inner) if type(inner) is dict else None)
    return model, used


def _tokens(value: Record) -> tuple[int | None, ...] | None:
    read_in, read_out = value.get("input_token_details"), value.get("output_token_details")
    details = read_in if type(read_in) is dict else {}
    written = read_out if type(read_out) is dict else {}
    return usage(
        count(value.get("input_tokens", value.get("prompt_tokens"))),
        count(value.get("output_tokens", value.get("completion_tokens"))),
        count(details.get("cache_read")),
        count(details.get("cache_creation")),
        count(written.get("reasoning")),
        count(value.get("total_tokens")),
    )


def _scores(value: Any) -> list[Score]:
    """Feedback by name. Its statistics do not say who gave it; names of judges are left to the name's test."""
    scores = []
    for name, stats in (value if type(value) is dict else {}).items():
        if type(stats) is dict and type(name) is str:
            scores.append(Score(name, stats.get("avg"), True))
    return scores


def _ratings(value: Any, at: str | None) -> tuple[Rating, ...]:
    """Marks of users. The statistics do not say when one was given; it was after the end of the run."""
    found = []
    for name, stats in (value if type(value) is dict else {}).items():
        if type(stats) is not dict:
            continue
        words = stats.get("values")
        # Marks without a number are counted by word; of several there is no telling which came last.
        mark = (
            next(iter(words))
            if stats.get("avg") is None and type(words) is dict and len(words) == 1
            else stats.get("avg")
        )
        comments = stats.get("comments")
        comment = comments[-1] if type(comments) is list and comments else None
        found.append(rating(name, mark, comment, at))
    return given(found)


def _recognise(record: Record) -> bool:
    kind = record.get("run_type")
    if (
        type(kind) is str
        and kind in _RUN_TYPES
        and not record.keys().isdisjoint({"dotted_order", "trace_id", "inputs"})
    ):
        return "id" in record or "start_time" in record
    # The second half of a run: what came out, under the id of the first.
    return "outputs" in record and "end_time" in record and "error" in record and type(record.get("id")) is str


READERS = json_readers(Reader(name=SOURCE, version="5", shape="lines", recognise=_recognise, parser=LangsmithParser))
