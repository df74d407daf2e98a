"""Spans exported by Phoenix and other OpenInference tools, one record a span.

Three layouts: rows of a data frame (``context.span_id``, ``attributes.llm.model_name``, ... as JSON
lines or Parquet), span objects (``context``, ``attributes``) of Phoenix's interface, and what
OpenTelemetry's console exporter prints. Nested values may be Python's repr, and "None" may be text.
The attributes are those of ``span_attributes.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalpipe.sources.readers.base import BAD_FIELD, KEPT, NOT_A_RECORD, Reader, Record, json_readers, word_of
from evalpipe.sources.readers.span_attributes import fill
from evalpipe.sources.readers.span_values import any_time, flatten, known, loads_text
from evalpipe.sources.readers.spans import Span, SpanParser
from evalpipe.sources.readers.values import content_id, text_of

SOURCE = "phoenix"

_COLUMN = "attributes."
_KINDS = frozenset({
    "llm", "agent", "tool", "chain", "retriever", "reranker", "embedding", "guardrail", "evaluator", "prompt",
})  # fmt: skip


class PhoenixParser(SpanParser):
    """Parser of one file of spans."""

    source = SOURCE

    def feed(self, record: Record) -> str:
        """Take one span."""
        if not _recognise(record):
            return NOT_A_RECORD
        context = loads_text(record.get("context"))
        context = context if type(context) is dict else {}
        name = record.get("name")
        if name is not None and type(name) is not str:
            return BAD_FIELD
        self.n_records += 1
        span_id = _id(record, context, "span_id") or content_id(record)
        status = record.get("status")
        status = status if type(status) is dict else {}
        code = word_of(known(record.get("status_code")) or status.get("status_code") or "").upper()
        span = Span(
            span_id,
            _id(record, context, "trace_id") or span_id,
            "chain",
            _plain_id(record.get("parent_id")),
            name,
            any_time(record.get("start_time")),
            any_time(record.get("end_time")),
            is_error=True if code.endswith("ERROR") else False if code == "OK" or code.endswith(".OK") else None,
        )
        fill(span, _attributes(record), loads_text(record.get("events")))
        message = text_of(known(record.get("status_message"))) or text_of(status.get("description"))
        span.error_text = message or span.error_text
        self.add(span)
        return KEPT


def _id(record: Record, context: Record, name: str) -> str | None:
    return _plain_id(context.get(name)) or _plain_id(record.get(f"context.{name}"))


def _plain_id(value: Any) -> str | None:
    """An id as text; OpenTelemetry's console exporter writes it with ``0x``."""
    text = text_of(known(value))
    return None if text is None else text.removeprefix("0x") or None


def _attributes(record: Record) -> Record:
    """Attributes by dotted name, from one object or from one column each."""
    flat: Record = {}
    resource = record.get("resource")
    of_resource = resource.get("attributes") if type(resource) is dict else None
    for source in (of_resource, loads_text(record.get("attributes"))):
        if type(source) is dict:
            flat.update(flatten(source))
    for column, value in record.items():
        if column.startswith(_COLUMN) and known(value) is not None:
            flat[column.removeprefix(_COLUMN)] = value
            if type(value) is dict:
                flat.update(flatten(value, f"{column.removeprefix(_COLUMN)}."))
    kind = record.get("span_kind")
    if "openinference.span.kind" not in flat and type(kind) is str and kind.lower() in _KINDS:
        flat["openinference.span.kind"] = kind
    return flat


def _recognise(record: Record) -> bool:
    if "context.span_id" in record and "context.trace_id" in record:
        return True
    context = record.get("context")
    return type(context) is dict and "trace_id" in context and "span_id" in context and "parent_id" in record


_LINES, _ITEMS, _WHOLE = json_readers(
    Reader(name=SOURCE, version="4", shape="lines", recognise=_recognise, parser=PhoenixParser)
)

#: Phoenix's interface wraps a page of spans into ``data``.
READERS = (_LINES, replace(_ITEMS, lists=frozenset({"data", "spans"})), _WHOLE)
