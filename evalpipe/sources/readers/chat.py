"""Messages of any chat interface, in one form.

Belongs here: what one message is (:class:`Message`) and reading it out of the shapes in which model
calls are logged: OpenAI chat and responses, Anthropic blocks, Gemini parts, OpenTelemetry parts,
LangChain's serialisations, OpenInference's nested names, and plain text. Does not belong here: whose
words a message holds, or which of them were said before (``thread.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from evalpipe.sources.readers.base import Record, json_text, word_of
from evalpipe.sources.readers.resent import Items, Texts
from evalpipe.sources.readers.span_values import loads_text, nest
from evalpipe.sources.readers.values import text_of

#: Messages lie this deep inside envelopes at most.
_MAX_DEPTH = 8


class Call(NamedTuple):
    """A tool call that a model asked for."""

    call_id: str | None
    name: str | None
    arguments: str | None


class Message(NamedTuple):
    """One message: ``role`` is user, assistant, system or tool; a tool message answers ``call_id``."""

    role: str
    text: str | None
    calls: tuple[Call, ...] = ()
    call_id: str | None = None
    name: str | None = None
    is_error: bool | None = None


_ROLES = {
    "user": "user", "human": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant", "agent": "assistant", "bot": "assistant",
    "aimessagechunk": "assistant", "aimessage": "assistant", "humanmessage": "user",
    "humanmessagechunk": "user", "systemmessage": "system", "toolmessage": "tool", "functionmessage": "tool",
    "system": "system", "developer": "system",
    "tool": "tool", "function": "tool", "ipython": "tool", "environment": "tool",
}  # fmt: skip

#: Where envelopes keep messages, in the order in which they are asked.
_ENVELOPES = (
    "messages", "contents", "generations", "choices", "candidates", "prompts", "new_message", "message",
    "outputs", "output", "inputs", "input", "question", "query", "prompt", "user_input", "chat_input", "text",
    "content", "final", "answer", "response", "result", "completion", "args", "data",
)  # fmt: skip
_SYSTEM_KEYS = ("system", "system_instruction", "systemInstruction")
_NOT_TEXT = frozenset({"reasoning", "thinking", "redacted_thinking", "image", "image_url", "blob", "file"})
#: How the parts of a message begin where an exporter wrote them out as its text.
_PART_AS_TEXT = ('{"type":"tool_call"', '{"type":"text"', '{"type": "tool_call"', '{"type": "text"')
_SPEAKER = re.compile(r"^(system|user|human|assistant|ai|tool): ", re.M)


def read_messages(value: object, role: str) -> list[Message]:
    """The messages in a logged input or output.

    Args:
        value: What was logged: JSON, JSON as text, Python's repr of it, or plain text.
        role: Who wrote what has no role of its own: ``user`` for inputs, ``assistant`` for outputs.

    Returns:
        Messages in order; empty where the value holds none that can be told.
    """
    if type(value) is str and value[:1] == "[":
        return TEXTS.read(value, role)
    return list(_read(loads_text(value), role, 0))


def _read_list(items: list[Any], role: str) -> list[Message]:
    return list(_read(items, role, 0))


def _read(value: Any, role: str, depth: int) -> Iterator[Message]:
    if depth > _MAX_DEPTH:
        return
    if type(value) is str:
        yield from _plain(value, role)
    elif type(value) is list:
        for item in value:
            yield from ITEMS.read(item, role, depth + 1) if type(item) is dict else _read(item, role, depth + 1)
    elif type(value) is dict:
        yield from _of_dict(value, role, depth)


def _plain(text: str, role: str) -> Iterator[Message]:
    """Plain text, which some instrumentations fill with a whole conversation: ``user: ...``."""
    if _SPEAKER.match(text):
        parts = _SPEAKER.split(text)
        for speaker, words in zip(parts[1::2], parts[2::2], strict=True):
            if words.strip():
                yield Message(_ROLES[speaker], words.rstrip("\n"))
    elif text.strip():
        yield Message(role, text)


def _of_dict(value: Record, role: str, depth: int) -> Iterator[Message]:
    if depth > _MAX_DEPTH:
        return
    if any("." in key for key in value):
        value = nest(value)
    kwargs, kind = value.get("kwargs"), value.get("id")
    if value.get("type") == "constructor" and type(kwargs) is dict and type(kind) is list and kind:
        value = {**kwargs, "role": kwargs.get("role") or word_of(kind[-1])}
    data = value.get("data")
    if type(data) is dict and type(value.get("type")) is str and "content" in data:
        value = {**data, "role": data.get("role") or value["type"]}
    own = _role_of(value)
    if own is not None:
        yield from _message(value, own)
        return
    item = _item(value)
    if item is not None:
        yield item
    else:
        yield from _envelope(value, role, depth)


def _role_of(value: Record) -> str | None:
    for key in ("role", "type"):
        name = value.get(key)
        role = _ROLES.get(name.lower()) if type(name) is str else None
        # A tool definition is of type "function" too; a message has content.
        if role is not None and (key == "role" or not value.keys().isdisjoint({"content", "tool_calls"})):
            return role
    # LangChain's JavaScript callback writes the name of a tool as the role of its result.
    return "tool" if type(value.get("role")) is str and "content" in value else None


def _item(value: Record) -> Message | None:
    """An item of OpenAI's responses interface that is not a message."""
    kind = value.get("type")
    if kind in ("function_call", "custom_tool_call", "mcp_call"):
        call_id = text_of(value.get("call_id")) or text_of(value.get("id"))
        arguments = value.get("arguments", value.get("input"))
        return Message("assistant", None, (Call(call_id, text_of(value.get("name")), json_text(arguments)),))
    if kind in ("function_call_output", "custom_tool_call_output"):
        return Message("tool", json_text(value.get("output")) or "", call_id=text_of(value.get("call_id")))
    return None


def _envelope(value: Record, role: str, depth: int) -> Iterator[Message]:
    config = value.get("config")
    for key in _SYSTEM_KEYS:
        system = value.get(key) or (config.get(key) if type(config) is dict else None)
        for message in _read(loads_text(system), "system", depth + 1) if system else ():
            yield message._replace(role="system")
    for key in _ENVELOPES:
        inner = value.get(key)
        if inner is None or inner == "":
            continue
        found = list(_read(loads_text(inner) if key not in ("text", "content") else inner, role, depth + 1))
        if found:
            yield from found
            return


def _message(value: Record, role: str) -> Iterator[Message]:
    """One message with a role; results of tools inside it become messages of their own."""
    texts: list[str] = []
    calls: list[Call] = []
    results: list[Message] = []
    content = value.get("content")
    for source in (content, value.get("parts"), value.get("contents")):
        _content(source, texts, calls, results)
    known = {call.call_id for call in calls if call.call_id}
    extra = value.get("additional_kwargs")
    for listed in (value.get("tool_calls"), extra.get("tool_calls") if type(extra) is dict else None):
        for call in listed if type(listed) is list else ():
            read = _call(call)
            if read is not None and read.call_id not in known and read not in calls:
                known.add(read.call_id) if read.call_id else None
                calls.append(read)
    text = "\n".join(texts) or None
    if role == "tool" and not results:
        if type(content) is dict and not texts:
            if type(content.get("function")) is dict:
                return  # The definition of a tool, which LangChain's callback lists as a message.
            text = json_text(content)
        status = value.get("status")
        is_error = True if status == "error" else False if status == "success" else None
        call_id = text_of(value.get("tool_call_id")) or text_of(value.get("call_id"))
        yield Message("tool", text or "", (), call_id, text_of(value.get("name")), is_error)
        return
    yield from results
    if text is not None or calls:
        yield Message(role, text, tuple(calls))


def _content(content: Any, texts: list[str], calls: list[Call], results: list[Message]) -> None:
    if type(content) is str:
        as_part = loads_text(content) if content.startswith(_PART_AS_TEXT) else None
        if type(as_part) is dict:
            _part(as_part, texts, calls, results)
        elif content:
            texts.append(content)
        return
    for part in content if type(content) is list else [content] if type(content) is dict else ():
        if type(part) is str:
            texts.append(part)
        elif type(part) is dict:
            _part(part, texts, calls, results)


def _part(part: Record, texts: list[str], calls: list[Call], results: list[Message]) -> None:
    inner = _nested(part).get("message_content")
    part = inner if type(inner) is dict else part
    kind = part.get("type")
    if (type(kind) is str and kind in _NOT_TEXT) or part.get("thought") is True:
        return
    for key in ("function_response", "functionResponse", "toolResult"):
        answer = part.get(key)
        if type(answer) is dict:
            body = json_text(answer.get("response", answer.get("content"))) or ""
            call_id = text_of(answer.get("id")) or text_of(answer.get("toolUseId"))
            results.append(Message("tool", body, (), call_id, text_of(answer.get("name"))))
            return
    if kind in ("tool_result", "tool_call_response", "function_result"):
        flag = part.get("is_error")
        body = next((part[key] for key in ("content", "response", "result", "output") if part.get(key) is not None), "")
        call_id = text_of(part.get("tool_use_id")) or text_of(part.get("id")) or text_of(part.get("call_id"))
        text = _texts(body)
        text = json_text(body) or "" if text is None else text
        is_error = flag if type(flag) is bool else None
        results.append(Message("tool", text, (), call_id, text_of(part.get("name")), is_error))
        return
    call = _call(part)
    if call is not None:
        calls.append(call)
        return
    words = part.get("text", part.get("content"))
    if type(words) is str and words:
        texts.append(words)
    elif type(words) is list and (joined := _texts(words)):
        texts.append(joined)


def _nested(value: Record) -> Record:
    """OpenInference's dotted names inside lists: ``tool_call.function.name``."""
    return nest(value) if any(key.startswith(("tool_call.", "message_content.")) for key in value) else value


def _texts(value: object) -> str | None:
    """The text blocks of a list, joined; ``None`` where it has none."""
    if type(value) is str:
        return value
    blocks = value if type(value) is list else []
    found = [b["text"] for b in blocks if type(b) is dict and type(b.get("text")) is str]
    return "\n".join(found) if found else None


def _call(value: Any) -> Call | None:
    """A tool call in any spelling; ``None`` where the value is none."""
    if type(value) is not dict:
        return None
    value = _nested(value)
    for key in ("tool_call", "function_call", "functionCall", "toolUse"):
        inner = value.get(key)
        if type(inner) is dict:
            value = {"id": value.get("id"), **inner, "type": "tool_call"}
    function = value.get("function")
    kind = value.get("type")
    body = function if type(function) is dict else value
    is_call = function is not None or kind in ("tool_call", "tool_use", "function", "function_call")
    if not (is_call or "args" in value or ("arguments" in value and "name" in value)):
        return None
    name = text_of(body.get("name"))
    if name is None:
        return None
    arguments = next((body[key] for key in ("arguments", "args", "input") if body.get(key) is not None), None)
    call_id = text_of(value.get("id")) or text_of(value.get("call_id")) or text_of(value.get("toolUseId"))
    return Call(call_id, name, json_text(arguments))


ITEMS: Items[Message] = Items(_of_dict)
TEXTS: Texts[Message] = Texts(_read_list)
