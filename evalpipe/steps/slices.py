"""What the day steps share: freshness, fan-out over parts, one commit a slice.

Belongs here: the loop that every day step runs. Each step gives a kernel, the tasks of a day, and
how parts become a slice.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.steps import rejections, seal
from evalpipe.steps.context import Context
from evalpipe.steps.progress import sink
from evalpipe.steps.verdicts import PROFILES, judged
from evalpipe.steps.withdrawal import must_follow
from evalpipe.store.day_input import DayInput
from evalpipe.store.lake import stage_part
from evalpipe.store.manifest import Manifest, StagedPart
from evalpipe.store.plan import DAY_STEPS, expected_inputs, rejection_receipt, staleness

_AFTER_MASKED = DAY_STEPS[DAY_STEPS.index("masked") + 1 :]

Task = TypeVar("Task")
Out = TypeVar("Out")


@dataclass(slots=True)
class StepResult:
    """What a step did over a range of days.

    Attributes:
        made: Slices that were made, by day.
        fresh: Slices that were as they would be.
        red: Days that a check of this step refused, with the reason.
        held: Days that an earlier step refused under the same input and rules: their slices stay as
            they are, so that no slice is made half from new and half from old ones. Days whose text has
            expired and that have no slice to go on from are held too (``steps/seal.py``). Only consent
            that was withdrawn since is followed (``steps/withdrawal.py``).
        absent: Days without any input.
    """

    step: str
    made: dict[date, Manifest] = field(default_factory=dict)
    fresh: dict[date, Manifest] = field(default_factory=dict)
    red: dict[date, EvalpipeError] = field(default_factory=dict)
    held: list[date] = field(default_factory=list)
    absent: list[date] = field(default_factory=list)

    @property
    def manifests(self) -> dict[date, Manifest]:
        """Slices as they would be of the range, in order of days."""
        return dict(sorted((self.made | self.fresh).items()))


@dataclass(frozen=True, slots=True)
class Committed:
    """What a step commits for one day; a code version where it is not the one in force."""

    staged: Sequence[StagedPart]
    stats: Mapping[str, Any]
    code_version: str | None = None


def run_days(
    context: Context,
    step: str,
    days: Iterable[date],
    *,
    inputs: Mapping[date, DayInput],
    tasks_of: Callable[[date], Sequence[Task]],
    kernel: Callable[[Task], Out],
    finish: Callable[[date, list[Out]], Committed],
    weight: Callable[[Task], int] | None = None,
) -> StepResult:
    """Make the stale slices of a step over some days.

    Tasks of all days go to the engine in order, so that small days share the workers; each day is
    committed as soon as its last task is back. A day that a check refuses is recorded and does not
    stop the others.

    Args:
        context: The open home.
        step: Step name.
        days: Days in order.
        inputs: Landing parts and winners of every day.
        tasks_of: Tasks of a day.
        kernel: Top-level function that runs in a worker.
        finish: Turns a day's results into what is committed; raises ``EvalpipeError`` to refuse it.
            What it returns is judged by the rules of precision before it is committed.
        weight: Bytes that a task works on, by which the engine decides whether to fan out.

    Returns:
        Slices made, fresh, refused, held and absent.
    """
    result = StepResult(step)
    landing = {day: item.digest for day, item in inputs.items()}
    refused = _refused_before(context, step, landing)
    inputs_of: dict[date, dict[str, str]] = {}
    queue: list[tuple[date, Task]] = []
    counts: dict[date, int] = {}
    for day in days:
        # Text that was withdrawn from a refused day leaves signals and outcomes too.
        if day in refused and not (step in _AFTER_MASKED and must_follow(context, day)):
            result.held.append(day)
            continue
        item = inputs.get(day)
        if seal.is_out_of_reach(context, step, day, item):
            result.held.append(day)
            continue
        made_from = expected_inputs(
            step, day, landing=landing, lookup=context.lookup, versions=context.versions, as_of=context.as_of
        )
        if made_from is None:
            result.absent.append(day)
            continue
        manifest = seal.standing(context, step, day, item)
        if manifest is not None and not staleness(step, manifest, made_from, context.versions, context.damage):
            result.fresh[day] = manifest
            rejections.clear(context.lake, day, step)
            continue
        inputs_of[day] = made_from
        tasks = list(tasks_of(day))
        counts[day] = len(tasks)
        queue += [(day, task) for task in tasks]
    bar = sink()
    bar.start(step, len(inputs_of), "days")
    outs: dict[date, list[Out | EvalpipeError]] = {day: [] for day in inputs_of}
    pending = list(inputs_of)

    def commit_ready() -> None:
        while pending and len(outs[pending[0]]) == counts[pending[0]]:
            day = pending.pop(0)
            key = context.versions.slice_key(step, day)
            try:
                ready = finish(day, _values(outs.pop(day)))
                profiles = judged(f"day {day}", ready.staged)
            except EvalpipeError as error:
                context.lake.discard(key)
                receipt = rejection_receipt(day, landing, context.versions)
                rejections.record(context.lake, day, step=step, receipt=receipt, error=error)
                result.red[day] = error
            else:
                rejections.clear(context.lake, day, step)
                result.made[day] = context.lake.commit(
                    key,
                    ready.staged,
                    inputs=inputs_of[day],
                    code_version=ready.code_version or context.versions.code[step],
                    stats={**ready.stats, PROFILES: profiles},
                )
            bar.advance(step, 1)

    commit_ready()
    guarded = [_Guarded(kernel, task, weight(task) if weight else 0) for _, task in queue]
    for (day, _), out in zip(queue, context.engine.map(_call, guarded, weight=_weight_of), strict=True):
        outs[day].append(out)
        commit_ready()
    bar.finish(step)
    return result


def _refused_before(context: Context, step: str, landing: Mapping[date, str]) -> set[date]:
    """Days that a step before this one refused, and would refuse again."""
    before = DAY_STEPS[: DAY_STEPS.index(step)]
    return {
        day
        for day, entry in rejections.rejected(context.lake).items()
        if entry["step"] in before and entry["receipt"] == rejection_receipt(day, landing, context.versions)
    }


@dataclass(frozen=True, slots=True)
class _Guarded:
    kernel: Callable[[Any], Any]
    task: Any
    n_bytes: int


def _weight_of(guarded: _Guarded) -> int:
    return guarded.n_bytes


def _call(guarded: _Guarded) -> Any:
    """Run a kernel; its failure comes back as a value, so that other days go on."""
    try:
        return run_quietly(guarded.kernel, guarded.task)
    except EvalpipeError as error:
        return error


def run_quietly(kernel: Callable[[Any], Any], task: Any) -> Any:
    """Run a kernel so that no text of a log leaves it in an exception.

    Messages of libraries quote values (a failed cast prints the column), and an exception goes to the
    terminal and into Dagster's history. Only its class and the place in our code are kept.

    Args:
        kernel: What works on raw or masked text.
        task: Its one argument.

    Raises:
        EvalpipeError: The kernel's own, or ``RUN_FAILED`` for any other exception.
    """
    try:
        return kernel(task)
    except EvalpipeError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, its message may quote a log
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "evalpipe" in Path(frame.filename).parts] or frames[-1:]
        place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
        raise EvalpipeError("RUN_FAILED", f"a kernel raised {type(error).__name__}", where=place) from None


def _values(outs: Sequence[Out | EvalpipeError]) -> list[Out]:
    values: list[Out] = []
    for out in outs:
        if isinstance(out, EvalpipeError):
            raise out
        values.append(out)
    return values


def stage_tables(
    tables: Mapping[str, pl.DataFrame], folder: Path, label: str, *, keep: Sequence[str] = ()
) -> tuple[StagedPart, ...]:
    """Stage one part of each table that has rows; safe to call in a worker process.

    Args:
        tables: Rows by full table name.
        folder: Staging folder of the slice.
        label: Label of the task, unique within the slice.
        keep: Tables that get a part even without rows.
    """
    return tuple(
        stage_part(name, data, folder, label) for name, data in tables.items() if name in keep or not data.is_empty()
    )


def total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Sums by name over the tasks of a day; empty where there was no task."""
    out: dict[str, int] = {}
    for one in counts:
        for name, n in one.items():
            out[name] = out.get(name, 0) + n
    return out
