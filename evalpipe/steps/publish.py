"""Publishing: the warehouse, rebuilt from every committed slice and swapped in.

Belongs here: which parts go in. Does not belong here: how the file is built (``store/warehouse``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from evalpipe import __version__
from evalpipe.contracts.tables import TABLES
from evalpipe.locations import sql_dir
from evalpipe.steps.context import Context
from evalpipe.store.manifest import STEP_TABLES, Manifest, digest_of
from evalpipe.store.meta import CriteriaRow, Provenance
from evalpipe.store.sql_models import SqlModel, load_models
from evalpipe.store.warehouse import Connect, PublishResult, Warehouse

#: Tables that grow by appended files and have no manifest.
APPENDED = ("analysis.gates", "analysis.corrections")


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


def publish(context: Context, *, connect: Connect = duckdb.connect) -> PublishResult:
    """Build the warehouse and swap it in, or find that it is published already.

    Args:
        context: The open home.
        connect: Opens the draft.
    """
    manifests = published_manifests(context)
    sources = _sources(context, manifests)
    # Layers are named by content; appended tables are the files themselves.
    contents = {str(m.key): m.content for m in manifests}
    contents |= {name: digest_of([p.name for p in context.lake.appended(name)]) for name in APPENDED}
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


def _sources(context: Context, manifests: Sequence[Manifest]) -> dict[str, list[Path]]:
    out: dict[str, list[Path]] = {}
    for name, table in TABLES.items():
        if table.layer == "raw" or not table.is_published:
            continue
        out[name] = context.lake.appended(name) if name in APPENDED else context.lake.paths(name, manifests)
    return out
