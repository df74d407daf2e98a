"""JSON lines in, masked JSON lines out: the rows of ``evalpipe mask``.

Belongs here: what becomes of one row and its fields. Does not belong here: files, progress, printing
(``console``). A row fails closed: a field that nobody asked to keep is masked as text.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import IO, Any

import orjson

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking import dictionary, documents, texts
from evalpipe.masking.engine import WITHHELD
from evalpipe.masking.kernel import is_opaque
from evalpipe.masking.plan import MaskPlan

MASKED, SPANS, REST = "masked", "spans", "withheld"
#: Columns that hold the id of the user, which becomes the token that it has in the lake, and such as name them.
_USER_IDS = ("user_id", "userId", "userid")
_USER_NAMES = (
    "user",
    "username",
    "user_name",
    "userName",
    "login",
    "user_email",
    "userEmail",
    "display_name",
    "displayName",
)
#: Columns that hold what a user says in some logs, so that a single word of it is no name.
_MAY_SPEAK = ("user", "login")
_NAME = re.compile(r"[^\W\d_a-z][\w'.-]{0,30}(?: [^\W\d_a-z][\w'.-]{0,30}){1,3}")
_LOGIN = re.compile(r"[^\s@]+(?:@\S+)?")
_HALF = re.compile("[\ud800-\udfff]")
#: Names that sessions of one file may teach in all; more would not fit into memory that is bounded.
MAX_TERMS = 2_000_000


class RowRefusedError(Exception):
    """A row that cannot be masked; ``code`` is one of the codes of quarantined records."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class RowForm:
    """What rows look like.

    Attributes:
        fields: Text fields to mask; ``a.b`` is ``b`` inside of ``a``.
        keep: Fields that pass as they are.
        session: Field that names the session of a row; the first that a row holds counts.
        with_spans: Whether a row tells what was replaced, in characters of the text as given.
        max_bytes: A longer line is refused.
    """

    fields: tuple[str, ...]
    keep: tuple[str, ...] = ()
    session: tuple[str, ...] = ("session", "session_id")
    with_spans: bool = False
    max_bytes: int = 64_000_000


@dataclass(slots=True)
class RowMasker:
    """Masks rows; sessions are learnt in a first pass over all lines, if there are sessions."""

    plan: MaskPlan
    form: RowForm
    _terms: dict[str, dictionary.Terms] = field(default_factory=dict)
    _n_terms: int = 0

    def learn(self, line: bytes) -> None:
        """Pass one: what a row teaches its session. A row that pass two will refuse teaches nothing.

        Raises:
            EvalpipeError: ``BAD_ARGUMENT`` if sessions teach more names than memory is for.
        """
        try:
            row = self._parsed(line)
            session = self._session(row)
            if session is None:
                return
            own = self._own_terms(row)
            values = [self._text(_take(row, name)) for name in self.form.fields]
        except RowRefusedError:
            return
        terms = self._terms.get(session, dictionary.Terms())
        before = len(terms)
        terms |= {term: taught for term, taught in own.items() if term not in terms}
        for text in (*(v for v in values if v), _dumped(self._without(row, self.form.keep))):
            texts.learn(self.plan, text, terms)
        if terms:
            self._terms[session] = terms
        self._n_terms += len(terms) - before
        if self._n_terms > MAX_TERMS:
            what = f"sessions name more than {MAX_TERMS:,} people."
            raise EvalpipeError("BAD_ARGUMENT", what, fix="Split the file between two sessions.")

    def mask(self, line: bytes) -> bytes:
        """Pass two: the masked row as a JSON line without its line feed.

        Raises:
            RowRefusedError: The line is no row of this form.
        """
        row = self._parsed(line)
        session = self._session(row)
        terms = self._own_terms(row)
        terms |= self._terms.get(session, {}) if session is not None else {}
        results = {name: self._masked(self._text(_take(row, name)), terms) for name in self.form.fields}
        kept = {_path(row, name): _take(row, name) for name in self.form.keep if _has(row, name)}
        rest = self._without(row, self.form.keep)
        out: dict[str, Any] = {}
        session_name = self._session_name(rest)
        token = None
        if session_name is not None and session is not None:
            # Where the field that names the session is kept, another that is called so has its own token.
            token = self.plan.rekey("s", str(rest.pop(session_name)))
        users = {name: str(rest.pop(name)) for name in _USER_IDS if isinstance(rest.get(name), (str, int))}
        if rest:
            masked = texts.mask(self.plan, _dumped(rest), terms)
            is_withheld = any(span.entity == WITHHELD for span in masked.spans)
            left = documents.read(masked.text)
            out = {REST: left} if is_withheld else left
        if session_name is not None and token is not None:
            out[session_name] = token
        out |= {name: self.plan.rekey("u", value) for name, value in users.items()}
        for path, value in kept.items():
            _put(out, path, value)
        is_one = len(results) == 1
        texts_out = {name: result.text if result else None for name, result in results.items()}
        spans_out = {name: _spans(result) for name, result in results.items()}
        out[MASKED] = next(iter(texts_out.values())) if is_one else texts_out
        if self.form.with_spans:
            out[SPANS] = next(iter(spans_out.values())) if is_one else spans_out
        return _dumped(out).encode()

    def _own_terms(self, row: dict[str, Any]) -> dictionary.Terms:
        """What the columns of a row that are about its user name, as the pipeline learns from sessions."""
        words, terms = self.plan.rules.words, dictionary.Terms()
        for name in (*_USER_IDS, *_USER_NAMES):
            value = row.get(name)
            if not isinstance(value, str) or is_opaque(value):
                continue
            value = value.strip()
            if _NAME.fullmatch(value):
                dictionary.collect(terms, "PERSON", value.lower(), words)
            elif _LOGIN.fullmatch(value) and (name not in _MAY_SPEAK or "@" in value):
                dictionary.collect(terms, "USER_ID", value.lower(), words)
        return terms

    def _masked(self, text: str | None, terms: dictionary.Terms | None) -> texts.MaskedText | None:
        return None if text is None else texts.mask(self.plan, text, terms)

    def _parsed(self, line: bytes) -> dict[str, Any]:
        if len(line) > self.form.max_bytes:
            raise RowRefusedError("RECORD_TOO_LARGE")
        try:
            row = orjson.loads(line)
            if documents.is_inexact(line.decode()):
                row = documents.read(line.decode())
        except orjson.JSONDecodeError:
            row = _lenient(line)
        if not isinstance(row, dict):
            raise RowRefusedError("NOT_A_RECORD")
        return row

    def _session_name(self, row: dict[str, Any]) -> str | None:
        return next((name for name in self.form.session if isinstance(row.get(name), (str, int))), None)

    def _session(self, row: dict[str, Any]) -> str | None:
        name = self._session_name(row)
        return None if name is None else str(row[name])

    def _text(self, value: object) -> str | None:
        if value is not None and not isinstance(value, str):
            raise RowRefusedError("BAD_FIELD")
        return value

    def _without(self, row: dict[str, Any], keep: tuple[str, ...]) -> dict[str, Any]:
        rest: Any = row
        for name in (*self.form.fields, *keep):
            rest = _left(rest, _path(row, name))
        # The result's own names win over names of the input.
        taken = (MASKED, SPANS) if self.form.with_spans else (MASKED,)
        return {key: value for key, value in rest.items() if key not in taken}


def lines(file: IO[bytes], max_bytes: int) -> Iterator[tuple[int, bytes, int]]:
    """(number, line, bytes read) of a file's lines that are not blank, in bounded memory.

    A line above ``max_bytes`` comes cut to one byte more, so that it is refused and not read whole.
    """
    number = 0
    while line := file.readline(max_bytes + 1):
        number += 1
        size = len(line)
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        while not line.endswith(b"\n") and len(line) > max_bytes:
            more = file.readline(1_000_000)
            size += len(more)
            if not more or more.endswith(b"\n"):
                break
        if line.strip():
            yield number, line, size


def _spans(result: texts.MaskedText | None) -> list[dict[str, Any]]:
    names = ("start", "end", "entity", "subtype", "rule")
    return [{name: asdict(span)[name] for name in names} for span in (result.spans if result else ())]


def _dumped(rest: dict[str, Any]) -> str:
    try:
        return orjson.dumps(rest, default=documents.as_it_was).decode()
    except TypeError:
        # It reads deeper than it writes, and knows no integer above 64 bits.
        try:
            return json.dumps(rest, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        except (ValueError, RecursionError):
            raise RowRefusedError("BAD_JSON") from None


def _lenient(line: bytes) -> Any:
    """A row that only Python's own reader takes: NaN becomes null, halves of characters U+FFFD.

    A half is one character, and so is what stands in its place: offsets hold.
    """
    try:
        return _whole(json.loads(line.decode(), parse_constant=lambda _: None))
    except UnicodeDecodeError:
        raise RowRefusedError("BAD_ENCODING") from None
    except (ValueError, RecursionError):
        raise RowRefusedError("BAD_JSON") from None


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if not isinstance(value, dict):
        return value
    out = {_whole(key): _whole(item) for key, item in value.items()}
    if len(out) != len(value):
        raise RowRefusedError("BAD_FIELD")
    return out


def _path(row: dict[str, Any], name: str) -> tuple[str, ...]:
    """Keys on the way to a field; a key that holds the dot itself wins."""
    return (name,) if name in row else tuple(name.split("."))


def _has(row: dict[str, Any], name: str) -> bool:
    try:
        _take(row, name)
    except RowRefusedError:
        return False
    return True


def _take(row: dict[str, Any], name: str) -> Any:
    at: Any = row
    for key in _path(row, name):
        if not isinstance(at, dict) or key not in at:
            raise RowRefusedError("BAD_FIELD")
        at = at[key]
    return at


def _left(at: Any, path: tuple[str, ...]) -> Any:
    """A copy without the field at a path; the row itself stays whole."""
    if not isinstance(at, dict) or path[0] not in at:
        return at
    if len(path) == 1:
        return {key: value for key, value in at.items() if key != path[0]}
    return at | {path[0]: _left(at[path[0]], path[1:])}


def _put(out: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    """Put a kept field back where it stood."""
    *folders, last = path
    at = out
    for key in folders:
        inner = at.get(key)
        at[key] = at = inner if isinstance(inner, dict) else {}
    at[last] = value
