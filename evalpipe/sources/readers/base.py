"""What a reader is, and the few helpers that several formats share.

Belongs here: the interface between a format and the reading loop. Does not belong here: anything
that only one format needs.
"""

from __future__ import annotations

import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Literal

import orjson

from evalpipe.sources.session import Session

#: What ``feed`` says of a record besides a quarantine code.
KEPT, NOISE = "kept", "noise"

NOT_A_RECORD, BAD_FIELD, NO_SESSION_ID = "NOT_A_RECORD", "BAD_FIELD", "NO_SESSION_ID"

Record = dict[str, Any]

_HOME = re.compile(r"^(?:/Users/|/home/|[A-Za-z]:[\\/]Users[\\/])([^\\/]+)")


class Parser(ABC):
    """Turns the records of one file into sessions; each format has its own.

    Attributes:
        sessions: Sessions seen so far, by the id in the log.
        current: The session that the last kept record went to.
    """

    def __init__(self, context: FileContext) -> None:
        self.context = context
        self.sessions: dict[str, Session] = {}
        self.current: Session | None = None

    @abstractmethod
    def feed(self, record: Record) -> str:
        """Take one record; ``KEPT``, ``NOISE`` or a quarantine code."""

    def header(self, value: Record) -> None:  # noqa: B027, most formats have none
        """Take the header of a document (see ``Reader.header_key``), before any record."""

    def close(self) -> int:
        """Called once after the last record of the file, before the sessions left are taken.

        Returns:
            Number of records that were kept and turn out to be noise, now that all are known.
        """
        return 0

    def finish(self, session: Session) -> None:  # noqa: B027, most formats need nothing
        """Called once when no more records of the session will come."""


@dataclass(frozen=True, slots=True)
class FileContext:
    """What a parser may know of its file: the name, for formats that state facts only there."""

    name: str

    @property
    def stem(self) -> str:
        """File name without folders and suffixes such as ``.json.gz``."""
        return re.sub(r"(\.jsonl?|\.gz|\.zst)+$", "", PurePath(self.name).name)


#: How records lie in a file. ``lines``: a JSON object a line. ``items``: the items of one JSON array,
#: or of named arrays of one JSON object. ``whole``: the file is one object and one record.
#: ``text``: no JSON; a record is ``{"text": ...}``, from one line that begins one to the next.
SHAPES = ("lines", "items", "whole", "text")


def _no_hint(_: bytes) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Reader:
    """One format.

    Attributes:
        name: Source name in the tables.
        version: Raised when the reader gives other rows for the same bytes.
        shape: How records lie in the file (see ``SHAPES``).
        recognise: Whether a record at the head of the file is of this format. Where the head cuts
            the record off, it holds what could be read of it.
        parser: Makes the parser of one file.
        hint: Whether the head of a document, or of a first line, shows marks of the format that do
            not lie in its first record. For text it alone decides.
        lists: Top-level keys whose arrays hold records, for a document that is an object.
        header_key: Top-level key of the header of a document.
        is_one_record_a_session: Whether each record is a whole session.
        session_key: Finds session ids in raw lines, where one file can hold many sessions.
        cut: For text: whether a line (without its end) begins a new record.
        array_key: For lines: a line that is an array is handed over as an object that holds it under
            this key. Empty: such lines are no records.
    """

    name: str
    version: str
    shape: Literal["lines", "items", "whole", "text"]
    recognise: Callable[[Record], bool]
    parser: Callable[[FileContext], Parser]
    hint: Callable[[bytes], bool] = _no_hint
    lists: frozenset[str] = frozenset()
    header_key: str = ""
    is_one_record_a_session: bool = False
    session_key: re.Pattern[bytes] | None = None
    cut: Callable[[bytes], bool] = _no_hint
    array_key: str = ""


def json_readers(reader: Reader) -> tuple[Reader, ...]:
    """A reader of whole sessions for all three ways to store them: lines, an array, one document.

    Args:
        reader: The reader of lines.

    Returns:
        Three readers that differ in ``shape`` only.
    """
    return reader, replace(reader, shape="items"), replace(reader, shape="whole")


def user_of(folder: str | None) -> str | None:
    """The user whose home folder a path lies in."""
    match = _HOME.match(folder) if folder else None
    return match.group(1) if match else None


def json_text(value: object) -> str | None:
    """Arguments as JSON text; text is kept as it is."""
    if value is None or type(value) is str:
        return value
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        # orjson reads deeper than it writes; the standard library writes what orjson read.
        return _deep_json(value)


def _deep_json(value: object) -> str:
    limit = sys.getrecursionlimit()
    # Every level of brackets takes a call, and orjson reads 1024 of them.
    sys.setrecursionlimit(limit + 2048)
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    finally:
        sys.setrecursionlimit(limit)


def block_text(content: object) -> str | None:
    """Text of a message: a string, or the text blocks of a list joined by newlines."""
    if type(content) is str:
        return content
    if type(content) is not list:
        return None
    texts = [b["text"] for b in content if type(b) is dict and type(b.get("text")) is str]
    return "\n".join(texts) if texts else None
