"""Taking bytes away: landed parts and slices written anew without some rows, and what nobody names deleted.

Belongs here: how rows leave the files of a home. Does not belong here: which rows (``steps/erase.py``,
``steps/retention.py``). All of it asks that nobody else has the home open (``home.lock``), because a
reader of an old part would find it gone.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

from evalpipe.store.entries import RAW, LandedFile, LandedPart
from evalpipe.store.files import locked, move_durably, own_staging, write_atomically
from evalpipe.store.lake import ROW_GROUP_ROWS, ZSTD_LEVEL, Lake, read_part, stage_part
from evalpipe.store.landing import LANDED, Landing, text_bytes
from evalpipe.store.manifest import STEP_LAYERS, STEP_TABLES, Manifest, StagedPart

#: (table, rows) to the rows that stay; the same object where all do.
Change = Callable[[str, pl.DataFrame], pl.DataFrame]
#: Tables whose parts pair by position.
_PAIRED = ("sessions", "steps", "vectors")


def rewrite_landing(landing: Landing, change: Change, file: Callable[[LandedFile], LandedFile]) -> int:
    """Write every landed part anew that a change concerns, then its index entry.

    Run again after a kill it goes on: what was changed already stays as it is.

    Args:
        landing: The landing zone.
        change: Rows that stay of ``raw.sessions`` and the like, and of ``raw.copies_index``.
        file: What the index shall say of a file.

    Returns:
        Parts that were written anew.
    """
    n_parts = 0
    with locked(landing.root / ".lock"):
        for entry in landing.entries():
            parts, emptied = [], list[Path]()
            for part in entry.parts:
                rewritten, gone, n = _part(landing, part, change)
                parts.append(rewritten)
                emptied += gone
                n_parts += n
            copies = landing.copies_path(entry.batch)
            if copies.exists():
                n_parts += rewrite_part(copies, "raw.copies_index", change) is not None
            landing.write_entry(replace(entry, parts=tuple(parts), files=tuple(map(file, entry.files))))
            # Behind the entry, which until then names them.
            for path in emptied:
                path.unlink(missing_ok=True)
    return n_parts


def _part(landing: Landing, part: LandedPart, change: Change) -> tuple[LandedPart, list[Path], int]:
    rows, n_text_bytes, n_written = dict(part.rows), part.n_text_bytes, 0
    emptied: list[Path] = []
    for name in LANDED:
        path = landing.path(part.day, part.stem, name)
        if not rows.get(name) or not path.exists():
            continue
        kept = rewrite_part(path, f"raw.{name}", change)
        if kept is None:
            # A run that was killed may have written the part and not its entry.
            rows[name] = pl.scan_parquet(path).select(pl.len()).collect().item()
        else:
            rows[name] = kept.height
            n_written += 1
            n_text_bytes = text_bytes(kept) if name == "steps" else n_text_bytes
        if not rows[name]:
            emptied.append(path)
            del rows[name]
    return replace(part, rows=rows, n_text_bytes=n_text_bytes), emptied, n_written


def rewrite_part(path: Path, table: str, change: Change) -> pl.DataFrame | None:
    """Write a landed part anew in its place, with the rows that stay.

    Args:
        path: The part.
        table: Its table.
        change: Rows that stay.

    Returns:
        The rows; ``None`` where all stay as they are.
    """
    old = pl.read_parquet(path)
    new = change(table, old)
    if new is old or new.equals(old):
        return None
    draft = path.with_name(f".{path.name}.draft")
    new.write_parquet(draft, compression="zstd", compression_level=ZSTD_LEVEL, row_group_size=ROW_GROUP_ROWS)
    move_durably([(draft, path)])
    return new


def rewrite_slice(lake: Lake, manifest: Manifest, change: Change) -> Manifest | None:
    """Commit a slice anew without some rows, or ``None`` where all stay.

    Its inputs stay as they were, so that it is as stale or fresh as before in the eyes of what comes
    before it, and what is made from it sees another content.

    Args:
        lake: The lake.
        manifest: A committed slice.
        change: Rows that stay.
    """
    folder = lake.staging_folder(manifest.key)
    staged: list[StagedPart] = []
    is_changed = False
    for index, part in enumerate(manifest.parts):
        old = lake.read(part.table, [replace(manifest, parts=(part,))])
        new = change(part.table, old)
        is_changed |= new is not old and not new.equals(old)
        # Sessions, steps and vectors pair by position, so an empty part stays in its place.
        if not new.is_empty() or part.table.split(".")[1] in _PAIRED:
            staged.append(stage_part(part.table, new, folder, f"{index:05d}"))
    if not is_changed:
        lake.discard(manifest.key)
        return None
    return lake.commit(
        manifest.key, staged, inputs=manifest.inputs, code_version=manifest.code_version, stats=manifest.stats
    )


def drop_slice(lake: Lake, manifest: Manifest) -> None:
    """Delete a slice: its manifest first, so that no reader resolves to parts that are going."""
    lake.manifest_path(manifest.key).unlink(missing_ok=True)
    for path in lake.paths_of(manifest):
        path.unlink(missing_ok=True)


def sweep(lake: Lake, landing: Landing) -> int:
    """Delete at once every part that no manifest and no index entry names, and all that is staged.

    An entry whose landed text has expired names no part: one that is there was left by an expiry that was
    killed between marking the entry and deleting its parts.

    Returns:
        Files deleted.
    """
    named = {path for step in STEP_TABLES for m in lake.manifests(step) for path in lake.paths_of(m)}
    entries = landing.entries()
    named |= {
        landing.path(part.day, part.stem, name)
        for e in entries
        if RAW not in e.expired
        for part in e.parts
        for name, n in part.rows.items()
        if n
    }
    named |= {landing.copies_path(entry.batch) for entry in entries}
    n_deleted = 0
    for path in (*_parts(lake), *landing.root.glob("day=*/*.parquet"), *landing.root.glob("_batches/*.parquet")):
        if path not in named:
            path.unlink(missing_ok=True)
            n_deleted += 1
    for path in lake.root.rglob(".*"):
        # Drafts that a killed process left; locks hold nothing.
        if path.is_file() and path.suffix != ".lock" and path.name not in (".lock", ".held"):
            path.unlink(missing_ok=True)
            n_deleted += 1
    own = own_staging(lake.staging)
    for folder in lake.staging.iterdir():
        for left in folder.iterdir() if folder.is_dir() and folder != own else ():
            # A process that lives keeps its folder; it stages nothing while the home is not open to it.
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            elif left.name != ".held":
                left.unlink(missing_ok=True)
    return n_deleted


def _parts(lake: Lake) -> Iterator[Path]:
    for layer in sorted(set(STEP_LAYERS.values())):
        for folder in (lake.root / layer).glob("[!_]*"):
            for day in folder.rglob("day=*"):
                yield from day.glob("*.parquet")


def private_write(path: Path, text: str) -> None:
    """Write a small file that only the owner can read, by rename."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(path, text)
    path.chmod(0o600)


def rewrite_appended(lake: Lake, table: str, change: Change) -> int:
    """Write the files of an append-only table anew without some rows.

    Args:
        lake: The lake.
        table: Full name of the table.
        change: Rows that stay.

    Returns:
        Files that were replaced. A run that is killed between the new file and the old one's end is
        gone on with by the next, since the old one is changed again.
    """
    n_changed = 0
    for path in lake.appended(table):
        old = read_part(table, path)
        new = change(table, old)
        if new is old or new.equals(old):
            continue
        lake.append(table, new)
        path.unlink(missing_ok=True)
        n_changed += 1
    return n_changed
