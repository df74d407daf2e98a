"""Lines of a Claude Code log to steps, one function a line type.

Belongs here: what each type of line adds to a session. Does not belong here: which session a line
belongs to and what becomes of it at the end (``claude_code.py``), calls (``claude_calls.py``), or who
wrote a user message (``claude_text.py``).
"""

from __future__ import annotations

import re

from evalpipe.sources.readers.base import BAD_FIELD, KEPT, NOISE, Record, block_text
from evalpipe.sources.readers.claude_calls import ClaudeSession, put_call, put_result
from evalpipe.sources.readers.claude_text import origins
from evalpipe.sources.session import (
    ERROR,
    INPUT,
    KIND,
    MODEL,
    ORIGIN,
    TEXT,
    Row,
    agent_row,
    text_or_none,
    user_row,
)
from evalpipe.sources.times import normal_time

SYNTHETIC_MODEL = "<synthetic>"

_SLASH = re.compile(r"/[a-z][\w:-]*(?:\s|\Z)")


def _content(message: Record) -> list[Record] | str | None:
    """The content of a message; ``None`` where it does not have the form."""
    content = message.get("content")
    if type(content) is list:
        for block in content:
            if type(block) is not dict:
                return None
        return content
    return content if type(content) is str else None


def _assistant(record: Record, session: ClaudeSession, uuid: str, at: str | None, parent: str | None = None) -> str:
    message = record.get("message")
    blocks = _content(message) if type(message) is dict else None
    if message is None or blocks is None:
        return BAD_FIELD
    if parent is None and record.get("isSidechain"):
        parent = session.last_task or "sidechain"
    key = _response_key(message, session, uuid, parent)
    row = session.responses.get(key)
    if row is None:
        row = _response(record, message, session, key, at, parent)
    if parent is None:
        session.n_messages += 1
    usage = message.get("usage")
    if type(usage) is dict and row[ORIGIN] == "agent":
        row[INPUT] = usage  # the last line of a response holds its final usage; read in finish()
    if isinstance(blocks, str):
        _say(row, blocks)
        return KEPT
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            _say(row, block.get("text"))
        elif kind == "tool_use" or kind == "server_tool_use":
            put_call(block, session, key, at, parent)
        elif "tool_use_id" in block:
            put_result(block, session, at, record)
    return KEPT


def _response_key(message: Record, session: ClaudeSession, uuid: str, parent: str | None) -> str:
    """What tells a response from others; proxies leave its id empty."""
    key = message.get("id")
    if type(key) is str and key:
        return key
    if parent is not None:
        return uuid
    session.unnamed = session.unnamed or uuid
    return session.unnamed


def _response(
    record: Record, message: Record, session: ClaudeSession, key: str, at: str | None, parent: str | None
) -> Row:
    model = text_or_none(message.get("model"))
    row = agent_row(key, None, at, model, parent)
    if model == SYNTHETIC_MODEL:
        row[MODEL] = None
        row[ORIGIN] = "synthetic"
        if record.get("isApiErrorMessage") is True:
            row[ERROR] = "api_error"
    session.responses[key] = row
    session.rows.append(row)
    return row


def _say(row: Row, text: object) -> None:
    if type(text) is str and text:
        row[TEXT] = text if row[TEXT] is None else f"{row[TEXT]}\n{text}"


def _user(record: Record, session: ClaudeSession, uuid: str, at: str | None, parent: str | None = None) -> str:
    message = record.get("message")
    blocks = _content(message) if type(message) is dict else None
    if blocks is None:
        return BAD_FIELD
    if parent is None and record.get("isSidechain"):
        parent = session.last_task or "sidechain"
    texts: list[str] = []
    n_results = n_images = 0
    if isinstance(blocks, str):
        texts.append(blocks)
    else:
        for block in blocks:
            kind = block.get("type")
            if kind == "tool_result":
                put_result(block, session, at, record)
                n_results += 1
            elif kind == "text" and type(block.get("text")) is str:
                texts.append(block["text"])
            elif kind == "image" or kind == "document":
                n_images += 1
    if parent is None:
        session.n_messages += 1
    else:
        # What a sub-agent is told stands in the arguments of the call that started it.
        return KEPT if n_results else NOISE
    if texts:
        _words(texts, record, session, uuid, at)
    elif n_images and not n_results and record.get("isMeta") is not True:
        session.rows.append(user_row(uuid, "human", None, at))
    return KEPT


def _words(texts: list[str], record: Record, session: ClaudeSession, uuid: str, at: str | None) -> None:
    is_meta, is_compaction = record.get("isMeta") is True, record.get("isCompactSummary") is True
    human: Row | None = None
    session.unnamed = None
    for text in texts:
        for origin, piece in origins(text, is_meta=is_meta, is_compaction=is_compaction):
            session.queue.arrived(piece)
            if origin == "interrupt":
                for call in session.open_calls.values():
                    call[ERROR] = "interrupted"
            if origin == "human" and human is not None:
                human[TEXT] = f"{human[TEXT]}\n{piece}"
                continue
            row = user_row(uuid, origin, piece, at)
            session.rows.append(row)
            if origin == "human":
                human = row


def _system(record: Record, session: ClaudeSession, uuid: str, at: str | None) -> str:
    subtype = record.get("subtype")
    if subtype == "api_error":
        parent = (session.last_task or "sidechain") if record.get("isSidechain") else None
        row = user_row(uuid, "system", _api_error_text(record.get("error")), at, parent)
        row[KIND], row[ERROR] = "system", "api_error"
        session.rows.append(row)
        return KEPT
    if subtype == "local_command" and type(record.get("content")) is str:
        _words([record["content"]], record, session, uuid, at)
        return KEPT
    return NOISE


def _api_error_text(error: object) -> str | None:
    while type(error) is dict:
        if type(error.get("message")) is str:
            return str(error["message"])
        error = error.get("error")
    return text_or_none(error)


def _progress(record: Record, session: ClaudeSession, uuid: str, at: str | None) -> str:
    data = record.get("data")
    if type(data) is not dict or data.get("type") != "agent_progress":
        return NOISE
    inner = data.get("message")
    if type(inner) is not dict or type(inner.get("message")) is not dict:
        return NOISE
    parent = record.get("parentToolUseID")
    if type(parent) is not str:
        parent = "sidechain"
    own_at = normal_time(inner.get("timestamp")) or at
    if inner.get("type") == "assistant":
        return _assistant(inner, session, uuid, own_at, parent)
    return _user(inner, session, uuid, own_at, parent)


def _queue_operation(record: Record, session: ClaudeSession, uuid: str, at: str | None) -> str:
    operation = record.get("operation")
    if operation == "enqueue":
        text = block_text(record.get("content"))
        if not text:
            return NOISE
        _queued(text, session, uuid, at)
        return KEPT
    if operation == "popAll":
        return KEPT if session.queue.pull_back() else NOISE
    return KEPT if session.queue.take(is_delivered=operation == "remove") else NOISE


def _queued(text: str, session: ClaudeSession, uuid: str, at: str | None) -> None:
    for origin, piece in origins(text):
        typed = "command" if _SLASH.match(piece) else "queued"
        row = user_row(uuid, typed if origin == "human" else origin, piece, at)
        session.rows.append(row)
        session.queue.put(piece, row)


def _attachment(record: Record, session: ClaudeSession, uuid: str, at: str | None) -> str:
    data = record.get("attachment")
    if type(data) is not dict or data.get("type") != "queued_command":
        return NOISE
    text = block_text(data.get("prompt"))
    if not text or session.queue.holds(text):
        return NOISE
    _queued(text, session, uuid, at)
    session.queue.take(is_delivered=True)
    return KEPT


#: What to do with a line, by its type.
HANDLERS = {
    "assistant": _assistant,
    "user": _user,
    "system": _system,
    "progress": _progress,
    "queue-operation": _queue_operation,
    "attachment": _attachment,
}
