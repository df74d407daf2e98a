"""Quality of signals as tables: what reviews, the golden set and the rates of detectors say today.

Belongs here: gathering what estimates need from the lake, and keeping the tables for a publish. Does not
belong here: estimates (``review``).

The tables are a function of the lake, made with every publish, one file each that is named by its
content. They hold counts and rates, no session.
"""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl

from evalpipe import review, signals
from evalpipe.contracts.tables.reviews import AGREEMENT, DRIFT, QUALITY
from evalpipe.steps import reviews
from evalpipe.steps.context import Context
from evalpipe.store.lake import Lake
from evalpipe.store.manifest import Manifest

#: Tables that are made here.
TABLES = tuple(table.full_name for table in (QUALITY, AGREEMENT, DRIFT))
#: Model of sessions whose log names none.
NO_MODEL = "(none)"


def make(context: Context) -> dict[str, Path]:
    """Make the tables, and keep each as a file of the lake.

    Args:
        context: The open home.

    Returns:
        The file of each table.
    """
    manifests = context.lake.manifests("signals")
    manifests = [m for m in manifests if m.key.variant == context.versions.variants["signals"]]
    opinions = reviews.read(context.lake, reviews.OPINIONS)
    rows = rows_of(context, manifests)
    found = {
        QUALITY.full_name: _quality(context, opinions, rows),
        AGREEMENT.full_name: review.agreement(opinions),
        DRIFT.full_name: _drift(context, manifests, rows),
    }
    return {name: _kept(context.lake, name, data) for name, data in found.items()}


def rows_of(context: Context, manifests: list[Manifest]) -> pl.DataFrame:
    """Signals that count, of both families: ``session_id, signal, lang, rule, confidence, model, source, day``.

    Args:
        context: The open home.
        manifests: Slices of signals.
    """
    lake = context.lake
    hard = lake.read("signals.hard", manifests, ["session_id", "signal", "rule_id", "confidence"])
    said = lake.read("signals.semantic", manifests, ["session_id", "signal", "lang", "pattern_id", "confidence"])
    hard = hard.filter(pl.col("confidence") >= context.criteria.extraction.min_confidence)
    both = pl.concat(
        [
            said.rename({"pattern_id": "rule"}),
            hard.rename({"rule_id": "rule"}).with_columns(lang=pl.lit(signals.ANY)),
        ],
        how="diagonal",
    )
    return both.join(sessions_of(context, manifests), on="session_id", how="left", maintain_order="left")


def sessions_of(context: Context, manifests: list[Manifest]) -> pl.DataFrame:
    """``session_id, model, source, day`` of the masked sessions on the days of some slices."""
    frames = []
    for manifest in manifests:
        masked = context.lookup("masked", manifest.key.day)
        if masked is not None:
            found = context.lake.read("masked.sessions", [masked], ["session_id", "model", "source"])
            frames.append(found.with_columns(pl.col("model").fill_null(NO_MODEL), day=pl.lit(manifest.key.day)))
    schema = {"session_id": pl.String, "model": pl.String, "source": pl.String, "day": pl.Date}
    return pl.concat([pl.DataFrame(schema=schema), *frames])


def _quality(context: Context, opinions: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    emitted = rows.with_columns(pl.col("model").fill_null(NO_MODEL))
    return review.quality(
        opinions,
        emitted.group_by("signal", "lang", "model").agg(n=pl.len()).sort("signal", "lang", "model"),
        review.limits(),
        signals.detector_version,
        rules=signals.rule_counts(),
        golden=signals.golden(context.criteria.extraction.min_confidence),
        weights=context.criteria.outcomes.weights,
    )


def _drift(context: Context, manifests: list[Manifest], rows: pl.DataFrame) -> pl.DataFrame:
    features = context.lake.read("signals.session_features", manifests, ["session_id", "language", "n_human_turns"])
    sessions = features.join(sessions_of(context, manifests), on="session_id", how="inner", maintain_order="left")
    return review.drift(sessions, rows.filter(pl.col("lang") != signals.ANY), review.limits())


def path_of(lake: Lake, table: str, digest: str) -> Path:
    """Where the file of a table lies that was named by a digest."""
    layer, name = table.split(".")
    return lake.root / layer / name / f"{digest}.parquet"


def _kept(lake: Lake, table: str, data: pl.DataFrame) -> Path:
    """The file of a table; files of earlier publishes go when readers had time to finish."""
    path = lake.append_whole(table, data)
    limit = time.time() - lake.grace_seconds
    for old in lake.appended(table):
        if old != path and old.stat().st_mtime < limit:
            old.unlink(missing_ok=True)
    return path


def forget(lake: Lake) -> None:
    """Delete the files of all publishes: their counts hold somebody who is erased."""
    for table in TABLES:
        for path in lake.appended(table):
            path.unlink(missing_ok=True)
