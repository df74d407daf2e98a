"""A stricter tier on slices that were made before it: their text goes at once, whatever the plan makes anew.

Belongs here: taking text out of committed slices of sources whose tier is ``vectors`` now. Does not
belong here: making slices under a tier (``steps/tiers.py``), text that expires.

Masked text that lies in the lake is all that extraction needs, so nothing is read or masked again, and
it does not matter whether the landed log is still there. A looser tier needs no such step: its slices
are stale, and are made anew from what was landed.
"""

from __future__ import annotations

from datetime import date

import polars as pl

from evalpipe.contracts.tables import TABLES
from evalpipe.contracts.tiers import Tier, withheld
from evalpipe.contracts.vectors import PACKED, pack
from evalpipe.steps.context import Context
from evalpipe.steps.tiers import extracted, without_columns
from evalpipe.store.lake import read_part, stage_part
from evalpipe.store.manifest import STEP_TABLES, Manifest, StagedPart
from evalpipe.store.plan import SIGNALS_READ

#: Tables of signals with columns that tier ``vectors`` withholds.
_ABOUT = tuple(name for name in STEP_TABLES["signals"] if withheld(TABLES[name], Tier.VECTORS))


def tighten(context: Context) -> list[date]:
    """Take text out of all committed slices of sources that must not have any.

    Args:
        context: The open home.

    Returns:
        Days whose slices were changed. Signals of other criteria versions lose their snippets too.
    """
    if not context.settings.tiers.has_vectors:
        return []
    done: set[date] = set()
    for manifest in context.lake.manifests("masked"):
        if context.lake.damage(manifest):
            continue  # what is damaged is made anew, under the tier in force
        sessions = _textless(context, manifest)
        if sessions.is_empty():
            continue
        # Signals first: while the masked slice has no vectors of a session, this is not done.
        day = manifest.key.day
        for signals in context.lake.manifests("signals"):
            if signals.key.day == day and _without_snippets(context, signals, sessions):
                done.add(day)
        if not (texts := _with_text(context, manifest, sessions)).is_empty():
            _without_text(context, manifest, texts)
            done.add(day)
    return sorted(done)


def _textless(context: Context, manifest: Manifest) -> pl.Series:
    """Sessions of a masked slice that must have no text, and do not have their signals in its place yet."""
    sessions = context.lake.read("masked.sessions", [manifest], columns=["session_id", "source"])
    sources = context.tier_plan.textless(sessions["source"].unique())
    told = context.lake.read("masked.vectors", [manifest], columns=["session_id"])["session_id"]
    is_told = pl.col("session_id").is_in(told.implode())
    return sessions.filter(pl.col("source").is_in(sources) & ~is_told)["session_id"]


def _with_text(context: Context, manifest: Manifest, sessions: pl.Series) -> pl.Series:
    """Those of some sessions whose text is there: of the others, nothing could be extracted."""
    names = withheld(TABLES["masked.steps"], Tier.VECTORS)
    steps = context.lake.read("masked.steps", [manifest], columns=["session_id", *names])
    has_text = pl.any_horizontal(pl.col(name).is_not_null() for name in names)
    mine = steps.filter(has_text & pl.col("session_id").is_in(sessions.implode()))
    return mine["session_id"].unique().sort()


def _without_text(context: Context, manifest: Manifest, fresh: pl.Series) -> None:
    """Put packed signals into a masked slice in the place of text."""
    lake, day = context.lake, manifest.key.day
    is_fresh = pl.col("session_id").is_in(fresh.implode())
    sessions = lake.read("masked.sessions", [manifest]).filter(is_fresh)
    packed = _vectors(context, manifest, sessions)
    # Paired by position with the parts of sessions.
    old = lake.read("masked.vectors", [manifest])
    vectors = pl.concat([old, packed]).sort("session_id")
    staged: list[StagedPart] = []
    folder = lake.staging_folder(manifest.key)
    for index, (part, path) in enumerate(zip(manifest.parts, lake.paths_of(manifest), strict=True)):
        label, rows = f"{index:05d}", read_part(part.table, path)
        if part.table == "masked.vectors":
            continue
        if part.table == "masked.steps":
            rows = without_columns(rows, fresh)
        staged.append(stage_part(part.table, rows, folder, label))
        if part.table == "masked.sessions":
            mine = vectors.filter(pl.col("session_id").is_in(rows["session_id"].implode()))
            staged.append(stage_part("masked.vectors", mine, folder, label))
    inputs = {**manifest.inputs, **context.tier_inputs(day)}
    made = lake.commit(manifest.key, staged, inputs=inputs, code_version=manifest.code_version, stats=manifest.stats)
    _forget(context, manifest, made)


def _forget(context: Context, old: Manifest, new: Manifest) -> None:
    """Delete what the old slice held and the new one does not: text does not wait for a grace time."""
    for path in set(context.lake.paths_of(old)) - set(context.lake.paths_of(new)):
        path.unlink(missing_ok=True)


def _vectors(context: Context, manifest: Manifest, sessions: pl.DataFrame) -> pl.DataFrame:
    """Packed signals of sessions that have no text to be, from their signals where these are up to date."""
    lake, day = context.lake, manifest.key.day
    is_mine = pl.col("session_id").is_in(sessions["session_id"].implode())
    signals = context.lookup("signals", day)
    if (
        signals is not None
        and signals.code_version == context.versions.code["signals"]
        and signals.inputs.get("masked") == manifest.content_of(*SIGNALS_READ)
        and not lake.damage(signals)
    ):
        tables = {table.full_name: lake.read(table.full_name, [signals]).filter(is_mine) for table in PACKED}
        found = pack(tables, context.tier_plan.version)
        if found.height == sessions.height:
            return found
    return extracted(sessions, lake.read("masked.steps", [manifest]).filter(is_mine), context.tier_plan)


def _without_snippets(context: Context, manifest: Manifest, sessions: pl.Series) -> bool:
    """Take the snippets of sessions out of a slice of signals; whether there were any."""
    lake = context.lake
    if lake.damage(manifest):
        return False
    is_gone = pl.col("session_id").is_in(sessions.implode())
    found = False
    rows_of: list[pl.DataFrame] = []
    for part, path in zip(manifest.parts, lake.paths_of(manifest), strict=True):
        rows = read_part(part.table, path)
        if part.table in _ABOUT:
            names = withheld(TABLES[part.table], Tier.VECTORS)
            found = found or any(rows.filter(is_gone)[name].drop_nulls().len() for name in names)
            rows = rows.with_columns(pl.when(~is_gone).then(pl.col(name)).alias(name) for name in names)
        rows_of.append(rows)
    if not found:
        return False
    folder = lake.staging_folder(manifest.key)
    staged = [
        stage_part(part.table, rows, folder, f"{index:05d}")
        for index, (part, rows) in enumerate(zip(manifest.parts, rows_of, strict=True))
    ]
    made = lake.commit(
        manifest.key, staged, inputs=manifest.inputs, code_version=manifest.code_version, stats=manifest.stats
    )
    _forget(context, manifest, made)
    return True
