"""Tool calls of a session: asked for by a model, run by a span, answered by a message.

Belongs here: joining the three, of which a log may hold one, two or all. Does not belong here: what
spans are, or what an error means for a signal.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evalpipe.sources.readers.chat import Call, Message
from evalpipe.sources.readers.span_values import is_same
from evalpipe.sources.session import ARGUMENTS, END, ERROR, IS_ERROR, NAME, OUTPUT, PARENT, START, Row, tool_row

if TYPE_CHECKING:
    from evalpipe.sources.readers.spans import Span

_TIMEOUT = re.compile(r"time[d_ ]?-?\s?out|deadline.?exceeded", re.I)


class Calls:
    """The calls of one session."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows
        #: Calls without a span yet, and without an answer yet.
        self._waiting: list[tuple[Call, Row]] = []
        self._by_id: dict[str, Row] = {}
        self._has_run: set[str | None] = set()

    def asked(self, call: Call, step_id: str, span: Span, parent: str | None) -> None:
        """A model asked for a call."""
        row = tool_row(call.call_id or step_id, call.name or "unknown", call.arguments, span.end or span.start, parent)
        self._rows.append(row)
        self._waiting.append((call, row))
        if call.call_id is not None:
            self._by_id[call.call_id] = row

    def ran(self, span: Span, parent: str | None) -> Row:
        """A span ran a tool; returns the step."""
        row = self._find(span)
        if row is None:
            row = tool_row(span.call_id or span.span_id, span.name or "unknown", span.arguments, span.start, parent)
            self._rows.append(row)
        self._fill(row, span)
        return row

    def ran_as_chain(self, span: Span, parent: str | None) -> Row | None:
        """A plain span may be the run of a tool that waits; ``None`` where it is not."""
        waits = [row for call, row in self._waiting if call.name == span.name and row[PARENT] == parent]
        if span.name is None or not waits or waits[0][END] is not None:
            return None
        return self.ran(span, parent)

    def _find(self, span: Span) -> Row | None:
        """The call that a span ran: the one with its id, else with its name and arguments, else its name."""
        by_id = self._by_id.get(span.call_id or "")
        if by_id is not None and by_id[END] is None:
            self._take(by_id)
            return by_id
        same_name = [(call, row) for call, row in self._waiting if call.name == span.name]
        same = [(call, row) for call, row in self._waiting if is_same(call.arguments, span.arguments)]
        both = [pair for pair in same_name if any(pair[1] is row for _, row in same)]
        # A span without a name of its own is told by its arguments.
        found = both or same_name or (same if span.arguments is not None else [])
        if not found:
            return None
        self._take(found[0][1])
        return found[0][1]

    def _take(self, row: Row) -> None:
        self._waiting = [(call, waiting) for call, waiting in self._waiting if waiting is not row]

    def _fill(self, row: Row, span: Span) -> None:
        self._has_run.add(row[NAME])
        row[START], row[END] = span.start, span.end
        row[ARGUMENTS] = row[ARGUMENTS] if row[ARGUMENTS] is not None else span.arguments
        row[OUTPUT] = span.output if span.output is not None else row[OUTPUT]
        row[IS_ERROR] = span.is_error if span.is_error is not None else row[IS_ERROR]
        if span.is_error:
            if row[OUTPUT] is None:
                row[OUTPUT] = span.error_text
            row[ERROR] = "timeout" if _TIMEOUT.search(span.error_text or "") else "tool_error"

    def answered(self, message: Message) -> None:
        """A message brings the result of a call. History repeats it; the first counts."""
        row = self._by_id.get(message.call_id or "")
        if row is None and message.call_id is None:
            row = next((r for call, r in self._waiting if message.name and call.name == message.name), None)
            if row is None and message.name is None and len(self._waiting) == 1:
                row = self._waiting[0][1]
        if row is None:
            return
        self._has_run.add(row[NAME])
        self._take(row)
        if row[OUTPUT] is None:
            row[OUTPUT] = message.text
        if message.is_error is not None and row[IS_ERROR] is None:
            row[IS_ERROR] = message.is_error

    def close(self) -> None:
        """No result will come any more.

        A tool that nothing in the session ever ran is no tool but the form in which the model was
        told to answer: such a call failed in no way.
        """
        for _, row in self._waiting:
            if row[OUTPUT] is None and row[NAME] in self._has_run:
                row[ERROR] = "no_result"
