"""Extraction beside the agent: logs in, one file with signals and pseudonymised metadata out.

Belongs here: a home that lasts as long as the command, and writing what its masked slices hold. Does not
belong here: the form of the file (``contracts/edge.py``), reading it (``sources/edge.py``), how slices
are made. Whatever fails, nothing is written: the file appears whole, or not at all.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import IO

import orjson
import polars as pl
import pyarrow as pa

from evalpipe import __version__, masking
from evalpipe.contracts.edge import FORMAT, MARKER, SESSION, TIME, TIMES
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tiers import Tier, Tiers
from evalpipe.masking.keys import ENVIRONMENT_NAME, MaskingKey
from evalpipe.settings import Settings
from evalpipe.sources import Source
from evalpipe.steps.context import Context, open_context
from evalpipe.steps.land import land
from evalpipe.steps.masked import make_masked
from evalpipe.steps.raw import make_raw
from evalpipe.store.day_input import DayInput
from evalpipe.store.files import HELD, is_held, locked, move_durably
from evalpipe.store.manifest import Manifest

_PREFIX = "evalpipe-edge-"
#: A folder that nobody holds and that is older belongs to no command that is still about to hold it.
_OLD_S = 86_400


@dataclass(slots=True)
class EdgeResult:
    """What was written.

    Attributes:
        n_files: Files found under the sources.
        n_sessions: Sessions in the file.
        days: UTC days on which they start.
        quarantine: Records that could not be read, by code.
        n_redactions: Places that were masked.
        n_bytes: Size of the file.
    """

    n_files: int = 0
    n_sessions: int = 0
    days: list[date] = field(default_factory=list)
    quarantine: dict[str, int] = field(default_factory=dict)
    n_redactions: int = 0
    n_bytes: int = 0


def existing_key(settings: Settings, environ: Mapping[str, str], key_file: Path | None = None) -> MaskingKey:
    """The key of the home that the file is for; none is made here, because its tokens would join nothing.

    Args:
        settings: Settings as loaded; a home beside the agent may hold the key.
        environ: ``EVALPIPE_KEY`` wins over files.
        key_file: A file with the key.

    Raises:
        EvalpipeError: ``KEY_NEEDED`` where there is none, ``KEY_INVALID``, ``KEY_PERMISSIONS``.
    """
    path = key_file or settings.key_file
    if ENVIRONMENT_NAME not in environ and not path.is_file():
        raise EvalpipeError("KEY_NEEDED", "no masking key is given.", where=str(path))
    return masking.load_or_create(path, environ)


def make_edge(
    settings: Settings, named: Sequence[Source], out: Path, key: MaskingKey, *, undated_as: date | None = None
) -> EdgeResult:
    """Read, mask and extract in a temporary home, and write the edge file.

    Args:
        settings: Settings as loaded: criteria, consent ledger, limits.
        named: Files, folders, patterns, or prefixes of a bucket.
        out: File to write; replaced if it is there.
        key: The masking key of the home that will read the file.
        undated_as: Day for sessions without a date.

    Returns:
        Counts.

    Raises:
        EvalpipeError: ``NOTHING_READ`` where no session could be read; what refused a day, such as
            ``LEAK_FOUND``; those of landing. Nothing is written then.
    """
    with _private_folder() as folder:
        own = replace(settings, home=folder / "home", tiers=Tiers(Tier.VECTORS), assignments="")
        with open_context(own, environ={ENVIRONMENT_NAME: ",".join(secret.hex() for secret in key.chain)}) as context:
            landed = land(context, named, undated_as=undated_as)
            inputs = context.landing.day_inputs()
            for step in (make_raw, make_masked):
                result = step(context, list(inputs), inputs)
                for error in result.red.values():
                    raise error
            return _write(context, inputs, out, EdgeResult(n_files=landed.n_files))


@contextmanager
def _private_folder() -> Iterator[Path]:
    """A temporary folder that goes with the command, also where it is told to end; it may hold logs.

    What a command that was killed has left is swept first: its folder is held by nobody.
    """
    for left in Path(gettempdir()).glob(f"{_PREFIX}*"):
        if left.is_dir() and left.stat().st_uid == os.getuid() and _is_dead(left):
            shutil.rmtree(left, ignore_errors=True)
    with _ending_with_an_exception(), TemporaryDirectory(prefix=_PREFIX) as name, locked(Path(name) / HELD):
        yield Path(name)


def _is_dead(folder: Path) -> bool:
    if (folder / HELD).exists():
        return not is_held(folder / HELD)
    # It may be somebody's who has just made it.
    return time.time() - folder.stat().st_mtime > _OLD_S


@contextmanager
def _ending_with_an_exception() -> Iterator[None]:
    """Let SIGTERM leave through every ``finally``, as SIGINT does."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _write(context: Context, inputs: Mapping[date, DayInput], out: Path, result: EdgeResult) -> EdgeResult:
    manifests = {day: m for day in inputs if (m := context.lookup("masked", day)) is not None}
    result.n_sessions = sum(m.rows("masked.sessions") for m in manifests.values())
    if not result.n_sessions:
        raise EvalpipeError("NOTHING_READ", "no session could be read; nothing was written.", where=str(out))
    marks = _marks(context, inputs)
    with _whole_file(out) as file:
        file.write(orjson.dumps(_header(context, result.n_sessions)) + b"\n")
        for day, manifest in sorted(manifests.items()):
            if manifest.rows("masked.sessions"):
                result.days.append(day)
                _write_lines(file, _session_lines(context, manifest, marks))
            for kind, table in (("file", "masked.files"), ("quarantine", "masked.quarantine")):
                _write_lines(file, _balance_lines(kind, day, context.lake.read(table, [manifest])))
            for code in context.lake.read("masked.quarantine", [manifest], columns=["code"])["code"]:
                result.quarantine[code] = result.quarantine.get(code, 0) + 1
            redactions = context.lake.read("masked.redactions", [manifest], columns=["n_hits"])
            result.n_redactions += int(redactions["n_hits"].sum())
    result.n_bytes = out.stat().st_size
    return result


def _header(context: Context, n_sessions: int) -> dict[str, object]:
    """Who made the file and under what; no clock and no name of a machine."""
    used = context.lake.read("masked.sessions", context.lake.manifests("masked"), ["source", "reader_version"])
    return {
        MARKER: FORMAT,
        "evalpipe": __version__,
        "tier": str(Tier.VECTORS),
        "key": context.key_fingerprint,
        "key_epoch": context.key.epoch,
        "extraction": context.edge_terms.extraction,
        "ruleset": context.mask_plan.ruleset_digest(),
        "readers": dict(sorted(used.unique().iter_rows())),
        "n_sessions": n_sessions,
    }


def _marks(context: Context, inputs: Mapping[date, DayInput]) -> pl.DataFrame:
    """What tells copies of each session apart, keyed: digests of words can be guessed from words."""
    picks = [
        (day, stem, session_id, copy)
        for day, item in inputs.items() for stem, chosen in item.winners.items() for session_id, copy in chosen
    ]  # fmt: skip
    schema = {"day": pl.Date, "stem": pl.String, "session_id": pl.String, "copy": pl.Int32}
    chosen = context.landing.copies().join(pl.DataFrame(picks, schema=schema, orient="row"), on=list(schema))
    raw = context.lake.manifests("raw")
    # What came from an edge file is keyed already.
    keyed = set(context.lake.read("raw.vectors", raw, columns=["session_id"])["session_id"])
    # Of a session in parts nobody has read what was said in all of it, so it is not among the copies.
    rows = context.lake.read("raw.sessions", raw, columns=["session_id", "content_digest"]).join(
        chosen.select("session_id", "said_digest"), on="session_id", how="left"
    )
    out = []
    for session_id, content, said in rows.select("session_id", "content_digest", "said_digest").iter_rows():
        marks = [mark if mark is None or session_id in keyed else context.keyed(mark) for mark in (said, content)]
        out.append((context.mask_plan.rekey("s", session_id), *marks))
    return pl.DataFrame(out, schema=dict.fromkeys(("session_id", "said", "digest"), pl.String), orient="row")


def _session_lines(context: Context, manifest: Manifest, marks: pl.DataFrame) -> pl.Series:
    sessions = context.lake.read("masked.sessions", [manifest])
    vectors = context.lake.read("masked.vectors", [manifest], columns=["session_id", "signals"])
    rows = sessions.join(vectors, on="session_id").join(marks, on="session_id").sort("session_id")
    if rows.height != sessions.height:
        raise EvalpipeError("CONTRACT_BROKEN", "a session has no signals", where="masked.vectors")
    rows = rows.with_columns(pl.col(name).dt.strftime(TIME) for name in TIMES)
    line = pl.concat_str(
        pl.lit('{"type":"session","said":'), _json(pl.col("said")), pl.lit(',"digest":'), _json(pl.col("digest")),
        pl.lit(',"session":'), pl.struct(list(SESSION)).struct.json_encode(),
        pl.lit(',"signals":'), pl.col("signals"), pl.lit("}"),
    )  # fmt: skip
    return rows.select(line).to_series()


def _json(letters: pl.Expr) -> pl.Expr:
    """A digest, or null, as JSON."""
    return pl.concat_str(pl.lit('"'), letters, pl.lit('"')).fill_null("null")


def _balance_lines(kind: str, day: date, rows: pl.DataFrame) -> pl.Series:
    head = f'{{"type":"{kind}","day":"{day}","row":'
    line = pl.concat_str(pl.lit(head), pl.struct(pl.all()).struct.json_encode(), pl.lit("}"))
    return rows.select(line).to_series()


def _write_lines(file: IO[bytes], lines: pl.Series) -> None:
    for line in lines:
        file.write(line.encode() + b"\n")


@contextmanager
def _whole_file(out: Path) -> Iterator[IO[bytes]]:
    """A compressed file that takes its name when it is whole, readable by its owner only."""
    draft = out.with_name(f".{out.name}.{os.getpid()}.{secrets.token_hex(4)}")
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as bare, pa.CompressedOutputStream(bare, "zstd") as packed:
            yield packed
        move_durably([(draft, out)])
    finally:
        draft.unlink(missing_ok=True)
