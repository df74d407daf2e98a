"""Reading the warehouse: connections that see one file, and statements that change nothing.

Belongs here: opening a published file for reading, and running a statement that somebody typed.
Does not belong here: building the file (``store/warehouse.py``).

Four guards stand behind one another. DuckDB's own parser says what kind of statement it is, so what
is judged is what is run. Names that tell of the machine are refused. The file is attached read-only.
The connection has no access to any other file and its settings are locked, so that ``read_csv``,
``COPY`` and ``ATTACH`` reach nothing.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
from duckdb import StatementType

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.store.ddl import literal, quoted
from evalpipe.store.sql_guard import failed, refuse_machine_names

#: DuckDB settings, as ``duckdb.connect`` takes them.
Settings = dict[str, Any]

#: SHOW, DESCRIBE, SUMMARIZE, WITH, FROM and VALUES parse as SELECT, and PIVOT as MULTI.
_READS = frozenset({StatementType.SELECT, StatementType.EXPLAIN, StatementType.MULTI})

#: Types that Polars does not know or changes: shown as DuckDB prints them, also inside other types.
_AS_TEXT = re.compile(r"\b(INTERVAL|BIGNUM|TIME|TIME_NS|BIT|UNION|VARIANT|GEOMETRY)\b(?! ZONE)")
#: Inside other types a day may be infinite, which Python has no value for, and cannot be found cheaply.
_DAYS = re.compile(r"\b(DATE|TIMESTAMP\w*)\b")
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")


def connect(path: Path, memory_limit: str, threads: int) -> duckdb.DuckDBPyConnection:
    """Open a published file for reading.

    The file is attached to an in-memory database of its own. Opened by its path it would come from
    DuckDB's cache of instances, and a process that still holds an old version would get that one
    again after a swap.

    Args:
        path: The published file.
        memory_limit: DuckDB's memory limit, such as ``512MB``; beyond it a query fails, because
            what it would spill to disk might outlive it.
        threads: Threads of a query.

    Raises:
        EvalpipeError: ``NO_WAREHOUSE``.
    """
    if not path.is_file():
        raise EvalpipeError("NO_WAREHOUSE", "the file does not exist.", where=str(path))
    config: Settings = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "memory_limit": memory_limit,
        "threads": str(threads),
        "temp_directory": "",
    }
    try:
        connection = duckdb.connect(":memory:", config=config)
    except duckdb.Error:
        raise EvalpipeError("SETTINGS_INVALID", f"{memory_limit!r} is not a size.", where="duckdb_memory") from None
    try:
        connection.execute(f"ATTACH {literal(str(path))} AS warehouse (READ_ONLY)")
    except duckdb.OutOfMemoryException:
        connection.close()
        what = f"{memory_limit} is too little to open the warehouse."
        raise EvalpipeError("SETTINGS_INVALID", what, where="duckdb_memory", fix="Raise duckdb_memory.") from None
    except duckdb.Error as error:
        connection.close()
        what = f"the file cannot be opened ({type(error).__name__})."
        fix = "Delete it and run again; it is derived."
        raise EvalpipeError("NO_WAREHOUSE", what, where=str(path), fix=fix) from None
    connection.execute("USE warehouse")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def run(connection: duckdb.DuckDBPyConnection, sql: str, limit: int | None = None) -> pl.DataFrame:
    """Run one statement that reads.

    Args:
        connection: A connection of :func:`connect`.
        sql: The statement.
        limit: At most so many rows.

    Returns:
        The result; repeated column names are numbered. Values that Polars has no type for are text as
        DuckDB prints them: intervals, unions, times of day, and a column with an infinite day.

    Raises:
        EvalpipeError: ``SQL_REFUSED`` for anything but one statement that reads, and for one that
            reaches for a file or shows the machine; ``SQL_FAILED`` for one that does not work, with
            DuckDB's message where that quotes nothing but the statement.
    """
    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1:
            raise EvalpipeError("SQL_REFUSED", f"{len(statements)} statements were given, one is run.")
        if statements[0].type not in _READS:
            raise EvalpipeError("SQL_REFUSED", f"{statements[0].type.name} is not a query.")
        refuse_machine_names(sql)
        relation = connection.sql(_bare(sql))
        frame = _fetch(relation, frozenset(), limit)
        beyond = frozenset(position for position, column in enumerate(frame, start=1) if _is_beyond(column))
        return _fetch(relation, beyond, limit) if beyond else frame
    except duckdb.PermissionException as error:
        raise EvalpipeError("SQL_REFUSED", _one_line(error), fix="Query the tables of the warehouse.") from None
    except duckdb.Error as error:
        raise failed(error, sql, connection) from None


def _fetch(relation: duckdb.DuckDBPyRelation, as_text: frozenset[int], limit: int | None) -> pl.DataFrame:
    result = relation.project(_columns(relation, as_text))
    frame: pl.DataFrame = (result if limit is None else result.limit(limit)).pl()
    return frame


def _is_beyond(column: pl.Series) -> bool:
    """Whether a column of days or times holds one that Python has no value for, such as infinity."""
    if isinstance(column.dtype, pl.Datetime):
        per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[column.dtype.time_unit]
        # The ends of 64 bits are infinity, whatever the unit.
        low, high = max(-62_135_596_800 * per_second, -(2**63) + 2), min(253_402_300_800 * per_second, 2**63 - 1) - 1
    elif column.dtype == pl.Date:
        epoch = datetime(1970, 1, 1).date()
        low, high = (date.min - epoch).days, (date.max - epoch).days
    else:
        return False
    numbers = column.to_physical().drop_nulls()
    return not bool(numbers.is_between(low, high).all())


def _bare(sql: str) -> str:
    """The statement without the semicolon and the comments behind it, so that it can stand in another."""
    text = sql.encode()  # the tokenizer counts bytes
    for start, kind in reversed(duckdb.tokenize(sql)):
        if kind is not duckdb.token_type.comment and text[start : start + 1] != b";":
            break
        text = text[:start]
    return text.decode()


def _columns(relation: duckdb.DuckDBPyRelation, as_text: frozenset[int]) -> str:
    """The relation's columns by position, with names that are unique and types that Polars knows.

    Args:
        relation: The query.
        as_text: Positions from 1 of further columns to show as text.
    """
    out: list[str] = []
    taken: set[str] = set()
    for position, (name, dtype) in enumerate(zip(relation.columns, relation.types, strict=True), start=1):
        label, number = name, 0
        while label.lower() in taken:
            number += 1
            label = f"{name}_{number}"
        taken.add(label.lower())
        out.append(f"{_value(position, str(dtype), is_text=position in as_text)} AS {quoted(label)}")
    return ", ".join(out)


def _value(position: int, dtype: str, *, is_text: bool) -> str:
    bare = _QUOTED.sub("", dtype)
    is_nested = any(mark in bare for mark in ("[", "STRUCT(", "MAP(", "TUPLE("))
    if is_text or _AS_TEXT.search(bare) or (is_nested and _DAYS.search(bare)):
        return f"CAST(#{position} AS VARCHAR)"
    if dtype in ("TIMESTAMP_S", "TIMESTAMP_MS"):
        return f"CAST(#{position} AS TIMESTAMP)"  # Polars takes an infinite one for a moment in 1969
    return f"#{position}"


def _one_line(error: duckdb.Error) -> str:
    """DuckDB's message without the excerpt of the statement that it appends."""
    return " ".join(str(error).split("\n\n")[0].split())
