"""One session in the traces of several files: which copies are parts of one whole.

Belongs here: the rule, over facts of copies and of their spans. Does not belong here: logs that hold
steps (``store/parts.py``), or making steps of spans (``sources``).

Exporters rotate files, page their answers, and let go of one trace at a time, so the traces of a session,
and the spans of a trace, lie in several files. A span has an id, which tells what two copies share:

- A copy that is named by its trace alone, since the span that names the conversation lies in another file,
  is of the session that holds the trace under a name, if there is one such session only.
- Under a short id that two users bear, a file names the session of each by their first trace in it, and by the
  bare id before the second one came. A copy under the bare id gets the other name if it holds the trace that
  gave it, and all of its traces are held under that name. Whatever shares less may be another person's.
- Copies of one id are parts if the id is a long one (``contracts/ids.py``), or if they share a trace. Names
  and numbers are given twice: of copies that share nothing else the largest counts.
- A span that two copies hold began in the same second in both. What contradicts a larger copy is left out.
- The copy brings a span, or the end of one, that the larger ones lack. A snapshot that a longer copy holds
  adds nothing and is no part.

Copies are taken in the order in which they would count, so the outcome is a function of their set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import polars as pl

from evalpipe.contracts.ids import OF_USER, is_long_id
from evalpipe.store.parts import Joined

#: What is asked of spans: which copy, and by span what :func:`~evalpipe.sources` marks it by.
FACTS = ("session_id", "day", "stem", "copy", "span_keys", "span_began", "span_is_ended")

#: Gives :data:`FACTS` of the copies that it is given by ``session_id`` (as landed), ``day``, ``stem``, ``copy``.
Look = Callable[[pl.DataFrame], pl.DataFrame]

#: Text of spans that one session is made of at most; what goes beyond is left out, the smallest copies first.
_MOST_BYTES = 256_000_000

#: When a span began, and whether it has ended; null where a copy does not say.
_Span = tuple[int | None, bool | None]


def named_by_trace(copies: pl.DataFrame) -> pl.DataFrame:
    """Give copies that only their trace names the id of the session that holds the trace under a name.

    Args:
        copies: Landed copies, with ``session_id``, ``source`` and ``traces``.

    Returns:
        The copies with ``is_renamed``.
    """
    rows = copies.with_columns(is_renamed=pl.lit(value=False))
    if rows["traces"].null_count() == rows.height:
        return rows
    rows = _named_by_user(rows)
    held = (
        rows.filter(pl.col("traces").is_not_null())
        .select("session_id", "source", trace="traces")
        .explode("trace", empty_as_null=False)
        .unique()
    )
    is_own = pl.col("session_id") == pl.col("source") + ":" + pl.col("trace")
    names = (
        held.filter(~is_own)
        .group_by("source", "trace")
        .agg(name=pl.col("session_id").first(), n_names=pl.len())
        .filter(pl.col("n_names") == 1)
        .select(session_id=pl.col("source") + ":" + pl.col("trace"), name="name")
    )
    # Whoever named a conversation by a trace of it has other traces there.
    is_nameless = (pl.col("traces").list.len() == 1).fill_null(value=False) & pl.col("name").is_not_null()
    return (
        rows.join(names, on="session_id", how="left", maintain_order="left")
        .with_columns(
            is_renamed=is_nameless | pl.col("is_renamed"),
            session_id=pl.when(is_nameless).then("name").otherwise("session_id"),
        )
        .drop("name")
    )


def _named_by_user(rows: pl.DataFrame) -> pl.DataFrame:
    """Give copies of a time when a short id had one user the name that the user's session has since."""
    told = rows.filter(pl.col("traces").is_not_null()).with_row_index("told").select("told", "session_id", "traces")
    parts = pl.col("session_id").str.splitn(OF_USER, 2).struct
    of_user = (
        told.filter(pl.col("session_id").str.contains(OF_USER, literal=True))
        .select("traces", of_user="session_id", bare=parts.field("field_0"), first=parts.field("field_1"))
        .explode("traces", empty_as_null=False)
        .unique()
    )
    if of_user.is_empty():
        return rows
    held = (
        told.select("told", "traces", bare="session_id", n_traces=pl.col("traces").list.n_unique())
        .explode("traces", empty_as_null=False)
        .unique()
        .join(of_user, on=["bare", "traces"])
    )
    names = (
        held.group_by("told", "bare", "of_user", "n_traces")
        .agg(n_held=pl.len(), has_first=(pl.col("traces") == pl.col("first")).any())
        .filter("has_first", pl.col("n_held") == pl.col("n_traces"))
        .group_by("told")
        .agg(pl.col("of_user").first(), n_names=pl.len())
        .filter(pl.col("n_names") == 1)
        .select("told", "of_user")
    )
    is_told = pl.col("traces").is_not_null()
    numbered = rows.with_columns(told=pl.when(is_told).then(is_told.cum_sum() - 1).cast(pl.UInt32))
    joined = numbered.join(names, on="told", how="left", maintain_order="left")
    return joined.with_columns(
        is_renamed=pl.col("is_renamed") | pl.col("of_user").is_not_null(),
        session_id=pl.coalesce("of_user", "session_id"),
    ).drop("of_user", "told")


def joined_traces(ranked: pl.DataFrame, look: Look) -> list[Joined]:
    """Sessions whose copies are parts of one whole.

    Args:
        ranked: Copies that may count, with ``landed_id``, ``traces`` and ``span_bytes``; of each session in
            the order in which they would count.
        look: Called once, if any session may be in parts.

    Returns:
        One entry a session that at least two copies make, in order of ids.
    """
    some = ranked.filter(pl.col("traces").is_not_null()).unique(
        ["session_id", "landed_id", "content_digest"], keep="first", maintain_order=True
    )
    some = some.filter(pl.len().over("session_id") > 1)
    if some.is_empty():
        return []
    told = look(some.select("day", "stem", "copy", session_id="landed_id"))
    facts = {
        (day, stem, copy, landed_id): _spans(*lists)
        for landed_id, day, stem, copy, *lists in told.select(FACTS).iter_rows()
    }
    found = []
    for (session_id,), copies in some.group_by("session_id", maintain_order=True):
        taken = _taken(str(session_id), copies.rows(named=True), facts)
        if len(taken) > 1:
            taken.sort(key=lambda one: (one["started_at"], one["ended_at"], one["content_digest"]))
            found.append(
                Joined(
                    str(session_id),
                    tuple((one["day"], one["stem"], one["copy"]) for one in taken),
                    sum(one["n_messages"] for one in taken),
                    tuple(one["landed_id"] for one in taken),
                    sum(one["span_bytes"] for one in taken),
                )
            )
    return sorted(found, key=lambda item: item.session_id)


def _spans(keys: list[int], began: list[int | None], is_ended: list[bool]) -> dict[int, _Span]:
    return {key: (at, ended or None) for key, at, ended in zip(keys, began, is_ended, strict=True)}


def _taken(
    session_id: str, copies: Iterable[dict[str, Any]], facts: dict[tuple[Any, ...], dict[int, _Span]]
) -> list[dict[str, Any]]:
    """The copies that make one whole, the largest first."""
    is_long = is_long_id(session_id.partition(":")[2])
    taken: list[dict[str, Any]] = []
    whole: dict[int, _Span] = {}
    traces = set[str]()
    n_bytes = 0
    for copy in copies:
        if taken and not is_long and traces.isdisjoint(copy["traces"]):
            continue
        if taken and n_bytes + copy["span_bytes"] > _MOST_BYTES:
            continue
        own = facts.get((copy["day"], copy["stem"], copy["copy"], copy["landed_id"]))
        if own is None:
            # Its text has expired: what was one session before must not become two.
            if any(copy["started_at"] == other["started_at"] for other in taken):
                continue
        elif not _is_new(own, whole):
            continue
        else:
            whole |= {key: _both(span, whole.get(key, (None, None))) for key, span in own.items()}
        taken.append(copy)
        traces.update(copy["traces"])
        n_bytes += copy["span_bytes"]
    return taken


def _is_new(own: dict[int, _Span], whole: dict[int, _Span]) -> bool:
    """Whether spans say something more than those of the whole, and nothing else of the same ones."""
    is_more = False
    for key, (began, is_ended) in own.items():
        known = whole.get(key)
        if known is None:
            is_more = True
            continue
        if began is not None and known[0] is not None and began != known[0]:
            return False
        is_more |= (began is not None and known[0] is None) or (is_ended is True and known[1] is None)
    return is_more


def _both(one: _Span, other: _Span) -> _Span:
    return one[0] if one[0] is not None else other[0], one[1] or other[1]
