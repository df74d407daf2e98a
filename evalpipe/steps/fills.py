"""Raw rows with what only another exporter's copy of a session says.

Belongs here: which columns are taken, and which of them go together. Does not belong here: which copies
are asked (``store/fills.py``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import polars as pl

from evalpipe.contracts import render
from evalpipe.contracts.tables import TABLES
from evalpipe.contracts.tables.raw import FEEDBACK, RATING
from evalpipe.store.fills import Fill

#: Columns of a session that are taken together, where it states none of them.
GROUPS = (
    ("user_id", "tenant"),
    ("assignment_policy", "assignment_unit", "assignment_probability", "routing_epoch"),
    ("objective_reward", "is_objective_success"),
    ("logged_cost_usd",),
    ("task_id", "trial"),
    ("scenario_declared",),
)
_COLUMNS = tuple(name for group in GROUPS for name in group)
_OTHERS = "__other"
_IS_MARK = (pl.col("origin") == FEEDBACK) & (pl.col("name") == RATING)

#: Rows of a table (``sessions`` or ``steps``) of one copy, as landed.
Read = Callable[[Fill, str], pl.DataFrame]


def filled(tables: Mapping[str, pl.DataFrame], fills: Sequence[Fill], read: Read) -> dict[str, pl.DataFrame]:
    """Sessions with what other copies say beside them, and their steps with the marks that people gave there.

    Args:
        tables: ``raw.sessions`` and ``raw.steps`` of a task.
        fills: Copies to ask, the richest of a session first.
        read: Reads a landed table of a copy.

    Returns:
        The two tables; nothing where no session of the task has such a copy.
    """
    sessions, steps = tables["raw.sessions"], tables["raw.steps"]
    there = set(sessions["session_id"].to_list()) if fills else set()
    asked: dict[str, list[Fill]] = defaultdict(list)
    for one in fills:
        if one.session_id in there and not one.is_gone:
            asked[one.session_id].append(one)
    if not asked:
        return {}
    for place in range(max(map(len, asked.values()))):
        said = [
            read(others[place], "sessions").select(pl.lit(session_id).alias("session_id"), *_COLUMNS)
            for session_id, others in asked.items()
            if place < len(others)
        ]
        sessions = _completed(sessions, pl.concat(said))
    marked = set(steps.filter(_IS_MARK)["session_id"].unique().to_list())
    marks = [
        given
        for session_id, others in asked.items()
        if session_id not in marked and (given := _marks(session_id, others, read)) is not None
    ]
    return {"raw.sessions": sessions, "raw.steps": steps} if not marks else _with_marks(sessions, steps, marks)


def _completed(sessions: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    rows = sessions.join(others, on="session_id", how="left", suffix=_OTHERS, maintain_order="left")
    for group in GROUPS:
        is_mute = pl.all_horizontal(pl.col(name).is_null() for name in group)
        rows = rows.with_columns(
            pl.when(is_mute).then(f"{name}{_OTHERS}").otherwise(name).alias(name) for name in group
        )
    return rows.select(sessions.columns)


def _marks(session_id: str, others: Sequence[Fill], read: Read) -> pl.DataFrame | None:
    """Marks of the first copy that has any."""
    for one in others:
        found = read(one, "steps").filter(_IS_MARK)
        if not found.is_empty():
            return found.select(TABLES["raw.steps"].names).with_columns(
                session_id=pl.lit(session_id),
                # The step that it is below of has another id in the log of another exporter.
                parent_id=pl.lit(None, pl.String()),
            )
    return None


def _with_marks(sessions: pl.DataFrame, steps: pl.DataFrame, marks: Sequence[pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Marks behind the other steps of their sessions, each in the turn that it was given in."""
    given = pl.concat(marks).join(sessions.select("session_id", "n_turns", "n_steps"), on="session_id")
    number = pl.int_range(pl.len(), dtype=pl.Int32).over("session_id")
    given = given.with_columns(
        seq=(pl.col("n_steps") + number).cast(pl.Int32), turn=pl.min_horizontal("turn", "n_turns").cast(pl.Int32)
    )
    n_given = given.group_by("session_id").agg(n_given=pl.len().cast(pl.Int32))
    more = pl.col("n_steps") + pl.col("n_given").fill_null(0)
    own = render.conform(TABLES["raw.steps"], given.select(TABLES["raw.steps"].names).sort("session_id", "seq"))
    return {
        "raw.sessions": sessions.join(n_given, on="session_id", how="left", maintain_order="left")
        .with_columns(n_steps=more)
        .select(sessions.columns),
        "raw.steps": pl.concat([steps, own]).sort("session_id", "seq"),
    }
