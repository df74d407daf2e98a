"""What a reader is, and the few helpers that several formats share.

Belongs here: the interface between a format and the reading loop. Does not belong here: anything
that only one format needs.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Literal

import orjson

from evalpipe.sources.session import ARGUMENTS, KIND, NAME, OUTPUT, TEXT, Session
from evalpipe.sources.spool import SpoolOptions

#: What ``feed`` says of a record besides a quarantine code.
KEPT, NOISE = "kept", "noise"

NOT_A_RECORD, BAD_FIELD, NO_SESSION_ID = "NOT_A_RECORD", "BAD_FIELD", "NO_SESSION_ID"

Record = dict[str, Any]

_SAID = (KIND, NAME, TEXT, ARGUMENTS, OUTPUT)

_HOME = re.compile(r"^(?:/Users/|/home/|[A-Za-z]:[\\/]Users[\\/])([^\\/]+)")


class Parser(ABC):
    """Turns the records of one file into sessions; each format has its own.

    Attributes:
        sessions: Sessions seen so far, by the id in the log.
        current: The session that the last kept record went to.
        too_large: Ids of sessions that are larger than can be held; the reading loop empties it.
    """

    def __init__(self, context: FileContext) -> None:
        self.context = context
        self.sessions: dict[str, Session] = {}
        self.current: Session | None = None
        self.too_large: list[str] = []
        self._n_copies = 0

    #: Whether sessions are made after the last record only, from what was put on disk (see ``spill``).
    is_gathering = False

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

    def spill(self) -> None:  # noqa: B027, most formats hold sessions only
        """Called when much was read since the last time: put what is gathered for later on disk."""

    def forget(self) -> None:
        """Let go of all that is held, where only what is said of further records is wanted."""
        for session in self.sessions.values():
            self.empty(session)

    def empty(self, session: Session) -> None:
        """Let go of what a session holds, but for what decides whether further records are kept."""
        session.rows.clear()

    def rest(self) -> Iterator[None]:
        """Fill ``sessions`` with those that are left after :meth:`close`, as many at a time as can be held."""
        yield

    def finish(self, session: Session) -> None:  # noqa: B027, most formats need nothing
        """Called once when no more records of the session will come."""

    def keep(self, session: Session) -> None:
        """Take a session that is whole.

        Of two with one id in a row of records the longer one stays; the other is a copy of its own,
        unless the longer one begins with all of it.
        """
        session.n_records = 1
        self.current = session
        known = self.sessions.get(session.session_id)
        if known is None:
            self.sessions[session.session_id] = session
            return
        shorter, longer = sorted((session, known), key=lambda one: one.n_messages)
        if known is shorter:
            self.sessions[session.session_id] = longer
        if not _begins_with(longer, shorter):
            self._n_copies += 1
            self.sessions[f"{session.session_id}/copy {self._n_copies}"] = shorter


def _begins_with(longer: Session, shorter: Session) -> bool:
    """Whether the steps of one session say what another's say, and more."""
    said = (tuple(row[slot] for slot in _SAID) for row in longer.rows)
    return all(next(said, None) == tuple(row[slot] for slot in _SAID) for row in shorter.rows)


class RowParser(Parser):
    """Parser of a format whose every record is a whole session."""

    @abstractmethod
    def read(self, record: Record) -> Session | str:
        """The session that a record holds, or the quarantine code of a record that holds none."""

    def feed(self, record: Record) -> str:
        """Take one record."""
        found = self.read(record)
        if isinstance(found, str):
            return found
        self.keep(found)
        return KEPT


@dataclass(frozen=True, slots=True)
class FileContext:
    """What a parser may know of its file: where it lies, for formats that state facts only there.

    Attributes:
        name: File name, or path inside an archive.
        folders: Names of the folders above it, the innermost last; of an archive, above the archive.
        spool: Where parsers put what they gather over the whole file; ``None`` to hold it in memory.
    """

    name: str
    folders: tuple[str, ...] = ()
    spool: SpoolOptions | None = None

    @property
    def stem(self) -> str:
        """File name without folders and suffixes such as ``.json.gz``."""
        return re.sub(r"(\.jsonl?|\.gz|\.zst)+$", "", PurePath(self.name).name)

    @property
    def above(self) -> tuple[str, ...]:
        """Names of all folders above the file, inside an archive too, the innermost last."""
        return (*self.folders, *PurePath(self.name).parts[:-1])


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
        session_key: Finds session ids in raw lines, where one file can hold many sessions and what a
            line says depends on lines of its own session only.
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


def row_reader(name: str, recognise: Callable[[Record], bool], parser: Callable[[FileContext], Parser]) -> Reader:
    """A reader, version 2, of lines that are whole sessions (see ``Reader`` for the arguments)."""
    return Reader(name, "2", "lines", recognise, parser, is_one_record_a_session=True)


def user_of(folder: str | None) -> str | None:
    """The user whose home folder a path lies in."""
    match = _HOME.match(folder) if folder else None
    return match.group(1) if match else None


def word_of(value: object) -> str:
    """A plain value as text, for looking it up; empty for lists and objects, which nest deeper than Python prints."""
    return "" if type(value) is dict or type(value) is list else str(value)


def json_text(value: object) -> str | None:
    """Arguments as JSON text; text is kept as it is."""
    if value is None or type(value) is str:
        return value
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        # orjson reads deeper than it writes.
        return "".join(_deep_text(value))


def _deep_text(value: object) -> Iterator[str]:
    """JSON text of a value of any depth, with a stack of its own instead of the interpreter's."""
    stack: list[object] = [value]
    while stack:
        item = stack.pop()
        if type(item) is _Piece:
            yield item.text
            continue
        if type(item) is dict:
            inner = [part for key, member in item.items() for part in (_Piece(f",{json.dumps(str(key))}:"), member)]
            ends = "{}"
        elif type(item) is list:
            inner = [part for member in item for part in (_Piece(","), member)]
            ends = "[]"
        else:
            yield json.dumps(item, ensure_ascii=False, default=str)
            continue
        if inner and type(inner[0]) is _Piece:
            inner[0] = _Piece(inner[0].text[1:])
        stack += [_Piece(ends[1]), *reversed(inner)]
        yield ends[0]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Punctuation on the stack, told apart from values."""

    text: str


def digest_of(value: object) -> str:
    """A short digest of a JSON value, for records that have no id of their own."""
    try:
        data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    except TypeError:
        data = (json_text(value) or "").encode("utf-8", "replace")
    return hashlib.blake2b(data, digest_size=6).hexdigest()


def block_text(content: object) -> str | None:
    """Text of a message: a string, or the text blocks of a list joined by newlines."""
    if type(content) is str:
        return content
    if type(content) is not list:
        return None
    texts = [b["text"] for b in content if type(b) is dict and type(b.get("text")) is str]
    return "\n".join(texts) if texts else None
