"""Signals of a session as one value: what is stored and sent where its text is not.

Belongs here: packing the rows of layer 3 that one session has into JSON, and back, by their contracts.
Does not belong here: extracting signals, or deciding who keeps no text (``contracts/tiers.py``). A
column that tier ``vectors`` withholds has no place in the packed form, so none can be smuggled in.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from evalpipe.contracts.model import Kind, Sensitivity, Table
from evalpipe.contracts.render import conform, polars_schema
from evalpipe.contracts.tables import masked, signals
from evalpipe.contracts.tables.process import PROCESS
from evalpipe.contracts.tiers import Tier, withheld

#: Tables of signals that are made from text, in the order of the step that writes them.
PACKED: tuple[Table, ...] = (
    signals.HARD, signals.SEMANTIC, signals.CANDIDATES, signals.DERIVED, signals.TASKS, PROCESS,
    signals.SESSION_FEATURES, signals.TURN_COVERAGE, signals.SESSION_USAGE,
)  # fmt: skip


def _columns(table: Table) -> list[str]:
    gone = {"session_id", *withheld(table, Tier.VECTORS)}
    return [name for name in table.names if name not in gone]


_FORM = pl.Struct({
    table.name: pl.List(pl.Struct({name: polars_schema(table)[name] for name in _columns(table)})) for table in PACKED
})  # fmt: skip


def pack(tables: Mapping[str, pl.DataFrame], extraction: str) -> pl.DataFrame:
    """Pack the signals of sessions.

    Args:
        tables: Frames of :data:`PACKED` by full name; every session has a row of features.
        extraction: Version of the extraction that made them.

    Returns:
        ``masked.vectors``: one row a session, without text.
    """
    out = tables[signals.SESSION_FEATURES.full_name].select("session_id").unique().sort("session_id")
    pieces: list[pl.Expr] = [pl.lit("{")]
    for index, table in enumerate(PACKED):
        data = tables[table.full_name].sort(table.sort, maintain_order=True)
        rows = data.select("session_id", row=pl.struct(_columns(table)).struct.json_encode())
        joined = rows.group_by("session_id", maintain_order=True).agg(pl.col("row").str.join(",").alias(table.name))
        out = out.join(joined, on="session_id", how="left", maintain_order="left")
        head = f'{"," if index else ""}"{table.name}":['
        pieces += [pl.lit(head), pl.col(table.name).fill_null(""), pl.lit("]")]
    packed = out.select("session_id", extraction=pl.lit(extraction), signals=pl.concat_str(*pieces, pl.lit("}")))
    return conform(masked.VECTORS, packed)


def unpack(vectors: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The rows of layer 3 that were packed; the columns that the tier withholds are null.

    Args:
        vectors: ``masked.vectors``.

    Returns:
        Frames of :data:`PACKED` by full name, in their sort order.

    Raises:
        EvalpipeError: ``CONTRACT_BROKEN`` for rows that break the contract of their table.
        polars.exceptions.PolarsError: A value is not of the packed form.
    """
    opened = vectors.select("session_id", pl.col("signals").str.json_decode(_FORM).alias("all")).unnest("all")
    out: dict[str, pl.DataFrame] = {}
    for table in PACKED:
        rows = opened.select("session_id", pl.col(table.name)).explode(table.name).drop_nulls(table.name)
        rows = rows.unnest(table.name)
        schema = polars_schema(table)
        missing = [pl.lit(None, schema[name]).alias(name) for name in withheld(table, Tier.VECTORS)]
        out[table.full_name] = conform(table, rows.with_columns(missing)).sort(table.sort, maintain_order=True)
    return out


def labels(vectors: pl.DataFrame) -> pl.Series:
    """Every different text in packed signals that is not an id, a digest or a word of a closed set.

    Args:
        vectors: ``masked.vectors``.
    """
    found: list[pl.Series] = []
    for name, rows in unpack(vectors).items():
        table = next(table for table in PACKED if table.full_name == name)
        free = [
            column.name for column in table
            if column.kind is Kind.STR and column.sensitivity is Sensitivity.PUBLIC and not column.values
            and column.name not in ("signal_id", "target_key", "target")
        ]  # fmt: skip
        found += [rows[name].drop_nulls().unique().alias("label") for name in free]
    return pl.concat(found).unique().sort()
