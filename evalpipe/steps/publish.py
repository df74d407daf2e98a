"""Publishing: the warehouse, rebuilt from every committed slice and swapped in.

Belongs here: which parts go in. Does not belong here: how the file is built (``store/warehouse``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl

from evalpipe import __version__
from evalpipe.contracts.render import conform, later_columns
from evalpipe.contracts.render import with_later_columns as with_null_columns
from evalpipe.contracts.tables import TABLES
from evalpipe.locations import sql_dir
from evalpipe.steps import kept, quality, reviews, validation
from evalpipe.steps.context import Context
from evalpipe.store.ddl import dotted, published_tables
from evalpipe.store.lake import Lake
from evalpipe.store.manifest import STEP_TABLES, Manifest, digest_of
from evalpipe.store.meta import CriteriaRow, Provenance
from evalpipe.store.sql_models import SqlModel, load_models
from evalpipe.store.warehouse import Connect, PublishResult, Warehouse

#: Tables that grow by appended files and have no manifest.
APPENDED = ("analysis.gates", "analysis.corrections", reviews.OPINIONS)
#: Tables that are made whole and kept as one file.
KEPT = (*quality.TABLES, validation.TABLE)


def published_manifests(context: Context) -> list[Manifest]:
    """Slices that the warehouse holds.

    Signals of one extraction only, since their rows do not name it; outcomes and analysis of every
    measurement, since theirs do.
    """
    extraction = context.versions.variants["signals"]
    chosen: list[Manifest] = []
    for step in STEP_TABLES:
        if step == "raw":
            continue
        manifests = context.lake.manifests(step)
        chosen += [m for m in manifests if step != "signals" or m.key.variant == extraction]
    return chosen


def models() -> list[SqlModel]:
    """The SQL models as shipped or edited."""
    return load_models(sql_dir())


#: What rows that were appended before there was a column have in it, where that is not null.
_LATER: dict[str, dict[str, pl.Expr]] = {
    "analysis.corrections": {"reason": pl.lit("recomputed")},
    "analysis.gates": {},
}


def with_later_columns(lake: Lake) -> None:
    """Give rows that were appended before there was a column what they have in it; nothing else of them changes."""
    for name, columns in _LATER.items():
        for path in lake.appended(name):
            there = pl.read_parquet_schema(path)
            missing = {column: value for column, value in columns.items() if column not in there}
            if missing or later_columns(TABLES[name], there):
                rows = pl.read_parquet(path).with_columns(**missing)
                lake.append(name, conform(TABLES[name], with_null_columns(TABLES[name], rows)))
                path.unlink()


def publish(context: Context, *, connect: Connect = duckdb.connect) -> PublishResult:
    """Build the warehouse and swap it in, or find that it is published already.

    Args:
        context: The open home.
        connect: Opens the draft.
    """
    with_later_columns(context.lake)
    reviews.follow(context)
    manifests = published_manifests(context)
    files = quality.make(context)
    validated = validation.current(context.lake)
    files |= {validation.TABLE: validated} if validated else {}
    sources = {**_sources(context, manifests), **{name: [path] for name, path in files.items()}}
    # Layers are named by content; appended tables are the files themselves.
    contents = {str(m.key): m.content for m in manifests}
    contents |= {name: digest_of([p.name for p in context.lake.appended(name)]) for name in APPENDED}
    contents |= {name: path.stem for name, path in files.items()}
    criteria = context.criteria
    row = CriteriaRow(criteria.name, criteria.version, criteria.hash, criteria.measurement, criteria.outcomes.headline)
    warehouse = Warehouse(context.settings.warehouse, memory_limit=context.settings.duckdb_memory)
    return warehouse.publish(
        sources,
        models(),
        digest_of(contents),
        Provenance(__version__, (row,), contents),
        connect=connect,
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the published file differs from the lake.

    Attributes:
        slices: Slices compared.
        tables: Tables whose rows were compared.
        differing: Slices that are missing or of other content, and tables with other rows.
        moved_on: Slices that another process committed anew since; their rows are not compared.
    """

    slices: int
    tables: int
    differing: tuple[str, ...]
    moved_on: int


def committed(context: Context) -> dict[str, str]:
    """Content of every slice that is to be published, by name; taken before a publish, to hold it to."""
    return {str(m.key): m.content for m in published_manifests(context)}


def compare(context: Context, before: Mapping[str, str], connection: duckdb.DuckDBPyConnection) -> Comparison:
    """Compare the published file with the lake: every slice by its digest, every table by its rows.

    Args:
        context: The open home.
        before: What :func:`committed` said before the publish; what another process commits after that
            is not held against the file.
        connection: Reads the published file.
    """
    published: dict[str, str] = dict(connection.execute("SELECT slice_name, digest FROM meta.manifests").fetchall())
    now = {str(m.key): m for m in published_manifests(context)}
    differing = [
        name
        for name, content in before.items()
        if published.get(name) != content and name in now and now[name].content == content
    ]
    current = {name: m for name, m in now.items() if published.get(name) == m.content}
    moved = set(published) - set(current) - set(APPENDED) - set(KEPT)
    expected = dict.fromkeys((t.full_name for t in published_tables()), 0)
    for manifest in current.values():
        for part in manifest.parts:
            if part.table in expected:
                expected[part.table] += part.rows
    steps = {name.split("/")[0] for name in moved}
    unknown = {table for step in steps for table in STEP_TABLES.get(step, ())}
    for name in APPENDED:
        files = context.lake.appended(name)
        if published.get(name) == digest_of([p.name for p in files]):
            expected[name] = context.lake.count(files)
        else:
            unknown.add(name)
    for name in KEPT:
        path = kept.path_of(context.lake, name, published.get(name, ""))
        if path.exists():
            expected[name] = context.lake.count([path])
        elif name in published:
            unknown.add(name)
    compared = {name: n for name, n in expected.items() if name not in unknown}
    for name, n in compared.items():
        row = connection.execute(f"SELECT count(*) FROM {dotted(name)}").fetchone()
        if row is None or row[0] != n:
            differing.append(name)
    return Comparison(len(before), len(compared), tuple(sorted(differing)), len(moved))


def _sources(context: Context, manifests: Sequence[Manifest]) -> dict[str, list[Path]]:
    out: dict[str, list[Path]] = {}
    for name, table in TABLES.items():
        if table.layer == "raw" or not table.is_published:
            continue
        if name not in KEPT:
            out[name] = context.lake.appended(name) if name in APPENDED else context.lake.paths(name, manifests)
    return out
