"""Why something failed: the category of a failure, from its text, else from its exit code.

Belongs here: which part of a result speaks first, and the rows of ``causes_families.toml`` and
``causes.toml`` that are tried on it. Does not belong here: whether it failed at all (``errors``).

An uncaught exception names its cause on one line, and programs put theirs on lines of their own, while
what was printed before may show anything. So the exception is read first, then diagnostics and the last
lines, then all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from evalpipe.signals import rulefiles

UNKNOWN = "runtime_exception"
_LAST_LINES = 5


@dataclass(frozen=True, slots=True)
class Cause:
    """One row: a category and the text or the exit codes that tell it.

    Attributes:
        any, rust: Must match, for both engines; null and empty for rows of exit codes.
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
    rust: str
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
    families = rulefiles.load("causes_families.toml")
    macros = rulefiles.load("phrases.toml")["macros"] | families["macros"]

    def pattern(row: Mapping[str, Any], key: str) -> re.Pattern[str] | None:
        return rulefiles.to_python(rulefiles.expand(row[key], macros)) if key in row else None

    def made(row: Mapping[str, Any]) -> Cause:
        rust = rulefiles.to_rust(rulefiles.expand(row["any"], macros)) if "any" in row else ""
        return Cause(
            row["id"], row["category"], pattern(row, "any"), rust, pattern(row, "unless"), pattern(row, "program"),
            frozenset(row.get("codes", ())), row.get("exception", False), row.get("loose", False),
            row.get("first", False), tuple(row["examples"]),
        )  # fmt: skip

    rows = tuple(made(row) for row in (*families["cause"], *data["cause"]))
    lines = {name: rulefiles.to_python(text) for name, text in data["lines"].items()}
    return Causes(
        tuple(row for row in rows if row.any is not None and not row.is_loose),
        tuple(row for row in rows if row.any is None),
        tuple(row for row in rows if row.is_loose),
        **lines,
    )


@dataclass(frozen=True, slots=True)
class Failure:
    """What a failure's cause is told from.

    Attributes:
        texts: Lower-case texts in the order in which they are asked.
        code: Exit code.
        last: Program that the code speaks of.
    """

    texts: tuple[str, ...]
    code: int | None = None
    last: str = ""


def causes_of(failures: Sequence[Failure]) -> list[tuple[str, str | None]]:
    """The categories of many failures; patterns are tried on all of them at once.

    Args:
        failures: (n,) failures.

    Returns:
        (n,) pairs (category, the words that told it); null words where no text did.
    """
    if not failures:
        return []
    known = causes()
    parts = [[part for text in failure.texts for part in _parts(known, text)] for failure in failures]
    rows = (*known.texts, *known.loose)
    flat = pl.Series([part for own in parts for part, _ in own], dtype=pl.String)
    fired = flat.to_frame("part").select(
        pl.col("part").str.contains(row.rust).alias(str(i)) for i, row in enumerate(rows)
    ).rows()  # fmt: skip
    out = []
    at = 0
    for failure, own in zip(failures, parts, strict=True):
        out.append(_told(known, failure, own, fired[at : at + len(own)]))
        at += len(own)
    return out


def cause(text: str, code: int | None = None, last: str = "") -> tuple[str, str | None]:
    """:func:`causes_of` for one text."""
    return causes_of([Failure((text,), code, last)])[0]


def _told(
    known: Causes, failure: Failure, parts: list[tuple[str, bool]], fired: list[tuple[bool, ...]]
) -> tuple[str, str | None]:
    def exits(*, is_first: bool) -> str | None:
        for row in known.exits:
            is_it = failure.code in row.codes and row.is_first is is_first
            if is_it and (row.program is None or row.program.search(failure.last)):
                return row.category
        return None

    n_texts = len(known.texts)
    if category := exits(is_first=True):
        return category, None
    for (part, is_exception), hits in zip(parts, fired, strict=True):
        found = _first(known.texts, hits[:n_texts], part, failure.last, is_exception=is_exception)
        if found or is_exception:
            return found or (UNKNOWN, part)
    if category := exits(is_first=False):
        return category, None
    for (part, _), hits in zip(parts, fired, strict=True):
        if found := _first(known.loose, hits[n_texts:], part, failure.last, is_exception=False):
            return found
    return UNKNOWN, None


def _first(
    rows: tuple[Cause, ...], hits: tuple[bool, ...], part: str, last: str, *, is_exception: bool
) -> tuple[str, str] | None:
    for row, is_hit in zip(rows, hits, strict=True):
        if not is_hit or row.any is None or (row.is_exception and not is_exception):
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
