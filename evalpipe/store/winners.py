"""What counts of all that was landed: one parse of each file, one copy of each session.

Belongs here: the index entries as values, and the pure choice over them. Does not belong here: files
of the landing zone (``store/landing.py``).

A file may be in several entries: parsed anew by newer readers, or landed by two processes at once.
Its rows of ``files`` and ``quarantine`` then come from one entry only, that of the newest readers,
ties going to the smaller batch digest. A session may have copies in several files, cut or grown, and
may even start on another day in a cut copy: one copy wins over all days. Neither choice depends on
the order of landing.

One session in the logs of two exporters has two ids; which of them counts says ``store/identity.py``.
Every copy that does not count is listed on the day of the session that counts for it.

A log that grows is another file each night, by its digest. A file that begins with all the bytes that
were read at its path before tells everything that the earlier copy told, so the earlier one is left
out of ``files`` and ``quarantine``: every record is counted once, in the longest copy. A file that was
written anew under an old name does not begin so, and both count. Sessions need no such rule, because
the longest copy of a session wins anyhow.

Copies that are parts of one session, as a rotated log holds them, count together (``store/parts.py``),
on the day on which the first of them begins. Of traces, ``store/traces.py`` tells which are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import astuple, dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any

import polars as pl

from evalpipe.store.edge import EdgeIdentity, named_alike
from evalpipe.store.identity import same_sessions
from evalpipe.store.manifest import digest_of
from evalpipe.store.parts import PLACE, Joined, Look, joined_sessions, part_rows, with_wholes
from evalpipe.store.traces import joined_traces, named_by_trace
from evalpipe.store.trials import Told, told_outcomes

#: What decides which copy of a session wins, and which session is another one logged elsewhere.
#: ``copy`` numbers the copies of a session in one part.
COPY_SCHEMA = pl.Schema({
    "session_id": pl.String(), "copy": pl.Int32(), "source": pl.String(), "file_id": pl.String(),
    "reader_version": pl.String(), "n_messages": pl.Int32(), "content_digest": pl.String(),
    "said_digest": pl.String(), "n_turns": pl.Int32(), "started_at": pl.Datetime("us", "UTC"),
    "ended_at": pl.Datetime("us", "UTC"), "is_dated": pl.Boolean(), "first_step_at": pl.Datetime("us", "UTC"),
    "extraction": pl.String(), "traces": pl.List(pl.String()), "span_bytes": pl.Int64(),
    "trial_name": pl.String(),
})  # fmt: skip

#: What retention takes away of a batch, in order: landed parts and raw rows, masked text, snippets.
RAW, TEXT, SNIPPETS = "raw", "text", "snippets"

#: A copy in a part: session and number.
Pick = tuple[str, int]
#: A row of ``raw.copies``, in the order of the contract.
CopyRow = tuple[Any, ...]

_TEXTS = {"file_id": pl.String(), "batch": pl.String()}
_Version = tuple[tuple[int, int, str], ...]


@dataclass(frozen=True, slots=True)
class LandedFile:
    """A file of a batch.

    Attributes:
        digest: Digest of its bytes; ``file_id`` in every table.
        n_bytes: Size as stored.
        path: Where it was read. Restricted, like the whole landing zone.
        grown_from: Digests of earlier copies that it begins with, byte for byte.
    """

    digest: str
    n_bytes: int
    path: str = ""
    grown_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LandedPart:
    """One day's share of one chunk of a batch.

    Attributes:
        stem: Name of the part.
        day: UTC day.
        rows: Rows by table.
        n_text_bytes: Size of the steps' text.
        file_ids: Files that have rows of ``files`` or ``quarantine`` here.
    """

    stem: str
    day: date
    rows: Mapping[str, int]
    n_text_bytes: int
    file_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One index entry: a batch, its files, the readers that parsed it, and its parts.

    ``expired`` names what retention has taken away of the batch (:data:`RAW`, :data:`TEXT`,
    :data:`SNIPPETS`); the entry stays, so that its files stay known and its sessions keep their place.
    """

    batch: str
    readers: Mapping[str, str]
    landed_on: date
    files: tuple[LandedFile, ...]
    parts: tuple[LandedPart, ...]
    expired: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """JSON form; :meth:`from_json` reads it back."""
        return {
            **({"expired": list(self.expired)} if self.expired else {}),
            "batch": self.batch,
            "readers": dict(self.readers),
            "landed_on": self.landed_on.isoformat(),
            "files": [[f.digest, f.n_bytes, f.path, list(f.grown_from)] for f in self.files],
            "parts": [[p.stem, p.day.isoformat(), dict(p.rows), p.n_text_bytes, list(p.file_ids)] for p in self.parts],
        }

    @staticmethod
    def from_json(raw: Mapping[str, Any]) -> Entry:
        """Read back what :meth:`to_json` gave."""
        files = tuple(LandedFile(digest, n, path, tuple(old)) for digest, n, path, old in raw["files"])
        parts = tuple(
            LandedPart(stem, date.fromisoformat(day), rows, n, tuple(ids)) for stem, day, rows, n, ids in raw["parts"]
        )
        landed_on, expired = date.fromisoformat(raw["landed_on"]), tuple(raw.get("expired", ()))
        return Entry(raw["batch"], raw["readers"], landed_on, files, parts, expired)


@dataclass(frozen=True)
class DayInput:
    """What raw slices of a day are a pure function of.

    Attributes:
        stems: Landing parts of the day of which something counts, in order.
        winners: Copies of sessions that each part contributes.
        told: Outcomes of sessions of the day that other files tell.
        copies: Rows of ``raw.copies``: what does not count, since a session of this day counts for it.
        files: Files whose rows of ``files`` and ``quarantine`` each part contributes.
        n_text_bytes: Size of each part's text, for grouping parts into tasks.
        rows: Rows of each part by table, as landed.
        joined: Sessions of this day that are made of copies in several places, also on other days.
        raw_gone: Parts that have expired: what was made of them lives in the later layers only.
        text_gone: Parts of which the masked text has expired too.
    """

    stems: tuple[str, ...]
    winners: Mapping[str, tuple[Pick, ...]]
    files: Mapping[str, tuple[str, ...]]
    n_text_bytes: Mapping[str, int]
    rows: Mapping[str, Mapping[str, int]]
    copies: tuple[CopyRow, ...] = ()
    joined: tuple[Joined, ...] = ()
    told: tuple[Told, ...] = ()
    raw_gone: frozenset[str] = frozenset()
    text_gone: frozenset[str] = frozenset()

    @property
    def parts(self) -> tuple[str, ...]:
        """Every landing part that the day is made from, those of joined sessions on other days included."""
        joined = (stem for item in self.joined for _, stem, _ in item.places)
        return (*self.stems, *joined, *(one.stem for one in self.told))

    def ids_in(self, stems: Set[str]) -> set[str]:
        """Ids of the sessions of the day that lie, whole or in part, in some landing parts."""
        whole = {session_id for stem in stems for session_id, _ in self.winners.get(stem, ())}
        whole |= {one.session_id for one in self.joined if one.lies_in(stems)}
        return whole | {one.session_id for one in self.told if one.stem in stems}

    def live(self) -> DayInput:
        """The same day with those parts only that are still there as logged."""
        if not self.raw_gone:
            return self
        gone = {one.session_id for one in self.told if one.stem in self.raw_gone}
        stems = tuple(stem for stem in self.stems if stem not in self.raw_gone)
        joined = (one for one in self.joined if not one.lies_in(self.raw_gone) and one.session_id not in gone)
        return replace(
            self,
            stems=stems,
            winners={
                stem: tuple(pick for pick in picks if pick[0] not in gone) for stem, picks in self.winners.items()
            },
            joined=tuple(joined),
            told=tuple(one for one in self.told if one.session_id not in gone),
        )

    @cached_property
    def digest(self) -> str:
        """Receipt of the day's landing."""
        # A first copy goes by its session's id alone, as it did before there were others.
        named = {stem: [f"{one}#{copy}" if copy else one for one, copy in self.winners[stem]] for stem in self.stems}
        parts = [[stem, named[stem], self.files[stem]] for stem in self.stems]
        rest: list[Any] = [list(self.copies)] if self.copies else []
        rest += [
            [item.session_id, item.n_messages, item.places, *([item.landed_ids] if item.landed_ids else [])]
            for item in self.joined
        ]
        rest += [["told", *astuple(one)] for one in self.told]
        rest += [["gone", sorted(self.raw_gone), sorted(self.text_gone)]] if self.raw_gone else []
        return digest_of([*parts, *rest])


def superseded(entries: Iterable[Entry]) -> set[str]:
    """Digests of files that a longer copy begins with."""
    return {old for entry in entries for file in entry.files for old in file.grown_from}


def chosen_entries(entries: Sequence[Entry]) -> dict[str, str]:
    """The one batch whose parse of a file counts, by file digest."""
    names = sorted({name for entry in entries for name in entry.readers})
    best: dict[str, str] = {}
    # The newest readers come first; of equal ones, the smaller digest.
    by_digest = sorted(entries, key=lambda e: e.batch)
    newest = sorted(by_digest, key=lambda e: [version_key(e.readers.get(name, "")) for name in names], reverse=True)
    for entry in newest:
        for file in entry.files:
            best.setdefault(file.digest, entry.batch)
    return best


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


def version_key(version: str) -> _Version:
    """A version as something to compare: numbers as numbers, so that 10 is newer than 9."""
    return tuple((1, int(p), "") if p.isdecimal() else (0, 0, p) for p in re.findall(r"\d+|[^\d.]+", version))
