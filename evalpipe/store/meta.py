"""Schema ``meta`` of the warehouse: what a published file was made from and by.

Belongs here: the rows of ``meta.*`` and their tables. Does not belong here: any result. No clock and
no run id: a file built twice from the same inputs says the same of itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

import duckdb

from evalpipe.store import ddl


@dataclass(frozen=True, slots=True)
class CriteriaRow:
    """One row of ``meta.criteria``: a criteria file whose results are in the warehouse."""

    criteria_name: str = field(metadata={"meaning": "Criteria file."})
    criteria_version: str = field(metadata={"meaning": "Its declared version."})
    criteria_hash: str = field(metadata={"meaning": "Hash of the whole file."})
    measurement: str = field(metadata={"meaning": "Hash of extraction, outcomes and estimand."})
    headline: str = field(metadata={"meaning": "Metric that leads."})


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a published file was made from and by.

    Attributes:
        product_version: Version of evalpipe.
        criteria: Criteria whose results are in the file.
        manifests: Content digest of every slice, by the slice's name.
    """

    product_version: str
    criteria: tuple[CriteriaRow, ...] = ()
    manifests: Mapping[str, str] = field(default_factory=dict)


#: Columns of each table, with what they mean.
TABLES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "publication": (
        ("fingerprint", "VARCHAR", "Digest of the manifests behind this file."),
        ("build", "VARCHAR", "Digest of all that decides its contents, SQL models and contracts included."),
        ("product_version", "VARCHAR", "Version of evalpipe that built it."),
    ),
    "criteria": tuple((f.name, "VARCHAR", f.metadata["meaning"]) for f in fields(CriteriaRow)),
    "manifests": (
        ("slice_name", "VARCHAR", "Step, variant and day of the slice."),
        ("digest", "VARCHAR", "Digest of what the slice holds."),
    ),
    "contents": (
        ("table_name", "VARCHAR", "Table or SQL model, by full name."),
        ("n_rows", "BIGINT", "Its rows."),
    ),
}

#: What each table says.
MEANINGS = {
    "publication": "What this file was built from and by. Grain: one row.",
    "criteria": "Criteria whose results are in this file. Grain: one row a criteria file.",
    "manifests": "Slices of the lake that this file was made from. Grain: one row a slice.",
    "contents": "How many rows each table and SQL model has. Grain: one row a table or model.",
}


def create(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables of schema ``meta``, which must exist."""
    for table, columns in TABLES.items():
        listing = ", ".join(f"{name} {dtype}" for name, dtype, _ in columns)
        connection.execute(f"CREATE TABLE meta.{table} ({listing})")
        connection.execute(ddl.comment_on("TABLE", f"meta.{table}", MEANINGS[table]))
        for name, _, meaning in columns:
            connection.execute(ddl.comment_on("COLUMN", f"meta.{table}.{name}", meaning))


def write(connection: duckdb.DuckDBPyConnection, fingerprint: str, build: str, provenance: Provenance) -> None:
    """Create the tables of schema ``meta`` and fill all but ``contents``, in a fixed order."""
    create(connection)
    connection.execute(
        "INSERT INTO meta.publication VALUES (?, ?, ?)", [fingerprint, build, provenance.product_version]
    )
    for row in sorted(tuple(asdict(criteria).values()) for criteria in provenance.criteria):
        connection.execute("INSERT INTO meta.criteria VALUES (?, ?, ?, ?, ?)", list(row))
    for pair in sorted(provenance.manifests.items()):
        connection.execute("INSERT INTO meta.manifests VALUES (?, ?)", list(pair))
