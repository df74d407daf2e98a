"""Signals of what users do by hand: marks, approvals, changing an edit, and undoing what the agent did.

Belongs here: feedback steps, commands of the harness and tools that put an older state back. Does not
belong here: refusals, interrupts and version control (``hard``), words (``semantic``): "revert that" is a
correction, and so is counted once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import polars as pl

from evalpipe.contracts.tables.raw import APPROVAL, FEEDBACK
from evalpipe.signals import hard_row, rulefiles
from evalpipe.signals.ids import digest

_MARKS = {1: "explicit_feedback.positive", -1: "explicit_feedback.negative"}
_ARGUMENT_CHARS = 200


def rows(steps: pl.DataFrame, calls: pl.DataFrame, chars: int) -> list[tuple[Any, ...]]:
    """Rows of signals.hard.

    Args:
        steps: Masked steps, in order.
        calls: Tool calls.
        chars: Longest snippet.
    """
    return [*_feedback(steps, chars), *_commands(steps, chars), *_tools(calls, chars), *_edited(calls, chars)]


def _feedback(steps: pl.DataFrame, chars: int) -> Iterator[tuple[Any, ...]]:
    """A mark counts each time it was given; one that says neither is no signal."""
    given = steps.filter(pl.col("origin") == FEEDBACK).select(
        "session_id", "seq", "turn", "name", "text", "arguments",
        mark=pl.col("arguments").str.json_path_match("$.rating").cast(pl.Int32, strict=False),
    )  # fmt: skip
    for session, seq, turn, name, text, arguments, mark in given.iter_rows():
        signal = ("call.approved" if mark == 1 else None) if name == APPROVAL else _MARKS.get(mark)
        if signal is None:
            continue
        evidence, field = (text, "text") if text else (arguments, "arguments")
        yield hard_row.make(
            signal, (session, seq, turn), f"action.{name}", evidence, (0, min(len(evidence), chars)), chars,
            confidence=0.98, field=field,
        )  # fmt: skip


@lru_cache(maxsize=1)
def _rules() -> dict[str, tuple[tuple[dict[str, Any], re.Pattern[str]], ...]]:
    data = rulefiles.load("undo.toml")
    return {k: tuple((row, rulefiles.to_python(row["any"])) for row in data[k]) for k in ("command", "tool")}


def _commands(steps: pl.DataFrame, chars: int) -> Iterator[tuple[Any, ...]]:
    typed = steps.filter((pl.col("origin") == "command") & pl.col("text").is_not_null())
    for row, pattern in _rules()["command"]:
        mine = typed.filter(pl.col("text").str.to_lowercase().str.contains(rulefiles.to_rust(row["any"]))).select(
            "session_id", "seq", "turn", "text"
        )
        for session, seq, turn, text in mine.iter_rows():
            found = pattern.search(text.lower())
            span = found.span() if found else (0, min(len(text), chars))
            yield hard_row.make(
                "rollback", (session, seq, turn), row["id"], text, span, chars,
                confidence=row["confidence"], field="text",
            )  # fmt: skip


def _tools(calls: pl.DataFrame, chars: int) -> Iterator[tuple[Any, ...]]:
    ran = calls.filter(pl.col("status") == "ok").select(
        "session_id", "seq", "turn", "name", arguments=pl.col("arguments").fill_null("").str.head(_ARGUMENT_CHARS)
    )
    # Few tools are of that kind, and most calls share a name.
    for row, pattern in _rules()["tool"]:
        words = pl.concat_str("name", "arguments", separator=" ").str.to_lowercase()
        for session, seq, turn, name, arguments in ran.filter(
            words.str.contains(rulefiles.to_rust(row["any"]))
        ).iter_rows():
            if pattern.search(f"{name} {arguments}".lower()):
                yield hard_row.make(
                    "rollback", (session, seq, turn), row["id"], arguments, (0, min(len(arguments), chars)), chars,
                    confidence=row["confidence"], tool=name, target_key=digest(name, arguments), field="arguments",
                )  # fmt: skip


@lru_cache(maxsize=1)
def _edited_rules() -> tuple[tuple[dict[str, Any], re.Pattern[str]], ...]:
    return tuple((row, rulefiles.to_python(row["any"])) for row in rulefiles.load("edited.toml")["result"])


def _edited(calls: pl.DataFrame, chars: int) -> Iterator[tuple[Any, ...]]:
    """Edits that were written otherwise than the agent proposed, once a call whatever number of rules says so."""
    edits = calls.filter((pl.col("tool") == "edit") & (pl.col("status") == "ok") & pl.col("output").is_not_null())
    # One look in Rust over all of them: next to no edit is of that kind.
    said = pl.any_horizontal(pl.col("output").str.contains(rulefiles.to_rust(row["any"])) for row, _ in _edited_rules())
    for session, seq, turn, name, target, output in (
        edits.filter(said).select("session_id", "seq", "turn", "name", "target_key", "output").iter_rows()
    ):
        found = next(((row, m.span()) for row, p in _edited_rules() if (m := p.search(output))), None)
        if found is not None:
            row, span = found
            yield hard_row.make(
                "edit.changed", (session, seq, turn), row["id"], output, span, chars,
                confidence=row["confidence"], tool=name, target_key=target, field="output",
            )  # fmt: skip
