"""What counts of all that was landed: one parse of each file, one copy of each session.

Belongs here: the index entries as values, and the pure choice over them. Does not belong here: files
of the landing zone (``store/landing.py``).

A file may be in several entries: parsed anew by newer readers, or landed by two processes at once.
Its rows of ``files`` and ``quarantine`` then come from one entry only, that of the newest readers,
ties going to the smaller batch digest. A session may have copies in several files, cut or grown, and
may even start on another day in a cut copy: one copy wins over all days. Neither choice depends on
the order of landing.

A log that grows is another file each night, by its digest. A file that begins with all the bytes that
were read at its path before tells everything that the earlier copy told, so the earlier one is left
out of ``files`` and ``quarantine``: every record is counted once, in the longest copy. A file that was
written anew under an old name does not begin so, and both count. Sessions need no such rule, because
the longest copy of a session wins anyhow.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

import polars as pl

from evalpipe.store.manifest import digest_of

#: What decides which copy of a session wins.
COPY_COLUMNS = ("session_id", "file_id", "reader_version", "n_messages", "content_digest")

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
    """One index entry: a batch, its files, the readers that parsed it, and its parts."""

    batch: str
    readers: Mapping[str, str]
    landed_on: date
    files: tuple[LandedFile, ...]
    parts: tuple[LandedPart, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON form; :meth:`from_json` reads it back."""
        return {
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
        return Entry(raw["batch"], raw["readers"], date.fromisoformat(raw["landed_on"]), files, parts)


@dataclass(frozen=True)
class DayInput:
    """What raw slices of a day are a pure function of.

    Attributes:
        stems: Landing parts of the day of which something counts, in order.
        winners: Session ids that each part contributes.
        files: Files whose rows of ``files`` and ``quarantine`` each part contributes.
        n_text_bytes: Size of each part's text, for grouping parts into tasks.
        rows: Rows of each part by table, as landed.
    """

    stems: tuple[str, ...]
    winners: Mapping[str, tuple[str, ...]]
    files: Mapping[str, tuple[str, ...]]
    n_text_bytes: Mapping[str, int]
    rows: Mapping[str, Mapping[str, int]]

    @cached_property
    def digest(self) -> str:
        """Receipt of the day's landing."""
        return digest_of([[stem, self.winners[stem], self.files[stem]] for stem in self.stems])


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


def choose(entries: Sequence[Entry], copies: Sequence[pl.DataFrame]) -> dict[date, DayInput]:
    """Landing parts of every day, with the files and sessions that count in them.

    Args:
        entries: The whole landing index.
        copies: ``batch``, ``day``, ``stem`` and :data:`COPY_COLUMNS` of every landed session.

    Returns:
        Inputs of every day of which something counts, in order of days.
    """
    chosen = chosen_entries(entries)
    gone = superseded(entries)
    winners = _winners(chosen, copies)
    by_day: dict[date, list[tuple[LandedPart, tuple[str, ...]]]] = defaultdict(list)
    for entry in entries:
        for part in entry.parts:
            files = tuple(f for f in part.file_ids if chosen.get(f) == entry.batch and f not in gone)
            if files or (part.day, part.stem) in winners:
                by_day[part.day].append((part, files))
    return {day: _day_input(day, items, winners) for day, items in sorted(by_day.items())}


def _day_input(
    day: date,
    items: list[tuple[LandedPart, tuple[str, ...]]],
    winners: Mapping[tuple[date, str], tuple[str, ...]],
) -> DayInput:
    items = sorted(items, key=lambda item: item[0].stem)
    return DayInput(
        stems=tuple(part.stem for part, _ in items),
        winners={part.stem: winners.get((day, part.stem), ()) for part, _ in items},
        files={part.stem: files for part, files in items},
        n_text_bytes={part.stem: part.n_text_bytes for part, _ in items},
        rows={part.stem: part.rows for part, _ in items},
    )


def _winners(chosen: Mapping[str, str], copies: Sequence[pl.DataFrame]) -> dict[tuple[date, str], tuple[str, ...]]:
    """Session ids by day and part: newest reader, then most messages, then the smaller digest.

    A copy in a parse that does not count is no copy. No session is lost by that, although a chunk keeps
    one copy only: where it dropped a file's copy it kept one of another file, whose parse that counts is
    the same one or ranks before it, and ranks do not go in circles.
    """
    if not copies:
        return {}
    counts = pl.DataFrame({"file_id": list(chosen), "batch": list(chosen.values())})
    rows = pl.concat(copies).join(counts, on=["file_id", "batch"], how="semi")
    versions = sorted(rows["reader_version"].unique(), key=version_key)
    age = pl.DataFrame(
        {"reader_version": versions, "age": range(len(versions), 0, -1)},
        schema={"reader_version": pl.String, "age": pl.Int32},
    )
    best = (
        rows.join(age, on="reader_version")
        .sort(
            ["session_id", "age", "n_messages", "content_digest", "file_id", "day", "stem"],
            descending=[False, False, True, False, False, False, False],
        )
        .unique("session_id", keep="first", maintain_order=True)
    )
    grouped = best.sort("session_id").group_by("day", "stem", maintain_order=True).agg("session_id")
    return {(day, stem): tuple(ids) for day, stem, ids in grouped.iter_rows()}


def version_key(version: str) -> _Version:
    """A version as something to compare: numbers as numbers, so that 10 is newer than 9."""
    return tuple((1, int(p), "") if p.isdecimal() else (0, 0, p) for p in re.findall(r"\d+|[^\d.]+", version))
