"""Process metrics: how sessions and tasks went, whatever came of them.

Belongs here: counting steps, calls, repairs, tokens and waiting by session and by task. Does not belong
here: what a call or a signal is, criteria, metrics that are compared (``outcomes``).

A log without steps counts none of this: all of it is null then, as are rates without a denominator,
tokens that no step states, and times of undated logs.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from evalpipe.contracts.render import polars_schema
from evalpipe.contracts.tables.process import PROCESS, process_columns
from evalpipe.signals import repairs
from evalpipe.signals.semantic import POSITIVE

VERSION = "1"
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_KINDS = (*_TOKENS, "reasoning_tokens")
_EVENTS = {
    "n_command_errors": "command_error", "n_check_failures": "check_failure", "n_loops": "loop.retry",
    "n_refused_calls": "call.rejected", "n_interrupts": "interrupt", "n_rollbacks": "rollback",
    "n_hallucinated_calls": "tool_hallucination",
}  # fmt: skip


def process(
    sessions: pl.DataFrame,
    steps: pl.DataFrame,
    turns: pl.DataFrame,
    calls: pl.DataFrame,
    hard: pl.DataFrame,
    semantic: pl.DataFrame,
    tasks: pl.DataFrame,
    max_fix_steps: int,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Process metrics of a part.

    Args:
        sessions, steps: Masked frames, steps in order.
        turns: Turns of persons. calls: Tool calls.
        hard, semantic: Rows that count, with ``task_id``.
        tasks: Task of every turn.
        max_fix_steps: Steps within which a repair counts.

    Returns:
        Rows of signals.process, unsorted; the same columns by ``task_id``.
    """
    errors = hard.filter(pl.col("signal") == "command_error").select("session_id", "seq")
    fixes = repairs.self_fixes(calls, max_fix_steps).join(errors, on=["session_id", "seq"], how="semi")
    fixed = calls.select("session_id", "seq", "turn").join(fixes, on=["session_id", "seq"], how="semi")
    by_turn = tasks.select("session_id", "turn", "task_id")
    plain = (steps, _waits(steps, turns), turns, calls, fixed, repairs.reruns(calls))

    def placed(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.join(by_turn, on=["session_id", "turn"], how="left", maintain_order="left")

    in_tasks = tuple(map(placed, plain))
    whole = _measure(sessions.select("session_id"), "session_id", (*plain, hard, semantic))
    # Formats that state totals only state them of the session.
    stated = sessions.select("session_id", *(pl.col(kind).alias(f"stated_{kind}") for kind in _KINDS))
    whole = whole.join(stated, on="session_id", how="left", maintain_order="left")
    whole = whole.with_columns(pl.coalesce(f"stated_{kind}", kind).alias(kind) for kind in _KINDS)
    parts = _measure(tasks.select("task_id").unique(maintain_order=True), "task_id", (*in_tasks, hard, semantic))
    rows = _finished(whole, "session_id").with_columns(extractor_version=pl.lit(VERSION))
    return rows.select(PROCESS.names), _finished(parts, "task_id")


def _waits(steps: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """``session_id, turn, seq, wait_ms``: from each turn to the first sign of the agent; null without times."""
    sign = (
        pl.when(pl.col("first_token_ms").is_not_null())
        .then(pl.col("started_at") + pl.duration(milliseconds="first_token_ms"))
        .when(pl.col("kind") == "tool").then(pl.col("started_at"))
        .otherwise(pl.coalesce("ended_at", "started_at"))
    )  # fmt: skip
    is_agent = pl.col("kind").is_in(["agent", "tool"]) & pl.col("parent_id").is_null()
    signs = steps.filter(is_agent).select("session_id", "turn", sign=sign).group_by("session_id", "turn")
    asked = turns.select("session_id", "turn", "seq").join(
        steps.select("session_id", "seq", "started_at"), on=["session_id", "seq"], how="left", maintain_order="left"
    )
    asked = asked.join(signs.agg(pl.col("sign").min()), on=["session_id", "turn"], how="left", maintain_order="left")
    waited = (pl.col("sign") - pl.col("started_at")).dt.total_milliseconds()
    return asked.select("session_id", "turn", "seq", wait_ms=pl.when(waited >= 0).then(waited))


def _measure(units: pl.DataFrame, key: str, frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Counts of every unit; null where it has none of the kind."""
    steps, waits, turns, calls, fixed, reruns, hard, semantic = frames
    known = [pl.when(pl.col(kind).is_not_null().any()).then(pl.col(kind).sum()).alias(kind) for kind in _KINDS]
    last = calls.group_by(key, "key", maintain_order=True).agg(pl.col("status").last())
    accepted = semantic.filter(pl.col("signal").is_in(list(POSITIVE))).group_by(key).agg(at=pl.col("seq").min())
    before = turns.select(key, "seq").join(accepted, on=key, how="inner")
    parts = (
        steps.group_by(key).agg(*known, n_steps=pl.len(), n_responses=(pl.col("kind") == "agent").sum()),
        waits.group_by(key, maintain_order=True).agg(first_response_ms=pl.col("wait_ms").first()),
        turns.group_by(key).agg(n_turns=pl.len()),
        calls.group_by(key).agg(n_tool_calls=pl.len(), n_command_calls=pl.col("is_command").sum()),
        last.group_by(key).agg(n_checks_failing_at_end=(pl.col("status") == "check_failure").sum()),
        fixed.group_by(key).agg(n_self_fixed=pl.len()),
        reruns.group_by(key).agg(n_retries=(~pl.col("is_fix_cycle")).sum(), n_fix_cycles=pl.col("is_fix_cycle").sum()),
        hard.group_by(key).agg(**{name: (pl.col("signal") == signal).sum() for name, signal in _EVENTS.items()}),
        before.group_by(key).agg(turns_to_acceptance=(pl.col("seq") < pl.col("at")).sum()),
    )
    out = units
    for part in parts:
        out = out.join(part, on=key, how="left", maintain_order="left")
    return out


def _finished(rows: pl.DataFrame, key: str) -> pl.DataFrame:
    """Fill what is known to be 0, and add rates and totals."""
    schema = polars_schema(PROCESS)
    counts = [name for name in schema if name.startswith("n_") and name != "n_steps"]
    has_steps = pl.col("n_steps").is_not_null()
    rows = rows.with_columns(pl.when(has_steps).then(pl.col(name).fill_null(0)).alias(name) for name in counts)

    def share(part: str, of: str) -> pl.Expr:
        return pl.when(pl.col(of) > 0).then(pl.col(part) / pl.col(of))

    told = pl.any_horizontal(pl.col(kind).is_not_null() for kind in _TOKENS)
    rows = rows.with_columns(
        error_rate=share("n_command_errors", "n_command_calls"),
        self_fixed_share=share("n_self_fixed", "n_command_errors"),
        hallucinated_per_1000_calls=1000 * share("n_hallucinated_calls", "n_tool_calls"),
        total_tokens=pl.when(told).then(pl.sum_horizontal(_TOKENS)),
    )
    return rows.select(key, *(pl.col(column.name).cast(schema[column.name]) for column in process_columns()))
