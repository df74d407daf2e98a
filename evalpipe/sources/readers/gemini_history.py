"""The history that Gemini's interface takes: messages of roles ``user`` and ``model`` with parts.

Belongs here: one file of such messages to one session. Does not belong here: texts and results
(``gemini_text.py``).

The format has neither ids, times, models nor tokens: the session's id is a digest of what was said.
Results are ``user`` messages; they belong to a call by id, or else to the oldest open call of that
name. Files saved by the command ``/chat save`` hold the list under ``history``.
"""

from __future__ import annotations

from dataclasses import replace

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    KEPT,
    NOT_A_RECORD,
    FileContext,
    Parser,
    Reader,
    Record,
    json_text,
)
from evalpipe.sources.readers.gemini_text import ACKNOWLEDGEMENTS, put_result, split_parts
from evalpipe.sources.readers.values import id_of, id_of_rows, objects_of, text_of
from evalpipe.sources.session import ERROR, NAME, ORIGIN, STEP_ID, Row, Session, agent_row, tool_row, user_row

SOURCE = "gemini_history"

_ROLES = ("user", "model")


class HistoryParser(Parser):
    """Parser of one file, which holds one session."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self._open: list[Row] = []

    def feed(self, record: Record) -> str:
        """Take one message."""
        role, parts = record.get("role"), record.get("parts")
        if role not in _ROLES:
            return NOT_A_RECORD
        if type(parts) is not list or any(type(part) is not dict for part in parts):
            return BAD_FIELD
        session = self.sessions.get("")
        if session is None:
            session = self.sessions[""] = Session(SOURCE, "", "gemini-cli")
        self.current = session
        key = str(session.n_records)
        session.n_records += 1
        session.n_messages += 1
        texts = [p["text"] for p in parts if type(p.get("text")) is str and p.get("thought") is not True]
        if role == "user":
            for part in objects_of([p.get("functionResponse") for p in parts]):
                self._result(session, part)
            for index, (origin, text) in enumerate(split_parts(texts)):
                session.rows.append(user_row(f"{key}.{index}" if index else key, origin, text, None))
            return KEPT
        text = "".join(texts)
        if text.strip():
            row = agent_row(key, text, None, None)
            if text in ACKNOWLEDGEMENTS:
                row[ORIGIN] = "synthetic"
            session.rows.append(row)
        for index, call in enumerate(objects_of([p.get("functionCall") for p in parts])):
            row = tool_row(
                id_of(call.get("id")) or f"{key}.call{index}",
                text_of(call.get("name")) or "unknown",
                json_text(call.get("args")),
                None,
            )
            session.rows.append(row)
            self._open.append(row)
        return KEPT

    def _result(self, session: Session, part: Record) -> None:
        call_id, name = id_of(part.get("id")), text_of(part.get("name"))
        row = next((r for r in self._open if r[STEP_ID] == call_id), None)
        if row is None:
            row = next((r for r in self._open if r[NAME] == name), None)
        if row is None:
            row = tool_row(call_id or f"result{len(session.rows)}", None, None, None)
            session.rows.append(row)
        else:
            self._open = [r for r in self._open if r is not row]
        put_result(row, part.get("response"))

    def finish(self, session: Session) -> None:
        """Name the session by what was said, and note calls that nobody answered."""
        for row in self._open:
            row[ERROR] = "no_result"
        session.session_id = f"{SOURCE}:{id_of_rows(session.rows)}"


def _recognise(record: Record) -> bool:
    parts = record.get("parts")
    return record.get("role") in _ROLES and type(parts) is list and "info" not in record


ITEMS = Reader(
    name=SOURCE,
    version="2",
    shape="items",
    recognise=_recognise,
    parser=HistoryParser,
    lists=frozenset({"history"}),
)
READERS: tuple[Reader, ...] = (replace(ITEMS, shape="lines"), ITEMS)
