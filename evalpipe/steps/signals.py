"""Signal slices: hard, semantic and derived signals of masked sessions, and their outcomes.

Belongs here: fan-out over masked parts, and the join of a day's outcomes with its neighbours. Does
not belong here: what a signal is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe import signals
from evalpipe.criteria.model import ExtractionCriteria
from evalpipe.steps import seal
from evalpipe.steps.context import Context
from evalpipe.steps.slices import Committed, StepResult, run_days, stage_tables, total
from evalpipe.steps.tiers import opened
from evalpipe.steps.withdrawal import drop_withdrawn
from evalpipe.store.day_input import DayInput
from evalpipe.store.lake import read_part
from evalpipe.store.manifest import STEP_TABLES, Manifest, StagedPart
from evalpipe.store.plan import is_settled, outcome_days

#: Entry of a manifest's stats: what a change of the masking rules did to the counts of signals.
MOVED = "moved_by_masking"
#: Entry of an outcome manifest's stats: signals that reviews kept out, as signal@language.
DEMOTED = "demoted"
_SCORED = ["session_id", "signal", "polarity", "confidence"]
_LATER = ("session_id", "user_id", "workspace", "started_at")


@dataclass(frozen=True, slots=True)
class _Task:
    sessions: Path
    steps: Path
    vectors: Path | None
    extraction: ExtractionCriteria
    version: str
    folder: Path
    label: str
    n_bytes: int
    only: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Out:
    staged: tuple[StagedPart, ...]
    counts: dict[str, int]


def make_signals(context: Context, days: Iterable[date], inputs: Mapping[date, DayInput]) -> StepResult:
    """Make the stale signal slices of some days.

    Args:
        context: The open home.
        days: Days in order.
        inputs: Landing parts and winners of every day.
    """

    def tasks_of(day: date) -> list[_Task]:
        manifest = context.lookup("masked", day)
        if manifest is None:
            return []
        folder = context.lake.staging_folder(context.versions.slice_key("signals", day))
        sessions = context.lake.paths("masked.sessions", [manifest])
        steps = context.lake.paths("masked.steps", [manifest])
        only = None
        if seal.is_sealed("signals", inputs[day]):
            only = tuple(sorted(seal.with_text(context, inputs[day])))
        # Where one part of a day has vectors, all have.
        vectors: Sequence[Path | None] = context.lake.paths("masked.vectors", [manifest]) or [None] * len(sessions)
        extraction, version = context.criteria.extraction, context.versions.code["signals"]
        return [
            _Task(a, b, c, extraction, version, folder, f"{index:05d}", b.stat().st_size * 6, only)
            for index, (a, b, c) in enumerate(zip(sessions, steps, vectors, strict=True))
        ]

    def finish(day: date, outs: list[_Out]) -> Committed:
        staged = [part for out in outs for part in out.staged]
        if seal.is_sealed("signals", inputs[day]):
            staged += seal.carried_signals(context, day, inputs[day])
        return Committed(staged, {"counts": total(out.counts for out in outs), **_moved(context, day, staged)})

    result = run_days(
        context,
        "signals",
        days,
        inputs=inputs,
        tasks_of=tasks_of,
        kernel=_extract,
        finish=finish,
        weight=lambda task: task.n_bytes,
    )
    drop_withdrawn(context, "signals", [*result.held, *result.red])
    return result


def _moved(context: Context, day: date, staged: list[StagedPart]) -> dict[str, Any]:
    """Signals whose count a change of the masking rules moved, as [before, after] by signal.

    A new rule breaks no series, so it must show where it takes away what a pattern would have found.
    """
    masked, was = context.lookup("masked", day), context.lookup("signals", day)
    if masked is None or was is None or context.lake.damage(was):
        return {}
    if masked.stats.get("masked_before") != was.inputs.get("masked"):
        return {}
    names = ("signals.hard", "signals.semantic")
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for name in names:
        before.update(context.lake.read(name, [was], ["signal"])["signal"])
        for item in staged:
            if item.part.table == name:
                after.update(pl.read_parquet(item.path, columns=["signal"])["signal"])
    kinds = sorted(before.keys() | after.keys())
    return {MOVED: {kind: [before[kind], after[kind]] for kind in kinds if before[kind] != after[kind]}}


def _extract(task: _Task) -> _Out:
    sessions, steps = read_part("masked.sessions", task.sessions), read_part("masked.steps", task.steps)
    vectors = read_part("masked.vectors", task.vectors) if task.vectors else None
    if task.only is not None:
        # The others said what they said while their text was there.
        sessions, steps = (rows.filter(pl.col("session_id").is_in(task.only)) for rows in (sessions, steps))
        vectors = None if vectors is None else vectors.filter(pl.col("session_id").is_in(task.only))
    if vectors is not None:
        # Those without text are here with their signals; one that has neither withdrew its consent.
        is_textless = pl.col("session_id").is_in(vectors["session_id"].implode())
        sessions, steps = sessions.filter(~is_textless), steps.filter(~is_textless)
    part = signals.extract_part(sessions, steps, task.extraction)
    tables: dict[str, pl.DataFrame] = {table: getattr(part, table.split(".")[1]) for table in STEP_TABLES["signals"]}
    if vectors is not None:
        came = opened(vectors, task.version)
        tables = {name: pl.concat([rows, came[name]]) for name, rows in tables.items()}
    counts = {table.split(".")[1]: data.height for table, data in tables.items()}
    return _Out(tuple(stage_tables(tables, task.folder, task.label)), counts)


@dataclass(frozen=True, slots=True)
class _OutcomeTask:
    day: date


def make_outcomes(context: Context, days: Iterable[date], inputs: Mapping[date, DayInput]) -> StepResult:
    """Make the stale outcome slices of some days.

    Outcomes run in this process: they join one row a session and need no text.

    Args:
        context: The open home.
        days: Days in order.
        inputs: Landing parts and winners of every day.
    """
    lake = context.lake

    def finish(day: date, outs: list[_OutcomeTask]) -> Committed:
        now = context.lookup("signals", day)
        masked = context.lookup("masked", day)
        if now is None or masked is None:  # unreachable: expected_inputs() found both
            return Committed([], {})
        around = [m for d in outcome_days(day) if (m := context.lookup("masked", d)) is not None]
        sessions = lake.read("masked.sessions", [masked])
        gone = context.demoted_on(day)
        features, hard, semantic = _evidence(context, now, masked, gone)
        outcomes = signals.session_outcomes(
            day,
            sessions,
            features,
            hard,
            semantic,
            lake.read("masked.sessions", around, columns=list(_LATER)),
            context.criteria,
            is_settled=is_settled(day, context.as_of),
            usage=lake.read("signals.session_usage", [now]),
            prices=context.prices,
            ledger=context.assignments,
            demoted=gone,
        )
        # Nothing can follow a session that has no date, so it has nothing to wait for.
        undated = sessions.filter(~pl.col("is_dated"))["session_id"]
        outcomes = outcomes.with_columns(pl.col("is_settled") | pl.col("session_id").is_in(undated.implode()))
        arms = signals.routing_arms(context.assignments, day)
        folder = lake.staging_folder(context.versions.slice_key("outcomes", day))
        scores = signals.session_scores(outcomes, hard, semantic, context.criteria)
        tables = {
            "signals.session_outcomes": outcomes, "signals.session_scores": scores, "signals.routing_arms": arms
        }  # fmt: skip
        staged = stage_tables(tables, folder, "all")
        stats = {"n_sessions": outcomes.height, "n_settled": int(outcomes["is_settled"].sum())}
        return Committed(staged, {**stats, DEMOTED: [f"{signal}@{lang}" for signal, lang in sorted(gone)]})

    result = run_days(
        context,
        "outcomes",
        days,
        inputs=inputs,
        tasks_of=lambda day: [_OutcomeTask(day)],
        kernel=_same,
        finish=finish,
        weight=lambda _: 0,
    )
    drop_withdrawn(context, "outcomes", [*result.held, *result.red])
    return result


def _evidence(
    context: Context, now: Manifest, masked: Manifest, gone: frozenset[tuple[str, str]]
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Features, hard and semantic signals of a day, without those that reviews have taken away."""
    lake = context.lake
    features = lake.read("signals.session_features", [now])
    if not gone:
        hard, semantic = (lake.read(f"signals.{name}", [now], columns=_SCORED) for name in ("hard", "semantic"))
        return features, hard, semantic
    hard, semantic = lake.read("signals.hard", [now]), lake.read("signals.semantic", [now])
    steps = lake.read("masked.steps", [masked], columns=list(signals.STEPS_READ)).sort("session_id", "seq")
    calls = steps.filter(pl.col("kind") == "tool").select("session_id", "seq")
    features = signals.without(features, semantic, steps, calls, gone)
    hard, semantic = (signals.counted(rows, gone).select(_SCORED) for rows in (hard, semantic))
    return features, hard, semantic


def _same(task: _OutcomeTask) -> _OutcomeTask:
    return task
