"""Messages in the shape of OpenAI's chat interface, as both tau formats store them.

Belongs here: a list of role messages to steps. Does not belong here: the files around it.
"""

from __future__ import annotations

import hashlib
import re

import orjson

from evalpipe.sources.readers.base import Record, block_text, json_text
from evalpipe.sources.session import (
    END,
    ERROR,
    INPUT,
    IS_ERROR,
    KIND,
    ORIGIN,
    OUTPUT,
    OUTPUT_TOKENS,
    Row,
    Session,
    agent_row,
    count,
    text_or_none,
    tool_row,
    user_row,
)
from evalpipe.sources.times import normal_time

#: What simulated users write to end a conversation; an instruction to the simulator, not words.
_CONTROL = re.compile(r"\s*###[A-Z-]+###\s*")


def is_message_list(value: object) -> bool:
    """Whether the value is a list of objects with a role."""
    return type(value) is list and all(type(m) is dict and type(m.get("role")) is str for m in value)


def add_messages(session: Session, messages: list[Record]) -> None:
    """Append the steps of a conversation.

    Calls that the *user* makes (tau2's telecom, where the user works a phone) become user steps of
    origin ``local_command``: they are not the agent's doing and must not count as its calls.
    """
    open_calls: dict[str, Row] = {}
    for position, message in enumerate(messages):
        at = normal_time(message.get("timestamp"))
        if at is not None:
            session.see(at)
        role = message["role"]
        text = block_text(message.get("content"))
        if role == "system" or role == "developer":
            # The policy is the same for all sessions of a run: kept as a version, not as text.
            if text:
                session.prompt_version = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        elif role == "user":
            _user(session, str(position), text, at)
            _calls(session, message, str(position), at, open_calls)
        elif role == "assistant":
            _agent(session, message, str(position), text, at)
            _calls(session, message, str(position), at, open_calls)
        elif role == "tool":
            _result(session, message, position, text, at, open_calls)
        session.n_messages += 1
    for row in open_calls.values():
        row[ERROR] = "no_result"


def _user(session: Session, step_id: str, text: str | None, at: str | None) -> None:
    if not text:
        return
    words = _CONTROL.sub("", text)
    session.rows.append(user_row(step_id, "human" if words else "meta", words or text, at))


def _agent(session: Session, message: Record, step_id: str, text: str | None, at: str | None) -> None:
    usage = message.get("usage")
    if not text and type(usage) is not dict:
        return
    row = agent_row(step_id, text or None, at, session.model)
    if type(usage) is dict:
        row[INPUT] = count(usage.get("prompt_tokens"))
        row[OUTPUT_TOKENS] = count(usage.get("completion_tokens"))
    session.rows.append(row)


def _calls(session: Session, message: Record, position: str, at: str | None, open_calls: dict[str, Row]) -> None:
    calls = message.get("tool_calls")
    for index, call in enumerate(calls if type(calls) is list else ()):
        if type(call) is not dict:
            continue
        function = call.get("function")
        body = function if type(function) is dict else call
        call_id = text_or_none(call.get("id")) or f"{position}.{index}"
        row = tool_row(call_id, text_or_none(body.get("name")) or "unknown", json_text(body.get("arguments")), at)
        if message["role"] == "user" or call.get("requestor") == "user":
            row[KIND], row[ORIGIN] = "user", "local_command"
        session.rows.append(row)
        open_calls[call_id] = row


def _result(
    session: Session, message: Record, position: int, text: str | None, at: str | None, open_calls: dict[str, Row]
) -> None:
    call_id = text_or_none(message.get("tool_call_id")) or text_or_none(message.get("id")) or str(position)
    row = open_calls.pop(call_id, None)
    if row is None:
        row = tool_row(call_id, None, None, None)
        if message.get("requestor") == "user":
            row[KIND], row[ORIGIN] = "user", "local_command"
        session.rows.append(row)
    row[OUTPUT], row[END] = text, at
    flag = message.get("error")
    row[IS_ERROR] = flag if type(flag) is bool else None


def content_key(messages: list[Record]) -> str:
    """A short digest of the messages, for runs whose records have no id of their own."""
    data = orjson.dumps(messages, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    return hashlib.blake2b(data, digest_size=6).hexdigest()
