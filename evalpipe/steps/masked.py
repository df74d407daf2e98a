"""Masked slices: field policy, masking and pseudonyms over raw slices, published only when clean.

Belongs here: pairing parts, planting canaries, the leak check before the commit. Does not belong
here: rules of masking. Write, audit, publish: parts are staged under ``lake/raw``; a slice whose
check is red is never moved out of there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe import masking
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.render import empty
from evalpipe.contracts.tables import TABLES
from evalpipe.contracts.tables.raw import CONSENT_WITHDRAWN
from evalpipe.masking import MaskPlan
from evalpipe.steps import leak_stats, people, rescan, seal, tiers
from evalpipe.steps.context import Context
from evalpipe.steps.slices import Committed, StepResult, run_days, stage_tables
from evalpipe.steps.tighten import tighten
from evalpipe.steps.withdrawal import withdraw, withdrawn_later
from evalpipe.store.day_input import DayInput
from evalpipe.store.lake import read_part
from evalpipe.store.manifest import Manifest, StagedPart
from evalpipe.store.plan import SIGNALS_READ


@dataclass(frozen=True, slots=True)
class _Task:
    day: date
    sessions: Path | None
    steps: Path | None
    files: Path | None
    quarantine: Path | None
    copies: Path | None
    vectors: tuple[Path, ...]
    has_vectors: bool
    plan: MaskPlan
    tiers: tiers.TierPlan
    folder: Path
    label: str
    n_bytes: int
    consent: pl.DataFrame
    # Of a day that lives on without raw text: its parts are masked ones, and these sessions lose theirs.
    is_rescan: bool = False
    gone: tuple[str, ...] = ()
    respelled: Mapping[str, str] = field(default_factory=dict)
    limits: seal.Limits | None = None


@dataclass(frozen=True, slots=True)
class _Out:
    staged: tuple[StagedPart, ...]
    redactions: pl.DataFrame
    leak: dict[str, Any]


#: Staged parts, what was hidden in them, and what the leak check found.
_Checked = tuple[tuple[StagedPart, ...], pl.DataFrame, masking.LeakReport]


def make_masked(context: Context, days: Iterable[date], inputs: Mapping[date, DayInput]) -> StepResult:
    """Make the stale masked slices of some days.

    Args:
        context: The open home.
        days: Days in order.
        inputs: Landing parts and winners of every day.

    Returns:
        What was made. A day whose leak check is red is refused (``LEAK_FOUND``) and recorded; its old
        slice, if any, stays, without the text of those who have withdrawn their consent since. Text of
        sources that are in tier ``vectors`` now goes from all slices first, on other days too.
    """
    tighten(context)
    plan = context.mask_plan

    sealed: dict[date, Manifest] = {}
    respelled = cache(lambda: people.respelled(context))

    def tasks_of(day: date) -> list[_Task]:
        manifest, made = context.lookup("raw", day), context.lookup("masked", day)
        folder = context.lake.staging_folder(context.versions.slice_key("masked", day))
        item = inputs.get(day)
        if made is not None and (rescan.is_sealed(context, day) or seal.is_to_scan_again(context, item, made)):
            sealed[day] = made
            limits = seal.limits(context, item) if item is not None and item.raw_gone else None
            return _rescan_tasks(context, made, folder, limits, respelled())
        return [] if manifest is None else _tasks(context, day, manifest, plan, folder)

    def finish(day: date, outs: list[_Out]) -> Committed:
        leak = leak_stats.merge([out.leak for out in outs], leak_stats.trailing(context, day))
        stats: dict[str, Any] = {"leak": leak, "parts": len(outs)}
        stats |= _rule_sets(context, day, sealed.get(day))
        if not stats["leak"]["passed"]:
            raise EvalpipeError("LEAK_FOUND", f"day {day}: {stats['leak']['findings']}", where="masked")
        staged = [part for out in outs for part in out.staged]
        found = _sum(pl.concat([empty(TABLES["masked.redactions"]), *(out.redactions for out in outs)]))
        audit = {"masked.redactions": found}
        item = inputs.get(day)
        if day in sealed:
            audit = rescan.with_earlier(context, sealed[day], found)
        elif item is not None and seal.is_sealed("masked", item):
            has_vectors = any(part.part.table == "masked.vectors" for part in staged)
            carried, counts = seal.carried_masked(context, day, item, has_vectors=has_vectors)
            staged += [*carried, *counts]
            stats |= seal.carried_stats(counts, item)
        # Late sessions are masked by the rules of today; what is carried on is scanned by them once it is alone.
        was = context.lookup("masked", day)
        code_version = was.code_version if was is not None and item is not None and seal.waits(item) else None
        folder = context.lake.staging_folder(context.versions.slice_key("masked", day))
        staged += stage_tables(audit, folder, "all")
        return Committed(staged, stats, code_version)

    result = run_days(
        context,
        "masked",
        days,
        inputs=inputs,
        tasks_of=tasks_of,
        kernel=_kernel,
        finish=finish,
        weight=lambda task: task.n_bytes,
    )
    withdraw(context, [*result.held, *result.red])
    return result


def _tasks(context: Context, day: date, manifest: Manifest, plan: MaskPlan, folder: Path) -> list[_Task]:
    """Pair the parts of a raw slice: sessions and steps of one task lie at the same position."""
    lake = context.lake
    pairs = {
        name: dict(enumerate(lake.paths(f"raw.{name}", [manifest])))
        for name in ("sessions", "steps", "quarantine", "files", "copies")
    }
    vectors = tuple(lake.paths("raw.vectors", [manifest]))
    # Parts of a day are paired by position, so all of them have vectors or none has.
    made = context.lookup("masked", day)
    carries = made is not None and bool(lake.paths("masked.vectors", [made]))
    has_vectors = bool(vectors) or bool(context.tier_inputs(day)) or carries
    consent = context.consent_for(manifest)
    sizes = [part.n_bytes for part in manifest.parts if part.table == "raw.steps"]
    n_tasks = max((len(items) for items in pairs.values()), default=0)
    return [
        _Task(
            day,
            pairs["sessions"].get(index),
            pairs["steps"].get(index),
            pairs["files"].get(index),
            pairs["quarantine"].get(index),
            pairs["copies"].get(index),
            vectors,
            has_vectors,
            plan,
            context.tier_plan,
            folder,
            f"{index:05d}",
            sizes[index] * 6 if index < len(sizes) else 0,
            consent,
        )
        for index in range(n_tasks)
    ]


def _rescan_tasks(
    context: Context, made: Manifest, folder: Path, limits: seal.Limits | None, respelled: Mapping[str, str]
) -> list[_Task]:
    gone = tuple(withdrawn_later(context, made.key.day))
    vectors = tuple(context.lake.paths("masked.vectors", [made]))
    return [
        _Task(
            made.key.day,
            parts.get("sessions"),
            parts.get("steps"),
            parts.get("files"),
            parts.get("quarantine"),
            parts.get("copies"),
            vectors,
            bool(vectors),
            context.mask_plan,
            context.tier_plan,
            folder,
            f"{index:05d}",
            n_bytes,
            context.consent.clear(),
            is_rescan=True,
            gone=gone,
            respelled=respelled,
            limits=limits,
        )
        for index, (parts, n_bytes) in enumerate(rescan.pairs(context, made))
    ]


def _rule_sets(context: Context, day: date, sealed: Manifest | None) -> dict[str, Any]:
    """What the manifest tells of the rules, so that later steps see when a change of them moved a signal."""
    was = context.lookup("masked", day)
    told: dict[str, Any] = {"ruleset": context.mask_plan.ruleset_digest()}
    if was is not None and was.code_version != context.versions.code["masked"]:
        told["masked_before"] = was.content_of(*SIGNALS_READ)
    if sealed is not None:
        told[rescan.RESCANNED] = int(sealed.stats.get(rescan.RESCANNED, 0)) + 1
    return told


def _kernel(task: _Task) -> _Out:
    """Mask one task's rows together with canaries, and check all of it before anything is committed."""
    canaries = masking.plant_canaries(task.plan, task.day)
    with masking.overheard() as heard:
        (staged, redactions, report), contained = _masked(task, canaries)
    leak = leak_stats.of_report(report, task.plan, contained, is_rescan=task.is_rescan)
    # Whatever else leaves this process is searched like the tables.
    words = {"log messages": "\n".join(heard), "statistics": json.dumps(leak)}
    return _Out(staged, redactions, leak_stats.with_findings(leak, masking.check_words(canaries, words)))


def _masked(task: _Task, canaries: masking.Canaries) -> tuple[_Checked, masking.Contained | None]:
    plan = task.plan
    sessions, steps = _rows(task)
    masked = masking.mask_part(pl.concat([sessions, canaries.sessions]), pl.concat([steps, canaries.steps]), plan)
    out = _checked(task, canaries, masked)
    if not out[2].passed and (contained := masking.contain(masked, out[2].findings, plan)) is not None:
        # One line on which rules and detector disagree costs its field, not the day.
        for part in out[0]:
            part.path.unlink()
        return _checked(task, canaries, contained.part), contained
    return out, None


def _checked(task: _Task, canaries: masking.Canaries, masked: masking.MaskedPart) -> _Checked:
    """Stage a masked part and look for what may have been left in it."""
    plan = task.plan
    files = masking.mask_files(_with(task, "files", canaries.files), plan)
    quarantine = masking.mask_quarantine(_with(task, "quarantine", canaries.quarantine), plan)
    copies = masking.mask_copies(_with(task, "copies", canaries.copies), plan)
    # Staged first, so that the check reads the very bytes that would be published.
    sessions, steps = masking.drop_canaries(masked.sessions, masked.steps)
    vectors = _came(task, sessions)
    if not task.is_rescan:  # which has the signals of all sessions without text already
        steps, vectors = tiers.withhold(sessions, steps, vectors, task.tiers)
    tables = {
        "masked.sessions": sessions,
        "masked.steps": steps,
        "masked.files": masking.drop_canary_rows(files),
        "masked.quarantine": masking.drop_canary_rows(quarantine),
        "masked.copies": masking.drop_canary_rows(copies),
        "masked.vectors": vectors,
    }
    # Signals pair sessions and steps by position, so steps have a part wherever sessions have one.
    paired = ("masked.steps", "masked.vectors") if task.has_vectors else ("masked.steps",)
    keep = paired if not sessions.is_empty() else ()
    staged = stage_tables(tables, task.folder, task.label, keep=keep)
    report = masking.leak_check(
        masked.sessions,
        masked.steps,
        canaries,
        masked.redactions,
        plan,
        [part.path for part in staged],
        files=files,
        quarantine=quarantine,
        copies=copies,
        vectors=vectors,
    )
    return staged, masking.drop_canary_rows(masked.redactions), report


def _rows(task: _Task) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The task's sessions and steps, those without consent emptied of text. Canaries come after: a
    source that is withdrawn must not take the check with it.
    """
    sessions, steps = (_read(task, name) for name in ("sessions", "steps"))
    if task.is_rescan:
        is_gone = pl.col("session_id").is_in(task.gone)
        told = pl.when(is_gone).then(pl.lit(CONSENT_WITHDRAWN)).otherwise("consent")
        sessions = sessions.with_columns(pl.col("user_id").replace(task.respelled), consent=told)
        return sessions, masking.without_text(steps, pl.Series(task.gone, dtype=pl.String))
    return masking.apply_consent(sessions, steps, task.consent)


def _came(task: _Task, sessions: pl.DataFrame) -> pl.DataFrame:
    """Signals of sessions that came without text. With its consent, a session loses them."""
    # Few parts of a raw slice hold any, so they are not paired with those of sessions.
    is_mine = pl.col("session_id").is_in(sessions["session_id"].implode())
    layer = "masked" if task.is_rescan else "raw"
    vectors = [read_part(f"{layer}.vectors", path).filter(is_mine) for path in task.vectors]
    rows = pl.concat([empty(TABLES["raw.vectors"]), *vectors])
    is_gone = pl.col("consent") == CONSENT_WITHDRAWN
    came = read_part(f"{layer}.sessions", task.sessions, ["session_id", "consent"]) if task.sessions else sessions
    # What had no consent beside the agent was extracted from no text.
    gone = sessions.filter(is_gone & ~pl.col("session_id").is_in(came.filter(is_gone)["session_id"].implode()))
    is_kept = ~pl.col("session_id").is_in(gone["session_id"].implode())
    return masking.mask_vectors(rows, task.plan).filter(is_kept)


def _read(task: _Task, name: str) -> pl.DataFrame:
    path: Path | None = getattr(task, name)
    if path is None:
        return empty(TABLES[f"raw.{name}"])
    if not task.is_rescan:
        return read_part(f"raw.{name}", path)
    rows = rescan.as_raw(name, path)
    return rows if task.limits is None else task.limits.of(name, rows)


def _with(task: _Task, name: str, canaries: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([_read(task, name), canaries])


def _sum(redactions: pl.DataFrame) -> pl.DataFrame:
    keys = ["source", "field", "entity", "subtype", "rule_id", "ruleset", "key_epoch"]
    return redactions.group_by(keys).agg(pl.col("n_rows", "n_hits", "n_bytes").sum())
