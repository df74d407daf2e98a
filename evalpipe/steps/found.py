"""What the lake knows of source files: which were read, and where they could not be.

Belongs here: looking sources up in ``raw``. Paths name people: what this returns is for the terminal of
the person who named the sources, and goes nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe import sources
from evalpipe.contracts.names import printable_name
from evalpipe.sources import Found, Source, StoredObject, buckets
from evalpipe.steps.context import Context
from evalpipe.store.files import own_staging

# Files are opened again to tell what they are like; more than so many nobody reads about.
_LOOKED_AT = 15

# Of an object, so much is copied again for that: all that most logs are, and never a night of traffic.
_HEAD_BYTES = 32_000_000


@dataclass(frozen=True, slots=True)
class Unread:
    """Records of one file that share a code.

    Attributes:
        name: File relative to the source that it was found in, with the member of an archive.
        line: First line or element concerned, from 1; 0 for the whole file.
        byte: Offset of that record in the decompressed file.
        code: Stable code.
        records: How many.
        like: What a file of an unknown format resembles; empty for all else.
    """

    name: str
    line: int
    byte: int
    code: str
    records: int
    like: str = ""


def locate(named: Sequence[Source]) -> list[Found]:
    """Files and objects under the sources, for the functions below: a bucket is listed once for all.

    Args:
        named: Files, folders, patterns, or prefixes of a bucket.
    """
    return sources.discover(named)


def holds_no_session(context: Context, files: Sequence[Found]) -> bool:
    """Whether the lake knows every file and found a session in none.

    Args:
        context: The open home, after a run over the files.
        files: What :func:`locate` found.
    """
    known = context.lake.read("raw.files", context.lake.manifests("raw"), ["file_id", "source_file", "n_sessions"])
    named = dict(known.group_by("source_file").agg(pl.col("n_sessions").sum()).iter_rows())
    if any(named.get(printable_name(str(item)), 0) for item in files):
        return False
    # Files of the same bytes are recorded once, under the first of their names.
    by_content = dict(known.group_by("file_id").agg(pl.col("n_sessions").sum()).iter_rows())
    rest = [item for item in files if printable_name(str(item)) not in named]
    objects = context.objects.known({item.place for item in rest if isinstance(item, StoredObject)})
    for item in rest:
        if isinstance(item, StoredObject):
            digest = objects[item.place].digest if item.place in objects else ""
        else:
            digest = sources.fingerprint(item).digest
        if by_content.get(digest) != 0:
            return False
    return True


def unread(context: Context, files: Sequence[Found], named: Sequence[Source]) -> list[Unread]:
    """What could not be read: the first place of each file and code, in order.

    Args:
        context: The open home, after a run over the files.
        files: What :func:`locate` found.
        named: The sources that they lie under.
    """
    rows = context.lake.read(
        "raw.quarantine", context.lake.manifests("raw"), ["source_file", "member", "code", "line", "byte_offset"]
    )
    by_name = {printable_name(str(item)): item for item in files}
    grouped = (
        rows.filter(pl.col("source_file").is_in(list(by_name)))
        .sort("line", "byte_offset")
        .group_by("source_file", "member", "code", maintain_order=True)
        .agg(pl.col("line").first(), pl.col("byte_offset").first(), pl.len().alias("records"))
        .sort("source_file", "member", "line", "code")
    )
    return [
        Unread(
            printable_name(sources.short_name(by_name[row["source_file"]], named))
            + (f" > {row['member']}" if row["member"] else ""),
            row["line"],
            row["byte_offset"],
            row["code"],
            row["records"],
            _like(context, by_name[row["source_file"]], row) if position < _LOOKED_AT else "",
        )
        for position, row in enumerate(grouped.iter_rows(named=True))
    ]


def _like(context: Context, item: Found, row: dict[str, Any]) -> str:
    if row["code"] != "UNKNOWN_FORMAT":
        return ""
    if isinstance(item, Path):
        found = sources.resemble(item, row["member"])
        return str(found) if found else ""
    copy = own_staging(context.lake.staging) / f"head-{item.place}"
    try:
        found = sources.resemble(copy, row["member"]) if buckets.read_head(item, copy, _HEAD_BYTES) else None
    finally:
        copy.unlink(missing_ok=True)
    return str(found) if found else ""
