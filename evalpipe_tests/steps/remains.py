"""Everything that a home holds, as bytes and as values: where a search for what must be gone looks."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import polars as pl


def contents(home: Path) -> Iterator[tuple[str, bytes]]:
    """(place, bytes) of every file, as it lies there and decoded: Parquet and DuckDB columns, gzip."""
    for path in sorted(home.rglob("*")):
        name = str(path.relative_to(home))
        if not path.is_file():
            continue
        yield name, name.encode() + b"\n" + path.read_bytes()
        if path.suffix == ".parquet":
            frame = pl.read_parquet(path)
            for column, dtype in frame.schema.items():
                if dtype in (pl.String, pl.List(pl.String)):
                    yield f"{name}:{column}", str(frame[column].to_list()).encode()
        elif path.suffix == ".gz":
            yield f"{name}:unpacked", gzip.decompress(path.read_bytes())
        elif path.suffix == ".duckdb":
            with duckdb.connect(str(path), read_only=True) as connection:
                tables = connection.execute("SELECT table_schema, table_name FROM information_schema.tables").fetchall()
                for schema, table in tables:
                    rows = connection.execute(f'SELECT * FROM "{schema}"."{table}"').fetchall()
                    yield f"{name}:{schema}.{table}", str(rows).encode()


def places_of(home: Path, needles: Iterable[str]) -> dict[str, list[str]]:
    """Where each needle is found, case aside; needles that are nowhere are left out."""
    wanted = {needle: needle.lower().encode() for needle in needles}
    found: dict[str, list[str]] = {}
    for place, data in contents(home):
        low = data.lower()
        for needle, sought in wanted.items():
            if sought in low:
                found.setdefault(needle, []).append(place)
    return found
