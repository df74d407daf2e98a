"""People of a home whose id as logged is still there.

Belongs here: reading who they are, and the tokens that older slices have of them. Does not belong here: what
becomes of them (``erase_scope.py``, ``masked.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from evalpipe.store.lake import read_part

if TYPE_CHECKING:
    from evalpipe.steps.context import Context

#: What is read of raw sessions, landed and sliced.
RAW = ["session_id", "user_id", "tenant", "source", "parent_session_id"]


def raw_sessions(context: Context, *, past_damage: bool = False) -> pl.DataFrame:
    """Raw sessions of every copy that is still there as logged.

    Args:
        context: The open home.
        past_damage: Leave out raw slices that have lost a part.

    Returns:
        Columns :data:`RAW`, each row once.
    """
    landing = context.landing
    files = [
        path
        for entry in landing.entries()
        for part in entry.parts
        if part.rows.get("sessions") and (path := landing.path(part.day, part.stem, "sessions")).exists()
    ]
    frames = [read_part("raw.sessions", path, RAW) for path in files]
    slices = [m for m in context.lake.manifests("raw") if not (past_damage and context.lake.damage(m))]
    return pl.concat([context.lake.read("raw.sessions", slices, RAW), *frames]).unique()


def respelled(context: Context) -> dict[str, str]:
    """Tokens of spellings of users, which older slices hold, to the token that the user has now.

    Known of users whose id as logged is still there: who is in newer logs too would else be two people.
    """
    people = raw_sessions(context, past_damage=True).select("user_id", "tenant").unique().drop_nulls("user_id")
    found = [context.mask_plan.users(user, tenant or "") for user, tenant in people.iter_rows()]
    return {old: tokens[0] for tokens in found for old in tokens[1:]}
