"""What was landed: batches with their files and parts, as the landing index keeps them.

Belongs here: the index entries as values, and which parse of a file counts. Does not belong here: files
of the landing zone (``store/landing.py``), and which copy of a session counts (``store/winners.py``).

A file may be in several entries: parsed anew by newer readers, or landed by two processes at once.
Its rows of ``files`` and ``quarantine`` then come from one entry only, that of the newest readers,
ties going to the smaller batch digest.

A log that grows is another file each night, by its digest. A file that begins with all the bytes that
were read at its path before tells everything that the earlier copy told, so the earlier one is left
out of ``files`` and ``quarantine``: every record is counted once, in the longest copy. A file that was
written anew under an old name does not begin so, and both count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

#: What retention takes away of a batch, in order: landed parts and raw rows, masked text, snippets.
RAW, TEXT, SNIPPETS = "raw", "text", "snippets"

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


def version_key(version: str) -> _Version:
    """A version as something to compare: numbers as numbers, so that 10 is newer than 9."""
    return tuple((1, int(p), "") if p.isdecimal() else (0, 0, p) for p in re.findall(r"\d+|[^\d.]+", version))
