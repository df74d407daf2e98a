"""Numbers that counted somebody who was erased: computed anew, corrected, published.

Belongs here: analyses, scorecards, reports, the warehouse and Dagster's history after an erasure. Does
not belong here: rows (``steps/erase.py``). An analysis whose criteria are not there any more, or that
cannot be made from what is left, is withdrawn: its numbers are corrected to null.
"""

from __future__ import annotations

import shutil
from dataclasses import replace

from evalpipe import analysis
from evalpipe import criteria as criteria_files
from evalpipe.contracts import render
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables import TABLES
from evalpipe.criteria.model import Criteria
from evalpipe.steps import analysis as analysis_step
from evalpipe.steps import report as report_step
from evalpipe.steps.context import Context, load_criteria
from evalpipe.steps.erase_scope import Erasure
from evalpipe.steps.publish import publish
from evalpipe.store.lake import stage_part
from evalpipe.store.manifest import Manifest, SliceKey
from evalpipe.store.rewrite import drop_slice

_NUMBERS = "analysis.net_improvement"
_REASON = analysis_step.ERASURE
_WITHDRAWN = "withdrawn"


def correct(context: Context, scope: Erasure) -> int:
    """Compute everything anew that counted an erased session, and publish it.

    Args:
        context: The open home.
        scope: The erasure.

    Returns:
        Rows of ``analysis.corrections`` with the reason ``erasure`` that this added.
    """
    before = _n_corrections(context)
    known = {context.criteria.measurement: context.criteria}
    known |= {item.measurement: item for item in _shipped() if item.measurement not in known}
    for key in scope.analyses:
        manifest = context.lake.manifest(key)
        if manifest is not None:
            _correct_one(context, manifest, known)
    for key, source in scope.scorecards:
        _scorecard(context, key, source)
    publish(context)
    _scrub_history(context, scope)
    return _n_corrections(context) - before


def _shipped() -> list[Criteria]:
    return [load_criteria(name) for name in criteria_files.available()]


def _n_corrections(context: Context) -> int:
    return context.lake.count(context.lake.appended("analysis.corrections"))


def _correct_one(context: Context, manifest: Manifest, known: dict[str, Criteria]) -> None:
    key = manifest.key
    measurement, window = (part.partition("=")[2] for part in key.variant)
    folder = report_step.folder(context, manifest)
    in_force = known.get(measurement)
    if in_force is not None:
        of_then = replace(context, criteria=in_force)
        try:
            done = analysis_step.make_analysis(of_then, [key.day], window, reason=_REASON)
        except EvalpipeError as error:
            if error.code != "MIXED_KEYS":
                raise
        else:
            if key.day in done.manifests:
                if folder.is_dir():
                    report_step.render(of_then, done.manifests[key.day])
                return
    _withdraw(context, manifest)
    shutil.rmtree(folder, ignore_errors=True)


def _withdraw(context: Context, manifest: Manifest) -> None:
    old = context.lake.read(_NUMBERS, [manifest])
    gone = analysis.corrections(old, render.empty(TABLES[_NUMBERS]), manifest.content, _WITHDRAWN, _REASON)
    context.lake.append("analysis.corrections", gone)
    drop_slice(context.lake, manifest)


def _scorecard(context: Context, key: SliceKey, source: SliceKey | None) -> None:
    old = context.lake.manifest(key)
    now = context.lake.manifest(source) if source is not None else None
    if old is None:
        return
    version = str(old.stats.get("version", ""))
    if now is None or version not in analysis_step.versions_of(context, now):
        drop_slice(context.lake, old)
        return
    if old.inputs["analysis"] == now.content:
        return
    card = analysis.scorecard(analysis_step.tables_of(context, now), version)
    staged = [stage_part("analysis.scorecard", card, context.lake.staging_folder(key), "all")]
    inputs = {"analysis": now.content}
    context.lake.commit(key, staged, inputs=inputs, code_version=old.code_version, stats=old.stats)


def _scrub_history(context: Context, scope: Erasure) -> None:
    """Begin Dagster's history anew where it holds a token of the person; it is not meant to hold any."""
    needles = [token.encode() for token in scope.sessions | scope.users]
    folder = context.settings.dagster_home
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()] if folder.is_dir() else []
    for path in files:
        if path.exists() and _holds(path.read_bytes(), needles):
            # SQLite keeps what was written beside the database until it is folded in.
            for left in path.parent.glob(f"{path.name.partition('-')[0]}*"):
                left.unlink()


def _holds(data: bytes, needles: list[bytes]) -> bool:
    return any(needle in data for needle in needles)
