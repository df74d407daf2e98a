"""Semantic signals: pattern hits of a part, as located rows.

Belongs here: which turns are read, one row a turn and signal, spans and snippets. Does not belong
here: wording (``data/patterns``), matching (``patterns``), repeated requests and tasks (``roles``).

A turn is read when an agent acted on an earlier one: what opens a session cannot be feedback. Of several
patterns of one signal in a turn the most precise one makes the row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from evalpipe.contracts.render import polars_schema
from evalpipe.contracts.signals import BY_NAME
from evalpipe.contracts.tables.signals import SEMANTIC
from evalpipe.criteria.model import ExtractionCriteria
from evalpipe.signals import patterns
from evalpipe.signals.ids import digest, window
from evalpipe.signals.patterns import Pattern
from evalpipe.signals.text import fold, prose_positions

EXTRACTOR = "patterns"
VERSION = "1"
NEGATIVE = ("complaint.sentiment", "complaint.failure_report", "correction", "rework.repeat")
POSITIVE = ("confirm.explicit", "praise")
_TARGETED = frozenset({"correction", "complaint.failure_report"})
_TARGET = re.compile(r"`([^`\n]{1,80})`|(?<![\w/.-])([\w./-]{1,80}\.[A-Za-z][A-Za-z0-9]{0,4})(?!\w)")


@dataclass(frozen=True, slots=True)
class Turn:
    """What a row says of its turn."""

    session_id: str
    seq: int
    turn: int
    text: str
    lang: str
    prev_turn_seq: int | None


def semantic_rows(turns: pl.DataFrame, extraction: ExtractionCriteria) -> pl.DataFrame:
    """Pattern rows of a part, emitted and candidates together, ``task_id`` null.

    Args:
        turns: Frame of :func:`evalpipe.signals.turns.human_turns`.
        extraction: Languages and length of snippets.

    Returns:
        Frame of the columns of signals.semantic, unsorted.
    """
    read = turns.filter("has_agent")
    hits = patterns.find(read, extraction.languages)
    rows = []
    for turn, pattern, span in _located(hits, read):
        target = _target(turn.text) if pattern.signal in _TARGETED else None
        rows.append(
            make_row(
                turn, pattern.signal, pattern.id, pattern.confidence, span, extraction.snippet_chars, EXTRACTOR, target
            )
        )
    return pl.DataFrame(rows, schema=polars_schema(SEMANTIC), orient="row")


def make_row(
    turn: Turn,
    signal: str,
    rule: str,
    confidence: float,
    span: tuple[int, int],
    chars: int,
    extractor: str,
    target: str | None = None,
) -> tuple[Any, ...]:
    """One row of signals.semantic in the order of its contract; ``span`` lies in the masked text."""
    start, end = window(turn.text, *span, chars)
    known = BY_NAME[signal]
    name = digest(turn.session_id, turn.seq, signal, rule, VERSION)
    return (
        name, turn.session_id, None, turn.turn, turn.seq, signal, known.polarity, known.strength, confidence, turn.lang,
        "rule", rule, turn.prev_turn_seq, target, turn.text[start:end], start, end, extractor, VERSION, None, None,
        None, None, None,
    )  # fmt: skip


def opening(text: str, chars: int) -> tuple[int, int]:
    """Span of the first ``chars`` characters that are not white space."""
    start = len(text) - len(text.lstrip())
    return start, min(len(text.rstrip()), start + chars) if text.strip() else start


def _located(hits: pl.DataFrame, turns: pl.DataFrame) -> Iterator[tuple[Turn, Pattern, tuple[int, int]]]:
    known = patterns.load_patterns()
    about = pl.DataFrame(
        [(i, p.signal, p.confidence, p.id) for i, p in enumerate(known)],
        schema={"pattern": pl.Int32, "signal": pl.String, "confidence": pl.Float64, "id": pl.String},
        orient="row",
    )
    by_precision = hits.join(about, on="pattern", how="left").sort(
        "row", "signal", "confidence", "id", descending=[False, False, True, False]
    )
    joined = by_precision.select("row", "pattern").join(
        turns.select("row", "session_id", "seq", "turn", "text", "lang", "prev_turn_seq", "prose", "is_plain"),
        on="row", how="left", maintain_order="left",
    )  # fmt: skip
    done: tuple[int, str] | None = None
    for row, index, *about_turn, prose, is_plain in joined.iter_rows():
        pattern = known[index]
        if done == (row, pattern.signal):
            continue
        turn = Turn(*about_turn)
        span = _span(pattern, turn.text, prose, is_plain=is_plain)
        if span is not None:
            done = (row, pattern.signal)
            yield turn, pattern, span


def _span(pattern: Pattern, text: str, prose: str, *, is_plain: bool) -> tuple[int, int] | None:
    """Where the pattern fires in the masked text. Both engines must see it: Polars finds, Python places."""
    span = patterns.locate(pattern, prose)
    if span is None or is_plain:
        return span
    own, positions = prose_positions(text)
    if own != prose and (span := patterns.locate(pattern, own)) is None:
        return None
    return positions[span[0]], positions[span[1]]


def _target(text: str) -> str | None:
    """Token of the file or identifier that a turn names first: equal names, equal tokens, no text."""
    found = _TARGET.search(text[:2000])
    return "t:" + digest(fold(found[1] or found[2]).strip()) if found else None
