"""Reading the warehouse: connections that see one file, and statements that change nothing.

Belongs here: opening a published file for reading, and running a statement that somebody typed.
Does not belong here: building the file (``store/warehouse.py``).

Three guards stand behind one another. DuckDB's own parser says what kind of statement it is, so what
is judged is what is run. The file is attached read-only. The connection has no access to any other
file and its settings are locked, so that ``read_csv``, ``COPY`` and ``ATTACH`` reach nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
from duckdb import StatementType

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.store.ddl import literal, quoted

#: DuckDB settings, as ``duckdb.connect`` takes them.
Settings = dict[str, Any]

#: SHOW, DESCRIBE, SUMMARIZE, WITH, FROM and VALUES parse as SELECT, and PIVOT as MULTI.
_READS = frozenset({StatementType.SELECT, StatementType.EXPLAIN, StatementType.MULTI})

#: Types that Polars does not know: shown as DuckDB prints them.
_AS_TEXT = frozenset({"INTERVAL", "BIGNUM", "TIME WITH TIME ZONE"})


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
    connection = duckdb.connect(":memory:", config=config)
    try:
        connection.execute(f"ATTACH {literal(str(path))} AS warehouse (READ_ONLY)")
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
        The result; repeated column names are numbered, intervals are text.

    Raises:
        EvalpipeError: ``SQL_REFUSED`` for anything but one statement that reads, and for one that
            reaches for a file; ``SQL_FAILED`` with DuckDB's message for one that does not work.
    """
    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1:
            raise EvalpipeError("SQL_REFUSED", f"{len(statements)} statements were given, one is run.")
        if statements[0].type not in _READS:
            raise EvalpipeError("SQL_REFUSED", f"{statements[0].type.name} is not a query.")
        relation = connection.sql(_bare(sql))
        result = relation.project(_columns(relation))
        frame: pl.DataFrame = (result if limit is None else result.limit(limit)).pl()
    except duckdb.PermissionException as error:
        raise EvalpipeError("SQL_REFUSED", _one_line(error), fix="Query the tables of the warehouse.") from None
    except duckdb.Error as error:
        raise EvalpipeError("SQL_FAILED", _one_line(error)) from None
    return frame


def _bare(sql: str) -> str:
    """The statement without the semicolon and the comments behind it, so that it can stand in another."""
    text = sql.encode()  # the tokenizer counts bytes
    for start, kind in reversed(duckdb.tokenize(sql)):
        if kind is not duckdb.token_type.comment and text[start : start + 1] != b";":
            break
        text = text[:start]
    return text.decode()


def _columns(relation: duckdb.DuckDBPyRelation) -> str:
    """The relation's columns by position, with names that are unique and types that Polars knows."""
    out: list[str] = []
    taken: set[str] = set()
    for position, (name, dtype) in enumerate(zip(relation.columns, relation.types, strict=True), start=1):
        label, number = name, 0
        while label.lower() in taken:
            number += 1
            label = f"{name}_{number}"
        taken.add(label.lower())
        value = f"CAST(#{position} AS VARCHAR)" if str(dtype) in _AS_TEXT else f"#{position}"
        out.append(f"{value} AS {quoted(label)}")
    return ", ".join(out)


def _one_line(error: duckdb.Error) -> str:
    """DuckDB's message without the excerpt of the statement that it appends."""
    return " ".join(str(error).split("\n\n")[0].split())
