"""Raw slices: the winning copy of each session of a day, from the landing zone.

Belongs here: choosing rows from landing parts. Does not belong here: parsing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl

from evalpipe.contracts import render
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables import TABLES
from evalpipe.steps.context import Context
from evalpipe.steps.slices import Committed, StepResult, run_days
from evalpipe.store.lake import stage_part
from evalpipe.store.landing import LANDED, DayInput, group_stems
from evalpipe.store.manifest import StagedPart


@dataclass(frozen=True, slots=True)
class _Task:
    root: Path
    day: date
    stems: tuple[tuple[str, tuple[str, ...]], ...]
    folder: Path
    label: str
    n_bytes: int


@dataclass(frozen=True, slots=True)
class _Out:
    staged: tuple[StagedPart, ...]
    balance: dict[str, int]


def make_raw(context: Context, days: Iterable[date], inputs: Mapping[date, DayInput]) -> StepResult:
    """Make the stale raw slices of some days.

    Args:
        context: The open home.
        days: Days in order.
        inputs: Landing parts and winners of every day.

    Returns:
        What was made. A day whose files do not balance is refused (``ROWS_UNACCOUNTED``).
    """

    def tasks_of(day: date) -> list[_Task]:
        item = inputs[day]
        folder = context.lake.staging_folder(context.versions.slice_key("raw", day))
        return [
            _Task(
                context.settings.landing,
                day,
                tuple((stem, item.winners[stem]) for stem in group),
                folder,
                f"{index:05d}",
                sum(item.n_text_bytes[stem] for stem in group),
            )
            for index, group in enumerate(group_stems(item, context.settings.part_bytes))
        ]

    return run_days(
        context,
        "raw",
        days,
        landing={day: item.digest for day, item in inputs.items()},
        tasks_of=tasks_of,
        kernel=_kernel,
        finish=_finish,
        weight=lambda task: task.n_bytes,
    )


def _kernel(task: _Task) -> _Out:
    staged: list[StagedPart] = []
    tables = {name: _collect(task, name) for name in LANDED}
    for name in LANDED:
        # Sessions without steps still get a steps part: masking pairs the two by position.
        is_pair = name == "steps" and not tables["sessions"].is_empty()
        if is_pair or not tables[name].is_empty():
            staged.append(stage_part(f"raw.{name}", tables[name], task.folder, task.label))
    files = tables["files"]
    columns = ("rows_read", "rows_kept", "rows_noise", "rows_quarantined")
    balance = {name: int(files[name].sum()) for name in columns}
    accounted = pl.col("rows_kept") + pl.col("rows_noise") + pl.col("rows_quarantined")
    balance["files"] = files.height
    balance["files_unaccounted"] = files.filter(pl.col("rows_read") != accounted).height
    return _Out(tuple(staged), balance)


def _collect(task: _Task, name: str) -> pl.DataFrame:
    contract = TABLES[f"raw.{name}"]
    frames: list[pl.DataFrame] = []
    for stem, winners in task.stems:
        path = task.root / f"day={task.day}" / f"{stem}.{name}.parquet"
        if not path.is_file():
            continue
        data = pl.read_parquet(path)
        if name in ("sessions", "steps"):
            data = data.filter(pl.col("session_id").is_in(list(winners)))
        frames.append(data)
    return pl.concat(frames) if frames else render.empty(contract)


def _finish(day: date, outs: list[_Out]) -> Committed:
    staged = [part for out in outs for part in out.staged]
    balance = {name: sum(out.balance[name] for out in outs) for name in outs[0].balance} if outs else {}
    if balance.get("files_unaccounted"):
        raise EvalpipeError("ROWS_UNACCOUNTED", f"day {day}: {balance}", where="raw.files")
    return Committed(staged, {"balance": balance})
