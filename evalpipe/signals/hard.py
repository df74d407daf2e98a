"""Hard signals: what the environment did, as located rows.

Belongs here: one row an event that tools, exit codes, the version control tool or the log's own
outcome tell. Does not belong here: what people say (``semantic``), what a result means (``errors``).

The column ``field`` tells in which field of the step a span lies; it is null where there is no text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import polars as pl

from evalpipe.contracts.render import polars_schema
from evalpipe.contracts.tables.signals import HARD
from evalpipe.contracts.taxonomy import CATEGORY_LAYERS
from evalpipe.criteria.model import ExtractionCriteria
from evalpipe.signals import actions, hard_row, repairs, rulefiles
from evalpipe.signals.commands import parse
from evalpipe.signals.ids import digest
from evalpipe.signals.risks import risky_calls

VERSION = hard_row.VERSION
_SELF_FIXED_STRENGTH = 0.05
#: What only looks whether something is there, and what may stand beside it.
_PROBES = frozenset(
    {"ls", "stat", "find", "test", "[", "[[", "which", "where", "file", "realpath", "readlink", "dir", "tree", "du",
     "get-childitem", "gci", "test-path", "get-item", "cd", "pwd", "echo", "printf", "head", "wc", "sort", "true"}
)  # fmt: skip
_OUTPUT = ("session_id", "seq", "turn", "name", "exit_code", "exit_scope", "category", "layer", "confidence",
           "is_hidden", "rule_id", "target_key", "output", "start", "end")  # fmt: skip


def hard_rows(
    sessions: pl.DataFrame, steps: pl.DataFrame, calls: pl.DataFrame, extraction: ExtractionCriteria
) -> pl.DataFrame:
    """Rows of signals.hard of a part, ``task_id`` null, unsorted.

    Args:
        sessions, steps: Masked frames, steps ordered by session and seq.
        calls: Frame of :func:`evalpipe.signals.calls.tool_calls`.
        extraction: Length of snippets, of loops, and steps within which a repair counts.
    """
    fixes = repairs.self_fixes(calls, extraction.self_fix_steps)
    chars = extraction.snippet_chars
    rows = [
        *_failures(calls, fixes, chars),
        *_loops(calls, extraction, chars),
        *_repaired(calls, fixes, chars),
        *_refusals(calls, chars),
        *_interrupts(steps, calls, chars),
        *_version_control(steps, calls, chars),
        *_risks(calls, chars),
        *_objectives(sessions, steps),
        *actions.rows(steps, calls, chars),
    ]
    return pl.DataFrame(rows, schema=polars_schema(HARD), orient="row")


def _from_output(signal: str, row: dict[str, Any], rule: str, chars: int, **more: Any) -> tuple[Any, ...]:
    where = (row["session_id"], row["seq"], row["turn"])
    given = {"confidence": row["confidence"], "category": row["category"], "layer": row["layer"]} | more
    return hard_row.make(
        signal, where, rule, row["output"] or "", (row["start"] or 0, row["end"] or 0), chars,
        exit_code=row["exit_code"], exit_scope=row["exit_scope"], is_hidden=row["is_hidden"], tool=row["name"],
        target_key=row["target_key"], **given,
    )  # fmt: skip


def _failures(calls: pl.DataFrame, fixes: pl.DataFrame, chars: int) -> Iterable[tuple[Any, ...]]:
    failed = calls.filter(pl.col("status").is_in(["error", "check_failure"]))
    failed = failed.join(fixes, on=["session_id", "seq"], how="left", maintain_order="left")
    edits = calls.filter((pl.col("tool") == "edit") & (pl.col("status") == "ok"))
    turn = ["session_id", "turn"]
    failed = failed.join(
        edits.group_by(turn).agg(edit_seq=pl.col("seq").min()), on=turn, how="left", maintain_order="left"
    )
    for row in failed.select(*_OUTPUT, "status", "fix_seq", "edit_seq", "command").iter_rows(named=True):
        if row["status"] == "check_failure":
            yield _from_output("check_failure", row, row["rule_id"], chars)
            continue
        strength = None if row["fix_seq"] is None else _SELF_FIXED_STRENGTH
        if _is_probe(row):
            strength = 0.0
        yield _from_output("command_error", row, row["rule_id"], chars, strength=strength)
        if row["category"] == "nonexistent_tool":
            yield _from_output("tool_hallucination", row, row["rule_id"], chars)


def _is_probe(row: dict[str, Any]) -> bool:
    """Whether a call that found no path only looked for it, before the turn changed anything: exploration."""
    looked = row["category"] == "path_not_found" and (row["edit_seq"] is None or row["seq"] < row["edit_seq"])
    return looked and bool(row["command"]) and set(parse(row["command"]).programs) <= _PROBES


def _loops(calls: pl.DataFrame, extraction: ExtractionCriteria, chars: int) -> Iterable[tuple[Any, ...]]:
    found = repairs.loops(calls, extraction.retry_loop_length)
    joined = found.join(calls, on=["session_id", "seq"], how="left", maintain_order="left")
    for row in joined.select(_OUTPUT).iter_rows(named=True):
        yield _from_output("loop.retry", row, "loop.same-failure", chars)


def _repaired(calls: pl.DataFrame, fixes: pl.DataFrame, chars: int) -> Iterable[tuple[Any, ...]]:
    """One row a repairing call, whatever number of errors it repaired."""
    fixed = fixes.select("session_id", seq="fix_seq").unique(maintain_order=True)
    joined = fixed.join(calls, on=["session_id", "seq"], how="left", maintain_order="left")
    for row in joined.select(_OUTPUT).iter_rows(named=True):
        yield _from_output(
            "self_fix",
            row | {"start": 0, "end": 0},
            "repair.same-target",
            chars,
            category=None,
            layer=None,
            confidence=0.9,
        )


def _refusals(calls: pl.DataFrame, chars: int) -> Iterable[tuple[Any, ...]]:
    refused = calls.filter(pl.col("status") == "refused")
    for row in refused.select(*_OUTPUT, "text").iter_rows(named=True):
        reason = row["text"] or row["output"] or ""
        yield _from_output(
            "call.rejected", row | {"output": reason, "start": 0, "end": min(len(reason), chars)}, row["rule_id"],
            chars, category="refused", layer=CATEGORY_LAYERS["refused"], field="text" if row["text"] else "output",
        )  # fmt: skip


def _interrupts(steps: pl.DataFrame, calls: pl.DataFrame, chars: int) -> Iterable[tuple[Any, ...]]:
    """Interrupt messages, and interrupted calls of a turn that has none.

    A harness that stops because a call was refused logs both; the refusal is the signal then.
    """
    told = steps.filter((pl.col("origin") == "interrupt") & pl.col("parent_id").is_null())
    refused = calls.filter(pl.col("status") == "refused").select("session_id", "turn").unique()
    both = ["session_id", "turn"]
    for_tool = pl.col("text").fill_null("").str.to_lowercase().str.contains("for tool use", literal=True)
    told = told.join(refused.with_columns(is_refused=pl.lit(value=True)), on=both, how="left", maintain_order="left")
    told = told.filter(~(for_tool & pl.col("is_refused").fill_null(value=False)))
    for session, seq, turn, text in told.select("session_id", "seq", "turn", "text").iter_rows():
        said = text or ""
        yield hard_row.make(
            "interrupt", (session, seq, turn), "event.interrupt", said, (0, min(len(said), chars)), chars,
            confidence=0.98, category="interrupted", layer=CATEGORY_LAYERS["interrupted"], field="text",
        )  # fmt: skip
    any_told = steps.filter(pl.col("origin") == "interrupt").select(both).unique()
    stopped = calls.filter(pl.col("status") == "interrupted").join(any_told, on=both, how="anti", maintain_order="left")
    stopped = stopped.group_by(both, maintain_order=True).first()
    for row in stopped.select(_OUTPUT).iter_rows(named=True):
        yield hard_row.make(
            "interrupt", (row["session_id"], row["seq"], row["turn"]), "event.interrupted-call", "", (0, 0), chars,
            confidence=0.9, category="interrupted", layer=CATEGORY_LAYERS["interrupted"], tool=row["name"],
        )  # fmt: skip


@lru_cache(maxsize=1)
def _commands() -> tuple[tuple[dict[str, Any], re.Pattern[str]], ...]:
    return tuple((row, rulefiles.to_python(row["any"])) for row in rulefiles.load("commands.toml")["command"])


def _version_control(steps: pl.DataFrame, calls: pl.DataFrame, chars: int) -> Iterable[tuple[Any, ...]]:
    ran = calls.filter((pl.col("tool") == "shell") & (pl.col("status") == "ok")).select(
        "session_id", "seq", "turn", "name", "command", text=pl.col("arguments").fill_null("")
    )
    by_user = steps.filter(pl.col("origin") == "local_command").select(
        "session_id",
        "seq",
        "turn",
        name=pl.lit(None, dtype=pl.String),
        command="text",
        text=pl.col("text").fill_null(""),
    )
    for row, pattern in _commands():
        for frame, field in ((ran, "arguments"), (by_user, "text")):
            mine = frame.filter(
                pl.col("command").str.contains(rulefiles.to_rust(row["any"]))
                & ~pl.col("command").str.contains(rulefiles.to_rust(row["unless"]))
            )
            for session, seq, turn, name, command, text in mine.iter_rows():
                # The arguments hold the command as JSON text, in which the words of it still stand.
                found = pattern.search(text)
                span = found.span() if found else (0, min(len(text), chars))
                key = digest(name or "", command)
                yield hard_row.make(row["signal"], (session, seq, turn), row["id"], text, span, chars,
                           confidence=row["confidence"], tool=name, target_key=key, field=field)  # fmt: skip


def _risks(calls: pl.DataFrame, chars: int) -> Iterable[tuple[Any, ...]]:
    for call, risk, span in risky_calls(calls):
        where = (call["session_id"], call["seq"], call["turn"])
        yield hard_row.make(
            risk.signal, where, risk.id, call["arguments"], span, chars, confidence=risk.confidence,
            exit_code=call["exit_code"], tool=call["name"], target_key=digest(call["name"], call["arguments"]),
            field="arguments",
        )  # fmt: skip


def _objectives(sessions: pl.DataFrame, steps: pl.DataFrame) -> Iterable[tuple[Any, ...]]:
    known = sessions.filter(pl.col("is_objective_success").is_not_null()).select("session_id", "is_objective_success")
    last = steps.group_by("session_id").agg(seq=pl.col("seq").max(), turn=pl.col("turn").max())
    joined = known.join(last, on="session_id", how="left", maintain_order="left")
    for session, success, seq, turn in joined.iter_rows():
        signal = "objective.success" if success else "objective.failure"
        yield hard_row.make(signal, (session, seq or 0, turn or 0), "log.objective", "", (0, 0), 1, confidence=1.0)
