"""Raw slices: the winning copy of each session of a day, from the landing zone.

Belongs here: choosing rows from landing parts. Does not belong here: parsing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl

from evalpipe import masking, sources
from evalpipe.contracts import render
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.render import polars_schema
from evalpipe.contracts.tables import TABLES
from evalpipe.contracts.tables.raw import CONSENT_WITHDRAWN
from evalpipe.steps.context import Context
from evalpipe.steps.slices import Committed, StepResult, run_days, stage_tables, total
from evalpipe.steps.withdrawal import forget_raw
from evalpipe.store.day_input import CopyRow, DayInput, Pick
from evalpipe.store.landing import LANDED, LANDED_ONLY, group_stems
from evalpipe.store.manifest import StagedPart
from evalpipe.store.parts import Joined, Place
from evalpipe.store.trials import Told

#: Sessions in parts that are made together, at most.
_WHOLES = 50
#: What a result file tells of a session: each by itself, and what goes together.
_TOLD = frozenset(
    {"end_status_logged", "task_id", "scenario_declared", "trial", "harness", "logged_cost_usd", "agent_release"}
)
_VERDICT = ("objective_reward", "is_objective_success")
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
#: Behind the names of columns that the result file gives.
_OTHERS = "__told"
#: Place of the session that counts in a row of copies, behind the day.
_COUNTED = TABLES["raw.copies"].names.index("counted_session_id")


@dataclass(frozen=True, slots=True)
class _Part:
    """A landing part: how many rows it has, and which sessions and files of it count."""

    stem: str
    rows: Mapping[str, int]
    sessions: tuple[Pick, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Task:
    root: Path
    day: date
    parts: tuple[_Part, ...]
    copies: tuple[CopyRow, ...]
    folder: Path
    label: str
    n_bytes: int
    joined: tuple[Joined, ...] = ()
    told: tuple[Told, ...] = ()
    withdrawn: tuple[str, ...] = ()


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
        What was made. A day whose files do not balance is refused (``ROWS_UNACCOUNTED``), and so is one
        whose landed text is gone (``INPUT_EXPIRED``): its old slice, if any, stays.
    """

    days = list(days)
    forget_raw(context, days, inputs)

    def tasks_of(day: date) -> list[_Task]:
        item = inputs[day].live()
        folder = context.lake.staging_folder(context.versions.slice_key("raw", day))
        groups = [(group, ()) for group in group_stems(item, context.settings.part_bytes)]
        wholes = [((), some) for some in _groups(item.joined, context.settings.part_bytes)]
        # What does not count is told by the index, also where all text of the day has expired.
        work = [*groups, *wholes] or ([((), ())] if item.copies else [])
        copies = _by_task(item.copies, [joined for _, joined in work])
        return [
            _Task(
                context.settings.landing,
                day,
                tuple(_Part(stem, item.rows[stem], item.winners[stem], item.files[stem]) for stem in group),
                copies[index],
                folder,
                f"{index:05d}",
                sum(item.n_text_bytes[stem] for stem in group) + sum(one.n_bytes for one in joined),
                joined,
                item.told,
                tuple(one.session_id for one in item.withdrawn),
            )
            for index, (group, joined) in enumerate(work)
        ]

    return run_days(
        context,
        "raw",
        days,
        inputs=inputs,
        tasks_of=tasks_of,
        kernel=_kernel,
        finish=_finish,
        weight=lambda task: task.n_bytes,
    )


def _groups(joined: Sequence[Joined], limit_bytes: int) -> list[tuple[Joined, ...]]:
    """Sessions in parts, in order, in groups that can be made together."""
    groups: list[list[Joined]] = []
    n_bytes = 0
    for one in joined:
        if not groups or len(groups[-1]) == _WHOLES or n_bytes + one.n_bytes > limit_bytes:
            groups.append([])
            n_bytes = 0
        groups[-1].append(one)
        n_bytes += one.n_bytes
    return [tuple(group) for group in groups]


def _by_task(copies: Sequence[CopyRow], work: Sequence[tuple[Joined, ...]]) -> list[tuple[CopyRow, ...]]:
    """Copies by the task that tells them: of joined traces the one that counts their messages, else the first."""
    task_of = {one.session_id: index for index, joined in enumerate(work) for one in joined if one.landed_ids}
    by_task: list[list[CopyRow]] = [[] for _ in work]
    for row in copies:
        by_task[task_of.get(row[_COUNTED], 0)].append(row)
    return [tuple(rows) for rows in by_task]


def _kernel(task: _Task) -> _Out:
    tables = {f"raw.{name}": _collect(task, name) for name in LANDED} | _wholes(task)
    tables["raw.sessions"] = _with_outcomes(task, tables["raw.sessions"])
    tables |= _without_withdrawn(task, tables)
    copies = pl.DataFrame(list(task.copies), schema=polars_schema(TABLES["raw.copies"]), orient="row")
    tables["raw.copies"] = _counted(copies, task.joined, tables["raw.sessions"])
    # Sessions without steps still get a steps part: masking pairs the two by position.
    keep = ("raw.steps",) if not tables["raw.sessions"].is_empty() else ()
    staged = stage_tables(tables, task.folder, task.label, keep=keep)
    files = tables["raw.files"]
    columns = ("rows_read", "rows_kept", "rows_noise", "rows_quarantined")
    balance = {name: int(files[name].sum()) for name in columns}
    accounted = pl.col("rows_kept") + pl.col("rows_noise") + pl.col("rows_quarantined")
    balance["files"] = files.height
    balance["files_unaccounted"] = files.filter(pl.col("rows_read") != accounted).height
    return _Out(tuple(staged), balance)


def _collect(task: _Task, name: str) -> pl.DataFrame:
    contract = TABLES[f"raw.{name}"]
    frames: list[pl.DataFrame] = []
    column = "session_id" if name in LANDED_ONLY else "file_id"
    for part in task.parts:
        wanted = part.sessions if column == "session_id" else part.files
        if not wanted or not part.rows.get(name):
            continue
        data = _landed(task, task.day, part.stem, name)
        frames.append(
            _picked(data, part.sessions, name)
            if column == "session_id"
            else data.filter(pl.col(column).is_in(list(part.files)))
        )
    return pl.concat(frames) if frames else render.empty(contract)


def _with_outcomes(task: _Task, sessions: pl.DataFrame) -> pl.DataFrame:
    """Sessions with the outcome that another file tells, where they have none of their own."""
    own = set(sessions["session_id"].to_list()) if task.told else set()
    found = []
    for one in task.told:
        if one.session_id in own:
            row = _landed(task, one.day, one.stem, "sessions").filter(session_id=one.landed_id, copy=one.copy)
            found.append(row.select(pl.lit(one.session_id).alias("session_id"), *sorted(_TOLD | {*_VERDICT, *_TOKENS})))
    if not found:
        return sessions
    rows = sessions.join(pl.concat(found), on="session_id", how="left", suffix=_OTHERS, maintain_order="left")
    # A verdict and its reward go together, and so do the kinds of tokens.
    for names in (*([name] for name in sorted(_TOLD)), _VERDICT, _TOKENS):
        is_mute = pl.all_horizontal(pl.col(name).is_null() for name in names)
        rows = rows.with_columns(
            pl.when(is_mute).then(f"{name}{_OTHERS}").otherwise(name).alias(name) for name in names
        )
    return rows.select(sessions.columns)


def _without_withdrawn(task: _Task, tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Sessions, steps and signals, where another copy of a session says that it is withdrawn."""
    if not task.withdrawn:
        return {}
    is_gone = pl.col("session_id").is_in(task.withdrawn)
    sessions, vectors = tables["raw.sessions"], tables["raw.vectors"]
    # What says so itself was extracted from no text; what another copy takes back was.
    late = sessions.filter(is_gone & (pl.col("consent").fill_null("") != CONSENT_WITHDRAWN))["session_id"]
    return {
        "raw.sessions": sessions.with_columns(
            consent=pl.when(is_gone).then(pl.lit(CONSENT_WITHDRAWN)).otherwise("consent")
        ),
        "raw.steps": masking.without_text(tables["raw.steps"], pl.Series(task.withdrawn)),
        "raw.vectors": vectors.filter(~pl.col("session_id").is_in(late.implode())),
    }


def _counted(copies: pl.DataFrame, joined: Sequence[Joined], sessions: pl.DataFrame) -> pl.DataFrame:
    """Copies with the number of messages that joined traces have: parts resend them, so it is known only now."""
    traces = [one.session_id for one in joined if one.landed_ids]
    if not traces or copies.is_empty():
        return copies
    known = sessions.filter(pl.col("session_id").is_in(traces)).select(counted_session_id="session_id", n="n_messages")
    return (
        copies.join(known, on="counted_session_id", how="left", maintain_order="left")
        .with_columns(counted_n_messages=pl.coalesce("n", "counted_n_messages"))
        .drop("n")
    )


def _wholes(task: _Task) -> dict[str, pl.DataFrame]:
    """Sessions that are made of parts; nothing for a task that has none."""
    if not task.joined:
        return {}
    wanted = pl.col("session_id").is_in(sorted({landed_id for one in task.joined for _, landed_id in one.picks}))
    held: dict[tuple[date, str, str], pl.DataFrame] = {}

    def of(place: Place, landed_id: str, name: str) -> pl.DataFrame:
        key = (*place[:2], name)
        if key not in held:
            # Of a part that holds many sessions only those few are held.
            held[key] = _landed(task, *key, wanted)
        return held[key].filter(session_id=landed_id, copy=place[2])

    chunk = sources.join_parts(
        [
            (one.session_id, [_whole_part(of, place, landed_id, one) for place, landed_id in one.picks], one.n_messages)
            for one in task.joined
        ]
    )
    wholes = {"raw.sessions": chunk.sessions, "raw.steps": chunk.steps}
    return {name: render.conform(TABLES[name], data.select(TABLES[name].names)) for name, data in wholes.items()}


def _whole_part(
    of: Callable[[Place, str, str], pl.DataFrame], place: Place, landed_id: str, one: Joined
) -> sources.Part:
    session = of(place, landed_id, "sessions")
    spans = session["spans"][0] if one.landed_ids else None
    # A part of a trace may have no steps of its own.
    has_steps = spans is None and session["n_steps"][0] > 0
    steps = of(place, landed_id, "steps") if has_steps else render.empty(TABLES["raw.steps"])
    return sources.Part(session, steps, spans)


def _picked(data: pl.DataFrame, picks: tuple[Pick, ...], name: str) -> pl.DataFrame:
    """Rows of the copies that count, without the columns that told copies apart."""
    if "copy" not in data.columns:  # landed when a part held one copy of a session
        return data.filter(pl.col("session_id").is_in([session_id for session_id, _ in picks]))
    wanted = pl.DataFrame(list(picks), schema={"session_id": pl.String(), "copy": pl.Int32()}, orient="row")
    rows = data.join(wanted, on=["session_id", "copy"], how="semi", maintain_order="left")
    return rows.drop(LANDED_ONLY[name], strict=False)  # what is noted beside the rows has grown with time


def _landed(task: _Task, day: date, stem: str, name: str, wanted: pl.Expr | None = None) -> pl.DataFrame:
    path = task.root / f"day={day}" / f"{stem}.{name}.parquet"
    try:
        # Spans are as large as the steps made of them, and asked for where parts are joined only.
        rows = pl.scan_parquet(path)
        rows = rows.drop("spans", strict=False) if wanted is None else rows.filter(wanted)
        return render.with_later_columns(TABLES[f"raw.{name}"], rows.collect())
    except FileNotFoundError:
        raise _expired(task, day, stem, name) from None


def _expired(task: _Task, day: date, stem: str, name: str) -> EvalpipeError:
    entry = task.root / "_batches" / f"{stem.rpartition('-')[0]}.json"
    return EvalpipeError(
        "INPUT_EXPIRED",
        f"day {task.day}: landed {name} are gone.",
        where=str(task.root / f"day={day}"),
        fix=f"Keep the old slice as it is, or delete {entry} and land its source files again.",
    )


def _finish(day: date, outs: list[_Out]) -> Committed:
    balance = total(out.balance for out in outs)
    if balance.get("files_unaccounted"):
        raise EvalpipeError("ROWS_UNACCOUNTED", f"day {day}: {balance}", where="raw.files")
    return Committed([part for out in outs for part in out.staged], {"balance": balance})
