"""Tables that are made whole, each time anew, and kept as one file that is named by its content.

Belongs here: keeping the file, and finding it again. Does not belong here: what is in it. Readers that
opened an earlier file keep it for the grace time of the lake.
"""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl

from evalpipe.store.lake import Lake


def path_of(lake: Lake, table: str, digest: str) -> Path:
    """Where the file of a table lies that was named by a digest."""
    layer, name = table.split(".")
    return lake.root / layer / name / f"{digest}.parquet"


def keep(lake: Lake, table: str, data: pl.DataFrame) -> Path:
    """Keep a table; files of earlier ones go when readers had time to finish.

    Args:
        lake: The lake.
        table: Full table name.
        data: All of its rows.

    Returns:
        The file.
    """
    path = lake.append_whole(table, data)
    limit = time.time() - lake.grace_seconds
    for old in lake.appended(table):
        if old != path and old.stat().st_mtime < limit:
            old.unlink(missing_ok=True)
    return path


def forget(lake: Lake, table: str) -> None:
    """Delete the files of a table, earlier ones too, as an erasure does."""
    for path in lake.appended(table):
        path.unlink(missing_ok=True)
