"""Why something failed: the category of a failure, from its text, else from its exit code.

Belongs here: which part of a result speaks first, and the rows of ``causes.toml`` that are tried on
it. Does not belong here: whether it failed at all (``errors``).

An uncaught exception names its cause on one line, and programs put theirs on lines of their own, while
what was printed before may show anything. So the exception is read first, then diagnostics and the last
lines, then all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evalpipe.signals import rulefiles

UNKNOWN = "runtime_exception"
_LAST_LINES = 5


@dataclass(frozen=True, slots=True)
class Cause:
    """One row: a category and the text or the exit codes that tell it.

    Attributes:
        any: Must match; null for rows of exit codes.
        unless: Must not match.
        program: The last program must match; null for any.
        codes: Exit codes; empty for rows of text.
        is_exception: Only of an uncaught exception's line.
    """

    id: str
    category: str
    any: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    program: re.Pattern[str] | None
    codes: frozenset[int]
    is_exception: bool
    examples: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Causes:
    """All rows, and what finds the lines that speak."""

    texts: tuple[Cause, ...]
    exits: tuple[Cause, ...]
    traceback: re.Pattern[str]
    exception: re.Pattern[str]
    diagnostic: re.Pattern[str]


@lru_cache(maxsize=1)
def causes() -> Causes:
    """The shipped rows."""
    data = rulefiles.load("causes.toml")
    macros = rulefiles.load("phrases.toml")["macros"]

    def pattern(row: Mapping[str, Any], key: str) -> re.Pattern[str] | None:
        return rulefiles.to_python(rulefiles.expand(row[key], macros)) if key in row else None

    rows = tuple(
        Cause(
            row["id"], row["category"], pattern(row, "any"), pattern(row, "unless"), pattern(row, "program"),
            frozenset(row.get("codes", ())), row.get("exception", False), tuple(row["examples"]),
        )
        for row in data["cause"]
    )  # fmt: skip
    lines = data["lines"]
    return Causes(
        tuple(row for row in rows if row.any is not None),
        tuple(row for row in rows if row.any is None),
        rulefiles.to_python(lines["traceback"]),
        rulefiles.to_python(lines["exception"]),
        rulefiles.to_python(lines["diagnostic"]),
    )


def cause(text: str, code: int | None = None, last: str = "") -> tuple[str, str | None]:
    """The category of a failure.

    Args:
        text: Lower-case text of the result.
        code: Exit code.
        last: Program that the code speaks of.

    Returns:
        (category, the words that told it); null words where no text did.
    """
    known = causes()
    for part, is_exception in _parts(known, text):
        for row in known.texts:
            if row.is_exception and not is_exception:
                continue
            if row.program is not None and not row.program.search(last):
                continue
            found = row.any.search(part) if row.any is not None else None
            if found and (row.unless is None or not row.unless.search(part)):
                return row.category, found[0]
        if is_exception:
            return UNKNOWN, part
    for row in known.exits:
        if code in row.codes and (row.program is None or row.program.search(last)):
            return row.category, None
    return UNKNOWN, None


def _parts(known: Causes, text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a result that speak, in order, and whether one is an uncaught exception."""
    traces = list(known.traceback.finditer(text))
    if traces:
        # Of a chain of exceptions the last one ended the program. It may be cut off.
        raised = known.exception.search(text, traces[-1].end())
        if raised:
            yield raised[0].strip(), True
    lines = [line for line in text.splitlines() if line.strip()]
    told = [line for line in lines[:-_LAST_LINES] if known.diagnostic.search(line)]
    yield "\n".join([*told, *lines[-_LAST_LINES:]]), False
    yield text, False
