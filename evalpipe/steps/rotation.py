"""Rotation of the masking key: every slice of the home moves to a new epoch, without raw text.

Belongs here: the order of a rotation, and what a killed one needs to go on. Does not belong here: what
becomes of a token (``masking/rekeying.py``, ``masking/keys.py``), who may open a home meanwhile
(``epochs.py``).

A rotation writes the new key beside the old one, then a journal, then slice by slice in order of flow,
then the warehouse, and last puts the new key in the old one's place. Killed anywhere, it is begun again
and goes on: a slice whose manifest names the new key is done, and the journal knows the digests that
receipts of later slices name, so that nothing becomes stale and no published number moves.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables import TABLES
from evalpipe.engines import LocalEngine
from evalpipe.masking import keys, rekeying
from evalpipe.masking.keys import ENVIRONMENT_NAME, MaskingKey
from evalpipe.settings import Settings, require_home
from evalpipe.steps import epochs, erase, tiers
from evalpipe.steps.context import Context, load_criteria, yesterday
from evalpipe.steps.progress import sink
from evalpipe.steps.publish import APPENDED, publish, with_later_columns
from evalpipe.steps.reviews import FRAMES, ITEMS
from evalpipe.store.files import move_durably, sync
from evalpipe.store.lake import Lake, read_part, stage_part
from evalpipe.store.manifest import STEP_TABLES, Manifest, StagedPart
from evalpipe.store.plan import SIGNALS_READ

#: Parts that no manifest names go at once: nobody reads a home that is rotated.
_NO_GRACE = -60.0
_RENDERED = (".html", ".md", ".json", ".svg", ".txt")
#: Tables of a masked slice whose digests later slices have receipts of.
_RECEIPTS = (SIGNALS_READ, ("masked.sessions",))


@dataclass(slots=True)
class Rotated:
    """What a rotation did.

    Attributes:
        old_epoch, new_epoch: Names of the epochs.
        slices: Slices that were moved, by this call and not by one that was killed before.
        left: Slices of an unrelated key, which nothing can move; they are stale as they were before.
        resumed: Whether a rotation was under way.
    """

    old_epoch: str
    new_epoch: str
    slices: int = 0
    left: int = 0
    resumed: bool = False


@dataclass(slots=True)
class _Journal:
    """Digests before and after, one line a slice; a torn last line is of a slice that was not committed."""

    path: Path
    moved: dict[str, str] = field(default_factory=dict)

    def load(self) -> None:
        for line in self.path.read_text("utf-8").splitlines():
            try:
                self.moved |= json.loads(line)
            except json.JSONDecodeError:
                continue

    def add(self, pairs: Mapping[str, str]) -> None:
        self.moved |= pairs
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" + json.dumps(pairs, sort_keys=True))
            file.flush()
            os.fsync(file.fileno())


def rotate(settings: Settings, environ: Mapping[str, str]) -> Rotated:
    """Move a home to a new epoch of its key, or finish a rotation that was begun.

    Args:
        settings: Settings of a home that exists.
        environ: Environment. A key that it gives must have its new epoch already, behind a comma; a key
            in a file gets one here.

    Returns:
        What was done.

    Raises:
        EvalpipeError: ``HOME_IN_USE``, ``EDGE_KEEPS_KEY``; ``HOME_DAMAGED`` before anything is changed
            where a slice has lost a part; ``KEY_MISSING``, ``KEY_INVALID`` and ``KEY_PERMISSIONS`` of the key.
    """
    require_home(settings)
    # An erasure that was begun is recorded by tokens, which a rotation would change under its hands.
    erase.resume(settings)
    with epochs.held(settings, alone=True), LocalEngine(1) as engine:
        lake = Lake(settings.lake, grace_seconds=_NO_GRACE)
        lake.prepare()
        _require_whole(lake)
        _require_logs_only(lake)
        journal = _Journal(epochs.journal_file(settings))
        is_resumed = journal.path.exists()
        new = _new_key(settings, environ, is_resumed=is_resumed)
        if is_resumed:
            journal.load()
        else:
            journal.add({})
            sync(settings.home)
        context = Context(settings, load_criteria(settings.criteria), new, yesterday(), engine)
        done = Rotated(new.earlier[-1], new.epoch, resumed=is_resumed)
        manifests = [m for step in STEP_TABLES if step != "raw" for m in lake.manifests(step)]
        bar = sink()
        bar.start("keys", len(manifests), "slices")
        for manifest in manifests:
            _move(context, lake, manifest, journal, done)
            bar.advance("keys", 1)
        bar.finish("keys")
        _move_appended(lake, new)
        _sweep(lake)
        if settings.warehouse.exists():
            publish(context)
        _rewrite_reports(settings.reports, new)
        following = epochs.next_key_file(settings)
        if following.exists():
            move_durably([(following, settings.key_file)])
        journal.path.unlink()
        sync(settings.home)
        return done


def _new_key(settings: Settings, environ: Mapping[str, str], *, is_resumed: bool) -> MaskingKey:
    """The key with its new epoch, safely written before any slice is moved to it."""
    if ENVIRONMENT_NAME in environ:
        key = MaskingKey.from_hex(environ[ENVIRONMENT_NAME], where=ENVIRONMENT_NAME)
        behind = set(epochs.slices_by_key(settings)) & {old.fingerprint for old in key.ancestors()}
        if not (behind or (is_resumed and key.earlier)):
            fix = "Write a comma and 64 new hexadecimal digits behind its value, and run again: openssl rand -hex 32"
            what = "the key in the environment is the one that the home has: it names no new secret to move to."
            raise EvalpipeError("KEY_INVALID", what, where=ENVIRONMENT_NAME, fix=fix)
        return key
    following = epochs.next_key_file(settings)
    current = keys.load_or_create(settings.key_file, environ, is_new=not epochs.has_masked_slices(settings))
    if is_resumed:
        return keys.read(following) if following.exists() else current
    # One that no journal speaks of was written by a rotation that was killed before it began.
    following.unlink(missing_ok=True)
    keys.write(following, current.rotated())
    sync(settings.home)
    return keys.read(following)


def _require_whole(lake: Lake) -> None:
    for step in STEP_TABLES:
        for manifest in lake.manifests(step) if step != "raw" else ():
            if what := lake.damage(manifest):
                day = manifest.key.day
                fix = f"Run: evalpipe backfill {day}..{day}"
                raise EvalpipeError("HOME_DAMAGED", f"{what}.", where=str(manifest.key), fix=fix)


def _require_logs_only(lake: Lake) -> None:
    """Refuse a home with sessions of edge files: what was landed of them are tokens of the key as it is,
    beside which the tokens of a new epoch would make other people of the same.
    """
    n_sessions = sum(manifest.rows("raw.vectors") for manifest in lake.manifests("raw"))
    if n_sessions:
        raise EvalpipeError("EDGE_KEEPS_KEY", f"{n_sessions} sessions came in edge files.", where=str(lake.root))


def _move(context: Context, lake: Lake, manifest: Manifest, journal: _Journal, done: Rotated) -> None:
    """Move one slice: rows, receipts and what the manifest tells of it."""
    new = context.key
    sources = _sources(manifest, new)
    if not sources:
        done.left += manifest.inputs["key"] != new.fingerprint
        return
    folder = lake.staging_folder(manifest.key)
    staged: list[StagedPart] = []
    for index, (part, path) in enumerate(zip(manifest.parts, lake.paths_of(manifest), strict=True)):
        rows = read_part(part.table, path)
        for old in sources:
            move = (
                tiers.rekeyed if part.table == "masked.vectors" else partial(rekeying.rekey_frame, TABLES[part.table])
            )
            rows = move(rows, old, new)
        staged.append(stage_part(part.table, rows, folder, f"{index:05d}"))
    stats = json.dumps(dict(manifest.stats))
    for old in sources:
        stats = rekeying.rekey_text(stats, old, new)
    if manifest.key.step == "scorecard" and json.loads(stats) != dict(manifest.stats):
        # Its folder is named after a label that holds a pseudonym; `evalpipe release` makes it anew.
        lake.discard(manifest.key)
        lake.manifest_path(manifest.key).unlink()
        return
    moved = replace(manifest, parts=tuple(item.part for item in staged))
    digests = {manifest.content_of(*names): moved.content_of(*names) for names in _RECEIPTS}
    journal.add(digests | {manifest.content: moved.content})
    inputs = {name: journal.moved.get(value, value) for name, value in manifest.inputs.items()}
    if "key" in inputs:
        inputs |= _ledgers(context, sources[0], manifest) | {"key": new.fingerprint}
    told = json.loads(stats)
    if "masked_by" in told.get("leak", {}):
        # Rates and tokens of another key are nothing to hold the next slices against.
        told["leak"]["masked_by"] = ""
    lake.commit(manifest.key, staged, inputs=inputs, code_version=manifest.code_version, stats=told)
    done.slices += 1


def _sources(manifest: Manifest, new: MaskingKey) -> list[MaskingKey]:
    """Earlier epochs that a slice may hold tokens of; empty for one that is done or of another key.

    Slices of analysis name no key. They hold pseudonyms in labels only, which name their epoch.
    """
    ancestors = new.ancestors()
    if "key" not in manifest.inputs:
        return ancestors
    return [old for old in ancestors if old.fingerprint == manifest.inputs["key"]]


def _ledgers(context: Context, old: MaskingKey, manifest: Manifest) -> dict[str, str]:
    """Receipts of ledgers under the new key, where those of the slice are as they would be under the old."""
    step, day = manifest.key.step, manifest.key.day
    if not {"consent", "assignments"} & set(manifest.inputs):
        return {}
    was = replace(context, key=old).versions.ledgers(step, day)
    now = context.versions.ledgers(step, day)
    return {name: now[name] for name, value in was.items() if manifest.inputs.get(name) == value and name in now}


def _move_appended(lake: Lake, new: MaskingKey) -> None:
    with_later_columns(lake)
    for table in (*APPENDED, ITEMS, FRAMES):
        for path in lake.appended(table):
            rows = moved = read_part(table, path)
            for old in new.ancestors():
                moved = rekeying.rekey_frame(TABLES[table], moved, old, new)
            if not moved.equals(rows):
                lake.append(table, moved)
                path.unlink()


def _sweep(lake: Lake) -> None:
    """Delete parts that no manifest names: what a killed run left, and what waited for its readers."""
    for step, tables in STEP_TABLES.items():
        if step == "raw":
            continue
        named = {path for manifest in lake.manifests(step) for path in lake.paths_of(manifest)}
        for table in tables:
            for path in _parts(lake.root.joinpath(*table.split("."))):
                if path not in named:
                    path.unlink()
                    with suppress(OSError):  # it is not empty
                        path.parent.rmdir()
                        path.parent.parent.rmdir()


def _parts(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.rglob("day=*/*.parquet"))


def _rewrite_reports(folder: Path, new: MaskingKey) -> None:
    for path in sorted(p for p in folder.rglob("*") if p.suffix in _RENDERED and p.is_file()):
        text = moved = path.read_text("utf-8")
        for old in new.ancestors():
            moved = rekeying.rekey_text(moved, old, new)
        if moved != text:
            path.write_text(moved, "utf-8")
