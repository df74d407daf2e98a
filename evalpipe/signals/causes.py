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
        is_first: An exit code that says more than any text.
        is_loose: Words that many texts hold: asked when neither text nor exit code told.
    """

    id: str
    category: str
    any: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    program: re.Pattern[str] | None
    codes: frozenset[int]
    is_exception: bool
    is_loose: bool
    is_first: bool
    examples: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Causes:
    """All rows, and what finds the lines that speak."""

    texts: tuple[Cause, ...]
    exits: tuple[Cause, ...]
    loose: tuple[Cause, ...]
    traceback: re.Pattern[str]
    exception: re.Pattern[str]
    stack: re.Pattern[str]
    raised: re.Pattern[str]
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
            frozenset(row.get("codes", ())), row.get("exception", False), row.get("loose", False),
            row.get("first", False), tuple(row["examples"]),
        )
        for row in data["cause"]
    )  # fmt: skip
    lines = {name: rulefiles.to_python(text) for name, text in data["lines"].items()}
    return Causes(
        tuple(row for row in rows if row.any is not None and not row.is_loose),
        tuple(row for row in rows if row.any is None),
        tuple(row for row in rows if row.is_loose),
        **lines,
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
    for row in known.exits:
        if row.is_first and _is_exit(row, code, last):
            return row.category, None
    parts = list(_parts(known, text))
    for part, is_exception in parts:
        found = _first(known.texts, part, last, is_exception=is_exception)
        if found or is_exception:
            return found or (UNKNOWN, part)
    for row in known.exits:
        if _is_exit(row, code, last):
            return row.category, None
    for part, _ in parts:
        if found := _first(known.loose, part, last, is_exception=False):
            return found
    return UNKNOWN, None


def _is_exit(row: Cause, code: int | None, last: str) -> bool:
    return code in row.codes and (row.program is None or row.program.search(last) is not None)


def _first(rows: tuple[Cause, ...], part: str, last: str, *, is_exception: bool) -> tuple[str, str] | None:
    for row in rows:
        if row.any is None or (row.is_exception and not is_exception):
            continue
        if row.program is not None and not row.program.search(last):
            continue
        found = row.any.search(part)
        if found and (row.unless is None or not row.unless.search(part)):
            return row.category, found[0]
    return None


def _parts(known: Causes, text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a result that speak, in order, and whether one is an uncaught exception."""
    raised = _raised(known, text)
    if raised:
        yield raised, True
    lines = [line for line in text.splitlines() if line.strip()]
    told = [line for line in lines[:-_LAST_LINES] if known.diagnostic.search(line)]
    speaking = [*told, *lines[-_LAST_LINES:]]
    yield "\n".join(speaking), False
    if len(speaking) < len(lines):
        yield text, False


def _raised(known: Causes, text: str) -> str:
    """The line of the exception that ended the program; empty if there is none, or it was cut off."""
    traces = list(known.traceback.finditer(text))
    if traces:
        # Of a chain of exceptions the last one ended the program.
        found = known.exception.search(text, traces[-1].end())
        return found[0].strip() if found else ""
    if known.stack.search(text):
        # Here the first exception ended it, unless it says what caused it.
        lines = [found[0].strip() for found in known.raised.finditer(text)]
        caused = [line for line in lines if line.startswith("caused by: ")]
        return (caused or lines[:1] or [""])[-1]
    return ""
