"""The verdict on a slice before it is committed: its profiles against the rules of precision.

Belongs here: profiling staged parts and refusing a slice that breaks a rule of severity error. Does
not belong here: rules and bounds (``data/quality``), or the second opinion of Great Expectations,
which a check of the orchestrator asks for on the numbers that are kept here.

A check that runs after the commit comes too late: the next plan would find the slice fresh, and a
publish takes every committed slice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import polars as pl

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.quality import Rule, judge, load_rules, profile
from evalpipe.store.manifest import Manifest, StagedPart, digest_of

#: Statistic of a manifest that holds the profiles of its tables.
PROFILES = "profiles"


@cache
def rules() -> tuple[Rule, ...]:
    """The shipped rules of precision, read once a process."""
    return tuple(load_rules())


def rules_digest() -> str:
    """Digest of the rules that can refuse a slice; a refused slice is tried again when it changes."""
    return digest_of([str(rule) for rule in rules() if rule.severity == "error"])[:8]


def judged(where: str, staged: Sequence[StagedPart]) -> dict[str, dict[str, float | None]]:
    """Profile every staged table that has rules, and refuse a slice that breaks one.

    Args:
        where: What is judged, such as ``day 2026-01-05``.
        staged: All parts of the slice.

    Returns:
        Profile of each table by its name: numbers only, no value of a session.

    Raises:
        EvalpipeError: ``PROFILE_OUT_OF_BOUNDS`` naming table, measure and number.
    """
    out: dict[str, dict[str, float | None]] = {}
    for table in sorted({rule.table for rule in rules()}):
        files = [item.path for item in staged if item.part.table == table and item.part.rows]
        if not files:
            continue
        numbers = profile(table, pl.scan_parquet(files), rules())
        for verdict in judge(numbers, rules()):
            if verdict.is_blocking:
                what = f"{where}: {verdict.column} is {verdict.value:g}, outside {verdict.bounds}. {verdict.why}"
                raise EvalpipeError("PROFILE_OUT_OF_BOUNDS", what, where=table)
        out[table] = numbers.drop("table").row(0, named=True)
    return out


def profiles_of(manifests: Sequence[Manifest], table: str) -> pl.DataFrame:
    """Profiles that committed slices keep of one table, one row a slice."""
    kept: list[Mapping[str, Any]] = [p for m in manifests if (p := m.stats.get(PROFILES, {}).get(table)) is not None]
    columns = {rule.column: pl.Float64 for rule in rules() if rule.table == table}
    return pl.DataFrame([{name: row.get(name) for name in columns} for row in kept], schema=columns)
