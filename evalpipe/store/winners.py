"""What counts of all that was landed: one copy of each session.

Belongs here: the pure choice over the index. Does not belong here: files of the landing zone
(``store/landing.py``), the entries of its index and which parse of a file counts (``store/entries.py``),
and what a day is made from as a value (``store/day_input.py``).

A session may have copies in several files, cut or grown, and may even start on another day in a cut
copy: one copy wins over all days. The choice does not depend on the order of landing.

One session in the logs of two exporters has two ids; which of them counts says ``store/identity.py``.
Every copy that does not count is listed on the day of the session that counts for it.

Copies that are parts of one session, as a rotated log holds them, count together (``store/parts.py``),
on the day on which the first of them begins. Of traces, ``store/traces.py`` tells which are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date

import polars as pl

from evalpipe.store.day_input import CopyRow, DayInput, Pick
from evalpipe.store.edge import EdgeIdentity, named_alike
from evalpipe.store.entries import RAW, TEXT, Entry, LandedPart, chosen_entries, superseded, version_key
from evalpipe.store.identity import same_sessions
from evalpipe.store.parts import PLACE, Joined, Look, joined_sessions, part_rows, with_wholes
from evalpipe.store.traces import joined_traces, named_by_trace
from evalpipe.store.trials import Told, told_outcomes
from evalpipe.store.withdrawn import Withdrawn, withdrawn_sessions

#: What decides which copy of a session wins, and which session is another one logged elsewhere.
#: ``copy`` numbers the copies of a session in one part.
COPY_SCHEMA = pl.Schema({
    "session_id": pl.String(), "copy": pl.Int32(), "source": pl.String(), "file_id": pl.String(),
    "reader_version": pl.String(), "n_messages": pl.Int32(), "content_digest": pl.String(),
    "said_digest": pl.String(), "n_turns": pl.Int32(), "started_at": pl.Datetime("us", "UTC"),
    "ended_at": pl.Datetime("us", "UTC"), "is_dated": pl.Boolean(), "first_step_at": pl.Datetime("us", "UTC"),
    "extraction": pl.String(), "traces": pl.List(pl.String()), "span_bytes": pl.Int64(),
    "trial_name": pl.String(), "consent": pl.String(),
})  # fmt: skip

_TEXTS = {"file_id": pl.String(), "batch": pl.String()}


def choose(
    entries: Sequence[Entry],
    copies: Sequence[pl.DataFrame],
    look: Look,
    edge: EdgeIdentity | None = None,
    look_at_spans: Look | None = None,
) -> dict[date, DayInput]:
    """Landing parts of every day, with the files and sessions that count in them.

    Args:
        entries: The whole landing index.
        copies: ``batch``, ``day``, ``stem`` and :data:`COPY_SCHEMA` of every landed copy.
        look: Tells the steps of copies; asked about sessions only that may be in parts.
        look_at_spans: Likewise the spans of traces; without, traces are not joined.
        edge: How sessions of edge files are told to be those of logs.

    Returns:
        Inputs of every day that something was landed for, in order of days.
    """
    chosen = chosen_entries(entries)
    gone = superseded(entries)
    ranked = _ranked(chosen, gone, copies, edge)
    may_join = ranked.filter(~pl.col("is_gone") & pl.col("is_dated"))
    joined = joined_sessions(may_join, look)
    if look_at_spans is not None:
        joined += joined_traces(may_join, look_at_spans)
    parts = part_rows(joined)
    best = with_wholes(ranked.unique("session_id", keep="first", maintain_order=True), ranked, parts)
    lost, outcomes = told_outcomes(best, same_sessions(best))
    counts = best.join(lost, on="session_id", how="anti")
    winners = _winners(counts.join(parts, on="session_id", how="anti"))
    whole = dict(counts.select("session_id", "day").iter_rows())
    joined_on: dict[date, list[Joined]] = defaultdict(list)
    for item in joined:
        if item.session_id in whole:
            joined_on[whole[item.session_id]].append(item)
    told_on: dict[date, list[Told]] = defaultdict(list)
    for one in outcomes:
        told_on[whole[one.session_id]].append(one)
    gone_on: dict[date, list[Withdrawn]] = defaultdict(list)
    for one_gone in withdrawn_sessions(ranked, lost):
        gone_on[whole[one_gone.session_id]].append(one_gone)
    copied = _copies(ranked, best, lost, parts)
    by_day: dict[date, list[tuple[LandedPart, tuple[str, ...]]]] = defaultdict(list)
    for entry in entries:
        for part in entry.parts:
            files = tuple(f for f in part.file_ids if chosen.get(f) == entry.batch and f not in gone)
            # A day that lost all its sessions to copies elsewhere is made anew without them.
            items = by_day[part.day]
            if files or (part.day, part.stem) in winners:
                items.append((part, files))
    gone_by = {what: {p.stem for e in entries if what in e.expired for p in e.parts} for what in (RAW, TEXT)}
    return {
        day: _day_input(
            day,
            by_day[day],
            winners,
            copied.get(day, ()),
            tuple(joined_on.get(day, ())),
            tuple(told_on.get(day, ())),
            tuple(gone_on.get(day, ())),
            gone_by,
        )
        for day in sorted(by_day.keys() | joined_on.keys())
    }


def _day_input(
    day: date,
    items: list[tuple[LandedPart, tuple[str, ...]]],
    winners: Mapping[tuple[date, str], tuple[Pick, ...]],
    copies: tuple[CopyRow, ...],
    joined: tuple[Joined, ...],
    told: tuple[Told, ...],
    withdrawn: tuple[Withdrawn, ...],
    gone: Mapping[str, set[str]],
) -> DayInput:
    items = sorted(items, key=lambda item: item[0].stem)
    stems = tuple(part.stem for part, _ in items)
    parts = (*stems, *(stem for one in joined for _, stem, _ in one.places), *(one.stem for one in told))
    return DayInput(
        stems=stems,
        winners={part.stem: winners.get((day, part.stem), ()) for part, _ in items},
        files={part.stem: files for part, files in items},
        n_text_bytes={part.stem: part.n_text_bytes for part, _ in items},
        rows={part.stem: part.rows for part, _ in items},
        copies=copies,
        joined=joined,
        told=told,
        withdrawn=withdrawn,
        raw_gone=frozenset(gone[RAW].intersection(parts)),
        text_gone=frozenset(gone[TEXT].intersection(parts)),
    )


def _ranked(
    chosen: Mapping[str, str], gone: set[str], copies: Sequence[pl.DataFrame], edge: EdgeIdentity | None
) -> pl.DataFrame:
    """Copies of each session, the one that counts first: newest reader, then most messages, then a log
    before an edge file, then the smaller digest. Signals of another extraction come last of all, before them
    copies that only their trace names.

    A copy in a parse that does not count is no copy. Of equal copies, one in a file that a longer one
    replaced comes last, so that what counts lies in a file that counts.
    """
    schema = {"batch": pl.String(), "day": pl.Date(), "stem": pl.String(), **COPY_SCHEMA}
    counts = pl.DataFrame({"file_id": list(chosen), "batch": list(chosen.values())}, schema_overrides=_TEXTS)
    rows = pl.concat([pl.DataFrame(schema=schema), *copies]).join(counts, on=["file_id", "batch"], how="semi")
    rows = named_by_trace(named_alike(rows, edge))
    versions = sorted(rows["reader_version"].unique(), key=version_key)
    age = pl.DataFrame(
        {"reader_version": versions, "age": range(len(versions), 0, -1)},
        schema={"reader_version": pl.String, "age": pl.Int32},
    )
    order = [
        "session_id", "is_foreign", "is_renamed", "age", "n_messages", "is_edge", "content_digest",
        "is_gone", "file_id", "day", "stem", "copy",
    ]  # fmt: skip
    return (
        rows.join(age, on="reader_version")
        .with_columns(is_gone=pl.col("file_id").is_in(list(gone)))
        .sort(order, descending=[name == "n_messages" for name in order])
    )


def _winners(best: pl.DataFrame) -> dict[tuple[date, str], tuple[Pick, ...]]:
    """Copies that count, by day and part."""
    grouped = best.sort("session_id").group_by("day", "stem", maintain_order=True).agg("landed_id", "copy")
    return {(day, stem): tuple(zip(ids, copies, strict=True)) for day, stem, ids, copies in grouped.iter_rows()}


def _copies(
    ranked: pl.DataFrame, best: pl.DataFrame, lost: pl.DataFrame, parts: pl.DataFrame
) -> dict[date, tuple[CopyRow, ...]]:
    """Rows of ``raw.copies`` by the day of the session that counts.

    Copies in files that a longer copy of the file replaced are not listed, as the files are not.
    """
    is_part = parts.select(*PLACE, is_part=pl.lit(value=True))
    numbered = ranked.join(is_part, on=PLACE, how="left", maintain_order="left").with_columns(
        copy=pl.int_range(pl.len(), dtype=pl.Int32).over("session_id")
    )
    counted = pl.col("counted_session_id")
    rows = (
        numbered.join(lost, on="session_id", how="left", maintain_order="left")
        .filter(((pl.col("copy") > 0) & ~pl.col("is_gone")) | counted.is_not_null())
        .with_columns(
            # What another source's copy of the session stands for goes by that rule; the smaller
            # copies of either go by their size.
            rule=pl.when(pl.col("copy") == 0)
            .then("rule")
            .when(pl.col("is_part") & counted.is_null())
            .then(pl.lit("merged"))
            .otherwise(pl.lit("same_session")),
            counted_session_id=counted.fill_null(pl.col("session_id")),
            # By its own id, which is what finds it.
            session_id=pl.when("is_renamed").then("landed_id").otherwise("session_id"),
        )
    )
    told = best.select("day", counted_session_id="session_id", counted_source="source", counted_n_messages="n_messages")
    listed = (
        rows.drop("day")
        .join(told, on="counted_session_id")
        .sort("session_id", "copy")
        .select(
            "day", "session_id", "copy", "source", "file_id", "rule", "n_messages",
            "counted_session_id", "counted_source", "counted_n_messages",
        )
    )  # fmt: skip
    out: dict[date, list[CopyRow]] = defaultdict(list)
    for day, *values in listed.iter_rows():
        out[day].append(tuple(values))
    return {day: tuple(rows_of) for day, rows_of in out.items()}
