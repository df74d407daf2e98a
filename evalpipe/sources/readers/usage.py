"""Token counts as the model interfaces state them, to the columns of a step.

Belongs here: the names that OpenAI's two interfaces, Anthropic's and Inspect use. Does not belong
here: which step a count belongs to, or totals of sessions.
"""

from __future__ import annotations

from evalpipe.sources.readers.base import Record
from evalpipe.sources.session import CACHE_READ, CACHE_WRITE, INPUT, OUTPUT_TOKENS, REASONING, Row, count

_READ = ("cache_read_input_tokens", "input_tokens_cache_read", "cached_tokens")
_WRITE = ("cache_creation_input_tokens", "input_tokens_cache_write")
_NONE: Record = {}


def put_usage(row: Row, usage: object) -> None:
    """Put the tokens of one response into its step; what is not stated stays null.

    OpenAI counts cached tokens as part of the input, Anthropic and Inspect beside it; the column
    holds what was not cached.
    """
    if type(usage) is not dict:
        return
    get = usage.get
    details = _part(get("prompt_tokens_details")) or _part(get("input_tokens_details"))
    inside = count(details.get("cached_tokens"))
    given = count(get("prompt_tokens"))
    total = count(get("input_tokens")) if given is None else given
    if inside is None and given is not None:
        inside = count(get("cached_tokens"))
    row[INPUT] = total if total is None or inside is None else max(0, total - inside)
    row[CACHE_READ] = inside if inside is not None else _first(usage, _READ)
    row[CACHE_WRITE] = _first(usage, _WRITE)
    output = count(get("completion_tokens"))
    row[OUTPUT_TOKENS] = count(get("output_tokens")) if output is None else output
    inner = _part(get("completion_tokens_details")) or _part(get("output_tokens_details"))
    reasoning = count(inner.get("reasoning_tokens"))
    row[REASONING] = count(get("reasoning_tokens")) if reasoning is None else reasoning


def _part(value: object) -> Record:
    return value if type(value) is dict else _NONE


def _first(usage: Record, names: tuple[str, ...]) -> int | None:
    return next((found for name in names if (found := count(usage.get(name))) is not None), None)
