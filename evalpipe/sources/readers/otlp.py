"""OpenTelemetry's OTLP in JSON: lines of a collector's file exporter, or single documents.

A record is one export request: ``resourceSpans`` with the spans of many traces. The attributes are
those of ``span_attributes.py``. Requests of logs give the messages of spans that have none themselves;
others, and requests of metrics, are noise. Ids may be hex, as the protocol asks, or base64, as generic
protobuf printers write them; both stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    KEPT,
    NOISE,
    NOT_A_RECORD,
    FileContext,
    Reader,
    Record,
    json_readers,
    word_of,
)
from evalpipe.sources.readers.span_attributes import add_events, fill
from evalpipe.sources.readers.span_values import any_time, known, number_of
from evalpipe.sources.readers.spans import Span, SpanParser
from evalpipe.sources.readers.values import content_id, text_of

SOURCE = "otlp"

_SPANS = ("resourceSpans", "resource_spans")
_OTHERS = ("resourceLogs", "resourceMetrics", "resource_logs", "resource_metrics")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_ERROR, _OK = (2, "2", "STATUS_CODE_ERROR", "ERROR"), (1, "1", "STATUS_CODE_OK", "OK")
_MAX_DEPTH = 20


class OtlpParser(SpanParser):
    """Parser of one file of export requests."""

    source = SOURCE

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        #: Events that were logged beside their spans, with time and record.
        self._told: dict[tuple[str, str], list[tuple[str, int, Record]]] = {}

    def feed(self, record: Record) -> str:
        """Take one export request."""
        key = next((key for key in _SPANS if key in record), None)
        if key is None:
            return self._logs(record) if any(key in record for key in _OTHERS) else NOT_A_RECORD
        found = _spans(record[key])
        if found is None:
            return BAD_FIELD
        self.n_records += 1
        for span, resource in found:
            self.add(_span(span, resource))
        return KEPT

    def _logs(self, record: Record) -> str:
        """Some instrumentations log messages beside the spans, as events with the span's id."""
        found = list(_events(record))
        if not found:
            return NOISE
        self.n_records += 1
        for trace_id, span_id, at, event in found:
            self._told.setdefault((trace_id, span_id), []).append((at, self.n_records, event))
        return KEPT

    def beside(self) -> Iterator[tuple[str, Any]]:
        """Give away logged messages."""
        for (trace_id, span_id), told in self._told.items():
            yield trace_id, (span_id, told)
        self._told = {}

    def take_beside(self, trace_id: str, item: Any) -> None:
        """Take back the messages of one span."""
        span_id, told = item
        self._told.setdefault((trace_id, span_id), []).extend(told)

    def settle(self) -> None:
        """Give logged messages to spans that hold none."""
        for (trace_id, span_id), told in self._told.items():
            span = self.traces.get(trace_id, {}).get(span_id)
            if span is None or any(m.role != "system" for m in (*span.inputs, *span.outputs)):
                continue
            told.sort(key=lambda item: item[0])
            add_events(span, [event for _, _, event in told])
            span.records += [number for _, number, _ in told]
        self._told = {}


def _spans(value: Any) -> list[tuple[Record, Record]] | None:
    """All spans with the attributes of their resource; ``None`` where something else stands in their place."""
    out: list[tuple[Record, Record]] = []
    resources = _objects(value)
    for resource in resources or ():
        inside = resource.get("resource")
        attributes = attributes_of(inside.get("attributes")) if type(inside) is dict else {}
        scopes = _objects(next((resource[key] for key in _SCOPES if resource.get(key) is not None), []))
        for scope in scopes or ():
            spans = _objects(scope.get("spans", []))
            if spans is None:
                return None
            out += [(span, attributes) for span in spans]
        if scopes is None:
            return None
    return None if resources is None else out


def _events(record: Record) -> Iterator[tuple[str, str, str, Record]]:
    """Log records that are events of model calls: trace, span, time, and the event as spans hold it."""
    for resource in _objects(record.get("resourceLogs", record.get("resource_logs"))) or ():
        for scope in _objects(resource.get("scopeLogs", resource.get("scope_logs"))) or ():
            for log in _objects(scope.get("logRecords", scope.get("log_records"))) or ():
                attributes = attributes_of(log.get("attributes"))
                name = text_of(log.get("eventName")) or text_of(attributes.get("event.name"))
                trace_id, span_id = text_of(log.get("traceId")), text_of(log.get("spanId"))
                if name is None or not name.startswith("gen_ai.") or trace_id is None or span_id is None:
                    continue
                body = _plain(log.get("body"), 0)
                inside = {**attributes, **body} if type(body) is dict else attributes
                yield trace_id, span_id, any_time(log.get("timeUnixNano")) or "", {"name": name, "attributes": inside}


def _objects(value: Any) -> list[Record] | None:
    is_list = type(value) is list and all(type(item) is dict for item in value)
    return value if is_list else None


def attributes_of(value: Any) -> Record:
    """Attributes as a plain object: OTLP's list of keys and typed values, or an object as it is."""
    if type(value) is dict:
        return value
    flat: Record = {}
    for item in value if type(value) is list else ():
        key = item.get("key") if type(item) is dict else None
        if type(key) is str:
            flat[key] = _plain(item.get("value"), 0)
    return flat


def _plain(value: Any, depth: int) -> Any:
    if type(value) is not dict or depth > _MAX_DEPTH:
        return None if type(value) is dict else value
    for kind, inner in value.items():
        name = kind.replace("_v", "V")
        if name == "arrayValue":
            items = inner.get("values") if type(inner) is dict else None
            return [_plain(item, depth + 1) for item in items] if type(items) is list else []
        if name == "kvlistValue":
            pairs = inner.get("values") if type(inner) is dict else None
            listed = [pair for pair in pairs if type(pair) is dict] if type(pairs) is list else []
            return {word_of(pair.get("key")): _plain(pair.get("value"), depth + 1) for pair in listed}
        if name == "intValue":
            return number_of(inner)
        if name in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
            return inner
    return None


def _span(record: Record, resource: Record) -> Span:
    get = record.get
    status = get("status")
    code = status.get("code") if type(status) is dict else None
    span_id = text_of(get("spanId")) or text_of(get("span_id")) or content_id(record)
    span = Span(
        span_id,
        text_of(get("traceId")) or text_of(get("trace_id")) or span_id,
        "chain",
        known(text_of(get("parentSpanId")) or text_of(get("parent_span_id"))),
        text_of(get("name")),
        any_time(get("startTimeUnixNano", get("start_time_unix_nano"))),
        any_time(get("endTimeUnixNano", get("end_time_unix_nano"))),
        is_error=True if code in _ERROR else False if code in _OK else None,
    )
    events = get("events")
    plain = [
        {"name": event.get("name"), "attributes": attributes_of(event.get("attributes"))}
        for event in (events if type(events) is list else [])
        if type(event) is dict
    ]
    fill(span, {**resource, **attributes_of(get("attributes"))}, plain)
    message = text_of(status.get("message")) if type(status) is dict else None
    span.error_text = message or span.error_text
    return span


def _recognise(record: Record) -> bool:
    return any(key in record for key in (*_SPANS, *_OTHERS))


READERS = json_readers(Reader(name=SOURCE, version="4", shape="lines", recognise=_recognise, parser=OtlpParser))
