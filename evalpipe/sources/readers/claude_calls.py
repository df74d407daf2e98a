"""Calls and results of a Claude Code session.

Belongs here: the session with the indexes that lines refer back to, and which call a result answers.
Does not belong here: lines (``claude_lines.py``).
"""

from __future__ import annotations

from evalpipe.sources.readers.base import Record, block_text, json_text
from evalpipe.sources.readers.claude_queue import Queue
from evalpipe.sources.readers.claude_text import failure
from evalpipe.sources.session import END, ERROR, EXIT_CODE, IS_ERROR, OUTPUT, TEXT, Row, Session, tool_row

SOURCE = "claude_code"

_CALLS_OF_SUB_AGENTS = frozenset({"Task", "Agent"})


class ClaudeSession(Session):
    """A session with the indexes that lines of this format refer back to."""

    def __init__(self, session_id: str) -> None:
        super().__init__(SOURCE, session_id, "claude-code")
        self.seen: set[str] = set()
        self.responses: dict[str, Row] = {}
        self.open_calls: dict[str, Row] = {}
        self.closed_calls: set[str] = set()
        #: The response that made each call, by the id of the call.
        self.asked_in: dict[str, str] = {}
        #: The present response, where responses bear no id; its lines follow one another.
        self.unnamed: str | None = None
        self.queue = Queue()
        self.last_task: str | None = None
        self.is_described = False


def put_call(block: Record, session: ClaudeSession, response: str, at: str | None, parent: str | None) -> None:
    """Append the step of a call.

    Args:
        block: The block of the response that asks for it.
        session: Takes the step.
        response: Key of the response.
        at: Time of the line.
        parent: Call of the sub-agent that asks, if one does.
    """
    call_id = block.get("id")
    if type(call_id) is not str or not call_id:
        call_id = str(len(session.rows))
    step_id = call_id
    if call_id in session.open_calls:
        return
    if call_id in session.closed_calls:
        if session.asked_in.get(call_id, response) == response:
            return
        # Local models and proxies begin to count anew with each response.
        session.closed_calls.discard(call_id)
        step_id = f"{call_id}#{len(session.rows)}"
    session.asked_in[call_id] = response
    name = block.get("name")
    if type(name) is not str:
        name = "unknown"
    row = tool_row(step_id, name, json_text(block.get("input")), at, parent)
    session.open_calls[call_id] = row
    session.rows.append(row)
    if parent is None and name in _CALLS_OF_SUB_AGENTS:
        session.last_task = step_id


def put_result(block: Record, session: ClaudeSession, at: str | None, record: Record) -> None:
    """Put a result to its call; one whose call is unknown is a step without a name.

    Args:
        block: The block that holds the result.
        session: Holds the call.
        at: Time of the line.
        record: The line.
    """
    session.unnamed = None
    call_id = block.get("tool_use_id")
    if type(call_id) is not str or call_id in session.closed_calls:
        return
    session.closed_calls.add(call_id)
    row = session.open_calls.pop(call_id, None)
    if row is None:
        row = tool_row(call_id, None, None, None)
        session.rows.append(row)
    text = block.get("content")
    if type(text) is not str:
        text = block_text(text)
    row[OUTPUT] = text
    row[END] = at
    row[ERROR] = None
    flag = block.get("is_error")
    if flag is True:
        row[IS_ERROR] = True
        row[ERROR], reason, row[EXIT_CODE] = failure(text or "")
        if row[ERROR] == "refused":
            row[TEXT], row[OUTPUT] = reason, None
        return
    if flag is False:
        row[IS_ERROR] = False
    details = record.get("toolUseResult")
    if type(details) is dict and details.get("interrupted") is True:
        row[ERROR] = "interrupted"
