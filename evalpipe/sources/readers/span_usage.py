"""Tokens and tools of a model call, in the one form of the steps' columns.

Belongs here: what formats of traces count differently. Does not belong here: under which names a
format keeps the counts.
"""

from __future__ import annotations

from typing import Any

from evalpipe.sources.readers.span_values import loads_text
from evalpipe.sources.readers.values import text_of


def usage(
    fresh: int | None, output: int | None, read: int | None, write: int | None, reasoning: int | None, total: int | None
) -> tuple[int | None, ...] | None:
    """Tokens in the order of the steps' columns, with cached tokens taken out of the input.

    The conventions count cached tokens in; older instrumentations of Anthropic do not. Where the log
    states a total it tells which it was, and so does an input that is smaller than its cached part.
    """
    if (fresh, output, read, write, reasoning) == (None,) * 5:
        return None
    cached = (read or 0) + (write or 0)
    if fresh is not None and cached:
        is_apart = fresh < cached or (total is not None and total >= fresh + (output or 0) + cached)
        fresh = fresh if is_apart else fresh - cached
    return fresh, output, read, write, reasoning


def tool_names(offered: Any) -> tuple[str, ...]:
    """Names of the tools in a list of definitions, in whatever shape they stand."""
    names = []
    for item in offered if type(offered) is list else ():
        value = loads_text(item)
        for key in ("tool", "json_schema", "function"):
            inner = loads_text(value.get(key)) if type(value) is dict else None
            value = inner if type(inner) is dict else value
        if type(value) is dict and (name := text_of(value.get("name"))) is not None:
            names.append(name)
    return tuple(names)
