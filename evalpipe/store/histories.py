"""Sessions that begin with the history of another one: which of them its turns count in.

Belongs here: the rule, over one row a session. Does not belong here: copies under one id
(``store/winners.py``), or taking the turns out of a session's rows (``sources/joining.py``).

An agent that takes a session up again, or forks it, may write all that was said so far into a log under a
new id: the same messages, with the ids and times that they had. Each turn counts once. Turns are known by
what the log calls them and by their time (``turn_keys``), so nothing is read for it, text that has expired
included; and what repeats a session must begin as it does, since that is how such logs are written.

Of the sessions that begin alike the one that begins first has the history. Copied lines keep their times,
so that is mostly a tie, and then the one that went its own way first: the session that nobody went on with
before the others did. What is decided is a function of the set of sessions, whichever came first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

#: Seconds of a turn's key, behind a digest of its id (``sources/session.py``).
_SECONDS = 2**32

#: The rule's name in ``raw.copies``.
RULE = "same_history"


@dataclass(frozen=True, slots=True)
class Repeated:
    """What a session repeats of another one.

    Attributes:
        session_id: The session that repeats.
        n_turns: Its leading turns that do not count in it.
        until: Steps of the last of these turns that are later are its own; ``None``: none are.
        counted_session_id: The session in which they count.
    """

    session_id: str
    n_turns: int
    until: datetime | None
    counted_session_id: str


def repeated_histories(sessions: pl.DataFrame) -> tuple[pl.DataFrame, list[Repeated]]:
    """Sessions that begin with what another one holds.

    Args:
        sessions: One row a session that counts: ``session_id``, ``source``, ``started_at``, ``ended_at``
            and ``turn_keys``, null where a log does not say what its turns are called.

    Returns:
        Sessions that hold nothing else (``session_id``, ``counted_session_id``, ``rule``), and what the
        others repeat; both in order of ids.
    """
    some = sessions.filter(pl.col("turn_keys").list.len() > 0).with_columns(first=pl.col("turn_keys").list.first())
    some = some.filter(pl.len().over("source", "first") > 1).sort("session_id")
    lost: list[tuple[str, str, str]] = []
    repeated: list[Repeated] = []
    for _, alike in some.group_by("source", "first", maintain_order=True):
        for session_id, n_turns, until, counted, is_all in _repeated(alike.rows(named=True)):
            if is_all:
                lost.append((session_id, counted, RULE))
            else:
                repeated.append(Repeated(session_id, n_turns, until, counted))
    schema = {"session_id": pl.String(), "counted_session_id": pl.String(), "rule": pl.String()}
    return (
        pl.DataFrame(sorted(lost), schema=schema, orient="row"),
        sorted(repeated, key=lambda one: one.session_id),
    )


def _repeated(alike: Sequence[dict[str, Any]]) -> Iterator[tuple[str, int, datetime | None, str, bool]]:
    """Of sessions that begin alike: which, its turns, until when, whose they are, and whether that is all of it."""
    ways = {row["session_id"]: _ways(row["turn_keys"]) for row in alike}
    n_takers = Counter(way for own in ways.values() for way in own)

    def own_second(row: dict[str, Any]) -> int:
        own = ways[row["session_id"]]
        n_shared = next((place for place, way in enumerate(own) if n_takers[way] == 1), len(own))
        return row["turn_keys"][n_shared] % _SECONDS if n_shared < len(own) else -1

    holder: dict[int, dict[str, Any]] = {}
    ordered = sorted(alike, key=lambda row: (row["started_at"], own_second(row), row["ended_at"], row["session_id"]))
    # A session that only repeats another one holds nothing that a third could repeat.
    for row in ordered:
        own = ways[row["session_id"]]
        n_known = next((place for place, way in enumerate(own) if way not in holder), len(own))
        if n_known:
            first = holder[own[n_known - 1]]
            is_last = len(first["turn_keys"]) == n_known
            until = first["ended_at"] if is_last else None
            is_all = n_known == len(own) and (until is None or row["ended_at"] <= until)
            yield row["session_id"], n_known, until, first["session_id"], is_all
        for way in own[n_known:]:
            holder[way] = row


def _ways(keys: Sequence[int]) -> list[int]:
    """For each turn something that stands for all turns up to it."""
    way = 0
    ways = []
    for key in keys:
        way = hash((way, key))
        ways.append(way)
    return ways
