"""Promises that did not hold: the agent apologised or claimed a fix, and the same came back.

Belongs here: joining what an agent said with the failures and requests on both sides of it. Does not
belong here: the wording of claims and apologies (``context.toml``), what a failure or a repeated request
is. Only messages of sessions in which something came back are read.
"""

from __future__ import annotations

import polars as pl

from evalpipe.signals.context import promises
from evalpipe.signals.errors import FAILURES
from evalpipe.signals.semantic import NEGATIVE

#: What tells that the same came back; a new objection alone may be about something new.
_AGAIN = ("complaint.failure_report", "rework.repeat")
_SCHEMA = pl.Schema({"session_id": pl.String(), "turn": pl.Int32(), "inputs": pl.List(pl.String())})


def repeats(
    turns: pl.DataFrame, steps: pl.DataFrame, calls: pl.DataFrame, hard: pl.DataFrame, semantic: pl.DataFrame
) -> pl.DataFrame:
    """Turns in which a failure or request came back although the agent had promised otherwise.

    Two things count: a call that fails in the same way as before, and a report of failure or a repeated
    request in the turn after an objection; each with a promise of the agent between the two.

    Args:
        turns: Turns of persons. steps: Masked steps, in order. calls: Tool calls.
        hard, semantic: Rows that count.

    Returns:
        One row a turn: ``session_id, turn``, ``inputs`` (ids of the failures and objections).
    """
    pairs = pl.concat([_failures(calls, hard), _objections(turns, semantic)])
    if pairs.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    span = pairs.group_by("session_id").agg(low=pl.col("first_seq").min(), high=pl.col("seq").max())
    said = steps.filter((pl.col("kind") == "agent") & pl.col("parent_id").is_null() & pl.col("text").is_not_null())
    said = said.select("session_id", "text", promise_seq="seq").join(span, on="session_id", how="inner")
    said = said.filter(pl.col("promise_seq").is_between("low", "high", closed="none"))
    promised = said.filter(promises(said["text"])).select("session_id", "promise_seq").sort("promise_seq")
    # The first promise behind the first of a pair is the one that can stand between them.
    kept = pairs.sort("first_seq").join_asof(
        promised, left_on="first_seq", right_on="promise_seq", by="session_id", strategy="forward",
        allow_exact_matches=False, check_sortedness=False,
    )  # fmt: skip
    kept = kept.filter(pl.col("promise_seq") < pl.col("seq")).sort("session_id", "seq")
    out = kept.explode("inputs").group_by("session_id", "turn", maintain_order=True)
    return out.agg(pl.col("inputs").unique().sort()).sort("session_id", "turn")


def _failures(calls: pl.DataFrame, hard: pl.DataFrame) -> pl.DataFrame:
    """Neighbouring runs of one call that failed in the same way, with the ids of both failures."""
    rows = hard.filter(pl.col("signal").is_in(["command_error", "check_failure"]))
    rows = rows.select("session_id", "seq", "signal_id")
    failed = calls.filter(pl.col("status").is_in(sorted(FAILURES))).select(
        "session_id", "seq", "turn", "key", "signature"
    )
    failed = failed.join(rows, on=["session_id", "seq"], how="inner", maintain_order="left")
    same = ["session_id", "key", "signature"]
    before = [pl.col(name).shift(1).over(same).alias(f"first_{name}") for name in ("seq", "signal_id")]
    pairs = failed.with_columns(before).filter(pl.col("first_seq").is_not_null())
    return _pair(pairs)


def _objections(turns: pl.DataFrame, semantic: pl.DataFrame) -> pl.DataFrame:
    """Neighbouring turns that object, the second with the same again."""
    cold = semantic.filter(pl.col("signal").is_in(list(NEGATIVE))).sort("session_id", "seq", "signal_id")
    objecting = cold.group_by("session_id", "seq", maintain_order=True).agg(
        signal_id=pl.col("signal_id").first(), is_again=pl.col("signal").is_in(list(_AGAIN)).any()
    )
    both = turns.select("session_id", "seq", "turn").join(
        objecting, on=["session_id", "seq"], how="left", maintain_order="left"
    )
    before = [pl.col(name).shift(1).over("session_id").alias(f"first_{name}") for name in ("seq", "signal_id")]
    pairs = both.with_columns(before).filter(pl.col("is_again") & pl.col("first_signal_id").is_not_null())
    return _pair(pairs)


def _pair(pairs: pl.DataFrame) -> pl.DataFrame:
    ids = pl.concat_list("first_signal_id", "signal_id")
    return pairs.select("session_id", "turn", "first_seq", "seq", inputs=ids)
