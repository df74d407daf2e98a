"""Correction episodes and first-time success: signals derived from other signals.

Belongs here: how many agent responses a correction took, and whether the first claim of completion
held. Does not belong here: estimation over episodes (``inference``).

An episode begins at a correction and goes on while the following turns stay negative; k counts the
agent's responses up to the first that the user does not reject, so that k = 1 is "put right at
once". A session that ends on the answer to a correction is right-censored: nobody saw whether it
was right. Turns that the agent never answered are one with the turn after them.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from evalpipe.contracts.render import polars_schema
from evalpipe.contracts.tables.signals import DERIVED
from evalpipe.signals.ids import digest
from evalpipe.signals.semantic import NEGATIVE

VERSION = "1"


def episodes(turns: pl.DataFrame, steps: pl.DataFrame, semantic: pl.DataFrame) -> pl.DataFrame:
    """Correction episodes of a part.

    Args:
        turns: Turns of persons, in order.
        steps: Masked steps.
        semantic: Emitted semantic rows.

    Returns:
        One row an episode: ``session_id, turn`` and ``seq`` of its first correction, ``k`` (null if
        never), ``is_censored``, ``inputs`` (ids of its negative rows).
    """
    exchanges = _exchanges(turns, steps, semantic)
    negative = pl.col("is_negative")
    started = (negative & ~negative.shift(1, fill_value=False).over("session_id")).cast(pl.Int32).cum_sum()
    runs = exchanges.with_columns(run=started.over("session_id"), n_exchanges=pl.len().over("session_id"))
    runs = runs.filter(negative)
    corrected = runs.filter(pl.col("has_correction")).group_by("session_id", "run", maintain_order=True).agg(
        turn=pl.col("correction_turn").first(), seq=pl.col("correction_seq").first(), at=pl.col("exchange").first()
    )  # fmt: skip
    ends = runs.group_by("session_id", "run").agg(
        last=pl.col("exchange").max(),
        n_exchanges=pl.col("n_exchanges").first(),
        is_answered=pl.col("is_answered").last(),
    )
    found = corrected.join(ends, on=["session_id", "run"], how="left", maintain_order="left")
    is_over = pl.col("last") + 1 < pl.col("n_exchanges")
    found = found.with_columns(
        k=pl.when(is_over).then(pl.col("last") + 1 - pl.col("at")).cast(pl.Int32),
        is_censored=~is_over & pl.col("is_answered"),
    )
    inputs = (
        semantic.filter(pl.col("signal").is_in(list(NEGATIVE)))
        .join(exchanges.explode("turns").select("session_id", "exchange", turn="turns"), on=["session_id", "turn"])
        .join(found.select("session_id", "run", "at", "last"), on="session_id")
        .filter(pl.col("exchange").is_between(pl.col("at"), pl.col("last")))
        .sort("session_id", "seq", "signal_id")
        .group_by("session_id", "run", maintain_order=True)
        .agg(inputs=pl.col("signal_id"))
    )
    found = found.join(inputs, on=["session_id", "run"], how="left", maintain_order="left")
    return found.select("session_id", "turn", "seq", "k", "is_censored", "inputs")


def _exchanges(turns: pl.DataFrame, steps: pl.DataFrame, semantic: pl.DataFrame) -> pl.DataFrame:
    """Turns with the answers between them; unanswered turns join the next one."""
    said = semantic.group_by("session_id", "seq").agg(
        is_negative=pl.col("signal").is_in(list(NEGATIVE)).any(), is_correction=(pl.col("signal") == "correction").any()
    )
    acts = steps.filter(pl.col("kind").is_in(["agent", "model", "tool", "graph"])).select("session_id", "turn").unique()
    acts = acts.with_columns(is_answered=pl.lit(value=True))
    marked = turns.select("session_id", "seq", "turn").join(
        said, on=["session_id", "seq"], how="left", maintain_order="left"
    )
    marked = marked.join(acts, on=["session_id", "turn"], how="left", maintain_order="left").with_columns(
        pl.col(c).fill_null(value=False) for c in ("is_negative", "is_correction", "is_answered")
    )
    answered = pl.col("is_answered").cast(pl.Int32)
    marked = marked.with_columns(exchange=(answered.cum_sum() - answered).over("session_id"))
    corrections = pl.col("is_correction")
    return marked.group_by("session_id", "exchange", maintain_order=True).agg(
        is_negative=pl.col("is_negative").any(),
        has_correction=corrections.any(),
        correction_turn=pl.col("turn").filter(corrections).first(),
        correction_seq=pl.col("seq").filter(corrections).first(),
        is_answered=pl.col("is_answered").any(),
        turns=pl.col("turn"),
    )


def first_time(turns: pl.DataFrame, tasks: pl.DataFrame, hard: pl.DataFrame) -> pl.DataFrame:
    """Whether each task's first claim of completion held.

    A claim holds when the turn that answers it is not negative and undoes nothing. A claim that
    nobody answered gives no row.

    Args:
        turns: Turns with roles. tasks: Task of every turn, with ``task_id``. hard: Counted hard rows.

    Returns:
        ``session_id, task_id, turn`` of the answer, ``is_met``.
    """
    by_turn = tasks.select("session_id", "task_id", before="turn")
    # The turn that answers a claim may open the next task; the claim is of the turn before.
    answers = turns.filter("agent_claimed_done").select("session_id", "turn", "is_negative", before=pl.col("turn") - 1)
    answers = answers.join(by_turn, on=["session_id", "before"], how="inner", maintain_order="left")
    first = answers.group_by("session_id", "task_id", maintain_order=True).first()
    undone = hard.filter(pl.col("signal") == "rollback").select("session_id", "turn").unique()
    undone = undone.with_columns(is_undone=pl.lit(value=True))
    first = first.join(undone, on=["session_id", "turn"], how="left", maintain_order="left")
    met = ~pl.col("is_negative") & ~pl.col("is_undone").fill_null(value=False)
    return first.select("session_id", "task_id", "turn", is_met=met)


def derived_rows(found: pl.DataFrame, first: pl.DataFrame, task_of: pl.DataFrame) -> pl.DataFrame:
    """Rows of signals.derived.

    Args:
        found: Episodes. first: First claims. task_of: ``session_id, turn, task_id``.
    """
    rows: list[tuple[Any, ...]] = []
    placed = found.join(task_of, on=["session_id", "turn"], how="left", maintain_order="left")
    for session, task, turn, k, censored, inputs in placed.select(
        "session_id", "task_id", "turn", "k", "is_censored", "inputs"
    ).iter_rows():
        value = 0.0 if k is None else 1.0 / k
        name = digest(session, turn, "recovery", VERSION)
        rows.append((name, session, task, turn, "recovery", value, k, censored, inputs or [], VERSION))
    for session, task, turn, met in first.iter_rows():
        name = digest(session, task, "first_time_success", VERSION)
        rows.append((name, session, task, turn, "first_time_success", float(met), None, False, [], VERSION))
    return pl.DataFrame(rows, schema=polars_schema(DERIVED), orient="row")
