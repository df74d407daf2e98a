"""The landing zone: a file is parsed once, and its sessions wait by day for their slices.

Belongs here: committing parsed batches, the index of files seen, which copy of a session wins.
Does not belong here: parsing (``sources``) or the raw slices made from landing (``steps/raw.py``).

A batch commits with one index entry, after its parts. Batches commit in order, so that a run that
was killed plans the same remaining batches, and the lake ends with the same bytes.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe.contracts import render
from evalpipe.contracts.tables import TABLES
from evalpipe.store.lake import ROW_GROUP_ROWS, ZSTD_LEVEL, write_atomically
from evalpipe.store.manifest import LAYOUT, digest_of

LANDED = ("sessions", "steps", "quarantine", "files")

#: What decides which copy of a session wins.
_COPY_COLUMNS = ("session_id", "n_messages", "content_digest", "reader_version")


@dataclass(frozen=True, slots=True)
class LandedPart:
    """One day's share of one chunk of a batch."""

    stem: str
    day: date
    rows: dict[str, int]
    n_text_bytes: int


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """A parsed batch whose parts are written but not indexed."""

    digest: str
    parts: tuple[LandedPart, ...]
    folder: Path


@dataclass(frozen=True, slots=True)
class DayInput:
    """What raw slices of a day are a pure function of.

    Attributes:
        stems: Landing parts of the day, in order.
        winners: Session ids that each part contributes.
        n_text_bytes: Size of each part's text, for grouping parts into tasks.
    """

    stems: tuple[str, ...]
    winners: dict[str, tuple[str, ...]]
    n_text_bytes: dict[str, int]

    @property
    def digest(self) -> str:
        """Receipt of the day's landing."""
        return digest_of([list(self.stems), {stem: list(ids) for stem, ids in self.winners.items()}])


class Landing:
    """The landing zone of a lake.

    Args:
        root: ``lake/raw/_landing``.
        staging: Where batches are written before they are indexed.
    """

    def __init__(self, root: Path, staging: Path) -> None:
        self.root = root
        self._staging = staging

    @property
    def _index(self) -> Path:
        return self.root / "_batches"

    # ---- writing

    def staging_folder(self, batch_digest: str) -> Path:
        """A folder of this process for staging one batch."""
        return self._staging / str(os.getpid()) / f"landing-{batch_digest}"

    def commit(self, batch: StagedBatch, *, files: Sequence[tuple[str, int]], readers: str, landed_on: date) -> None:
        """Move a batch's parts into place and index its files.

        Args:
            batch: What :func:`stage_chunk` wrote.
            files: (digest, bytes) of every file in the batch.
            readers: Digest of the reader versions that parsed it.
            landed_on: UTC day of landing; undated sessions and retention use it.
        """
        for part in batch.parts:
            folder = self.root / f"day={part.day}"
            folder.mkdir(parents=True, exist_ok=True)
            for name in LANDED:
                staged = batch.folder / f"{part.stem}.{part.day}.{name}.parquet"
                if staged.exists():
                    staged.replace(folder / f"{part.stem}.{name}.parquet")
        entry = {
            "layout": LAYOUT,
            "batch": batch.digest,
            "readers": readers,
            "landed_on": landed_on.isoformat(),
            "files": [list(file) for file in files],
            "parts": [[p.stem, p.day.isoformat(), p.rows, p.n_text_bytes] for p in batch.parts],
        }
        write_atomically(self._index / f"{batch.digest}.json", json.dumps(entry, sort_keys=True, indent=1))
        if batch.folder.is_dir():
            batch.folder.rmdir()

    # ---- index

    def entries(self) -> list[dict[str, Any]]:
        """All index entries, in a stable order."""
        return [json.loads(path.read_text("utf-8")) for path in sorted(self._index.glob("*.json"))]

    def known_files(self, readers: str) -> set[str]:
        """Digests of files that these reader versions parsed before."""
        return {digest for entry in self.entries() if entry["readers"] == readers for digest, _ in entry["files"]}

    def day_inputs(self) -> dict[date, DayInput]:
        """Landing parts and winning session copies of every day.

        A session may have copies in several files, cut or grown, and may even start on another day
        in a cut copy. One copy wins over all days: newest reader, then most distinct messages, then
        the smaller content digest, so that the choice does not depend on the order of landing.
        """
        parts = [
            LandedPart(stem, date.fromisoformat(day), rows, n_bytes)
            for entry in self.entries()
            for stem, day, rows, n_bytes in entry["parts"]
        ]
        by_day: dict[date, list[LandedPart]] = defaultdict(list)
        for part in sorted(parts, key=lambda p: (p.day, p.stem)):
            by_day[part.day].append(part)
        winners = self._winners([part for part in parts if part.rows.get("sessions")])
        return {
            day: DayInput(
                stems=tuple(part.stem for part in items),
                winners={part.stem: winners.get((day, part.stem), ()) for part in items},
                n_text_bytes={part.stem: part.n_text_bytes for part in items},
            )
            for day, items in sorted(by_day.items())
        }

    def _winners(self, parts: Sequence[LandedPart]) -> dict[tuple[date, str], tuple[str, ...]]:
        if not parts:
            return {}
        frames = [
            pl.read_parquet(self.path(part.day, part.stem, "sessions"), columns=list(_COPY_COLUMNS)).with_columns(
                pl.lit(part.day).alias("day"), pl.lit(part.stem).alias("stem")
            )
            for part in parts
        ]
        best = (
            pl.concat(frames)
            .sort(
                ["session_id", "reader_version", "n_messages", "content_digest", "day", "stem"],
                descending=[False, True, True, False, False, False],
            )
            .unique("session_id", keep="first", maintain_order=True)
        )
        grouped = best.sort("session_id").group_by("day", "stem", maintain_order=True).agg("session_id")
        return {(day, stem): tuple(ids) for day, stem, ids in grouped.iter_rows()}

    # ---- reading

    def path(self, day: date, stem: str, name: str) -> Path:
        """Where a landed table of a part lies."""
        return self.root / f"day={day}" / f"{stem}.{name}.parquet"


def stage_chunk(batch_digest: str, index: int, tables: dict[str, pl.DataFrame], folder: Path) -> list[LandedPart]:
    """Write one parsed chunk, split by day; safe to call in a worker process.

    Args:
        batch_digest: Batch the chunk belongs to.
        index: Position of the chunk in the batch.
        tables: Frames of raw sessions, steps, quarantine and files with a leading ``day`` column.
        folder: Staging folder of the batch.

    Returns:
        One entry a day that the chunk touches, in order of days.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    stem = f"{batch_digest}-{index:04d}"
    days = sorted({day for data in tables.values() for day in data.get_column("day").unique().to_list()})
    out: list[LandedPart] = []
    for day in days:
        rows: dict[str, int] = {}
        n_text_bytes = 0
        for name in LANDED:
            contract = TABLES[f"raw.{name}"]
            data = tables[name].filter(pl.col("day") == day).drop("day")
            if data.is_empty():
                continue
            data = render.conform(contract, data)
            rows[name] = data.height
            if name == "steps":
                n_text_bytes = _text_bytes(data)
            data.write_parquet(
                folder / f"{stem}.{day}.{name}.parquet",
                compression="zstd",
                compression_level=ZSTD_LEVEL,
                row_group_size=ROW_GROUP_ROWS,
            )
        out.append(LandedPart(stem, day, rows, n_text_bytes))
    return out


def group_stems(day: DayInput, limit_bytes: int) -> list[tuple[str, ...]]:
    """Group a day's landing parts, in order, into tasks of at most ``limit_bytes`` of text each."""
    groups: list[list[str]] = []
    size = 0
    for stem in day.stems:
        n_bytes = day.n_text_bytes[stem]
        if not groups or (size + n_bytes > limit_bytes and groups[-1]):
            groups.append([])
            size = 0
        groups[-1].append(stem)
        size += n_bytes
    return [tuple(group) for group in groups]


def _text_bytes(steps: pl.DataFrame) -> int:
    text: Iterable[str] = ("text", "arguments", "output")
    total = steps.select(pl.sum_horizontal(pl.col(c).str.len_bytes().sum().fill_null(0) for c in text)).item()
    return int(total)
