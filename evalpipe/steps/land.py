"""Landing: parse files that were not seen before, once, and commit their sessions by day.

Belongs here: batches, workers, commits. Does not belong here: formats (``sources``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path

import polars as pl

from evalpipe import masking, sources
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking.tombstones import Tombstones
from evalpipe.sources import Batch, ReadOptions, Source, SourceFile, StoredObject
from evalpipe.steps.context import Context
from evalpipe.steps.intake import Intake
from evalpipe.steps.progress import sink
from evalpipe.steps.slices import run_quietly
from evalpipe.store.entries import LandedFile, LandedPart
from evalpipe.store.landing import LANDED, StagedBatch, stage_chunk
from evalpipe.store.manifest import digest_of

#: Landing more than this leaves workers a quarter of a gigabyte that later steps do not use.
_RESTART_BYTES = 100_000_000

#: Batches of copied objects that lie on disk for each worker.
_BATCHES_A_WORKER = 4


@dataclass(slots=True)
class LandingResult:
    """What one landing did.

    Attributes:
        n_files: Files found.
        n_new_files: Files that were not seen before.
        n_bytes: Bytes of the new files, as stored.
        rows: Rows landed by table.
        days: Days that the new sessions start on.
    """

    n_files: int = 0
    n_new_files: int = 0
    n_bytes: int = 0
    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LANDED, 0))
    days: set[date] = field(default_factory=set)


def parse_day(text: str) -> date:
    """A day as it is written, ``YYYY-MM-DD``.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT``.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise EvalpipeError(
            "BAD_ARGUMENT", "a day is written YYYY-MM-DD", where=text, fix="Write a day such as 2026-01-05."
        ) from None


def require_days_of_home(first_day: date, start: date, end: date, option: str) -> None:
    """Refuse days that a home cannot hold: before its first day, or after today (UTC).

    Args:
        first_day: First day of the home.
        start, end: First and last day asked for.
        option: What the days were given by, as the place of the error.

    Raises:
        EvalpipeError: ``BAD_ARGUMENT``.
    """
    today = datetime.now(UTC).date()
    if first_day <= start and end <= today:
        return
    asked = str(start) if start == end else f"{start}..{end}"
    raise EvalpipeError(
        "BAD_ARGUMENT",
        f"{asked} is not within the days of this home, {first_day} to {today}",
        where=option,
        fix=f"Name days from {first_day} to {today}. An earlier first_day (evalpipe.toml) needs a new home.",
    )


def sources_state(named: Sequence[Source], still_since: datetime) -> tuple[str, int]:
    """What lies still under the sources, by names, sizes and times, without reading any file.

    Args:
        named: Files, folders, patterns or prefixes of a bucket, each of which is listed once.
        still_since: Files that changed later may still be written, and are left out. A time in the
            future is a wrong clock, not a change.

    Returns:
        A digest that another still file, or one that grew, changes; and how many still files there are.

    Raises:
        EvalpipeError: ``SOURCE_NOT_FOUND``, ``SOURCE_DENIED``, ``SOURCE_UNREACHABLE``, ``BAD_ARGUMENT``.
    """
    found: list[tuple[str, int, int]] = []
    still_ns, now_ns = (int(at.timestamp() * 1e9) for at in (still_since, datetime.now(UTC)))
    for item in sources.discover(named):
        with suppress(OSError):  # gone since, which the next look sees
            name, n_bytes, mtime_ns = _state_of(item)
            if mtime_ns <= still_ns or mtime_ns > now_ns:
                found.append((name, n_bytes, mtime_ns))
    return digest_of(found), len(found)


def _state_of(item: sources.Found) -> tuple[str, int, int]:
    if isinstance(item, StoredObject):
        return item.place, item.n_bytes, item.mtime_ns
    status = item.stat()
    return os.fsencode(item).hex(), status.st_size, status.st_mtime_ns


#: A large file may be an archive: workers share its members. A fixed number, so that the parts do not depend
#: on the machine; and two, because each worker unpacks all of a compressed archive to find its share.
_SHARES = 2


@dataclass(frozen=True, slots=True)
class _Task:
    batch: Batch
    options: ReadOptions
    folder: Path
    consent: pl.DataFrame
    share: int
    n_shares: int


@dataclass(frozen=True, slots=True)
class _Parsed:
    """Parts of a task, and of each file whether its path may be kept: not where all in it was erased."""

    parts: tuple[LandedPart, ...]
    paths: dict[str, bool]


def require_sources(named: Sequence[Source]) -> None:
    """Refuse what cannot be a source before anything is begun; buckets are not asked.

    Raises:
        EvalpipeError: ``SOURCE_NOT_FOUND``, ``BAD_ARGUMENT``.
    """
    sources.check(named)


def land(context: Context, named: Sequence[Source], *, undated_as: date | None = None) -> LandingResult:
    """Parse new files under the sources and land their sessions.

    Args:
        context: The open home.
        named: Files, folders, patterns, or prefixes of a bucket.
        undated_as: Day for sessions without a date; today (UTC) by default, kept in the index.

    Returns:
        Counts and the days touched.

    Raises:
        EvalpipeError: ``SOURCE_NOT_FOUND``, ``SOURCE_DENIED``, ``SOURCE_UNREACHABLE``; ``BAD_ARGUMENT``
            for a day that the home cannot hold, or for what is no source.
    """
    today = datetime.now(UTC).date()
    if undated_as is not None:
        require_days_of_home(context.settings.first_day, undated_as, undated_as, "--undated-as")
    found = sources.discover(named)
    result = LandingResult(n_files=len(found))
    options = ReadOptions(
        first_day=context.settings.first_day,
        today=max(today, context.as_of),
        undated_day=undated_as or today,
        digest_key=context.digest_key,
        max_record_bytes=context.settings.max_record_bytes,
        chunk_bytes=context.settings.part_bytes,
        is_erased=context.tombstones,
        edge=context.edge_terms,
        max_session_bytes=context.settings.max_session_bytes,
    )
    with closing(Intake(context, found)) as intake:
        _land_new(context, intake, options, result)
    if result.n_bytes > _RESTART_BYTES:
        # Workers keep what their allocator once took; the next step starts with small ones.
        context.engine.close()
    return result


def _land_new(context: Context, intake: Intake, options: ReadOptions, result: LandingResult) -> None:
    # What was read at these places before; nothing that lands below is at one of them twice.
    before = _copies_before(context, [_place_of(item) for item in intake.candidates])
    bar = sink()
    bar.start("reading", sum(item.n_bytes for item in intake.candidates), "bytes")
    with closing(intake.fresh()) as fresh:
        batches = sources.plan_batches(fresh, context.settings.batch_bytes)
        # Copies of objects take disk until they are landed, so there are few at a time.
        n_at_once = _BATCHES_A_WORKER * context.settings.workers if intake.has_objects else None
        while some := list(islice(batches, n_at_once)):
            _land_batches(context, some, options, before, result)
    bar.finish("reading")


def _land_batches(
    context: Context,
    batches: Sequence[Batch],
    options: ReadOptions,
    before: Mapping[str, Sequence[LandedFile]],
    result: LandingResult,
) -> None:
    tasks = [task for batch in batches for task in _tasks(context, batch, options)]
    parts: list[LandedPart] = []
    paths: dict[str, bool] = {}
    for task, found in zip(tasks, context.engine.map(_parse_quietly, tasks, weight=_weight_of), strict=True):
        parts += found.parts
        paths |= {digest: is_told or paths.get(digest, False) for digest, is_told in found.paths.items()}
        n_bytes = _weight_of(task)
        result.n_bytes += n_bytes
        sink().advance("reading", n_bytes)
        if task.share + 1 < task.n_shares:
            continue
        files = task.batch.files
        hidden = {digest for digest, is_told in paths.items() if not is_told}
        is_new = context.landing.commit(
            StagedBatch(task.batch.digest, tuple(parts), task.folder),
            files=[_landed_file(file, before, context.tombstones, hidden) for file in files],
            readers=context.readers,
            landed_on=datetime.now(UTC).date(),
        )
        for part in parts if is_new else ():
            for name, rows in part.rows.items():
                result.rows[name] += rows
            if part.rows.get("sessions"):
                result.days.add(part.day)
        parts = []
        for file in files:
            if file.uri:
                file.path.unlink(missing_ok=True)
        result.n_new_files += len(files)


def _place_of(item: SourceFile | StoredObject) -> str:
    """Where a file was read, as the index of the landing zone has it."""
    if isinstance(item, StoredObject):
        return str(item)
    return item.uri or str(item.path.absolute())


def _copies_before(context: Context, places: Sequence[str]) -> dict[str, list[LandedFile]]:
    """What was read at some places before; the index names a place by its path, or hides it after an erasure."""
    named = {name: place for place in places for name in (place, context.tombstones.hide(place))}
    out: dict[str, list[LandedFile]] = {}
    for name, copies in (context.landing.copies_at(named) if named else {}).items():
        out.setdefault(named[name], []).extend(copies)
    return out


def _landed_file(
    file: SourceFile, before: Mapping[str, Sequence[LandedFile]], erased: Tombstones, hidden: set[str]
) -> LandedFile:
    """Index row of a new file, with the earlier copies that it begins with, or that could not be read then."""
    place = _place_of(file)
    copies = () if file.code else before.get(place, ())
    grown_from = tuple(
        old.digest
        for old in copies
        if sources.is_unread(old.digest, old.n_bytes) or sources.begins_with(file, old.digest, old.n_bytes)
    )
    return LandedFile(file.digest, file.n_bytes, erased.hide(place) if file.digest in hidden else place, grown_from)


def _tasks(context: Context, batch: Batch, options: ReadOptions) -> list[_Task]:
    n_bytes = sum(file.n_bytes for file in batch.files)
    n_shares = _SHARES if len(batch.files) == 1 and n_bytes > context.settings.batch_bytes else 1
    folder = context.landing.staging_folder(batch.digest)
    return [_Task(batch, options, folder, context.consent, share, n_shares) for share in range(n_shares)]


def _weight_of(task: _Task) -> int:
    n_bytes = sum(file.n_bytes for file in task.batch.files)
    return (task.share + 1) * n_bytes // task.n_shares - task.share * n_bytes // task.n_shares


def _parse_quietly(task: _Task) -> _Parsed:
    parsed: _Parsed = run_quietly(_parse, task)
    return parsed


def _parse(task: _Task) -> _Parsed:
    """Parse one batch, or a share of it, in a worker and stage its parts."""
    parts: list[LandedPart] = []
    paths: dict[str, bool] = {}
    task.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    options = replace(task.options, spool=task.folder)
    chunks = sources.parse_batch(task.batch, options, share=task.share, n_shares=task.n_shares)
    for index, chunk in enumerate(chunks):
        tables = {name: getattr(chunk, name) for name in LANDED}
        # What a person has withdrawn is not kept as logged either, not even until it expires.
        withdrawn = masking.withdrawn(chunk.sessions, task.consent)
        tables["steps"] = masking.without_text(chunk.steps, withdrawn)
        tables["sessions"] = masking.without_spans(chunk.sessions, withdrawn)
        parts += stage_chunk(task.batch.digest, index * task.n_shares + task.share, tables, task.folder)
        for digest, place in chunk.files.select("file_id", "source_file").iter_rows():
            paths[digest] = paths.get(digest, False) or place != ""
    return _Parsed(tuple(parts), paths)
