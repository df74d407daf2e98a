"""Retries, repairs and loops: what became of failed calls.

Belongs here: everything that compares a call with other calls of its session. Does not belong here:
what one result means (``errors``), rows of signals (``hard``).

Two keys tell calls apart. ``key`` is the call itself (tool and normalised arguments): a repeat of it
is a retry. ``repair_key`` is what it works on: for tools that name a file, that file; else the call.
A change of the same file repairs a failed edit although its arguments differ.
"""

from __future__ import annotations

import polars as pl

from evalpipe.signals.calls import RAN
from evalpipe.signals.errors import FAILURES

_FAILS = pl.col("status").is_in(sorted(FAILURES))


def self_fixes(calls: pl.DataFrame, max_steps: int) -> pl.DataFrame:
    """Failed calls that the agent repaired without the user.

    Args:
        calls: Frame of :func:`evalpipe.signals.calls.tool_calls`.
        max_steps: Steps within which a repair counts.

    Returns:
        One row a repaired error: ``session_id``, ``seq`` of the error, ``fix_seq``.
    """
    group = ["session_id", "turn", "repair_key"]
    touched = calls.filter(pl.col("status") == "error").select(group).unique()
    own = calls.filter(pl.col("status").is_in(RAN)).join(touched, on=group, how="semi", maintain_order="left")
    fixed = pl.when(pl.col("status") != "error").then("seq").backward_fill().over(group)
    own = own.with_columns(fix_seq=fixed).filter(
        pl.col("status") == "error", pl.col("fix_seq") - pl.col("seq") <= max_steps
    )
    return own.select("session_id", "seq", "fix_seq")


def loops(calls: pl.DataFrame, length: int) -> pl.DataFrame:
    """Calls that failed in the same way for the ``length``-th time with nothing changed between.

    A success of the same call, or any successful edit in the session, ends a loop: running the tests
    again after a change is work, not a loop.

    Returns:
        One row a loop: ``session_id``, ``seq`` of the call that closes it, ``n`` runs in all.
    """
    group = ["session_id", "key"]
    edits = ((pl.col("tool") == "edit") & (pl.col("status") == "ok")).cast(pl.Int32).cum_sum().over("session_id")
    marked = calls.select(*group, "seq", "status", "signature", edits=edits)
    failing = marked.filter(_FAILS).group_by(group).agg(n=pl.len()).filter(pl.col("n") >= length)
    own = marked.join(failing.select(group), on=group, how="semi", maintain_order="left")
    own = own.with_columns(wins=(~_FAILS).cast(pl.Int32).cum_sum().over(group)).filter(_FAILS)
    run = [*group, "signature", "edits", "wins"]
    own = own.with_columns(nth=pl.int_range(1, pl.len() + 1).over(run), n=pl.len().over(run))
    return own.filter(pl.col("nth") == length).select("session_id", "seq", "n")


def reruns(calls: pl.DataFrame) -> pl.DataFrame:
    """Runs of a call whose run before failed.

    Returns:
        ``session_id, turn, seq``, ``is_fix_cycle``: whether a file was edited between the two runs, so
        that the agent tests what it changed; else it tries the same again.
    """
    edits = ((pl.col("tool") == "edit") & (pl.col("status") == "ok")).cast(pl.Int32).cum_sum().over("session_id")
    runs = calls.with_columns(edits=edits).filter(pl.col("status").is_in(RAN))
    before = [
        value.shift(1).over("session_id", "key").alias(name)
        for name, value in (("was", _FAILS), ("at", pl.col("edits")))
    ]
    return (
        runs.with_columns(before)
        .filter("was")
        .select("session_id", "turn", "seq", is_fix_cycle=pl.col("edits") > pl.col("at"))
    )


def command_counts(calls: pl.DataFrame) -> pl.DataFrame:
    """Counts of commands a session, for the capability metrics (methods, section 17).

    Returns:
        ``session_id, n_command_calls, n_logical_commands, n_first_try_successes, n_retries``. A
        logical command is a distinct call; its first try succeeds when it is not an error (a test
        that reports a finding ran well).
    """
    ran = calls.filter("is_command")
    logical = ran.group_by("session_id", "key", maintain_order=True).agg(first=pl.col("status").first(), runs=pl.len())
    return logical.group_by("session_id", maintain_order=True).agg(
        n_command_calls=pl.col("runs").sum().cast(pl.Int32),
        n_logical_commands=pl.len().cast(pl.Int32),
        n_first_try_successes=(pl.col("first") != "error").sum().cast(pl.Int32),
        n_retries=(pl.col("runs") - 1).sum().cast(pl.Int32),
    )
