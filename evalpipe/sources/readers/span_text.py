"""Spans of a session as text, so that a part of it that comes later can be joined to them.

Belongs here: the form in which spans are kept beside the steps that were made of them. Does not belong
here: which sessions are parts of one whole (``store/traces.py``), or steps.

Steps cannot be joined: each call of a trace resends the conversation, so what a part says anew can be
told only beside the spans of the others. Messages stand once each, however many calls resend them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import orjson

from evalpipe.sources.readers.chat import Call, Message
from evalpipe.sources.readers.ratings import Rating
from evalpipe.sources.readers.span_steps import FACTS

if TYPE_CHECKING:
    from evalpipe.sources.readers.spans import Span

#: Fields that are told by place in a table of the text.
_SHARED = frozenset({"inputs", "outputs", "tools"})
#: Fields that a file knows, not the trace.
_OF_FILE = frozenset({"records", "place"})
#: Times agree to the second: exporters of one platform cut them at different digits.
_SECOND = len("2026-01-05T10:00:00")
_MAX_INT = 2**63


def to_text(spans: Sequence[Span]) -> str:
    """The spans as JSON text; :func:`from_text` reads it back."""
    messages: dict[Message, int] = {}
    offers: dict[tuple[str, ...], int] = {}
    rows = [
        [
            *[getattr(span, name) for name in _names(type(span))],
            [messages.setdefault(message, len(messages)) for message in span.inputs],
            [messages.setdefault(message, len(messages)) for message in span.outputs],
            offers.setdefault(span.tools, len(offers)),
            {key: value for key in FACTS if (value := span.facts.get(key)) is not None and _is_plain(value)},
            span.ratings,
        ]
        for span in spans
    ]
    return orjson.dumps([list(messages), list(offers), rows], default=list).decode()


def from_text(text: str, make: type[Span]) -> list[Span]:
    """The spans that :func:`to_text` wrote.

    Args:
        text: What it returned.
        make: The class of spans.
    """
    messages, offers, rows = orjson.loads(text)
    told = [_message(message) for message in messages]
    names = _names(make)
    found = []
    for *values, inputs, outputs, offer, facts, ratings in rows:
        span = make(**dict(zip(names, values, strict=True)))
        span.tokens = None if span.tokens is None else tuple(span.tokens)
        span.inputs, span.outputs = [told[n] for n in inputs], [told[n] for n in outputs]
        span.tools, span.facts = tuple(offers[offer]), facts
        span.ratings = tuple(Rating(*rating) for rating in ratings)
        found.append(span)
    return found


def marks(spans: Sequence[Span]) -> tuple[list[int], list[int | None], list[bool]]:
    """What tells of each span whether another copy has it too.

    Returns:
        By span: a digest of its ids, one of the second in which it began, and whether it has ended.
    """
    return (
        [_digest(f"{span.trace_id}\n{span.span_id}") for span in spans],
        [None if span.start is None else _digest(span.start[:_SECOND]) for span in spans],
        [span.end is not None for span in spans],
    )


def _names(make: type[Span]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(make) if f.name not in _SHARED | _OF_FILE | {"facts", "ratings"})


def _is_plain(value: object) -> bool:
    return type(value) is str or (type(value) is int and abs(value) < _MAX_INT)


def _message(value: list[Any]) -> Message:
    role, text, calls, call_id, name, is_error = value
    return Message(role, text, tuple(Call(*call) for call in calls), call_id, name, is_error)


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
