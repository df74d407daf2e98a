"""Tasks inside a session: where they begin and what closed them.

Belongs here: splitting a session at the turns that open a task, and giving every signal its task. A
confirmation in the words that open the next task speaks of the task before.
"""

from __future__ import annotations

import polars as pl

from evalpipe.contracts.render import polars_schema
from evalpipe.contracts.tables.signals import TASKS
from evalpipe.signals.ids import digest

VERSION = "1"  # of the splitter: ids of tasks depend on it
_KEYS = ["session_id", "task_index"]


def task_turns(sessions: pl.DataFrame, steps: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Task of every turn number.

    Args:
        sessions, steps: Masked frames.
        turns: Frame of :func:`evalpipe.signals.roles.with_roles`.

    Returns:
        ``session_id, turn, task_index, opens_task``; every session has at least one row.
    """
    silent = sessions.select("session_id", turn=pl.lit(0, dtype=pl.Int32)).join(steps, on="session_id", how="anti")
    numbers = pl.concat([steps.select("session_id", "turn"), silent]).unique()
    opening = (
        turns.filter(pl.col("opens_task") & pl.col("prev_turn_seq").is_not_null()).select("session_id", "turn").unique()
    )
    marked = numbers.join(opening.with_columns(opens_task=pl.lit(value=True)), on=["session_id", "turn"], how="left")
    marked = marked.with_columns(pl.col("opens_task").fill_null(value=False)).sort("session_id", "turn")
    return marked.with_columns(task_index=pl.col("opens_task").cast(pl.Int32).cum_sum().over("session_id"))


def with_task_ids(table: pl.DataFrame) -> pl.DataFrame:
    """Add the deterministic ``task_id`` of ``session_id`` and ``task_index``."""
    pairs = table.select(_KEYS).unique(maintain_order=True)
    ids = pl.Series("task_id", [digest("task", *pair, VERSION) for pair in pairs.iter_rows()], dtype=pl.String)
    return table.join(pairs.with_columns(ids), on=_KEYS, how="left", maintain_order="left")


def assign(rows: pl.DataFrame, tasks: pl.DataFrame) -> pl.DataFrame:
    """Give signal rows their ``task_id``; positive words in an opening turn go to the task before.

    Args:
        rows: Rows with ``session_id, turn, signal`` and a null ``task_id``.
        tasks: Frame of :func:`task_turns` with ``task_id``.
    """
    by_turn = tasks.select("session_id", "turn", "task_index", "opens_task")
    ids = tasks.select(*_KEYS, "task_id").unique()
    joined = rows.drop("task_id").join(by_turn, on=["session_id", "turn"], how="left", maintain_order="left")
    speaks_back = pl.col("opens_task") & pl.col("signal").is_in(["confirm.explicit", "praise", "accept.implicit"])
    joined = joined.with_columns(task_index=pl.col("task_index") - speaks_back.cast(pl.Int32))
    joined = joined.join(ids, on=_KEYS, how="left", maintain_order="left")
    return joined.select(rows.columns)


def task_table(
    tasks: pl.DataFrame, turns: pl.DataFrame, calls: pl.DataFrame, closing: pl.DataFrame, measured: pl.DataFrame
) -> pl.DataFrame:
    """Rows of signals.tasks, unsorted.

    Args:
        tasks: Frame of :func:`task_turns` with ``task_id``.
        turns: Turns with roles.
        calls: Tool calls.
        closing: Semantic rows and candidates with ``task_id``: what speaks of a task.
        measured: Process metrics by ``task_id``.
    """
    spans = tasks.group_by(*_KEYS, "task_id").agg(first_turn=pl.col("turn").min(), last_turn=pl.col("turn").max())
    by_turn = tasks.select("session_id", "turn", "task_id")
    counted = calls.select("session_id", "turn", "status").join(by_turn, on=["session_id", "turn"], how="left")
    counts = counted.group_by("task_id").agg(n_errors=(pl.col("status") == "error").sum().cast(pl.Int32))
    said = closing.group_by("task_id").agg(
        confirm_seq=pl.col("seq").filter(pl.col("signal") == "confirm.explicit").max(),
        praise_seq=pl.col("seq").filter(pl.col("signal") == "praise").max(),
        accept_seq=pl.col("seq").filter(pl.col("signal") == "accept.implicit").max(),
        negative_seq=pl.col("seq").filter(pl.col("polarity") < 0).max(),
    )
    last = (
        turns.join(by_turn, on=["session_id", "turn"], how="left").group_by("task_id").agg(last_seq=pl.col("seq").max())
    )
    spans = (
        spans.join(counts, on="task_id", how="left")
        .join(said, on="task_id", how="left")
        .join(last, on="task_id", how="left")
    )
    # What was said last counts; words before the last turn of the task closed nothing.
    negative = pl.col("negative_seq").fill_null(-1)
    final = pl.col("last_seq").fill_null(-1)
    has_next = pl.col("task_index") < pl.col("task_index").max().over("session_id")
    closed = (
        pl.when((pl.col("confirm_seq") > negative) & (pl.col("confirm_seq") >= final)).then(pl.lit("confirm"))
        .when((pl.col("praise_seq") > negative) & (pl.col("praise_seq") >= final)).then(pl.lit("praise"))
        .when((negative >= 0) & (negative >= final)).then(pl.lit("negative"))
        .when(pl.col("accept_seq").is_not_null()).then(pl.lit("accept.implicit"))
        .when(has_next).then(pl.lit("next_task"))
        .otherwise(pl.lit("session_end"))
    )  # fmt: skip
    # Which row it was: the one of that kind at the step that decided.
    at = {"confirm": "confirm_seq", "praise": "praise_seq", "negative": "negative_seq", "accept.implicit": "accept_seq"}
    kind = {"confirm.explicit": "confirm", "praise": "praise", "accept.implicit": "accept.implicit"}
    speaks = closing.sort("task_id", "seq", "signal_id").select(
        "task_id", "seq", closing_signal_id="signal_id",
        closed_by=pl.when(pl.col("polarity") < 0).then(pl.lit("negative"))
        .otherwise(pl.col("signal").replace_strict(kind, default=None, return_dtype=pl.String)),
    ).unique(["task_id", "seq", "closed_by"], keep="first", maintain_order=True)  # fmt: skip
    spans = spans.with_columns(closed_by=closed)
    spans = spans.with_columns(
        seq=pl.coalesce(pl.when(pl.col("closed_by") == k).then(pl.col(v)) for k, v in at.items())
    )
    spans = spans.join(speaks, on=["task_id", "seq", "closed_by"], how="left").join(measured, on="task_id", how="left")
    spans = spans.with_columns(pl.col("n_errors").fill_null(0), extractor_version=pl.lit(VERSION))
    return spans.select(polars_schema(TASKS).names())
