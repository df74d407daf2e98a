"""Erasing one person: their bytes leave every file of the home, and their id is left out from then on.

Belongs here: the order of an erasure. Does not belong here: finding what is about the person
(``steps/erase_scope.py``), numbers that counted them (``steps/erase_results.py``), tags (``masking``).

Order matters because a kill may fall between any two steps: first one file with what is to go, by tokens,
and the new tombstones, so that either all of it is known or nothing; from then on nothing of the person
lands again, and the next run goes on from it. Then the file of tombstones, then rows, then numbers made
from them; the record last. Every step can be done again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import polars as pl

from evalpipe import masking
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking.tombstones import Subject
from evalpipe.settings import Settings
from evalpipe.steps import evidence, quality, reviews, validation
from evalpipe.steps.context import Context, open_context
from evalpipe.steps.erase_results import correct
from evalpipe.steps.erase_scope import Erasure, pending, record_path, scope_of
from evalpipe.steps.masked import make_masked
from evalpipe.steps.raw import make_raw
from evalpipe.steps.signals import make_outcomes, make_signals
from evalpipe.store.entries import LandedFile
from evalpipe.store.manifest import STEP_TABLES
from evalpipe.store.objects import ObjectMemory
from evalpipe.store.rewrite import private_write, rewrite_landing, rewrite_slice, sweep


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """What an erasure took away, or would take.

    Attributes:
        n_sessions: Sessions of the person.
        n_files: Files that held nobody else.
        n_days: Days made anew.
        n_analyses: Analyses that counted one of the sessions.
        n_corrections: Published numbers that moved.
        is_dry: Whether nothing was done.
    """

    n_sessions: int
    n_files: int
    n_days: int
    n_analyses: int
    n_corrections: int = 0
    is_dry: bool = False


def erase(
    context: Context, subject: Subject, *, dry_run: bool = False, environ: Mapping[str, str] | None = None
) -> ErasureResult:
    """Erase a person from a home that nobody else has open (``open_context(alone=True)``).

    Args:
        context: The open home.
        subject: Whom.
        dry_run: Only tell what would go.
        environ: Environment that may give the tombstone key; the process's own by default.

    Returns:
        Counts; they name nobody.

    Raises:
        EvalpipeError: ``UNKNOWN_USER`` for a token that no session bears: nothing could be kept out by it.
    """
    if not dry_run and go_on(context):
        context = replace(context)  # what was looked up before is not true any more
    scope = scope_of(context, subject)
    if subject.is_token and not scope.sessions:
        raise EvalpipeError("UNKNOWN_USER", "no session of this home bears the token.", where="--token")
    if dry_run:
        return replace(_result(context, scope, 0), is_dry=True)
    found = context.settings
    environ = os.environ if environ is None else environ
    stones = masking.tombstones.prepared(context.tombstones, found.tombstone_key_file, environ)
    stones = stones.with_subject(subject, scope.raw_sessions | scope.sessions, scope.users)
    private_write(record_path(found), scope.to_json(masking.tombstones.to_json(stones)))
    return _finish(replace(context, tombstones=stones), scope)


def resume(settings: Settings) -> ErasureResult | None:
    """Go on with an erasure that was begun and not ended, if there is one; waits for those who have the home open.

    Args:
        settings: Settings of a home.
    """
    # Looked for before the home is opened alone, which waits for others.
    if not is_pending(settings):
        return None
    with open_context(settings, alone=True) as context:
        return go_on(context)


def is_pending(settings: Settings) -> bool:
    """Whether an erasure was begun and not ended."""
    return record_path(settings).exists()


def go_on(context: Context) -> ErasureResult | None:
    """Go on with an erasure that was begun, in a home that nobody else has open.

    Args:
        context: The open home.
    """
    scope = pending(context)
    return None if scope is None else _finish(context, scope)


def _finish(context: Context, scope: Erasure) -> ErasureResult:
    if context.tombstones.key is not None:
        private_write(context.settings.tombstones, masking.tombstones.to_json(context.tombstones))
    change = _without(context, scope)
    rewrite_landing(context.landing, change, _hiding(context, scope))
    _forget_objects(context.objects, context, scope)
    for step in STEP_TABLES:
        for manifest in context.lake.manifests(step):
            rewrite_slice(context.lake, manifest, change)
    reviews.take_away(context.lake, change)
    quality.forget(context.lake)
    validation.forget_replay(context.lake)
    sweep(context.lake, context.landing)
    _make_anew(context, scope)
    n_corrections = correct(context, scope)
    sweep(context.lake, context.landing)
    record_path(context.settings).unlink()
    return _result(context, scope, n_corrections)


def _result(context: Context, scope: Erasure, n_corrections: int) -> ErasureResult:
    # The scope has neighbours too, of which many hold nothing that could be made.
    n_days = len(set(scope.days) & context.landing.day_inputs().keys())
    return ErasureResult(len(scope.sessions), len(scope.files), n_days, len(scope.analyses), n_corrections)


def _without(context: Context, scope: Erasure) -> Callable[[str, pl.DataFrame], pl.DataFrame]:
    """Rows that stay of any table of a lake or landing zone."""
    rekey = context.mask_plan.rekey
    hide = context.tombstones.hide

    def is_gone(values: pl.Series, kind: str, tokens: frozenset[str]) -> pl.Series:
        distinct = values.unique().drop_nulls()
        gone = [value for value in distinct if value and rekey(kind, value) in tokens]
        return values.is_in(gone).fill_null(value=False)

    def change(table: str, rows: pl.DataFrame) -> pl.DataFrame:
        gone = pl.repeat(False, rows.height, eager=True)
        for column in ("session_id", "counted_session_id"):
            if column in rows.columns:
                gone |= is_gone(rows[column], "s", scope.sessions)
        if "user_id" in rows.columns and "session_id" not in rows.columns:
            gone |= is_gone(rows["user_id"], "u", scope.users)
        name = table.split(".")[1]
        if name == "quarantine":
            gone |= is_gone(rows["file_id"], "f", scope.files)
        out = rows.filter(~gone) if gone.any() else rows
        if name == "files":
            out = _counted_as_noise(out, is_gone(out["file_id"], "f", scope.files), hide)
        if (
            "parent_session_id" in out.columns
            and (lost := is_gone(out["parent_session_id"], "s", scope.sessions)).any()
        ):
            out = out.with_columns(parent_session_id=pl.when(~lost).then("parent_session_id"))
        return out

    return change


def _counted_as_noise(files: pl.DataFrame, gone: pl.Series, hide: Callable[[str], str]) -> pl.DataFrame:
    """Files of nobody else: their records are noise now, and their paths say nothing."""
    if not gone.any():
        return files
    spent = {
        "rows_noise": pl.col("rows_read"),
        "rows_kept": pl.lit(0, pl.Int64),
        "rows_quarantined": pl.lit(0, pl.Int64),
        "n_sessions": pl.lit(0, pl.Int64),
    }
    if "source_file" in files.columns:
        named = pl.Series([member and hide(member) for member in files["member"]], dtype=pl.String)
        spent |= {"source_file": pl.lit(""), "member": pl.lit(named)}
    return files.with_columns(pl.when(gone).then(value).otherwise(name).alias(name) for name, value in spent.items())


def _hiding(context: Context, scope: Erasure) -> Callable[[LandedFile], LandedFile]:
    rekey, hide = context.mask_plan.rekey, context.tombstones.hide

    def hidden(file: LandedFile) -> LandedFile:
        return replace(file, path=hide(file.path)) if rekey("f", file.digest) in scope.files else file

    return hidden


def _forget_objects(objects: ObjectMemory, context: Context, scope: Erasure) -> None:
    """Forget the places of objects that held nobody else: their keys may name the person.

    Such an object is copied once more, and its bytes are known.
    """
    objects.forget(lambda digest: context.mask_plan.rekey("f", digest) in scope.files)


def _make_anew(context: Context, scope: Erasure) -> None:
    """Make the days anew that were as they would be, so that nothing of the person is in counts either."""
    inputs = context.landing.day_inputs()
    # Without the person's reviews a signal may count again, or no longer.
    moved = evidence.overtaken(context, context.lake.manifests("outcomes"))
    days = sorted(day for day in {*scope.days, *moved} if day in inputs)
    for make in (make_raw, make_masked, make_signals, make_outcomes):
        make(context, days, inputs)
