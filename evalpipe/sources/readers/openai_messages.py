"""Lists of role messages to steps: the shape of OpenAI's chat interface, which many formats store.

Belongs here: roles, tool calls and results, also as Anthropic's content blocks and as the older
``function_call``. Does not belong here: the files and records around the list.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from evalpipe.sources.readers.base import Record, block_text, digest_of, json_text, word_of
from evalpipe.sources.readers.usage import put_usage
from evalpipe.sources.session import (
    END,
    ERROR,
    IS_ERROR,
    KIND,
    NAME,
    ORIGIN,
    OUTPUT,
    Row,
    Session,
    agent_row,
    text_or_none,
    tool_row,
    user_row,
)
from evalpipe.sources.times import normal_time

#: What simulated users write to end a conversation; an instruction to the simulator, not words.
# White space counts from where it begins: tried from each of its characters, much of it takes for ever.
_CONTROL = re.compile(r"(?:(?<!\s)\s+)?###[A-Z-]+###\s*")

_RESULT_BLOCKS = frozenset({"tool_result", "mcp_tool_result", "web_search_tool_result", "code_execution_tool_result"})
_CALL_BLOCKS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})

#: Types of errors that results state, where they say more than that the tool failed.
_ERROR_TYPES = {"timeout": "timeout", "approval": "refused"}


#: Calls without a result, by id.
_Open = dict[str, list[Row]]


def is_message_list(value: object) -> bool:
    """Whether the value is a list of objects with a role."""
    return type(value) is list and all(type(m) is dict and type(m.get("role")) is str for m in value)


def add_messages(session: Session, messages: list[Record]) -> None:
    """Append the steps of a conversation.

    Calls that the *user* makes (tau2's telecom, where the user works a phone) become user steps of
    origin ``local_command``: they are not the agent's doing and must not count as its calls.

    Args:
        session: Takes the steps; its ``model`` stands for messages that name none.
        messages: Objects with a role (see :func:`is_message_list`).
    """
    open_calls: _Open = {}
    for position, message in enumerate(messages):
        at = message.get("timestamp")
        if at is not None and (at := normal_time(at)) is not None:
            session.see(at)
        add = _ROLES.get(message["role"])
        if add is not None:
            content = message.get("content")
            text = content if type(content) is str else block_text(content)
            add(session, message, str(position), text, at, open_calls)
    session.n_messages += len(messages)
    for rows in open_calls.values():
        for row in rows:
            row[ERROR] = "no_result"


def version_of(prompt: str) -> str:
    """A digest that stands for a system prompt."""
    return hashlib.blake2b(prompt.encode(), digest_size=6).hexdigest()


def _system(session: Session, _: Record, __: str, text: str | None, ___: str | None, ____: _Open) -> None:
    # The policy is the same for all sessions of a run: kept as a version, not as text.
    if text:
        session.prompt_version = version_of(text)


def _user(session: Session, message: Record, step_id: str, text: str | None, at: str | None, open_calls: _Open) -> None:
    for block in _blocks(message, _RESULT_BLOCKS):
        _put_result(session, block, text_or_none(block.get("tool_use_id")) or step_id, at, open_calls)
    if text:
        words = _CONTROL.sub("", text) if "###" in text else text
        session.rows.append(user_row(step_id, "human" if words else "meta", words or text, at))
    _calls(session, message, step_id, at, open_calls)


def _assistant(
    session: Session, message: Record, step_id: str, text: str | None, at: str | None, open_calls: _Open
) -> None:
    usage = message.get("usage")
    text = text or text_or_none(message.get("refusal"))
    if text or type(usage) is dict:
        row = agent_row(step_id, text or None, at, text_or_none(message.get("model")) or session.model)
        put_usage(row, usage)
        session.rows.append(row)
    _calls(session, message, step_id, at, open_calls)
    # Tools that the provider runs: their results stand in the agent's own message.
    for block in _blocks(message, _RESULT_BLOCKS):
        _put_result(session, block, text_or_none(block.get("tool_use_id")) or step_id, at, open_calls)


def _calls(session: Session, message: Record, position: str, at: str | None, open_calls: _Open) -> None:
    calls, old = message.get("tool_calls"), message.get("function_call")
    if calls is None and old is None and type(message.get("content")) is not list:
        return
    found = list(calls) if type(calls) is list else []
    if type(old) is dict:
        found.append(old)
    found += _blocks(message, _CALL_BLOCKS)
    for index, call in enumerate(found):
        if type(call) is not dict:
            continue
        function = call.get("function")
        body = function if type(function) is dict else call
        call_id = text_or_none(call.get("id")) or f"{position}.{index}"
        # Inspect has the name where others have an object.
        name = text_or_none(body.get("name")) or text_or_none(function) or "unknown"
        arguments = body["arguments"] if "arguments" in body else body.get("input")
        row = tool_row(call_id, name, json_text(arguments), at)
        if message["role"] == "user" or call.get("requestor") == "user":
            row[KIND], row[ORIGIN] = "user", "local_command"
        session.rows.append(row)
        open_calls.setdefault(call_id, []).append(row)


def _result(
    session: Session, message: Record, position: str, text: str | None, at: str | None, open_calls: _Open
) -> None:
    call_id = text_or_none(message.get("tool_call_id")) or text_or_none(message.get("id"))
    if call_id is None:
        # The older interface links a result to its call by name only.
        name = message.get("name")
        call_id = next((key for key, rows in open_calls.items() if rows[0][NAME] == name), position)
    _put_result(session, message, call_id, at, open_calls)


def _put_result(session: Session, result: Record, call_id: str, at: str | None, open_calls: _Open) -> None:
    # Local models give several calls one id: they are answered in order.
    waiting = open_calls.get(call_id, [])
    row = waiting.pop(0) if waiting else None
    if not waiting:
        open_calls.pop(call_id, None)
    if row is None:
        row = tool_row(call_id, None, None, None)
        if result.get("requestor") == "user":
            row[KIND], row[ORIGIN] = "user", "local_command"
        session.rows.append(row)
    content = result.get("content")
    row[OUTPUT], row[END] = json_text(content) if type(content) is dict else block_text(content), at
    flag = result.get("error", result.get("is_error"))
    row[IS_ERROR] = flag if type(flag) is bool else None
    if type(flag) is dict:
        row[IS_ERROR] = True
        row[ERROR] = _ERROR_TYPES.get(word_of(flag.get("type")), "tool_error")
        row[OUTPUT] = row[OUTPUT] or text_or_none(flag.get("message"))


def _blocks(message: Record, types: frozenset[str]) -> list[Record]:
    content = message.get("content")
    if type(content) is not list:
        return []
    return [b for b in content if type(b) is dict and type(b.get("type")) is str and b["type"] in types]


_Add = Callable[[Session, Record, str, "str | None", "str | None", "_Open"], None]
_ROLES: dict[str, _Add] = {
    "system": _system, "developer": _system, "user": _user, "assistant": _assistant, "tool": _result,
    "function": _result,
}  # fmt: skip


def content_key(messages: list[Record]) -> str:
    """A short digest of the messages, for runs whose records have no id of their own."""
    return digest_of(messages)
