"""Sessions of edge files among those of logs: which of them are the same.

Belongs here: finding the log's own id of a session that came as a token. Does not belong here: which of
two copies counts (``store/winners.py``). An edge file names a session by its keyed token and what was
said in it by a keyed digest, so both are made of each log's session here and looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class EdgeIdentity:
    """How a session of a log would be called in an edge file.

    Attributes:
        token: From the id of a session to its token.
        keyed: From a digest to the keyed one.
        extraction: Version of the extraction in force.
    """

    token: Callable[[str], str]
    keyed: Callable[[str], str]
    extraction: str


def named_alike(copies: pl.DataFrame, edge: EdgeIdentity | None) -> pl.DataFrame:
    """Give copies from edge files the id and the digest of words that a log of the session has here.

    Args:
        copies: Landed copies, with ``session_id``, ``said_digest`` and ``extraction``.
        edge: How sessions of logs would be called there.

    Returns:
        The copies with ``landed_id`` (the id as landed), ``is_edge``, and ``is_foreign``: whether the
        signals are of another extraction than the one in force.
    """
    is_edge = pl.col("extraction").is_not_null()
    in_force = edge.extraction if edge else ""
    rows = copies.with_columns(
        landed_id="session_id",
        is_edge=is_edge,
        is_foreign=(pl.col("extraction") != in_force).fill_null(value=False),
    )
    if edge is None or not rows["is_edge"].any():
        return rows
    logged = rows.filter(~is_edge)
    ids = {edge.token(one): one for one in logged["session_id"].unique().to_list()}
    words = {edge.keyed(one): one for one in logged["said_digest"].drop_nulls().unique().to_list()}
    return rows.with_columns(
        session_id=pl.when(is_edge).then(pl.col("session_id").replace(ids)).otherwise("session_id"),
        said_digest=pl.when(is_edge).then(pl.col("said_digest").replace(words)).otherwise("said_digest"),
    )
