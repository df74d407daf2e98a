"""One session in parts, as a log that was rotated holds it: which copies are parts of one whole.

Belongs here: the rule, over facts of copies and of their steps. Does not belong here: the rows of the
whole (``sources/joining.py``), copies that hold each other (``winners.py``), or reading steps.

Parts are joined where nothing speaks against it and something for it:

- the reader says of every step what the log calls it (``SOURCES``), and the session's id is of a form
  that nobody gives twice;
- the copies begin with another step each. A snapshot of a log that grew, and a session that was taken
  up again from its middle, begin as the other copy does: these are never joined, the longest counts;
- a step that two copies hold is the same in both, or a call in one and its result in the other;
- a copy brings a step that those before it lack.

Copies are taken in the order in which they would count, so one that contradicts a larger one is left
out, as it was before, and the outcome is a function of the set of copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from datetime import date
from typing import Any

import polars as pl

from evalpipe.store.identity import has_unique_id

#: Readers whose steps carry ids of the log, and whose lines say the same in whatever file they stand.
SOURCES = frozenset({"claude_code", "evalpipe_jsonl"})

#: Where a copy lies: day and stem of a landing part, and the number of the copy in it.
Place = tuple[date, str, int]

#: What is asked of steps: which copy, which step, and digests of its two halves; null for a half that the
#: copy does not hold.
FACTS = ("session_id", "day", "stem", "copy", "key", "asked", "answered")

#: Gives :data:`FACTS` of the copies that it is given by ``session_id``, ``day``, ``stem`` and ``copy``.
Look = Callable[[pl.DataFrame], pl.DataFrame]

#: What finds a copy among all.
PLACE = ["session_id", "landed_id", "day", "stem", "copy"]

_Halves = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Joined:
    """A session that is made of several copies.

    Attributes:
        session_id: The session.
        places: Its parts, in order of time.
        n_messages: Messages of all, those that two parts hold counted once; of traces, whose parts resend
            them, an upper bound until they are joined.
        landed_ids: Of traces the id of each part as landed; empty for all else.
        n_bytes: Of traces the size of their spans.
    """

    session_id: str
    places: tuple[Place, ...]
    n_messages: int
    landed_ids: tuple[str, ...] = ()
    n_bytes: int = 0

    @property
    def picks(self) -> tuple[tuple[Place, str], ...]:
        """Its parts, with the id that each was landed under."""
        return tuple(zip(self.places, self.landed_ids or (self.session_id,) * len(self.places), strict=True))

    def lies_in(self, stems: Set[str]) -> bool:
        """Whether any of its parts lies in one of some landing parts."""
        return any(stem in stems for _, stem, _ in self.places)


def joined_sessions(ranked: pl.DataFrame, look: Look) -> list[Joined]:
    """Sessions whose copies are parts of one whole.

    Args:
        ranked: Copies that may count, with ``first_step_at``; of each session in the order in which they
            would count.
        look: Called once, if any session may be in parts.

    Returns:
        One entry a session that at least two copies make, in order of ids.
    """
    some = ranked.filter(
        pl.col("source").is_in(list(SOURCES)) & pl.col("first_step_at").is_not_null() & has_unique_id()
    ).unique(["session_id", "content_digest"], keep="first", maintain_order=True)
    some = some.filter(pl.col("first_step_at").n_unique().over("session_id") > 1)
    if some.is_empty():
        return []
    where = ["session_id", "day", "stem", "copy"]
    steps: dict[tuple[Any, ...], dict[int, _Halves]] = {}
    for session_id, day, stem, copy, key, *halves in look(some.select(where)).select(FACTS).iter_rows():
        steps.setdefault((session_id, day, stem, copy), {})[key] = (halves[0], halves[1])
    found = []
    for (session_id,), copies in some.group_by("session_id", maintain_order=True):
        taken, n_messages = _taken(copies.rows(named=True), steps)
        if len(taken) > 1:
            taken.sort(key=lambda copy: (copy["first_step_at"], copy["ended_at"], copy["content_digest"]))
            places = tuple((copy["day"], copy["stem"], copy["copy"]) for copy in taken)
            found.append(Joined(str(session_id), places, n_messages))
    return sorted(found, key=lambda item: item.session_id)


def _taken(
    copies: Iterable[dict[str, Any]], steps: dict[tuple[Any, ...], dict[int, _Halves]]
) -> tuple[list[dict[str, Any]], int]:
    """The copies that make one whole, the largest first, and how many messages they hold together."""
    taken: list[dict[str, Any]] = []
    whole: dict[int, _Halves] = {}
    n_messages = 0
    for copy in copies:
        own = steps.get((copy["session_id"], copy["day"], copy["stem"], copy["copy"]))
        if any(copy["first_step_at"] == other["first_step_at"] for other in taken):
            continue
        if own is None:
            # Its text has expired: what was one session before must not become two.
            n_messages += copy["n_messages"]
            taken.append(copy)
            continue
        shared = own.keys() & whole.keys()
        if not all(_agree(own[key], whole[key]) for key in shared):
            continue
        is_more = {key: _both(whole.get(key, (None, None)), halves) for key, halves in own.items()}
        if all(whole.get(key) == halves for key, halves in is_more.items()):
            continue
        n_twice = sum(own[key] == whole[key] for key in shared)
        n_messages = max(n_messages + copy["n_messages"] - n_twice, n_messages, copy["n_messages"])
        whole |= is_more
        taken.append(copy)
    return taken, n_messages


def _agree(one: _Halves, other: _Halves) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def _both(one: _Halves, other: _Halves) -> _Halves:
    return (
        other[0] if one[0] is None else one[0],
        other[1] if one[1] is None else one[1],
    )


def part_rows(joined: Iterable[Joined]) -> pl.DataFrame:
    """The copies that are parts, with what is known of the whole."""
    schema = {
        "session_id": pl.String(), "landed_id": pl.String(), "day": pl.Date(), "stem": pl.String(),
        "copy": pl.Int32(), "n_whole": pl.Int32(),
    }  # fmt: skip
    rows = [(item.session_id, landed_id, *place, item.n_messages) for item in joined for place, landed_id in item.picks]
    return pl.DataFrame(rows, schema=schema, orient="row")


def with_wholes(best: pl.DataFrame, ranked: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    """The copies that count, those that are made of parts as the whole that they make."""
    wholes = (
        ranked.join(parts, on=PLACE)
        .group_by("session_id")
        .agg(
            pl.col("n_whole").first(),
            pl.col("n_turns").sum().alias("turns"),
            pl.col("started_at").min().alias("first_at"),
            pl.col("ended_at").max().alias("last_at"),
        )
    )
    is_whole = pl.col("n_whole").is_not_null()
    return (
        best.join(wholes, on="session_id", how="left", maintain_order="left")
        .with_columns(
            day=pl.when(is_whole).then(pl.col("first_at").dt.date()).otherwise("day"),
            n_messages=pl.coalesce("n_whole", "n_messages"),
            n_turns=pl.when(is_whole).then("turns").otherwise("n_turns"),
            started_at=pl.coalesce("first_at", "started_at"),
            ended_at=pl.coalesce("last_at", "ended_at"),
            # Nobody has read what was said in all of it.
            said_digest=pl.when(~is_whole).then("said_digest"),
        )
        .drop("n_whole", "turns", "first_at", "last_at")
    )


def step_facts(steps: pl.DataFrame) -> pl.DataFrame:
    """Facts of steps that tell whether two copies contradict each other.

    Args:
        steps: Landed steps, in order, with ``session_id``, ``day``, ``stem`` and ``copy``.

    Returns:
        :data:`FACTS`, one row a step. The halves of a call are what was asked and what came back, those
        of an answer who gave it and its words: a log may be cut between the two.
    """
    where = ["session_id", "day", "stem", "copy"]
    is_call, is_answer = pl.col("kind") == "tool", pl.col("kind") == "agent"
    is_result_only = is_call & pl.col("name").is_null() & pl.col("arguments").is_null()
    is_open = is_call & (pl.col("error") == "no_result").fill_null(value=False) & pl.col("output").is_null()
    asked = (
        pl.when(is_result_only)
        .then(None)
        .when(is_call)
        .then(pl.struct("parent_id", "origin", "name", "arguments", "started_at").hash())
        .when(is_answer)
        .then(pl.struct("parent_id", "origin", "model").hash())
        .otherwise(pl.struct("parent_id", "origin", "name", "text", "arguments", "output", "started_at").hash())
    )
    answered = (
        pl.when(is_open)
        .then(None)
        .when(is_call)
        .then(pl.struct("text", "output", "exit_code", "error", "ended_at").hash())
        .when(is_answer & pl.col("text").is_not_null())
        .then(pl.struct("text", "error").hash())
    )
    number = pl.int_range(pl.len()).over([*where, "step_id", "kind"])
    return (
        steps.with_columns(number=number)
        .with_columns(key=pl.struct("step_id", "kind", "number").hash(), asked=asked, answered=answered)
        .select(FACTS)
    )
