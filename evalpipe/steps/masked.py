"""Masked slices: field policy, masking and pseudonyms over raw slices, published only when clean.

Belongs here: pairing parts, planting canaries, the leak check before the commit. Does not belong
here: rules of masking. Write, audit, publish: parts are staged under ``lake/raw``; a slice whose
check is red is never moved out of there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe import masking
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.locations import data_dir
from evalpipe.masking import MaskPlan
from evalpipe.steps.context import Context
from evalpipe.steps.slices import Committed, StepResult, run_days
from evalpipe.store.lake import stage_part
from evalpipe.store.manifest import Manifest, StagedPart
from evalpipe.store.winners import DayInput


@dataclass(frozen=True, slots=True)
class _Task:
    day: date
    sessions: Path | None
    steps: Path | None
    files: Path | None
    quarantine: Path | None
    plan: MaskPlan
    folder: Path
    label: str
    n_bytes: int


@dataclass(frozen=True, slots=True)
class _Out:
    staged: tuple[StagedPart, ...]
    redactions: pl.DataFrame | None
    leak: dict[str, Any] | None
    is_clean: bool


def make_masked(context: Context, days: Iterable[date], inputs: Mapping[date, DayInput]) -> StepResult:
    """Make the stale masked slices of some days.

    Args:
        context: The open home.
        days: Days in order.
        inputs: Landing parts and winners of every day.

    Returns:
        What was made. A day whose leak check is red is refused (``LEAK_FOUND``) and recorded; its old
        slice, if any, stays.
    """
    plan = MaskPlan(
        key=context.key,
        ruleset=data_dir() / "masking" / context.criteria.masking.ruleset,
        withhold_over_bytes=context.criteria.masking.withhold_over_bytes,
    )

    def tasks_of(day: date) -> list[_Task]:
        manifest = context.lookup("raw", day)
        folder = context.lake.staging_folder(context.versions.slice_key("masked", day))
        return [] if manifest is None else _tasks(context, day, manifest, plan, folder)

    def finish(day: date, outs: list[_Out]) -> Committed:
        leaks = [out.leak for out in outs if out.leak is not None]
        stats: dict[str, Any] = {"leak": _merge(leaks), "parts": len(outs)}
        if not all(out.is_clean for out in outs):
            raise EvalpipeError("LEAK_FOUND", f"day {day}: {stats['leak']['findings']}", where="masked")
        staged = [part for out in outs for part in out.staged]
        redactions = [out.redactions for out in outs if out.redactions is not None and not out.redactions.is_empty()]
        if redactions:
            folder = context.lake.staging_folder(context.versions.slice_key("masked", day))
            staged.append(stage_part("masked.redactions", _sum(pl.concat(redactions)), folder, "all"))
        return Committed(staged, stats)

    return run_days(
        context,
        "masked",
        days,
        inputs=inputs,
        tasks_of=tasks_of,
        kernel=_kernel,
        finish=finish,
        weight=lambda task: task.n_bytes,
    )


def _tasks(context: Context, day: date, manifest: Manifest, plan: MaskPlan, folder: Path) -> list[_Task]:
    """Pair the parts of a raw slice: sessions and steps of one task lie at the same position."""
    lake = context.lake
    pairs = {
        name: dict(enumerate(lake.paths(f"raw.{name}", [manifest])))
        for name in ("sessions", "steps", "quarantine", "files")
    }
    sizes = [part.n_bytes for part in manifest.parts if part.table == "raw.steps"]
    n_tasks = max((len(items) for items in pairs.values()), default=0)
    return [
        _Task(
            day,
            pairs["sessions"].get(index),
            pairs["steps"].get(index),
            pairs["files"].get(index),
            pairs["quarantine"].get(index),
            plan,
            folder,
            f"{index:05d}",
            sizes[index] * 6 if index < len(sizes) else 0,
        )
        for index in range(n_tasks)
    ]


def _kernel(task: _Task) -> _Out:
    staged: list[StagedPart] = []
    redactions: pl.DataFrame | None = None
    leak: dict[str, Any] | None = None
    is_clean = True
    if task.sessions is not None and task.steps is not None:
        canaries = masking.plant_canaries(task.plan, task.day)
        sessions = pl.concat([pl.read_parquet(task.sessions), canaries.sessions])
        steps = pl.concat([pl.read_parquet(task.steps), canaries.steps])
        masked = masking.mask_part(sessions, steps, task.plan)
        # Staged first, so that the check reads the very bytes that would be published.
        clean_sessions, clean_steps = masking.drop_canaries(masked.sessions, masked.steps)
        staged.append(stage_part("masked.sessions", clean_sessions, task.folder, task.label))
        staged.append(stage_part("masked.steps", clean_steps, task.folder, task.label))
        staged_files = [part.path for part in staged]
        report = masking.leak_check(masked.sessions, masked.steps, canaries, masked.redactions, task.plan, staged_files)
        is_clean = report.passed
        leak = {
            "findings": [asdict(finding) for finding in report.findings],
            "counts": report.counts,
            "canaries_planted": report.canaries_planted,
            "canaries_counted": report.canaries_counted,
        }
        redactions = masking.drop_canary_counts(masked.redactions)
    if task.files is not None:
        files = masking.mask_files(pl.read_parquet(task.files), task.plan)
        staged.append(stage_part("masked.files", files, task.folder, task.label))
    if task.quarantine is not None:
        quarantine = masking.mask_quarantine(pl.read_parquet(task.quarantine), task.plan)
        staged.append(stage_part("masked.quarantine", quarantine, task.folder, task.label))
    return _Out(tuple(staged), redactions, leak, is_clean)


def _merge(leaks: list[dict[str, Any]]) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for leak in leaks:
        for name, n in leak["counts"].items():
            counts[name] = counts.get(name, 0) + int(n)
    return {
        "findings": [finding for leak in leaks for finding in leak["findings"]],
        "counts": dict(sorted(counts.items())),
        "canaries_planted": sum(leak["canaries_planted"] for leak in leaks),
        "canaries_counted": sum(leak["canaries_counted"] for leak in leaks),
    }


def _sum(redactions: pl.DataFrame) -> pl.DataFrame:
    keys = ["source", "field", "entity", "subtype", "rule_id", "ruleset", "key_epoch"]
    return redactions.group_by(keys).agg(pl.col("n_rows", "n_hits", "n_bytes").sum())
