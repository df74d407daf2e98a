"""What a typed statement may not reach, and what is said of one that failed.

Belongs here: names that tell of the machine, messages that quote no value, names close to a
misspelt one. Does not belong here: connections and running (``store/readonly.py``).

DuckDB's messages on a failed conversion or function quote the value that failed, and a value may
be text of a log. So only messages on the statement itself are passed on: they quote what was typed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

import duckdb

from evalpipe.contracts.errors import EvalpipeError

#: Tables and functions that show paths, settings or variables of the machine, not the warehouse.
MACHINE_NAMES = frozenset(
    {
        "current_setting",
        "duckdb_connection_count",
        "duckdb_databases",
        "duckdb_extensions",
        "duckdb_external_file_cache",
        "duckdb_logs",
        "duckdb_logs_parsed",
        "duckdb_log_contexts",
        "duckdb_memory",
        "duckdb_prepared_statements",
        "duckdb_secret_types",
        "duckdb_secrets",
        "duckdb_settings",
        "duckdb_temporary_files",
        "duckdb_which_secret",
        "getenv",
        "pg_settings",
        "pragma_database_list",
        "pragma_database_size",
        "pragma_platform",
        "pragma_user_agent",
        "which_secret",
    }
)

#: Functions that run a text as a statement, so that a name in it would not be seen.
_RUN_TEXT = frozenset({"query", "query_table"})

#: Failures that depend on values, in words that hold none, each with its fix.
_SAYINGS: tuple[tuple[type[duckdb.Error], str, str], ...] = (
    (
        duckdb.OutOfMemoryException,
        "the query needs more memory than duckdb_memory",
        "Raise duckdb_memory, or ask for fewer rows.",
    ),
    (
        duckdb.ConversionException,
        "a value cannot be read as the type that it is cast to",
        "Use TRY_CAST, which gives NULL there.",
    ),
    (
        duckdb.OutOfRangeException,
        "a number is out of the range of its type",
        "Cast to DOUBLE or HUGEINT before calculating.",
    ),
    (
        duckdb.InvalidInputException,
        "a function was given a value that it does not take",
        "Look at the arguments of the query's functions.",
    ),
)

_TABLES = (
    "SELECT schema_name, table_name FROM duckdb_tables() "
    "UNION ALL SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal"
)
_READ_ONLY = "attached in read-only mode"
_MISSING = re.compile(
    r"""(?:column|table|name|schema)\s+"?([^"\s!]+)"?\s+(?:not found|does not exist)|column named "([^"]+)\""""
)


def refuse_machine_names(sql: str) -> None:
    """Refuse a statement that names a table or function of the machine.

    Args:
        sql: The statement.

    Raises:
        EvalpipeError: ``SQL_REFUSED``.
    """
    words = list(_words(sql))
    for index, word in enumerate(words):
        is_called = words[index + 1 : index + 2] == ["("]
        if word in MACHINE_NAMES or (word in _RUN_TEXT and is_called):
            what = f"{word} shows the machine, not the warehouse" if word in MACHINE_NAMES else f"{word}() runs a text"
            raise EvalpipeError("SQL_REFUSED", f"{what}.", fix="Query the tables of the warehouse.")


def failed(error: duckdb.Error, sql: str, connection: duckdb.DuckDBPyConnection) -> EvalpipeError:
    """The error of a statement that did not work: what was typed may be quoted, a value never.

    Args:
        error: What DuckDB raised.
        sql: The statement.
        connection: Tells which tables and columns there are.
    """
    if isinstance(error, (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException)):
        # Below the first line DuckDB lists candidates, among them names that a PIVOT made of values.
        what = str(error).split("\n", maxsplit=1)[0].strip()
        close = _close_names(what, sql, connection)
        if not close:
            return EvalpipeError("SQL_FAILED", what)
        fix = f"Did you mean {' or '.join(close)}? Columns are listed by: evalpipe sql 'describe TABLE'"
        return EvalpipeError("SQL_FAILED", what, fix=fix)
    if _READ_ONLY in str(error):
        return EvalpipeError("SQL_FAILED", "the warehouse is attached read-only.", fix="Use a SELECT.")
    for kind, what, fix in _SAYINGS:
        if isinstance(error, kind):
            return EvalpipeError("SQL_FAILED", f"{what}.", fix=fix)
    return EvalpipeError("SQL_FAILED", f"the query stopped ({type(error).__name__}).")


def _words(sql: str) -> Iterator[str]:
    """Identifiers, keywords and opening brackets of a statement, in lower case, quotes taken off."""
    text = sql.encode()  # the tokenizer counts bytes
    tokens = duckdb.tokenize(sql)
    ends = [start for start, _ in tokens[1:]] + [len(text)]
    for (start, kind), end in zip(tokens, ends, strict=True):
        part = text[start:end].decode("utf-8", "replace").strip()
        if kind in (duckdb.token_type.identifier, duckdb.token_type.keyword):
            if part.startswith('"'):
                part = part[1:].partition('"')[0]
            yield part.split("/*")[0].split("--")[0].strip().lower()
        elif part.startswith("("):
            yield "("


def _close_names(message: str, sql: str, connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Tables or columns spelt almost like the one that is missing, best first."""
    found = _MISSING.search(message)
    if found is None:
        return []
    missing = (found[1] or found[2]).rpartition(".")[2].lower()
    known: dict[str, list[str]] = {}
    if "column" in found[0]:
        words = set(_words(sql))
        rows = connection.execute("SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal").fetchall()
        for table, column in rows:
            if table.lower() in words:
                known.setdefault(column.lower(), []).append(column)
    else:
        for schema, table in connection.execute(_TABLES).fetchall():
            known.setdefault(table.lower(), []).append(f"{schema}.{table}")
    close = difflib.get_close_matches(missing, known, n=3, cutoff=0.6)
    return list(dict.fromkeys(name for key in close for name in known[key]))[:3]
