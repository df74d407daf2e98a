"""Values of a log in the types that the tables hold, whatever type the log has.

Belongs here: conversions that several formats of agents' logs need. Does not belong here: knowing
what a field means.
"""

from __future__ import annotations

import hashlib
from typing import Any

from evalpipe.sources.readers.base import Record, json_text
from evalpipe.sources.session import (
    ARGUMENTS,
    CACHE_READ,
    CACHE_WRITE,
    INPUT,
    KIND,
    NAME,
    OUTPUT,
    OUTPUT_TOKENS,
    REASONING,
    STEP_ID,
    TEXT,
    Row,
    Session,
    count,
    number_or_none,
)


def object_of(value: object) -> Record:
    """The value if it is an object, else an empty one."""
    return value if type(value) is dict else {}


def objects_of(value: object) -> list[Record]:
    """The objects in a list; empty if it is not a list."""
    return [item for item in value if type(item) is dict] if type(value) is list else []


def text_of(value: object) -> str | None:
    """The value if it is text that is not empty."""
    return value if type(value) is str and value else None


def id_of(value: object) -> str | None:
    """An id that is text or a whole number, as text."""
    if type(value) is int:
        return str(value)
    return text_of(value)


def flag_of(value: object) -> bool | None:
    """The value if it is a truth value."""
    return value if type(value) is bool else None


def cost_of(value: object) -> float | None:
    """A cost in US dollars, or ``None`` where it is no number from 0."""
    number = number_or_none(value)
    return number if number is not None and number >= 0 else None


def add_cost(session: Session, value: object, row: Row) -> None:
    """Add the cost of one response to the session's.

    Args:
        session: The session.
        value: The cost as logged.
        row: The step of the response, with its tokens.
    """
    cost = cost_of(value)
    if lacks_cost(row, cost):
        session.lacks_cost = True
    elif cost is not None:
        session.cost_usd = cost + (session.cost_usd or 0.0)


def lacks_cost(row: Row, cost: float | None) -> bool:
    """Whether a response used tokens for which the log has no cost; a sum of the others is too low."""
    return not cost and bool(row[INPUT] or row[OUTPUT_TOKENS])


def forget_zero_cost(session: Session) -> None:
    """Make a cost unknown that some response lacks, or that is zero beside tokens: the log had no price for them."""
    if session.lacks_cost:
        session.cost_usd = None
    if session.cost_usd == 0 and (session.stated_tokens or any(row[OUTPUT_TOKENS] for row in session.rows)):
        session.cost_usd = None


def uncached(prompt: object, *cached: object) -> int | None:
    """Input tokens that came from no cache, where the log counts all input together."""
    total = count(prompt)
    return None if total is None else max(0, total - sum(count(part) or 0 for part in cached))


def add_counts(row: Row, counts: tuple[int | None, ...]) -> None:
    """Add input, output, cache read, cache write and reasoning tokens to a step's."""
    for slot, value in zip((INPUT, OUTPUT_TOKENS, CACHE_READ, CACHE_WRITE, REASONING), counts, strict=True):
        if value is not None:
            row[slot] = value + (row[slot] or 0)


def openai_counts(usage: Record) -> tuple[int | None, ...]:
    """The five token counts of a usage object in the words of OpenAI's interface.

    There ``prompt_tokens`` holds the cached ones too, and ``completion_tokens`` the reasoning.
    """
    details = object_of(usage.get("prompt_tokens_details"))
    cached = count(details.get("cached_tokens"))
    if cached is None:
        cached = count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    reasoning = count(object_of(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    prompt = uncached(usage.get("prompt_tokens"), cached, written)
    return prompt, count(usage.get("completion_tokens")), cached, written, reasoning


def content_id(*values: Any) -> str:
    """A short digest of JSON values, for records that have no id of their own."""
    digest = hashlib.blake2b(digest_size=8)
    for value in values:
        digest.update((json_text(value) or "null").encode("utf-8", "replace") + b"\x1e")
    return digest.hexdigest()


def id_of_rows(rows: list[Row]) -> str:
    """A short digest of what was said and done, for sessions that have no id of their own.

    Of named slots only: an id must not move when a step gets another column.
    """
    return content_id([[row[slot] for slot in (STEP_ID, KIND, NAME, TEXT, ARGUMENTS, OUTPUT)] for row in rows])


def text_digest(text: str) -> str:
    """Version of a text that is the same in all sessions of a run, such as a system prompt."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()
