"""Scenario of a session: declared, else told from what was there before the agent acted.

Belongs here: applying the rules of ``scenario.toml``. Only pre-treatment evidence is read (the first
message of a person, tools offered, working folder): which tools were *used* is a consequence of the
version and would bias a stratum.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import polars as pl

from evalpipe.signals import rulefiles
from evalpipe.signals.text import fold, fold_column


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    return rulefiles.load("scenario.toml")


def scenarios(sessions: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Scenario of every session.

    Args:
        sessions: masked.sessions.
        turns: Turns of persons, in order.

    Returns:
        ``session_id, scenario, scenario_method`` in the order of the sessions.
    """
    data = _data()
    evidence = openings(sessions, turns)
    ruled = _ruled()
    declared = pl.col("scenario_declared")
    method = pl.when(declared.is_not_null()).then(pl.lit("declared")).when(ruled.is_not_null()).then(pl.lit("rule"))
    return evidence.select(
        "session_id",
        scenario=pl.coalesce(declared, ruled, pl.lit(data["default"])),
        scenario_method=method.otherwise(pl.lit("default")),
    )


@lru_cache(maxsize=1)
def _ruled() -> pl.Expr:
    # Made once: on a small part, to write hundreds of patterns anew takes longer than to look for them.
    return pl.coalesce([pl.when(_holds(rule)).then(pl.lit(rule["scenario"])) for rule in _data()["rule"]])


def openings(sessions: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """What was there before the agent acted, in the order of the sessions.

    Args:
        sessions: masked.sessions.
        turns: Turns of persons, in order.

    Returns:
        ``session_id, scenario_declared, workspace, tools, text``: tools offered one a line in lower
        case, the beginning of the first message folded; both empty where there are none.
    """
    first = turns.filter(pl.col("prev_turn_seq").is_null()).select("session_id", "text")
    evidence = sessions.select("session_id", "scenario_declared", "workspace", "tools").join(
        first, on="session_id", how="left", maintain_order="left"
    )
    return evidence.with_columns(
        text=fold_column(pl.col("text").fill_null("").str.head(_data()["text_chars"])),
        tools=pl.col("tools").list.join("\n").fill_null("").str.to_lowercase(),
    )


def any_holds(column: str, patterns: Iterable[str]) -> pl.Expr:
    """Whether any pattern of the dialect is found in a column of :func:`openings`.

    Letters of a pattern that are not ASCII are folded as those of the text are; ``^`` and ``$`` are the
    ends of a message, and of each tool's name.
    """
    mode = "(?m)" if column == "tools" else ""
    # One by one: as one alternation, many scripts make an automaton that is rebuilt all the time (6 times slower).
    return pl.any_horizontal([pl.col(column).str.contains(mode + _folded(pattern)) for pattern in patterns])


def _holds(rule: dict[str, Any]) -> pl.Expr:
    tests = []
    for key, column in (("text", "text"), ("unless", "text"), ("tools", "tools"), ("unless_tools", "tools")):
        if key in rule:
            patterns = [rule[key]] if isinstance(rule[key], str) else rule[key]
            found = any_holds(column, [rulefiles.expand(pattern, _data()["macros"]) for pattern in patterns])
            tests.append(~found if key.startswith("unless") else found)
    if "workspace" in rule:
        tests.append(pl.col("workspace").is_not_null() == rule["workspace"])
    return pl.all_horizontal(tests)


def _folded(pattern: str) -> str:
    # Only letters that are not ASCII: lower case would turn \W into \w.
    return rulefiles.to_rust("".join(char if char.isascii() else fold(char) for char in pattern))
