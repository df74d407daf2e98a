"""Taking a SELECT apart: the tables that it reads, and the columns that its columns come from.

Belongs here: what needs sqlglot. Does not belong here: files, headers, contracts (``store/sql_models.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot import lineage as sqlglot_lineage
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope


class RefusedError(Exception):
    """A statement that no model may have; the message says why and quotes none of it but names."""


def tables(text: str) -> tuple[str, ...]:
    """Full names of what a statement reads, sorted.

    Args:
        text: One SELECT in DuckDB's SQL.

    Raises:
        RefusedError: It cannot be parsed, is not one SELECT, or reads what is not a table of the warehouse.
    """
    found: set[str] = set()
    for scope in traverse_scope(_one_select(text)):
        for table in scope.tables:
            if not table.db and table.name in scope.cte_sources:
                continue
            if not isinstance(table.this, exp.Identifier):
                raise RefusedError("it reads a table function; models read tables of the warehouse only")
            if not table.db or table.catalog:
                raise RefusedError(f"{table.name} is not named as layer.table")
            found.add(f"{table.db}.{table.name}")
    return tuple(sorted(found))


def lineage(
    sql: str, columns: Iterable[str], schema: Mapping[str, Mapping[str, Mapping[str, str]]]
) -> dict[str, list[tuple[str, str]]]:
    """For each output column the (table, column) pairs directly upstream, sorted.

    Args:
        sql: One SELECT in DuckDB's SQL.
        columns: Its output columns.
        schema: Types by layer, table and column.
    """
    nodes: Any = sqlglot_lineage.lineage(None, sql, schema={k: dict(v) for k, v in schema.items()}, dialect="duckdb")
    if isinstance(nodes, sqlglot_lineage.Node):
        raise TypeError("sqlglot gave one node where a mapping was asked for")
    return {column: _leaves(nodes[column]) for column in columns}


def _one_select(text: str) -> exp.Query:
    try:
        statements = [statement for statement in sqlglot.parse(text, dialect="duckdb") if statement is not None]
    except SqlglotError as error:
        first = str(error).splitlines()[0]
        raise RefusedError(f"it cannot be parsed: {first}") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise RefusedError("it is not one SELECT")
    return statements[0]


def _leaves(root: sqlglot_lineage.Node) -> list[tuple[str, str]]:
    out: set[tuple[str, str]] = set()
    for node in root.walk():
        if isinstance(node.source, exp.Table) and not node.downstream:
            table = f"{node.source.db}.{node.source.name}"
            column = exp.to_column(node.name).name
            if column != "*":
                out.add((table, column))
    return sorted(out)
