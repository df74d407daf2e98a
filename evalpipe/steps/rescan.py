"""Days whose raw text is gone: their masked text is scanned again when the rules change.

Belongs here: telling such a day, the tasks of its re-scan, and what a re-scan would add. Does not belong
here: rules and the kernel of masking, days whose raw text is there (``masked.py``): those are masked anew.

Masking a masked text leaves every token as it is, so a re-scan only adds: what the rules of today find in
what those of yesterday let through. What a session's own rows taught (its user, its folder) is not there
any more; what its text still names is.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from evalpipe import masking
from evalpipe.contracts import render
from evalpipe.contracts.tables import TABLES, raw
from evalpipe.store.lake import read_part

if TYPE_CHECKING:
    from evalpipe.steps.context import Context
    from evalpipe.store.manifest import Manifest

#: Entry of a masked manifest's stats: how often its text was scanned again without raw text.
RESCANNED = "rescans"
_KEYS = ["field", "entity"]


def is_sealed(context: Context, day: date) -> bool:
    """Whether a day lives on without raw text: it is gone, nothing new came, and the day was or is to be
    scanned again.

    A day that lost raw text under unchanged rules is not sealed: what is missing there may be put back.

    Args:
        context: The open home.
        day: UTC day.
    """
    made, source = context.lookup("masked", day), context.lookup("raw", day)
    if made is None or source is None or context.lake.damage(made) or not context.lake.damage(source):
        return False
    if made.code_version == context.versions.code["masked"] and RESCANNED not in made.stats:
        return False
    if (made.inputs.get("raw"), made.inputs.get("key")) != (source.content, context.versions.key):
        return False
    # Whatever landed since has steps, and is a matter of the raw step.
    return next((context.settings.landing / f"day={day}").glob("*.steps.parquet"), None) is None


def pairs(context: Context, made: Manifest) -> list[tuple[dict[str, Path], int]]:
    """Parts of a masked slice that belong together, by raw table name, with the bytes of their steps."""
    names = ("sessions", "steps", "quarantine", "files", "copies")
    found = {name: context.lake.paths(f"masked.{name}", [made]) for name in names}
    n_tasks = max((len(paths) for paths in found.values()), default=0)
    out = []
    for index in range(n_tasks):
        parts = {name: paths[index] for name, paths in found.items() if index < len(paths)}
        out.append((parts, parts["steps"].stat().st_size * 6 if "steps" in parts else 0))
    return out


def as_raw(name: str, path: Path) -> pl.DataFrame:
    """Rows of a masked part in the form that masking takes; what layer 2 does not hold is empty."""
    table = {"sessions": raw.SESSIONS, "steps": raw.STEPS}.get(name) or TABLES[f"raw.{name}"]
    rows = read_part(f"masked.{name}", path)
    absent = [column.name for column in table if column.name not in rows.columns]
    return render.conform(table, rows.with_columns(pl.lit("").alias(column) for column in absent))


def with_earlier(context: Context, made: Manifest, found: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Audit tables of a slice that was scanned again: counts of every rule set, and what each scan added.

    Args:
        context: The open home.
        made: The slice as it was.
        found: ``masked.redactions`` of the re-scan alone.

    Returns:
        ``masked.redactions`` and ``masked.rescans``.
    """
    before = context.lake.read("masked.redactions", [made])
    added = movement(before, found, context.mask_plan.ruleset_digest())
    earlier = context.lake.read("masked.rescans", [made])
    n = int(made.stats.get(RESCANNED, 0)) + 1
    return {
        "masked.redactions": pl.concat([before, found]),
        "masked.rescans": pl.concat(
            [earlier, render.conform(TABLES["masked.rescans"], added.with_columns(scan=pl.lit(n, pl.Int64)))]
        ),
    }


def movement(before: pl.DataFrame, found: pl.DataFrame, ruleset: str) -> pl.DataFrame:
    """Counts by field and entity before and after a re-scan.

    Args:
        before: ``masked.redactions`` so far.
        found: ``masked.redactions`` of the re-scan alone.
        ruleset: Digest of the rule set that it was made with.

    Returns:
        ``field, entity, ruleset, n_hits_before, n_hits_after``, one row where there is anything at all.
    """
    old = before.group_by(_KEYS).agg(n_hits_before=pl.col("n_hits").sum())
    new = found.group_by(_KEYS).agg(n_added=pl.col("n_hits").sum())
    joined = old.join(new, on=_KEYS, how="full", coalesce=True).with_columns(
        pl.col("n_hits_before", "n_added").fill_null(0)
    )
    after = pl.col("n_hits_before") + pl.col("n_added")
    return joined.with_columns(n_hits_after=after, ruleset=pl.lit(ruleset)).drop("n_added").sort(_KEYS)


def preview(context: Context, days: Iterable[date]) -> pl.DataFrame:
    """What scanning the masked text of some days again would add; nothing is written.

    Args:
        context: The open home.
        days: Days; those without a masked slice add nothing.

    Returns:
        ``day, field, entity, n_hits_before, n_hits_after`` of every count that would change.
    """
    plan, out = context.mask_plan, []
    for day in days:
        made = context.lookup("masked", day)
        if made is None or context.lake.damage(made):
            continue
        found = [
            masking.mask_part(as_raw("sessions", parts["sessions"]), as_raw("steps", parts["steps"]), plan).redactions
            for parts, _ in pairs(context, made)
            if "sessions" in parts
        ]
        if not found:
            continue
        moved = movement(context.lake.read("masked.redactions", [made]), pl.concat(found), plan.ruleset_digest())
        out.append(moved.filter(pl.col("n_hits_before") != pl.col("n_hits_after")).with_columns(day=pl.lit(day)))
    columns = ["day", "field", "entity", "n_hits_before", "n_hits_after"]
    blank = pl.DataFrame(schema={"day": pl.Date, "field": pl.String, "entity": pl.String,
                                 "n_hits_before": pl.Int64, "n_hits_after": pl.Int64})  # fmt: skip
    return pl.concat([blank, *(rows.select(columns) for rows in out)])
