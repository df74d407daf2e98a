"""What the lake knows of source files: which were read, and where they could not be.

Belongs here: looking source paths up in ``raw``. Paths name people: what this returns is for the
terminal of the person who named the sources, and goes nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe import sources
from evalpipe.steps.context import Context

# Files are opened again to tell what they are like; more than so many nobody reads about.
_LOOKED_AT = 15


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


def holds_no_session(context: Context, paths: Sequence[Path]) -> bool:
    """Whether the lake knows every file below the paths and found a session in none.

    Args:
        context: The open home, after a run over the paths.
        paths: Files or folders.
    """
    files = sources.discover(paths)
    known = context.lake.read("raw.files", context.lake.manifests("raw"), ["file_id", "source_file", "n_sessions"])
    named = dict(known.group_by("source_file").agg(pl.col("n_sessions").sum()).iter_rows())
    if any(named.get(str(path), 0) for path in files):
        return False
    # Files of the same bytes are recorded once, under the first of their names.
    by_content = dict(known.group_by("file_id").agg(pl.col("n_sessions").sum()).iter_rows())
    rest = (sources.fingerprint(path).digest for path in files if str(path) not in named)
    return all(by_content.get(digest) == 0 for digest in rest)


def unread(context: Context, paths: Sequence[Path]) -> list[Unread]:
    """What could not be read below the paths: the first place of each file and code, in order.

    Args:
        context: The open home, after a run over the paths.
        paths: Files or folders.
    """
    rows = context.lake.read(
        "raw.quarantine", context.lake.manifests("raw"), ["source_file", "member", "code", "line", "byte_offset"]
    )
    files = {str(path): path for path in sources.discover(paths)}
    named = {text: _name(path, paths) for text, path in files.items()}
    grouped = (
        rows.filter(pl.col("source_file").is_in(list(named)))
        .sort("line", "byte_offset")
        .group_by("source_file", "member", "code", maintain_order=True)
        .agg(pl.col("line").first(), pl.col("byte_offset").first(), pl.len().alias("records"))
        .sort("source_file", "member", "line", "code")
    )
    return [
        Unread(
            named[row["source_file"]] + (f" > {row['member']}" if row["member"] else ""),
            row["line"],
            row["byte_offset"],
            row["code"],
            row["records"],
            _like(files[row["source_file"]], row) if position < _LOOKED_AT else "",
        )
        for position, row in enumerate(grouped.iter_rows(named=True))
    ]


def _like(path: Path, row: dict[str, Any]) -> str:
    if row["code"] != "UNKNOWN_FORMAT":
        return ""
    found = sources.resemble(path, row["member"])
    return str(found) if found else ""


def _name(path: Path, paths: Sequence[Path]) -> str:
    for source in paths:
        if path != source and source in path.parents:
            return str(path.relative_to(source.parent)) if len(paths) > 1 else str(path.relative_to(source))
    return path.name
