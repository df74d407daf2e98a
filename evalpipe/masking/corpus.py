"""Labelled corpora: texts with the places of what must be hidden, read and checked.

Belongs here: the layout of a corpus folder (``positives.jsonl``, ``negatives.jsonl``, ``sessions.jsonl``).
Does not belong here: scoring (``evaluate``). A corpus file may hold the split marker ``<~>`` inside of
values, so that secret scanners stay quiet; it vanishes before anything counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking.templates import SPLIT_MARK

_T = TypeVar("_T")
_Refused = list[tuple[str, str]]

POSITIVES, NEGATIVES, SESSIONS = "positives.jsonl", "negatives.jsonl", "sessions.jsonl"


@dataclass(frozen=True, slots=True)
class Label:
    """A place that must be hidden, in characters; ``canon`` is the value behind its spelling, if told."""

    start: int
    end: int
    entity: str
    subtype: str
    canon: str


@dataclass(frozen=True, slots=True)
class Sample:
    """A labelled text; ``line`` is its file and line, since ids may come twice."""

    id: str
    text: str
    labels: tuple[Label, ...]
    lang: str
    carrier: str
    tier: str
    line: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """A session of labelled texts, by turn."""

    id: str
    lang: str
    turns: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus; a file that is absent is an empty part.

    Attributes:
        positives, negatives, sessions: Rows of the three files.
        refused: What was left out because it breaks the layout: place and reason, never its text.
    """

    positives: tuple[Sample, ...]
    negatives: tuple[Sample, ...]
    sessions: tuple[Session, ...]
    refused: tuple[tuple[str, str], ...] = ()


def load(folder: Path) -> Corpus:
    """Read a corpus folder.

    Args:
        folder: Holds at least one of the three files.

    Returns:
        The rows that keep the layout; the others are named in ``refused``.

    Raises:
        EvalpipeError: ``SOURCE_NOT_FOUND`` for a missing folder, ``CORPUS_INVALID`` where no row is left.
    """
    if not folder.is_dir():
        raise EvalpipeError("SOURCE_NOT_FOUND", "the corpus folder does not exist.", where=str(folder))
    names = (POSITIVES, NEGATIVES, SESSIONS)
    if not any((folder / name).is_file() for name in names):
        raise EvalpipeError("CORPUS_INVALID", f"the folder holds none of {', '.join(names)}.", where=str(folder))
    refused: list[tuple[str, str]] = []
    corpus = Corpus(
        tuple(_kept(folder / POSITIVES, _sample, refused)),
        tuple(_kept(folder / NEGATIVES, _sample, refused)),
        tuple(_kept(folder / SESSIONS, _session, refused)),
        tuple(refused),
    )
    if not (corpus.positives or corpus.negatives or corpus.sessions):
        where, why = refused[0] if refused else (str(folder), "the corpus holds no row.")
        raise EvalpipeError("CORPUS_INVALID", why, where=where)
    return corpus


def _kept(path: Path, read: Callable[[dict[str, Any], str, _Refused], _T], refused: _Refused) -> Iterator[_T]:
    """Rows of a file that keep the layout; one bad row costs no other."""
    for line, where in _lines(path):
        try:
            yield read(_row(line, where), where, refused)
        except EvalpipeError as error:
            refused.append((error.where or where, error.what))


def _lines(path: Path) -> Iterator[tuple[bytes, str]]:
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield line, f"{path}:{number}"


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise EvalpipeError("CORPUS_INVALID", "the line is not JSON.", where=where) from None
    if not isinstance(row, dict):
        raise EvalpipeError("CORPUS_INVALID", "the line is not an object.", where=where)
    return row


def _session(row: dict[str, Any], where: str, refused: _Refused) -> Session:
    turns = row.get("turns")
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        raise EvalpipeError("CORPUS_INVALID", "turns is not a list of objects.", where=where)
    name = str(row.get("session_id") or row.get("id") or where.rpartition(":")[2])
    base = {"lang": row.get("lang", ""), "tier": row.get("tier", "rule")}
    samples: list[Sample] = []
    for at, turn in enumerate(turns):
        named = {"id": f"{name}/{turn.get('turn', at)}", "carrier": turn.get("role", "")}
        try:
            samples.append(_sample(base | turn | named, f"{where} turn {at}", refused))
        except EvalpipeError as error:
            # One bad turn costs no other.
            refused.append((error.where, error.what))
    return Session(name, str(base["lang"]), tuple(samples))


def _sample(row: dict[str, Any], where: str, refused: _Refused) -> Sample:
    text, spans = row.get("text"), row.get("spans")
    spans = [] if spans is None else spans
    if not isinstance(text, str):
        raise EvalpipeError("CORPUS_INVALID", "text is missing or not a string.", where=where)
    text = text.replace(SPLIT_MARK, "")
    if row.get("len") not in (None, len(text)):
        raise EvalpipeError("CORPUS_INVALID", f"len is not {len(text)}, the length of the joined text.", where=where)
    if not isinstance(spans, list):
        raise EvalpipeError("CORPUS_INVALID", "spans is not a list.", where=where)
    names = {key: str(row.get(key) or "") for key in ("lang", "carrier", "tier")}
    names["tier"] = names["tier"].lower() or "rule"
    name = str(row.get("id") or where.rpartition(":")[2])
    labels: list[Label] = []
    left_out: _Refused = []
    for at, span in enumerate(spans):
        try:
            labels.append(_label(span, len(text), f"{where} span {at}"))
        except EvalpipeError as error:
            left_out.append((error.where, error.what))
    if left_out and not labels:
        # Without any place it would stand there as a text with nothing to hide.
        raise EvalpipeError("CORPUS_INVALID", left_out[0][1], where=where)
    refused += left_out
    return Sample(name, text, tuple(labels), line=where.rpartition("/")[2], **names)


def _label(span: object, n: int, where: str) -> Label:
    row: dict[str, Any] = span if isinstance(span, dict) else {}
    start, end, entity = row.get("start"), row.get("end"), row.get("type")
    if not (isinstance(start, int) and isinstance(end, int) and isinstance(entity, str) and 0 <= start < end <= n):
        what = "a span needs start, end (inside the text, in characters) and type."
        raise EvalpipeError("CORPUS_INVALID", what, where=where)
    canon = str(row.get("canon") or "").replace(SPLIT_MARK, "")
    return Label(start, end, entity.upper(), str(row.get("subtype") or ""), canon)
