"""What the UI shows of a table and a slice: schema, counts, criteria, a picture.

Belongs here: turning contracts and manifests into Dagster metadata. Nothing here holds text of a
log, and every value is a plain Python value: a NumPy number is accepted when it is made and kills
the run when the event is stored.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from evalpipe.contracts.model import Table
from evalpipe.contracts.render import duckdb_type
from evalpipe.steps.context import Context
from evalpipe.store.manifest import Manifest


def table_schema(table: Table) -> dg.TableSchema:
    """The contract as Dagster's table schema."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                name=column.name,
                type=duckdb_type(column),
                description=column.meaning,
                constraints=dg.TableColumnConstraints(nullable=column.nullable),
                tags={"sensitivity": column.sensitivity.value},
            )
            for column in table
        ]
    )


def definition_metadata(table: Table) -> dict[str, Any]:
    """What is known of a table before anything ran."""
    return {
        "dagster/column_schema": table_schema(table),
        "dagster/table_name": table.full_name,
        "grain": table.grain,
    }


def slice_metadata(context: Context, manifest: Manifest | None, table: str) -> dict[str, Any]:
    """What is known of one slice of a table."""
    criteria = context.criteria
    if manifest is None:
        return {"dagster/partition_row_count": 0, "state": "no input"}
    return {
        "dagster/partition_row_count": manifest.rows(table),
        "bytes": manifest.n_bytes(table),
        "content": manifest.content,
        "code_version": manifest.code_version,
        "criteria": f"{criteria.name} {criteria.version} ({criteria.hash})",
        "measurement": criteria.measurement,
    }


def markdown_table(rows: Sequence[Mapping[str, object]], limit: int = 30) -> dg.MetadataValue:
    """Rows as a Markdown table, at most ``limit`` of them."""
    if not rows:
        return dg.MetadataValue.md("no rows")
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows[:limit]]
    if len(rows) > limit:
        lines.append(f"\n{len(rows) - limit} more rows")
    return dg.MetadataValue.md("\n".join(lines))


def picture(svg: str) -> dg.MetadataValue:
    """An SVG drawing as Markdown that the UI renders offline."""
    data = base64.b64encode(svg.encode()).decode()
    return dg.MetadataValue.md(f"![drawing](data:image/svg+xml;base64,{data})")
