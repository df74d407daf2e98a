"""What must hold of any file whatever: the judgement on a round of inputs.

Belongs here: reading files as landing reads a batch of them, and every check that needs no knowledge
of what was damaged. Does not belong here: making inputs (``inputs.py``), or running many rounds
(``campaign.py``).
"""

from __future__ import annotations

import os
import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

from evalpipe.contracts.errors import QUARANTINE_CODES
from evalpipe.contracts.render import conform
from evalpipe.contracts.tables import raw
from evalpipe.sources import Batch, Chunk, ReadOptions, SourceFile, fingerprint, parse_batch, resemble
from evalpipe.sources import feed as feeding
from evalpipe.sources import parse as parsing
from evalpipe.sources.archive import TAR_BLOCK, is_tar
from evalpipe.sources.ledger import Ledger
from evalpipe.store.landing import LANDED_ONLY
from evalpipe_tests.sources.helpers import OPTIONS

#: Put into texts: must never be seen where only codes, counts and places belong.
MARKER = "zqMARKERqz"

#: Seconds of processor time for one input. Inputs are small: a hundredth of it is usual.
LIMIT_SECONDS = 10.0

_TABLES = {"sessions": raw.SESSIONS, "steps": raw.STEPS, "quarantine": raw.QUARANTINE, "files": raw.FILES}
_WRAPPED = (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b", b"PK", b"PA", b"\x28\xb5")


class HangError(BaseException):
    """An input took longer than its limit; no ``Exception``, so that nothing swallows it."""


class WrongError(AssertionError):
    """A check that does not hold; its text names the check and never holds text of an input."""


@dataclass
class Verdict:
    """What came of one input.

    Attributes:
        path: The file.
        fault: What is wrong, without any text of the input; empty if nothing is. Equal faults have
            one cause, as far as can be told.
        detail: Traceback or figures, for whoever mends it.
        n_sessions: Sessions found in it.
        codes: Quarantine codes and how often each came.
        seconds: Processor time of reading it.
    """

    path: Path
    fault: str = ""
    detail: str = ""
    n_sessions: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


class _Timed(tuple[SourceFile, ...]):
    """Files of a batch that start the clock anew whenever the next one is asked for."""

    seconds: dict[str, float]

    def __iter__(self) -> Iterator[SourceFile]:
        self.seconds = {}
        for file in super().__iter__():
            start = time.process_time()
            signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_SECONDS)
            yield file
            self.seconds[file.digest] = time.process_time() - start
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_SECONDS)


def judge(paths: Sequence[Path], **options: Any) -> list[Verdict]:
    """Read files as landing reads a batch, and judge each.

    Args:
        paths: Files of one round; of equal ones the first is read.
        options: Fields of ``ReadOptions`` that differ from the tests' own.

    Returns:
        A verdict a file. Where a fault needs more than one file, the first carries it.
    """
    verdicts = _round(paths, replace(OPTIONS, **options))
    if len(paths) > 1 and any(verdict.fault for verdict in verdicts):
        whole = verdicts
        verdicts = [_round([path], replace(OPTIONS, **options))[0] for path in paths]
        if not any(verdict.fault for verdict in verdicts):
            verdicts[0].fault, verdicts[0].detail = f"together: {whole[0].fault}", whole[0].detail
    return verdicts


def _round(paths: Sequence[Path], options: ReadOptions) -> list[Verdict]:
    fault = detail = ""
    verdicts: list[Verdict] = []
    try:
        with _watched(), _raising(), warnings.catch_warnings():
            warnings.simplefilter("error")
            files = list({(file := fingerprint(path)).digest: file for path in paths}.values())
            timed = _Timed(files)
            chunks = list(parse_batch(Batch(timed, "fuzz"), options))
            verdicts = _checked(files, chunks, options)
            for verdict, file in zip(verdicts, files, strict=True):
                verdict.seconds = timed.seconds[file.digest]
    except HangError:
        fault, detail = _fault("hang", HangError()), traceback.format_exc()
    except WrongError as error:
        fault, detail = f"wrong: {error}", traceback.format_exc()
    except Exception as error:  # noqa: BLE001 - anything at all that reading raises is a finding
        fault, detail = _fault("crash", error), traceback.format_exc()
    return [Verdict(path, fault, detail) for path in paths] if fault else verdicts


def _fault(word: str, error: BaseException) -> str:
    """The innermost place in the product at which it happened."""
    places = [line.strip() for line in traceback.format_exc().splitlines() if "/evalpipe/" in line]
    where = places[-1].partition("/evalpipe/")[2].replace('"', "") if places else "outside the product"
    # The line differs from run to run; the function does not.
    where = where.partition(",")[0] + where[where.rfind(" in ") :]
    return f"{word}: {type(error).__name__} {getattr(error, 'code', '')} {where}"


@contextmanager
def _raising() -> Iterator[None]:
    """What a reader raises comes through, instead of a row of quarantine that does not say where it was."""

    def through(error: Exception) -> str:
        raise error

    with patch.object(feeding, "failure_of", through), patch.object(parsing, "failure_of", through):
        yield


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


def _must(holds: bool, check: str) -> None:
    if not holds:
        raise WrongError(check)


def _checked(files: list[SourceFile], chunks: list[Chunk], options: ReadOptions) -> list[Verdict]:
    for chunk in chunks:
        for name, contract in _TABLES.items():
            frame = getattr(chunk, name).drop("day")
            # The contract holds for each copy of a session apart.
            for copies in frame.partition_by("copy") if "copy" in frame.columns else [frame]:
                conform(contract, copies.drop(LANDED_ONLY.get(name, ())))
        _check_steps(chunk)
    rows = {name: [row for c in chunks for row in getattr(c, name).to_dicts()] for name in ("files", "quarantine")}
    # Keys across chunks too: a place is quarantined once.
    places = [
        (r["file_id"], r["member"], r["byte_offset"], r["line"], r["code"], r["session_id"]) for r in rows["quarantine"]
    ]
    _must(len(set(places)) == len(places), "a place stands in quarantine twice")
    held = {key for chunk in chunks for key in chunk.sessions["session_id"]}
    _must(bool(held) == any(row["n_sessions"] for row in rows["files"]), "sessions that are nowhere")
    owners = {key for chunk in chunks for key in chunk.sessions["file_id"]}
    _must(owners <= {file.digest for file in files}, "a session of no file")
    verdicts = []
    for file in files:
        balances = [row for row in rows["files"] if row["file_id"] == file.digest]
        bad = [row for row in rows["quarantine"] if row["file_id"] == file.digest]
        _check_balance(balances, bad)
        _check_masked(balances, bad)
        if len(balances) == 1 and balances[0]["member"] == "":
            _check_places(file, balances[0], bad, options)
        for row in balances:
            if row["source"] == "unknown":
                likeness = resemble(file.path, row["member"])
                _must(MARKER not in str(likeness), "text of the log in a likeness")
        codes = Counter(row["code"] for row in bad)
        verdicts.append(Verdict(file.path, n_sessions=sum(row["n_sessions"] for row in balances), codes=codes))
    return verdicts


def _check_steps(chunk: Chunk) -> None:
    counted = {row[:2]: row[2] for row in chunk.steps.group_by("session_id", "copy").len().rows()}
    said = {row[:2]: row[2] for row in chunk.sessions.select("session_id", "copy", "n_steps").rows() if row[2]}
    _must(counted == said, "steps of a session are not those that it counts")
    order = chunk.steps.select("session_id", "copy", "seq").rows()
    _must(order == sorted(order), "steps are not in order")


def _check_balance(balances: list[dict[str, Any]], bad: list[dict[str, Any]]) -> None:
    _must(len(balances) > 0, "a file without a row of its balance")
    for row in balances:
        parts = row["rows_kept"] + row["rows_noise"] + row["rows_quarantined"]
        _must(row["rows_read"] == parts, "rows read are not kept, noise and quarantined")
        _must(row["rows_read"] > 0, "a file of which nothing was read")
        _must(row["n_sessions"] > 0 or row["rows_quarantined"] > 0, "neither a session nor a quarantined row")
        n_bad = sum(one["member"] == row["member"] for one in bad)
        _must(row["rows_quarantined"] == n_bad, "quarantine does not hold the rows that files count")
    _must(sum(row["rows_quarantined"] for row in balances) == len(bad), "quarantine of no file")


def _check_masked(balances: list[dict[str, Any]], bad: list[dict[str, Any]]) -> None:
    """Nothing but places, codes and digests; ids and names of files are declared as what they are."""
    _must({row["code"] for row in bad} <= set(QUARANTINE_CODES), "a quarantine code is not in the registry")
    _must("READER_FAILED" not in {row["code"] for row in bad}, "a reader raised")
    for row in (*balances, *bad):
        shown = {name: value for name, value in row.items() if name not in ("session_id", "source_file", "member")}
        _must(MARKER not in str(shown), "text of the log beside codes and counts")


def _check_places(file: SourceFile, balance: dict[str, Any], bad: list[dict[str, Any]], options: ReadOptions) -> None:
    """Quarantine points at bytes that give the digest, and every line of a file of lines is counted."""
    data = file.path.read_bytes()
    if data[:2] in _WRAPPED or is_tar(data[:TAR_BLOCK]):
        return
    data = data.removeprefix(b"\xef\xbb\xbf") if data[:2] == b"\xef\xbb" else data
    ledger = Ledger(file, "", options)
    _must(balance["n_bytes"] == len(data), "the size of a file is not that of its bytes")
    for row in bad:
        start, end = row["byte_offset"], row["byte_offset"] + row["n_bytes"]
        _must(end <= len(data), "a place beyond the end")
        if row["n_bytes"] and (row["line"] or row["code"] != "SESSION_TOO_LARGE"):  # which stands for the file
            _must(ledger.digest(data[start:end]) == row["digest"], "a place whose bytes have another digest")


def scratch() -> Path | None:
    """A folder in memory, if there is one: the disk is not what is tested."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else None
