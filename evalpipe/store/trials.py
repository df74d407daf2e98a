"""A trial of which one file holds the outcome and another one the steps: which session an outcome is of.

Belongs here: the rule, over one row a session. Does not belong here: the same session logged twice
(``store/identity.py``), or the row that both make (``steps/raw.py``).

A harness names each trial, with letters made at random, and gives it a folder. Its result file says that
name, and the trajectory lies in that folder. Where one result and one log of steps have the name, and what
both log overlaps in time, the result is no session of its own: what it says of the outcome goes to the
session, or to the one that counts for it, and the result is listed as a copy (``same_trial``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import polars as pl

from evalpipe.store.identity import SLACK

#: Readers of results without steps.
_RESULTS = ("harbor_trials",)


@dataclass(frozen=True, slots=True)
class Told:
    """The outcome of a session, as another file tells it.

    Attributes:
        session_id: The session.
        day, stem, copy, landed_id: The copy that tells the outcome, and its own id.
    """

    session_id: str
    day: date
    stem: str
    copy: int
    landed_id: str


def told_outcomes(best: pl.DataFrame, lost: pl.DataFrame) -> tuple[pl.DataFrame, list[Told]]:
    """Results that tell the outcome of another session.

    Args:
        best: The best copy of each session, with its place and ``trial_name``.
        lost: Sessions that others count for: ``session_id``, ``counted_session_id``, ``rule``.

    Returns:
        ``lost`` with these results, and the outcomes, both in order of ids.
    """
    named = best.filter(pl.col("trial_name").is_not_null())
    if named.is_empty():
        return lost, []
    is_result = pl.col("source").is_in(list(_RESULTS))
    named = named.filter((is_result.sum() == 1).over("trial_name") & ((~is_result).sum() == 1).over("trial_name"))
    results, logs = named.filter(is_result), named.filter(~is_result)
    pairs = results.join(
        logs.select("trial_name", log="session_id", first="started_at", last="ended_at", dated="is_dated"),
        on="trial_name",
    ).filter(
        ~(pl.col("is_dated") & pl.col("dated"))
        | ((pl.col("first") <= pl.col("ended_at") + SLACK) & (pl.col("last") + SLACK >= pl.col("started_at")))
    )
    counted = lost.select(log="session_id", other="counted_session_id")
    pairs = (
        pairs.join(lost, on="session_id", how="anti")
        .join(counted, on="log", how="left")
        .with_columns(counted_session_id=pl.coalesce("other", "log"))
        .sort("session_id")
    )
    rows = pairs.select("session_id", "counted_session_id", rule=pl.lit("same_trial"))
    told = [
        Told(*values) for values in pairs.select("counted_session_id", "day", "stem", "copy", "landed_id").iter_rows()
    ]
    return pl.concat([lost, rows]).sort("session_id"), told
