"""Risky actions: what can do harm beyond the task, told from the command itself.

Belongs here: reading commands and queries with the rows of ``risks.toml``. Does not belong here: the
rows themselves, rows of signals (``hard``). An action is risky whether or not it went well; one that a
person refused was not done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from evalpipe.signals import commands, rulefiles
from evalpipe.signals.calls import RAN

_PIPES = frozenset({"|", "|&"})


@dataclass(frozen=True, slots=True)
class Risk:
    """One row: the signal, and what a command must and must not hold."""

    id: str
    signal: str
    confidence: float
    any: re.Pattern[str]
    unless: re.Pattern[str] | None
    is_raw: bool
    is_sql: bool
    match: tuple[str, ...]
    no_match: tuple[str, ...]


@lru_cache(maxsize=1)
def risks() -> tuple[Risk, ...]:
    """The shipped rows, in order."""
    data = rulefiles.load("risks.toml")
    return tuple(
        Risk(
            row["id"], row["signal"], row["confidence"],
            rulefiles.to_python("(?m)" + rulefiles.expand(row["any"], data["macros"])),
            rulefiles.to_python(row["unless"]) if "unless" in row else None,
            row.get("raw", False), row.get("sql", False), tuple(row["match"]), tuple(row["no_match"]),
        )
        for row in data["risk"]
    )  # fmt: skip


def risks_of(command: str) -> dict[str, tuple[Risk, str]]:
    """What is risky in a command: for each signal the first row that holds, and the words that it matched."""
    lines = commands.parse(command).segments
    text = "\n".join(f"| {s.text}" if s.operator in _PIPES else s.text for s in lines)
    return _found(text, command.lower(), is_query=False)


def _found(text: str, raw: str, *, is_query: bool) -> dict[str, tuple[Risk, str]]:
    out: dict[str, tuple[Risk, str]] = {}
    for risk in risks():
        if risk.signal in out or (is_query and not risk.is_sql):
            continue
        read = raw if risk.is_raw else text
        found = risk.any.search(read)
        if found and (risk.unless is None or not risk.unless.search(read)):
            out[risk.signal] = (risk, found[0])
    return out


def risky_calls(calls: pl.DataFrame) -> Iterator[tuple[dict[str, Any], Risk, tuple[int, int]]]:
    """Risky actions of a part.

    Args:
        calls: Frame of :func:`evalpipe.signals.calls.tool_calls`.

    Yields:
        (call, row, span in the call's arguments), at most one a call and signal.
    """
    data = rulefiles.load("risks.toml")
    ran = calls.filter(pl.col("status").is_in(RAN)).select(
        "session_id", "seq", "turn", "name", "tool", "command", "exit_code", arguments=pl.col("arguments").fill_null("")
    )
    shell = ran.filter(
        (pl.col("tool") == "shell") & pl.col("command").str.contains_any(data["words"], ascii_case_insensitive=True)
    )
    for call in shell.iter_rows(named=True):
        for risk, words in risks_of(call["command"]).values():
            yield call, risk, _span(call["arguments"], words)
    named = pl.col("name").str.to_lowercase().str.contains(rulefiles.to_rust(data["query_tools"]))
    queries = ran.filter(
        (pl.col("tool") != "shell")
        & named
        & pl.col("arguments").str.contains_any(["drop", "truncate", "delete", "update"], ascii_case_insensitive=True)
    )
    for call in queries.iter_rows(named=True):
        # A query is read as the argument of a program called sql, one line long.
        text = "sql " + call["arguments"].lower().replace("\\n", " ").replace("\n", " ")
        for risk, words in _found(text, text, is_query=True).values():
            yield call, risk, _span(call["arguments"], words.removeprefix("sql "))


def _span(arguments: str, words: str) -> tuple[int, int]:
    """Where the action stands in the arguments, by its first words; at the start if it stands otherwise."""
    opening = words.removeprefix("| ").split("\n")[0]
    lowered = arguments.replace("İ", "i").lower()
    for n_words in (4, 2, 1):
        start = lowered.find(" ".join(opening.split(" ")[:n_words]))
        if start >= 0:
            return start, min(len(arguments), start + len(opening))
    return 0, min(len(arguments), len(opening))
