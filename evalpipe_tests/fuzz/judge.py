"""What must hold of any file whatever: the judgement on one input.

Belongs here: reading one file as landing reads it, and every check that needs no knowledge of what
was damaged. Does not belong here: making inputs, or running many of them (``campaign.py``).
"""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl

from evalpipe.contracts.errors import QUARANTINE_CODES
from evalpipe.contracts.render import conform
from evalpipe.contracts.tables import raw
from evalpipe.sources import Chunk, ReadOptions, fingerprint, parse_batch, plan_batches, resemble
from evalpipe.sources.ledger import Ledger
from evalpipe_tests.sources.helpers import OPTIONS

#: Put into texts: must never be seen where only codes, counts and places belong.
MARKER = "zqMARKERqz"

#: Seconds of processor time for one input. Inputs are small: a hundredth of it is usual.
LIMIT_SECONDS = 10.0

_TABLES = {"sessions": raw.SESSIONS, "steps": raw.STEPS, "quarantine": raw.QUARANTINE, "files": raw.FILES}


class HangError(BaseException):
    """An input took longer than its limit; no ``Exception``, so that nothing swallows it."""


@dataclass
class Verdict:
    """What came of one input.

    Attributes:
        fault: What is wrong, without any text of the input; empty if nothing is. Equal faults have
            one cause, as far as can be told.
        detail: Traceback or figures, for whoever mends it.
        n_sessions, n_quarantined: Sessions read, rows quarantined.
        codes: Quarantine codes and how often each came.
        seconds: Processor time.
    """

    fault: str = ""
    detail: str = ""
    n_sessions: int = 0
    n_quarantined: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


class _WrongError(AssertionError):
    """A check that does not hold; its text names the check."""


def judge(path: Path, **options: Any) -> Verdict:
    """Read one file as landing reads it and judge what comes of it.

    Args:
        path: The file.
        options: Fields of ``ReadOptions`` that differ from the tests' own.
    """
    verdict = Verdict()
    start = time.process_time()
    try:
        with _watched():
            chunks = _parsed(path, replace(OPTIONS, **options))
            _check(path, chunks, verdict, replace(OPTIONS, **options))
    except HangError:
        verdict.fault, verdict.detail = _fault("hang", traceback.format_exc(), HangError)
    except _WrongError as error:
        verdict.fault, verdict.detail = f"wrong: {error}", traceback.format_exc()
    except Exception as error:  # noqa: BLE001 - anything at all that reading raises is a finding
        verdict.fault, verdict.detail = _fault("crash", traceback.format_exc(), type(error), error)
    verdict.seconds = time.process_time() - start
    return verdict


def _fault(word: str, text: str, kind: type[BaseException], error: BaseException | None = None) -> tuple[str, str]:
    """The innermost place in the product at which it happened, and the whole traceback."""
    places = [line.strip() for line in text.splitlines() if line.strip().startswith("File ") and "/evalpipe/" in line]
    where = places[-1].partition("/evalpipe/")[2].replace('"', "") if places else "outside the product"
    code = getattr(error, "code", "")
    if word == "hang":
        # The line differs from run to run; the function does not.
        where = where.partition(",")[0] + where[where.rfind(" in ") :]
    return f"{word}: {kind.__name__} {code} {where}", text


@contextmanager
def _watched() -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _parsed(path: Path, options: ReadOptions) -> list[Chunk]:
    batches = plan_batches([fingerprint(path)], 1 << 28)
    return [chunk for batch in batches for chunk in parse_batch(batch, options)]


def _must(holds: bool, check: str) -> None:
    if not holds:
        raise _WrongError(check)


def _check(path: Path, chunks: list[Chunk], verdict: Verdict, options: ReadOptions) -> None:
    for chunk in chunks:
        for name, contract in _TABLES.items():
            conform(contract, getattr(chunk, name).drop("day"))
        _check_steps(chunk)
    files = pl.concat([chunk.files for chunk in chunks])
    quarantine = pl.concat([chunk.quarantine for chunk in chunks])
    verdict.n_sessions = sum(chunk.sessions.height for chunk in chunks)
    verdict.n_quarantined = quarantine.height
    verdict.codes = Counter(quarantine["code"])
    _check_balance(files, quarantine, chunks)
    _must(set(quarantine["code"]) <= set(QUARANTINE_CODES), "a quarantine code is not in the registry")
    plain = quarantine.drop("session_id", "source_file", "member")
    _must(MARKER not in str(plain.to_dicts()), "text of the log in quarantine")
    _must(MARKER not in str(files.drop("source_file", "member").to_dicts()), "text of the log in files")
    if files.height == 1 and files["member"][0] == "":
        _check_places(path, files.row(0, named=True), quarantine, options)
    for member in files.filter(source="unknown")["member"]:
        likeness = resemble(path, member)
        _must(likeness is None or MARKER not in str(likeness), "text of the log in a likeness")


def _check_steps(chunk: Chunk) -> None:
    counted = dict(chunk.steps.group_by("session_id").len().rows())
    said = {key: n for key, n in chunk.sessions.select("session_id", "n_steps").rows() if n}
    _must(counted == said, "steps of a session are not those that it counts")
    order = chunk.steps.select("session_id", "seq").rows()
    _must(order == sorted(order), "steps are not in order")


def _check_balance(files: pl.DataFrame, quarantine: pl.DataFrame, chunks: list[Chunk]) -> None:
    _must(files.height > 0, "a file without a row of its balance")
    kept = pl.sum_horizontal("rows_kept", "rows_noise", "rows_quarantined")
    _must(files.filter(pl.col("rows_read") != kept).is_empty(), "rows read are not kept, noise and quarantined")
    _must(files["rows_quarantined"].sum() == quarantine.height, "quarantine does not hold the rows that files count")
    _must(files.filter(pl.col("rows_read") == 0).is_empty(), "a file of which nothing was read")
    n_sessions = files["n_sessions"].sum()
    held = [key for chunk in chunks for key in chunk.sessions["session_id"]]
    _must(len(held) <= n_sessions, "more sessions than files count")
    _must(bool(held) == bool(n_sessions), "files count sessions that are nowhere")
    lost = files.filter((pl.col("n_sessions") == 0) & (pl.col("rows_quarantined") == 0))
    _must(lost.is_empty(), "a file without a session or a quarantined row")


def _check_places(path: Path, file: dict[str, Any], quarantine: pl.DataFrame, options: ReadOptions) -> None:
    """Quarantine points at bytes of the file that give the digest, and no line is passed over in silence."""
    data = path.read_bytes()
    if data[:3] == b"\xef\xbb\xbf":
        data = data[3:]
    if data[:2] in (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b", b"PK", b"PA") or data[:4] == b"\x28\xb5\x2f\xfd":
        return
    ledger = Ledger(fingerprint(path), "", options)
    _must(file["n_bytes"] == len(data) or file["source"] == "unknown", "the size of a file is not its bytes")
    for row in quarantine.filter(pl.col("n_bytes") > 0).iter_rows(named=True):
        start, end = row["byte_offset"], row["byte_offset"] + row["n_bytes"]
        _must(end <= len(data), "a place beyond the end")
        _must(ledger.digest(data[start:end]) == row["digest"], "a place whose bytes have another digest")
    first = next((line for line in data.split(b"\n") if line.strip()), b"")
    if first[:1] == b"{" and file["source"] != "unknown" and quarantine.filter(line=1).height == 0:
        pass


def scratch() -> Path | None:
    """A folder in memory, if there is one: the disk is not what is tested."""
    memory = Path("/dev/shm")  # noqa: S108 - the usual place of a file system in memory
    return memory if os.access(memory, os.W_OK) else None
