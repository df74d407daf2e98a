"""Query results as a table, CSV or JSON, on standard output or in a file.

Belongs here: how a value of any type is written. Does not belong here: running a query
(``store/readonly.py``).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe.console import show
from evalpipe.contracts.errors import EvalpipeError

STYLES = ("table", "csv", "json")
#: Rows that a table shows; nobody reads more, and a pipe wants CSV.
TABLE_ROWS = 200


def frame(data: pl.DataFrame, style: str) -> None:
    """Print a query result in one of :data:`STYLES`.

    JSON is one object a line. Values without a JSON type are text: bytes as hexadecimal digits, days
    and times in ISO 8601, ``NaN``, ``Infinity`` and ``-Infinity`` by name.
    """
    if style == "csv":
        print(_flat(data).write_csv(), end="")
    elif style == "json":
        print(_json_lines(data), end="")
    else:
        rows = [
            {name: _cell(value) for name, value in row.items()} for row in data.head(TABLE_ROWS).iter_rows(named=True)
        ]
        show.table(rows, numeric=[name for name, dtype in data.schema.items() if dtype.is_numeric()])
        if data.height > len(rows):
            show.note(f"{data.height - len(rows):,} more rows; use --format csv or --out FILE")


def check_file(path: Path) -> None:
    """Check that a result can be written to a file, before the query takes its time.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT``.
    """
    if path.suffix not in _WRITERS:
        fix = "End the name in .parquet, .csv or .json."
        raise EvalpipeError("BAD_ARGUMENT", "the name's ending does not tell the format", where=str(path), fix=fix)
    if path.is_dir():
        raise EvalpipeError("BAD_ARGUMENT", "it is a folder", where=str(path), fix="Name a file.")
    if not path.parent.is_dir():
        where = str(path.parent)
        raise EvalpipeError("BAD_ARGUMENT", "the folder does not exist", where=where, fix="Make it, or name another.")


def write(data: pl.DataFrame, path: Path) -> None:
    """Write a result to a file whose name ends in .parquet, .csv or .json: whole, or not at all.

    Args:
        data: The result.
        path: File; one that exists is replaced.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT`` for another ending or a missing folder.
        OSError: The system refused.
    """
    check_file(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _WRITERS[path.suffix](data, draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


_WRITERS: dict[str, Callable[[pl.DataFrame, Path], object]] = {
    ".parquet": lambda data, path: data.write_parquet(path),
    ".csv": lambda data, path: path.write_text(_flat(data).write_csv(), "utf-8"),
    ".json": lambda data, path: path.write_text(_json_lines(data), "utf-8"),
}


def _json_lines(data: pl.DataFrame) -> str:
    rows = data.iter_rows(named=True)
    return "".join(f"{json.dumps(_plain(row), ensure_ascii=False, allow_nan=False)}\n" for row in rows)


def _flat(data: pl.DataFrame) -> pl.DataFrame:
    """The frame with nested values as JSON and bytes as hexadecimal digits, which CSV has no form for."""
    out = []
    for column in data:
        if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
            values = [_csv_cell(value) for value in column.to_list()]
            out.append(pl.Series(column.name, values, dtype=pl.String))
        else:
            out.append(column)
    return pl.DataFrame(out)


def _csv_cell(value: Any) -> str | None:
    found = _plain(value)
    return found if found is None or isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _cell(value: Any) -> object:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (list, dict, bytes)):
        return _csv_cell(value)
    return value


def _plain(value: Any) -> Any:
    """A value in the types of JSON."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case bytes():
            return value.hex()
        case date() | datetime() | time():
            return value.isoformat()
        case dict():
            return {key if isinstance(key, str) else str(_plain(key)): _plain(item) for key, item in value.items()}
        case list() | tuple() | pl.Series():
            return [_plain(item) for item in value]
        case _:
            return str(value)
