"""DDL of the warehouse, generated from contracts: which tables and columns it carries, and how.

Belongs here: the rule of what is published, and the SQL text that follows from a contract. Does not
belong here: connections, files, or anything about SQL models.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from evalpipe.contracts.model import Column, Sensitivity, Table
from evalpipe.contracts.render import duckdb_type
from evalpipe.contracts.tables import ALL

#: Layers that never leave the lake, whatever a contract says of its tables.
UNPUBLISHED_LAYERS = frozenset({"raw"})


def published_tables(tables: tuple[Table, ...] = ALL) -> tuple[Table, ...]:
    """Contracts whose tables the warehouse carries, in layer order."""
    return tuple(t for t in tables if t.is_published and t.layer not in UNPUBLISHED_LAYERS and published_columns(t))


def published_columns(table: Table) -> tuple[Column, ...]:
    """Columns that the warehouse carries: marked published, and never a restricted one."""
    return tuple(c for c in table if c.is_published and c.sensitivity is not Sensitivity.RESTRICTED)


def quoted(name: str) -> str:
    """One name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def dotted(name: str) -> str:
    """A qualified name such as ``signals.hard``, quoted part by part."""
    return ".".join(map(quoted, name.split(".")))


def literal(text: str) -> str:
    """A text as a SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def create_table(table: Table) -> str:
    """``CREATE TABLE`` of the published columns, typed from the contract."""
    columns = ", ".join(
        f"{quoted(c.name)} {duckdb_type(c)}{'' if c.nullable else ' NOT NULL'}" for c in published_columns(table)
    )
    return f"CREATE TABLE {dotted(table.full_name)} ({columns})"


def insert_parts(table: Table, later: Sequence[Collection[str]] = ((),)) -> str:
    """``INSERT`` of the table's Parquet parts; lists of paths are its parameters.

    Args:
        table: The contract.
        later: For each list of paths, the columns that its parts do not have yet and that are null there.

    Rows are ordered by the contract's sort and then by every other published column, because a key
    that is unique in a slice may repeat across slices, and the rows of a warehouse must not depend
    on how threads took turns. Hive partitions are off: folders are named ``day=``, and a table may
    have a column of that name.
    """
    names = [c.name for c in published_columns(table)]
    first = [name for name in table.sort if name in names]
    order = first + [name for name in names if name not in first]
    parts = " UNION ALL ".join(
        f"SELECT {', '.join(f'NULL AS {quoted(n)}' if n in absent else quoted(n) for n in names)} "
        "FROM read_parquet(?, hive_partitioning = false, union_by_name = false)"
        for absent in later
    )
    return f"INSERT INTO {dotted(table.full_name)} {parts} ORDER BY {', '.join(map(quoted, order))}"


def comment_on(kind: str, name: str, text: str) -> str:
    """``COMMENT ON`` a TABLE, VIEW or COLUMN."""
    return f"COMMENT ON {kind} {dotted(name)} IS {literal(text)}"


def table_comments(table: Table) -> list[str]:
    """Comments of a table and of its published columns."""
    out = [comment_on("TABLE", table.full_name, f"{table.meaning} Grain: {table.grain}.")]
    out += [comment_on("COLUMN", f"{table.full_name}.{c.name}", c.meaning) for c in published_columns(table)]
    return out
