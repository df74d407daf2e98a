"""A warehouse of a few rows, for tests of the shipped SQL models.

Belongs here: filling in what a test does not care about. Does not belong here: rows that a test is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from evalpipe.contracts.model import Kind
from evalpipe.contracts.render import frame
from evalpipe.contracts.tables import TABLES
from evalpipe.locations import sql_dir
from evalpipe.store.meta import CriteriaRow, Provenance
from evalpipe.store.sql_models import load_models
from evalpipe.store.warehouse import Warehouse

SAMPLE = {
    Kind.STR: "x",
    Kind.BOOL: False,
    Kind.I32: 0,
    Kind.I64: 0,
    Kind.F64: 0.0,
    Kind.DATE: date(2026, 1, 5),
    Kind.TIMESTAMP: datetime(2026, 1, 5, 23, 30, tzinfo=UTC),
    Kind.STR_LIST: [],
}


def published(folder: Path, data: Mapping[str, Sequence[Mapping[str, Any]]]) -> Warehouse:
    """A warehouse with rows by table, under one criteria of measurement ``m1``; columns that may not be null are filled."""
    sources: dict[str, list[Path]] = {}
    for name, rows in data.items():
        base = {c.name: (c.values[0] if c.values else SAMPLE[c.kind]) for c in TABLES[name] if not c.nullable}
        sources[name] = [folder / f"{name}.parquet"]
        frame(TABLES[name], [base | dict(row) for row in rows]).write_parquet(sources[name][0])
    warehouse = Warehouse(folder / "warehouse.duckdb")
    criteria = CriteriaRow("default", "1", "h1", "m1", "positive_outcome")
    warehouse.publish(sources, load_models(sql_dir()), "f", Provenance("0", (criteria,)))
    return warehouse
