"""Raw rows of sessions that go on from another one, without the turns that they repeat of it.

Belongs here: putting the rows that are left in the place of those that were logged. Does not belong here:
which turns these are (``store/histories.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from evalpipe import sources
from evalpipe.contracts import render
from evalpipe.contracts.tables import TABLES
from evalpipe.store.histories import Repeated


def without_repeated(tables: Mapping[str, pl.DataFrame], repeated: Sequence[Repeated]) -> dict[str, pl.DataFrame]:
    """Sessions and steps of a task, where some sessions repeat others.

    Args:
        tables: ``raw.sessions`` and ``raw.steps``.
        repeated: What sessions of the day repeat.

    Returns:
        The two tables; nothing where no session of the task repeats any.
    """
    sessions, steps = tables["raw.sessions"], tables["raw.steps"]
    there = set(sessions["session_id"].to_list()) if repeated else set()
    some = [one for one in repeated if one.session_id in there]
    if not some:
        return {}
    ids = [one.session_id for one in some]
    own = steps.filter(pl.col("session_id").is_in(ids)).partition_by("session_id", as_dict=True)
    chunks = [
        sources.without_turns(
            sources.Part(sessions.filter(session_id=one.session_id), own.get((one.session_id,), steps.clear())),
            one.n_turns,
            one.until,
            one.counted_session_id,
        )
        for one in some
    ]
    new = {
        "raw.sessions": pl.concat(chunk.sessions for chunk in chunks),
        "raw.steps": pl.concat(chunk.steps for chunk in chunks),
    }
    return {
        name: pl.concat([
            tables[name].filter(~pl.col("session_id").is_in(ids)),
            render.conform(TABLES[name], rows.select(TABLES[name].names)),
        ]).sort(TABLES[name].sort)
        for name, rows in new.items()
    }  # fmt: skip
