"""The lake: Parquet slices, one folder a table and day, committed by one manifest.

Belongs here: writing parts, committing a slice atomically, reading slices through manifests.
Does not belong here: what the rows mean. Parts are named by the digest of their bytes, so the same
rows are the same file, and a slice whose content did not change is not written again. A crash
leaves the old manifest, which names only whole parts.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe.contracts import render
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables import TABLES
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
        for leftover in self.staging.iterdir():
            if not _is_alive(leftover.name):
                shutil.rmtree(leftover, ignore_errors=True)

    def staging_folder(self, key: SliceKey) -> Path:
        """A folder of this process for staging one slice."""
        return self.staging / str(os.getpid()) / str(key).replace("/", "+")

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
        for item in staged:
            folder = self.folder(item.part.table, key)
            folder.mkdir(parents=True, exist_ok=True)
            target = folder / item.part.file_name
            if target.exists():
                item.path.unlink()
            else:
                _sync(item.path)
                item.path.replace(target)
        write_atomically(self.manifest_path(key), manifest.to_json())
        shutil.rmtree(self.staging_folder(key), ignore_errors=True)
        self._collect(key, manifest)
        return manifest

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
        if data.is_empty():
            return None
        layer, name = table.split(".")
        folder = self.root / layer / name
        folder.mkdir(parents=True, exist_ok=True)
        stage = self.staging / str(os.getpid())
        stage.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = stage / f"{table}.parquet"
        write_parquet(table, data, draft)
        target = folder / f"{digest_of_file(draft)}.parquet"
        if target.exists():
            draft.unlink()
        else:
            _sync(draft)
            draft.replace(target)
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
        """The committed manifest of a slice, or ``None``."""
        try:
            return Manifest.from_json(self.manifest_path(key).read_text("utf-8"))
        except FileNotFoundError:
            return None

    def days(self, step: str, variant: tuple[str, ...] = ()) -> list[date]:
        """Days that have a committed slice of a step, in order."""
        folder = self.manifest_path(SliceKey(step, date.min, variant)).parent
        return sorted(date.fromisoformat(path.stem.removeprefix("day=")) for path in folder.glob("day=*.json"))

    def manifests(self, step: str) -> list[Manifest]:
        """All committed manifests of a step, over every variant, in a stable order."""
        folder = self.root / STEP_LAYERS[step] / "_slices" / step
        return [Manifest.from_json(path.read_text("utf-8")) for path in sorted(folder.rglob("day=*.json"))]

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

        A part may be replaced between reading a manifest and opening the part: the caller then sees
        ``FileNotFoundError`` only after the grace time.
        """
        files = self.paths(table, manifests)
        if not files:
            blank = render.empty(TABLES[table])
            return blank.select(columns) if columns else blank
        return pl.concat([pl.read_parquet(path, columns=list(columns) if columns else None) for path in files])


def write_atomically(path: Path, text: str) -> bool:
    """Write a small file by rename, unless it holds that text already; returns whether it changed."""
    try:
        if path.read_text("utf-8") == text:
            return False
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    return True


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock on a file; the kernel drops it when the process dies, however it dies."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_alive(name: str) -> bool:
    """Whether a staging folder's name is the id of a process that still runs."""
    if not name.isdigit():
        return False
    try:
        os.kill(int(name), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
