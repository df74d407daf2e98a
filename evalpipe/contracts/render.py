"""Everything that is generated from a contract: schemas, checks, comments, the data dictionary.

Belongs here: pure functions from a :class:`~evalpipe.contracts.model.Table`. Dagster's rendering
lives in ``orchestration/metadata.py`` because only that package may import dagster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache

import polars as pl

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.model import Column, Kind, Table
from evalpipe.contracts.tiers import Tier, kept_in

_POLARS: dict[Kind, pl.DataType] = {
    Kind.STR: pl.String(),
    Kind.BOOL: pl.Boolean(),
    Kind.I32: pl.Int32(),
    Kind.I64: pl.Int64(),
    Kind.F64: pl.Float64(),
    Kind.DATE: pl.Date(),
    Kind.TIMESTAMP: pl.Datetime("us", "UTC"),
    Kind.STR_LIST: pl.List(pl.String()),
}
_DUCKDB: dict[Kind, str] = {
    Kind.STR: "VARCHAR",
    Kind.BOOL: "BOOLEAN",
    Kind.I32: "INTEGER",
    Kind.I64: "BIGINT",
    Kind.F64: "DOUBLE",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP WITH TIME ZONE",
    Kind.STR_LIST: "VARCHAR[]",
}


def polars_schema(table: Table) -> pl.Schema:
    """The table's Polars schema, in column order."""
    return pl.Schema({column.name: _POLARS[column.kind] for column in table})


def duckdb_type(column: Column) -> str:
    """The DuckDB type of a column."""
    return _DUCKDB[column.kind]


def empty(table: Table) -> pl.DataFrame:
    """A frame of the table's schema without rows."""
    return pl.DataFrame(schema=polars_schema(table))


def frame(table: Table, rows: Iterable[dict[str, object]]) -> pl.DataFrame:
    """A frame of the table's schema from row dictionaries; absent keys become null."""
    return pl.DataFrame(list(rows), schema=polars_schema(table))


def conform(table: Table, data: pl.DataFrame) -> pl.DataFrame:
    """Check a frame against its contract, strictly, and return it in column order.

    Args:
        table: The contract.
        data: Frame with exactly the contract's columns, in any order.

    Returns:
        The same rows with the columns in contract order.

    Raises:
        EvalpipeError: ``CONTRACT_BROKEN`` naming table and column, never a value.
    """
    expected = polars_schema(table)
    _same_columns(table, data, expected)
    data = data.select(list(expected))
    _legal_values(table, data)
    return data


def later_columns(table: Table, found: Collection[str]) -> dict[str, pl.DataType]:
    """Columns that a part of a table lacks because it was written before they were there.

    Days whose text has expired are never made anew, so their parts keep the columns that they had. A
    column that may be null is null there; one that may not cannot be added to a contract this way.

    Args:
        table: The contract of today.
        found: Columns of the part.

    Returns:
        Type by name of each nullable column that is not there.
    """
    schema = polars_schema(table)
    return {c.name: schema[c.name] for c in table.columns if c.nullable and c.name not in found}


def with_later_columns(table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows that were written before their table had a column: null in it, behind the columns in front of it.

    Args:
        table: The contract of today.
        rows: Rows, with columns of their own behind those of the contract where they have any.
    """
    later = later_columns(table, rows.columns)
    if not later:
        return rows
    named = [name for name in table.names if name in later or name in rows.columns]
    beside = [name for name in rows.columns if name not in table]
    return rows.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in later.items()).select(*named, *beside)


def _broken(table: Table, column: str, what: str) -> EvalpipeError:
    return EvalpipeError("CONTRACT_BROKEN", what, where=f"{table.full_name}.{column}")


def _same_columns(table: Table, data: pl.DataFrame, expected: pl.Schema) -> None:
    found = data.schema
    missing = [name for name in expected if name not in found]
    if missing:
        raise _broken(table, missing[0], "column is missing")
    extra = [name for name in found if name not in expected]
    if extra:
        raise _broken(table, extra[0], "column is not in the contract")
    for name, dtype in expected.items():
        if found[name] != dtype:
            raise _broken(table, name, f"type is {found[name]}, not {dtype}")


@cache
def _tests(table: Table) -> tuple[list[tuple[Column, str]], list[pl.Expr]]:
    """What rows must not hold: column and wording, and how many rows do, for each.

    Kept, because a landing checks hundreds of small frames, and building these costs more than they do.
    """
    checks: list[tuple[Column, str]] = []
    tests: list[pl.Expr] = []

    def add(column: Column, what: str, test: pl.Expr) -> None:
        checks.append((column, what))
        tests.append(test.sum().alias(f"{len(tests)}"))

    for column in table:
        value = pl.col(column.name)
        if not column.nullable:
            # The count of nulls is stored with a column.
            checks.append((column, "null"))
            tests.append(value.null_count().alias(f"{len(tests)}"))
        if column.values:
            add(column, f"a value outside {list(column.values)}", ~value.is_in(list(column.values)))
        if column.low is not None:
            add(column, f"a value below {column.low}", value < column.low)
        if column.high is not None:
            add(column, f"a value above {column.high}", value > column.high)
        if column.kind is Kind.F64:
            add(column, "a value that is not finite", ~value.is_finite())
    return checks, tests


def _legal_values(table: Table, data: pl.DataFrame) -> None:
    if data.is_empty():
        return
    checks, tests = _tests(table)
    counts = data.select(tests).row(0) if tests else ()
    for (column, what), n in zip(checks, counts, strict=True):
        if n:
            raise _broken(table, column.name, f"{n} rows hold {what}")
    if table.keys and data.select(pl.struct(table.keys).n_unique()).item() != data.height:
        raise _broken(table, ",".join(table.keys), "the key is not unique")


def comments(table: Table) -> list[tuple[str, str]]:
    """(column, comment) pairs for the published columns."""
    return [(c.name, c.meaning) for c in table if c.is_published]


def dictionary(tables: Iterable[Table]) -> str:
    """The data dictionary as Markdown, one section a table."""
    out = ["# Tables", "", "Generated from `evalpipe/contracts`; `make docs` writes it anew.", ""]
    for table in tables:
        out += [f"## {table.full_name}", "", f"{table.meaning} Grain: {table.grain}.", ""]
        out += [
            "| column | type | null | key | who may see it | when | warehouse | meaning |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for c in table:
            warehouse = "yes" if c.is_published and table.is_published and table.layer != "raw" else "no"
            tiers = "" if Tier.VECTORS in kept_in(table, c) else " Null in tier vectors."
            legal = f" One of: {', '.join(c.values)}." if c.values else ""
            out.append(
                f"| `{c.name}` | {c.kind} | {'yes' if c.nullable else 'no'} | {'yes' if c.key else ''} "
                f"| {c.sensitivity} | {'' if c.timing == 'not_applicable' else c.timing} | {warehouse} | {c.meaning}{legal}{tiers} |"
            )
        out.append("")
    return "\n".join(out)
