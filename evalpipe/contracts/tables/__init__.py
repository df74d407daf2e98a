"""All table contracts, one module a layer, and the registry that finds them by name."""

from evalpipe.contracts.model import Table
from evalpipe.contracts.tables import (
    analysis,
    concordance,
    drawn,
    evidence,
    masked,
    raw,
    reviews,
    signals,
    validation,
)

ALL: tuple[Table, ...] = (
    *raw.TABLES, *masked.TABLES, *signals.TABLES, *reviews.TABLES, *analysis.TABLES, *evidence.TABLES, *drawn.TABLES,
    *concordance.TABLES, *validation.TABLES,
)  # fmt: skip
TABLES: dict[str, Table] = {table.full_name: table for table in ALL}
