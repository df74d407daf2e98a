"""The lake: Parquet slices, one folder a table and day, committed by one manifest.

Belongs here: writing parts, committing a slice atomically, reading slices through manifests.
Does not belong here: what the rows mean. Parts are named by the digest of their bytes, so the same
rows are the same file, and a slice whose content did not change is not written again. A crash
leaves the old manifest, which names only whole parts.

Committing and collecting hold one lock a step: else one process finds a part in place, another
collects it as unnamed, and the first commits a manifest that names nothing. A part's modification time
says when it last was, or ceased to be, named, so that its grace begins when readers of the old
manifest can last have opened it, and not when it was written.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe.contracts import render
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables import TABLES
from evalpipe.store.files import clear_staging, locked, move_durably, own_staging, write_atomically
from evalpipe.store.manifest import STEP_LAYERS, STEP_TABLES, Manifest, Part, SliceKey, StagedPart, digest_of_file

#: Fixed, because row-group borders are part of a file's bytes.
ROW_GROUP_ROWS = 50_000
#: zstd level 1 writes half again as fast as level 3 and is a tenth larger.
ZSTD_LEVEL = 1


def write_parquet(table: str, data: pl.DataFrame, path: Path) -> None:
    """Write a frame that conforms to its contract, in the contract's order, with its metadata.

    Args:
        table: Full table name.
        data: Rows; checked strictly against the contract and sorted by its sort key.
        path: File to write; its folder must exist.

    Raises:
        EvalpipeError: ``CONTRACT_BROKEN``.
    """
    contract = TABLES[table]
    data = render.conform(contract, data)
    if contract.sort:
        data = data.sort(contract.sort, maintain_order=True)
    data.write_parquet(
        path,
        compression="zstd",
        compression_level=ZSTD_LEVEL,
        row_group_size=ROW_GROUP_ROWS,
        metadata={"evalpipe_table": table, "meaning": contract.meaning},
    )


def stage_part(table: str, data: pl.DataFrame, folder: Path, label: str) -> StagedPart:
    """Write one part into a staging folder; safe to call in a worker process.

    Args:
        table: Full table name.
        data: Rows of the part.
        folder: Staging folder of the slice, made if absent.
        label: Unique label within the slice, so that workers never write the same file.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{table}.{label}.parquet"
    write_parquet(table, data, path)
    return StagedPart(Part(table, digest_of_file(path), data.height, path.stat().st_size), path)


class Lake:
    """A lake under one folder.

    Args:
        root: The ``lake`` folder of a home.
        grace_seconds: How long a part that no manifest names is kept for readers that still use it.
    """

    def __init__(self, root: Path, *, grace_seconds: float = 3600.0) -> None:
        self.root = root
        self.grace_seconds = grace_seconds

    # ---- places

    @property
    def staging(self) -> Path:
        """Staging lies under ``raw``: what is not yet checked is as restricted as what is raw."""
        return self.root / "raw" / "_staging"

    @property
    def rejected(self) -> Path:
        """Records of slices that a check refused."""
        return self.root / "raw" / "_rejected"

    def prepare(self) -> None:
        """Make the folders, restricted ones closed to others, and clear what dead processes left."""
        for folder in (self.root / "raw", self.staging, self.rejected):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
        clear_staging(self.staging)

    def staging_folder(self, key: SliceKey) -> Path:
        """A folder of this process for staging one slice."""
        return own_staging(self.staging) / str(key).replace("/", "+")

    def manifest_path(self, key: SliceKey) -> Path:
        """Where the manifest of a slice lies."""
        folder = self.root / STEP_LAYERS[key.step] / "_slices" / key.step
        return folder.joinpath(*key.variant) / f"day={key.day}.json"

    def folder(self, table: str, key: SliceKey) -> Path:
        """Where the parts of a table of a slice lie."""
        layer, name = table.split(".")
        return (self.root / layer / name).joinpath(*key.variant) / f"day={key.day}"

    # ---- commit

    def commit(
        self,
        key: SliceKey,
        staged: Sequence[StagedPart],
        *,
        inputs: Mapping[str, str],
        code_version: str,
        stats: Mapping[str, Any] | None = None,
    ) -> Manifest:
        """Make staged parts the slice, atomically: parts first, then one manifest by rename.

        Args:
            key: The slice.
            staged: All parts, in the order in which readers shall see them.
            inputs: Digest of every input.
            code_version: Version of logic and criteria.
            stats: Counts for checks and metadata.

        Returns:
            The manifest; the same file is left untouched if nothing changed.
        """
        unknown = {item.part.table for item in staged} - set(STEP_TABLES[key.step])
        if unknown:
            raise EvalpipeError("CONTRACT_BROKEN", "step writes a table that is not its own", where=min(unknown))
        manifest = Manifest(key, dict(inputs), code_version, tuple(i.part for i in staged), stats or {})
        path = self.manifest_path(key)
        with locked(path.parents[len(key.variant)] / ".lock"):
            self._place(key, staged)
            if what := self.damage(manifest):
                raise EvalpipeError("HOME_DAMAGED", f"{what} of what was to be committed", where=str(key))
            # Before the manifest: a run that is killed between the two must not shorten their grace.
            self._touch_unnamed(key, manifest)
            write_atomically(path, manifest.to_json())
            self._collect(key, manifest)
        shutil.rmtree(self.staging_folder(key), ignore_errors=True)
        return manifest

    def _place(self, key: SliceKey, staged: Sequence[StagedPart]) -> None:
        """Move staged parts to their places; a part that lies there whole is used again."""
        moves: dict[Path, Path] = {}
        for item in staged:
            target = self.folder(item.part.table, key) / item.part.file_name
            target.parent.mkdir(parents=True, exist_ok=True)
            if target in moves or (target.exists() and digest_of_file(target) == item.part.digest):
                item.path.unlink()
            else:
                moves[target] = item.path
        move_durably((source, target) for target, source in moves.items())

    def _touch_unnamed(self, key: SliceKey, manifest: Manifest) -> None:
        """Start the grace anew of parts that were named until now, and of parts that are named again."""
        old = self.manifest(key)
        changed = set(self.paths_of(old) if old else ()) ^ set(self.paths_of(manifest))
        for path in changed:
            if path.exists():
                path.touch()

    def discard(self, key: SliceKey) -> None:
        """Drop what was staged for a slice."""
        shutil.rmtree(self.staging_folder(key), ignore_errors=True)

    def _collect(self, key: SliceKey, manifest: Manifest) -> None:
        """Delete parts that the manifest no longer names, once readers had time to finish."""
        limit = time.time() - self.grace_seconds
        for table in STEP_TABLES[key.step]:
            named = {part.file_name for part in manifest.parts if part.table == table}
            folder = self.folder(table, key)
            if not folder.is_dir():
                continue
            for path in folder.iterdir():
                if path.name not in named and path.stat().st_mtime < limit:
                    path.unlink(missing_ok=True)

    # ---- append-only tables

    def append(self, table: str, data: pl.DataFrame) -> Path | None:
        """Add rows to an append-only table as one file named by its content; a no-op if present."""
        return None if data.is_empty() else self.append_whole(table, data)

    def append_whole(self, table: str, data: pl.DataFrame) -> Path:
        """Write rows as one file named by its content, also where there are none; a no-op if present."""
        layer, name = table.split(".")
        folder = self.root / layer / name
        folder.mkdir(parents=True, exist_ok=True)
        draft = own_staging(self.staging) / f"{table}.parquet"
        write_parquet(table, data, draft)
        target = folder / f"{digest_of_file(draft)}.parquet"
        if target.exists():
            draft.unlink()
            target.touch()  # its grace begins anew
        else:
            move_durably([(draft, target)])
        return target

    def appended(self, table: str) -> list[Path]:
        """Files of an append-only table, in a stable order."""
        layer, name = table.split(".")
        return sorted((self.root / layer / name).glob("*.parquet"))

    def count(self, files: Iterable[Path]) -> int:
        """Rows of some Parquet files, read from their footers."""
        return sum(pl.scan_parquet(path).select(pl.len()).collect().item() for path in files)

    # ---- reading

    def manifest(self, key: SliceKey) -> Manifest | None:
        """The committed manifest of a slice, or ``None``.

        Raises:
            EvalpipeError: ``HOME_DAMAGED`` where it cannot be read.
        """
        return _manifest_at(self.manifest_path(key))

    def days(self, step: str, variant: tuple[str, ...] = ()) -> list[date]:
        """Days that have a committed slice of a step, in order."""
        folder = self.manifest_path(SliceKey(step, date.min, variant)).parent
        return sorted(date.fromisoformat(path.stem.removeprefix("day=")) for path in folder.glob("day=*.json"))

    def manifests(self, step: str) -> list[Manifest]:
        """All committed manifests of a step, over every variant, in a stable order."""
        folder = self.root / STEP_LAYERS[step] / "_slices" / step
        return [m for path in sorted(folder.rglob("day=*.json")) if (m := _manifest_at(path)) is not None]

    def damage(self, manifest: Manifest) -> str | None:
        """What is wrong with the files of a slice, or ``None``: every part is there in its size."""
        for part, path in zip(manifest.parts, self.paths_of(manifest), strict=True):
            try:
                if path.stat().st_size != part.n_bytes:
                    return "a part is damaged"
            except FileNotFoundError:
                return "a part is missing"
        return None

    def paths_of(self, manifest: Manifest) -> list[Path]:
        """Every part of a slice, in the order of its manifest."""
        return [self.folder(part.table, manifest.key) / part.file_name for part in manifest.parts]

    def paths(self, table: str, manifests: Iterable[Manifest]) -> list[Path]:
        """Parts of a table in the given slices, in order."""
        return [
            self.folder(table, manifest.key) / part.file_name
            for manifest in manifests
            for part in manifest.parts
            if part.table == table
        ]

    def read(self, table: str, manifests: Iterable[Manifest], columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Rows of a table in the given slices; an empty frame of the contract where there are none.

        A part that another process replaces between reading the manifest and opening the part stays
        for the grace time.

        Raises:
            EvalpipeError: ``HOME_DAMAGED`` for a part that is lost or is no Parquet.
        """
        files = self.paths(table, manifests)
        if not files:
            blank = render.empty(TABLES[table])
            return blank.select(columns) if columns else blank
        return pl.concat([read_part(table, path, columns) for path in files])


def _manifest_at(path: Path) -> Manifest | None:
    try:
        return Manifest.from_json(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise _damaged("a manifest cannot be read", path, path) from None


def read_part(name: str, path: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Rows of a part, or of a file of an append-only table; what was written before the contract had a column
    knows nothing of it.

    Args:
        name: Full name of the table.
        path: The part.
        columns: Columns to read, all of the contract by default.

    Returns:
        The rows, null in columns that may be null and that the part lacks.

    Raises:
        EvalpipeError: ``HOME_DAMAGED`` for a part that is lost or is no Parquet, ``CONTRACT_BROKEN`` for one that
            lacks what may not be null.
    """
    table = TABLES[name]
    try:
        there_is = pl.read_parquet_schema(path)
        lacks = [c.name for c in table.columns if not c.nullable and c.name not in there_is]
        if needed := [c for c in lacks if columns is None or c in columns]:
            what = f"{name} was written without {', '.join(needed)}."
            raise EvalpipeError("CONTRACT_BROKEN", what, where=str(path))
        later = render.later_columns(table, there_is)
        if not later:
            return pl.read_parquet(path, columns=list(columns) if columns else None)
        asked = list(columns or render.polars_schema(table))
        there = pl.read_parquet(path, columns=[name for name in asked if name not in later])
        return there.with_columns(pl.lit(None, later[name]).alias(name) for name in asked if name in later).select(
            asked
        )
    except (OSError, pl.exceptions.PolarsError):  # whose messages may quote a value
        raise _damaged("a part cannot be read", path, path.parent) from None


def _damaged(what: str, path: Path, named: Path) -> EvalpipeError:
    day = named.stem.removeprefix("day=")
    # What only grows is made by no backfill, so nobody is told to delete it.
    is_of_day = day != named.stem
    fix = f"Delete the file and run: evalpipe backfill {day}..{day}" if is_of_day else "Restore the file from a backup."
    return EvalpipeError("HOME_DAMAGED", f"{what}.", where=str(path), fix=fix)
