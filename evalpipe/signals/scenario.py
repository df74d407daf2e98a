"""Scenario of a session: declared, else told from what was there before the agent acted.

Belongs here: applying the rules of ``scenario.toml``. Only pre-treatment evidence is read (the first
message of a person, tools offered, working folder): which tools were *used* is a consequence of the
version and would bias a stratum.
"""

from __future__ import annotations

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
    first = turns.filter(pl.col("prev_turn_seq").is_null()).select("session_id", "text")
    evidence = sessions.select("session_id", "scenario_declared", "workspace", "tools").join(
        first, on="session_id", how="left", maintain_order="left"
    )
    evidence = evidence.with_columns(
        text=fold_column(pl.col("text").fill_null("").str.head(data["text_chars"])),
        tools=pl.col("tools").list.join("\n").fill_null("").str.to_lowercase(),
    )
    ruled = pl.coalesce([pl.when(_holds(rule)).then(pl.lit(rule["scenario"])) for rule in data["rule"]])
    declared = pl.col("scenario_declared")
    method = pl.when(declared.is_not_null()).then(pl.lit("declared")).when(ruled.is_not_null()).then(pl.lit("rule"))
    return evidence.select(
        "session_id",
        scenario=pl.coalesce(declared, ruled, pl.lit(data["default"])),
        scenario_method=method.otherwise(pl.lit("default")),
    )


def _holds(rule: dict[str, Any]) -> pl.Expr:
    tests = []
    if "text" in rule:
        tests.append(_any(rule["text"]))
    if "unless" in rule:
        tests.append(~_any(rule["unless"]))
    if "tools" in rule:
        tests.append(pl.col("tools").str.contains("(?m)" + _pattern(rule["tools"])))
    if "unless_tools" in rule:
        tests.append(~pl.col("tools").str.contains("(?m)" + _pattern(rule["unless_tools"])))
    if "workspace" in rule:
        tests.append(pl.col("workspace").is_not_null() == rule["workspace"])
    return pl.all_horizontal(tests)


def _any(patterns: list[str]) -> pl.Expr:
    # One by one: as one alternation, many scripts make an automaton that is rebuilt all the time (6 times slower).
    return pl.any_horizontal([pl.col("text").str.contains(_pattern(pattern)) for pattern in patterns])


def _pattern(pattern: str) -> str:
    """A pattern with its macros replaced, its letters folded as those of the text are."""
    expanded = rulefiles.expand(pattern, _data()["macros"])
    # Only letters that are not ASCII: lower case would turn \W into \w.
    return rulefiles.to_rust("".join(char if char.isascii() else fold(char) for char in expanded))
