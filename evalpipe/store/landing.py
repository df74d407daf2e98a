"""The landing zone: a file is parsed once, and its sessions wait by day for their slices.

Belongs here: staging and committing parsed batches, the index of files seen. Does not belong here:
parsing (``sources``), which of several parses and copies counts (``store/winners.py``), or the raw
slices made from landing (``steps/raw.py``).

A batch commits with one index entry, after its parts. Batches commit in order, so that a run that
was killed plans the same remaining batches, and the lake ends with the same bytes. Which files an entry
names never changes; what is left of their rows does, where it was erased or has expired
(``store/rewrite.py``).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl

from evalpipe.contracts import render
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.model import Table
from evalpipe.contracts.tables import TABLES
from evalpipe.store.day_input import DayInput
from evalpipe.store.edge import EdgeIdentity
from evalpipe.store.entries import Entry, LandedFile, LandedPart, superseded
from evalpipe.store.files import locked, move_durably, own_staging, write_atomically
from evalpipe.store.lake import ROW_GROUP_ROWS, ZSTD_LEVEL
from evalpipe.store.manifest import LAYOUT
from evalpipe.store.parts import FACTS, step_facts
from evalpipe.store.traces import FACTS as SPAN_FACTS
from evalpipe.store.winners import COPY_SCHEMA, choose

LANDED = ("sessions", "steps", "quarantine", "files", "vectors")

#: Columns that landed tables bear before those of their contract: what tells copies apart.
LANDED_ONLY = {
    "sessions": (
        "copy", "said_digest", "first_step_at", "extraction", "spans", "span_bytes", "traces", "span_keys",
        "span_began", "span_is_ended", "trial_name",
    ),
    "steps": ("copy",), "vectors": ("copy",),
}  # fmt: skip

#: What a part of a session lies in.
_TEXT = ("sessions", "steps")

#: Day inputs of the landing zone that this process read last, with the state of its index then: the
#: steps of a run ask one after the other, and nothing lands in between.
_LAST: dict[Path, tuple[object, dict[date, DayInput]]] = {}


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """A parsed batch whose parts are written but not indexed."""

    digest: str
    parts: tuple[LandedPart, ...]
    folder: Path


class Landing:
    """The landing zone of a lake.

    Args:
        root: ``lake/raw/_landing``.
        staging: Where batches are written before they are indexed.
        edge: How sessions of edge files are told to be those of logs; without, they are told apart.
    """

    def __init__(self, root: Path, staging: Path, edge: EdgeIdentity | None = None) -> None:
        self.root = root
        self._edge = edge
        self._staging = staging
        self._known: dict[str, tuple[Mapping[str, str], frozenset[str]]] = {}
        self._n_written = 0

    @property
    def _index(self) -> Path:
        return self.root / "_batches"

    # ---- writing

    def staging_folder(self, batch_digest: str) -> Path:
        """A folder of this process for staging one batch."""
        return own_staging(self._staging) / f"landing-{batch_digest}"

    def commit(
        self, batch: StagedBatch, *, files: Sequence[LandedFile], readers: Mapping[str, str], landed_on: date
    ) -> bool:
        """Move a batch's parts into place and index its files.

        Args:
            batch: What :func:`stage_chunk` wrote.
            files: Every file in the batch.
            readers: Version of each reader, by name.
            landed_on: UTC day of landing, from which its text is kept for so many days.

        Returns:
            Whether the batch was indexed: not where another process has landed the same files since
            this one looked.
        """
        with locked(self.root / ".lock"):
            is_new = not {file.digest for file in files} <= self.known_files(readers)
            if is_new:
                self._commit(Entry(batch.digest, dict(readers), landed_on, tuple(files), batch.parts), batch.folder)
        shutil.rmtree(batch.folder, ignore_errors=True)
        return is_new

    def _commit(self, entry: Entry, staged: Path) -> None:
        self._index.mkdir(parents=True, exist_ok=True)
        moves: list[tuple[Path, Path]] = []
        copies: list[pl.DataFrame] = []
        for part in entry.parts:
            for name in LANDED:
                source = staged / f"{part.stem}.{part.day}.{name}.parquet"
                if part.rows.get(name):
                    moves.append((source, self.path(part.day, part.stem, name)))
                if name == "sessions" and part.rows.get(name):
                    head = [pl.lit(part.day).alias("day"), pl.lit(part.stem).alias("stem")]
                    copies.append(pl.read_parquet(source, columns=list(COPY_SCHEMA)).select(*head, *COPY_SCHEMA))
        for folder in {target.parent for _, target in moves}:
            folder.mkdir(parents=True, exist_ok=True)
        if copies:
            # What decides between copies of a session, so that no part is opened to find the winners.
            draft = staged / "copies.parquet"
            pl.concat(copies).write_parquet(draft, compression="zstd", compression_level=ZSTD_LEVEL)
            moves.append((draft, self.copies_path(entry.batch)))
        move_durably(moves)
        self.write_entry(entry)

    def write_entry(self, entry: Entry) -> None:
        """Write an index entry; the caller holds the lock of the landing zone."""
        self._n_written += 1
        text = json.dumps({"layout": LAYOUT, **entry.to_json()}, sort_keys=True, indent=1)
        write_atomically(self._index / f"{entry.batch}.json", text)

    # ---- index

    def entries(self) -> list[Entry]:
        """All index entries, in a stable order.

        Raises:
            EvalpipeError: ``HOME_DAMAGED`` for an entry that cannot be read.
        """
        return [_entry(path) for path in sorted(self._index.glob("*.json"))]

    def known_files(self, readers: Mapping[str, str]) -> set[str]:
        """Digests of files that these reader versions parsed before."""
        for path in self._index.glob("*.json"):
            if path.name not in self._known:  # an entry never changes, and each commit asks again
                entry = _entry(path)
                self._known[path.name] = (entry.readers, frozenset(file.digest for file in entry.files))
        return {digest for by, digests in self._known.values() if by == dict(readers) for digest in digests}

    def copies_at(self, paths: Iterable[str]) -> dict[str, list[LandedFile]]:
        """Files that were read at these paths before and that no longer copy has replaced since."""
        entries = self.entries()
        gone = superseded(entries)
        wanted = set(paths)
        out: dict[str, dict[str, LandedFile]] = {}
        for file in (file for entry in entries for file in entry.files):
            if file.path in wanted and file.digest not in gone:
                out.setdefault(file.path, {})[file.digest] = file
        return {path: [found[digest] for digest in sorted(found)] for path, found in out.items()}

    def day_inputs(self) -> dict[date, DayInput]:
        """Landing parts of every day and what counts in them; see :func:`~evalpipe.store.winners.choose`."""
        paths = sorted(self._index.glob("*.json"))
        files = tuple((path.name, path.stat().st_mtime_ns) for path in paths)
        state = (files, self._edge.extraction if self._edge else "")
        last = _LAST.get(self.root)
        if last is None or last[0] != state:
            entries = [_entry(path) for path in paths]
            copies = self._copies_in(entries)
            last = (state, choose(entries, copies, self._look, self._edge, self._look_at_spans))
            _LAST.clear()
            _LAST[self.root] = last
        return dict(last[1])

    def state(self) -> tuple[int, int]:
        """Something that is another one once an entry was written, by this process or any."""
        return self._n_written, self._index.stat().st_mtime_ns if self._index.exists() else 0

    def copies(self) -> pl.DataFrame:
        """``batch``, ``day``, ``stem`` and :data:`~evalpipe.store.winners.COPY_SCHEMA` of every landed copy."""
        found = self._copies_in(self.entries())
        return pl.concat(found) if found else pl.DataFrame(schema={"session_id": pl.String, **COPY_SCHEMA})

    def _copies_in(self, entries: Iterable[Entry]) -> list[pl.DataFrame]:
        return [frame for entry in entries for frame in self._copies_of(entry)]

    def _copies_of(self, entry: Entry) -> list[pl.DataFrame]:
        if not any(part.rows.get("sessions") for part in entry.parts):
            return []
        try:
            return [_whole_rows(pl.read_parquet(self.copies_path(entry.batch)), entry.batch)]
        except (OSError, pl.exceptions.PolarsError):
            raise _damaged(self.copies_path(entry.batch), self._index / f"{entry.batch}.json") from None

    def sessions_of_files(self) -> pl.DataFrame:
        """``file_id, session_id`` of every copy of a session that was landed and not erased since."""
        frames = [frame.select("file_id", "session_id") for entry in self.entries() for frame in self._copies_of(entry)]
        return pl.concat([pl.DataFrame(schema={"file_id": pl.String, "session_id": pl.String}), *frames]).unique()

    def _look(self, copies: pl.DataFrame) -> pl.DataFrame:
        """Facts of the steps of some copies; of copies whose text has expired, none."""
        frames = []
        for (day, stem), some in copies.group_by("day", "stem", maintain_order=True):
            path = self.path(day, stem, "steps")
            if not path.is_file():
                continue
            steps = pl.scan_parquet(path).filter(pl.col("session_id").is_in(some["session_id"].implode())).collect()
            steps = steps.join(some, on=["session_id", "copy"], how="semi", maintain_order="left")
            frames.append(step_facts(steps.with_columns(day=pl.lit(day, pl.Date()), stem=pl.lit(stem))))
        return pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(FACTS, pl.Null()))

    def _look_at_spans(self, copies: pl.DataFrame) -> pl.DataFrame:
        """Facts of the spans of some copies; of copies whose text has expired, none."""
        frames = []
        for (day, stem), some in copies.group_by("day", "stem", maintain_order=True):
            path = self.path(day, stem, "sessions")
            if path.is_file():
                told = pl.scan_parquet(path).select("session_id", "copy", "span_keys", "span_began", "span_is_ended")
                frames.append(told.collect().join(some, on=["session_id", "copy"]).select(SPAN_FACTS))
        return pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(SPAN_FACTS, pl.Null()))

    # ---- reading

    def path(self, day: date, stem: str, name: str) -> Path:
        """Where a landed table of a part lies."""
        return self.root / f"day={day}" / f"{stem}.{name}.parquet"

    def is_whole(self, day: date, item: DayInput) -> bool:
        """Whether the landed text of a day is still there, but for what has expired."""
        item = item.live()
        own = [self.path(day, stem, name) for stem in item.stems for name, n in item.rows[stem].items() if n]
        parts = [
            # A trace is joined by its spans, which lie with the session.
            self.path(*place[:2], name)
            for one in item.joined
            for place in one.places
            for name in (_TEXT[:1] if one.landed_ids else _TEXT)
        ]
        told = [self.path(one.day, one.stem, "sessions") for one in item.told]
        return all(path.is_file() for path in (*own, *parts, *told))

    def copies_path(self, batch: str) -> Path:
        """Where what decides between copies of a session lies, for one batch."""
        return self._index / f"{batch}.copies.parquet"


def _entry(path: Path) -> Entry:
    try:
        raw = json.loads(path.read_text("utf-8"))
        if raw["layout"] != LAYOUT:
            raise EvalpipeError("HOME_INCOMPATIBLE", f"layout {raw['layout']}, not {LAYOUT}", where=str(path))
        return Entry.from_json(raw)
    except (ValueError, KeyError, TypeError):
        raise _damaged(path, path) from None


def _whole_rows(copies: pl.DataFrame, batch: str) -> pl.DataFrame:
    """Copies of a batch with all columns: those landed long ago know less of themselves.

    Their source is the prefix of the id; without times and words they are nobody's duplicates.
    """
    missing = {name: pl.lit(None, dtype).alias(name) for name, dtype in COPY_SCHEMA.items() if name not in copies}
    if "copy" in missing:
        source = pl.col("session_id").str.extract(r"^([^:]*):").alias("source")
        missing |= {"copy": pl.lit(0, pl.Int32()), "source": source}
    copies = copies.with_columns(**missing)
    return copies.select(pl.lit(batch).alias("batch"), "day", "stem", *COPY_SCHEMA)


def _damaged(path: Path, entry: Path) -> EvalpipeError:
    return EvalpipeError(
        "HOME_DAMAGED",
        "an entry of the landing index cannot be read.",
        where=str(path),
        fix=f"Delete {entry.name} beside it and land its files again: evalpipe run SOURCE...",
    )


def stage_chunk(batch_digest: str, index: int, tables: dict[str, pl.DataFrame], folder: Path) -> list[LandedPart]:
    """Write one parsed chunk, split by day; safe to call in a worker process.

    Args:
        batch_digest: Batch the chunk belongs to.
        index: Position of the chunk in the batch.
        tables: Frames of raw sessions, steps, quarantine and files with a leading ``day`` column, and
            with :data:`LANDED_ONLY`.
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
        told: set[str] = set()
        for name in LANDED:
            contract = TABLES[f"raw.{name}"]
            data = tables[name].filter(pl.col("day") == day).drop("day")
            if data.is_empty():
                continue
            data = _conformed(contract, data, LANDED_ONLY.get(name, ()))
            rows[name] = data.height
            if name == "steps":
                n_text_bytes = text_bytes(data)
            if name in ("files", "quarantine"):
                told |= set(data["file_id"].unique())
            data.write_parquet(
                folder / f"{stem}.{day}.{name}.parquet",
                compression="zstd",
                compression_level=ZSTD_LEVEL,
                row_group_size=ROW_GROUP_ROWS,
            )
        out.append(LandedPart(stem, day, rows, n_text_bytes, tuple(sorted(told))))
    return out


def _conformed(contract: Table, data: pl.DataFrame, extra: Sequence[str]) -> pl.DataFrame:
    """Rows in the contract's columns after the extra ones; the contract holds for each copy apart."""
    if not extra:
        return render.conform(contract, data)
    for copies in data.partition_by("copy"):
        columns = render.conform(contract, copies.drop(extra)).columns
    return data.select(*extra, *columns)


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


def text_bytes(steps: pl.DataFrame) -> int:
    """Size of the text of some steps, by which parts are grouped into tasks."""
    text: Iterable[str] = ("text", "arguments", "output")
    total = steps.select(pl.sum_horizontal(pl.col(c).str.len_bytes().sum().fill_null(0) for c in text)).item()
    return int(total)
