"""Conversations in ShareGPT's shape: ``conversations`` of ``from`` and ``value``.

Belongs here: the names of the speakers and the two kinds of tool turns. The format is undated and
names neither model nor user; a row may name a ``model``. Ids such as ``identity_0`` are unique in
their file only, so a digest of the conversation is part of the session's id.
"""

from __future__ import annotations

import orjson

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    NOT_A_RECORD,
    Record,
    RowParser,
    digest_of,
    json_readers,
    row_reader,
)
from evalpipe.sources.readers.chat_rows import tool_names
from evalpipe.sources.readers.openai_messages import add_messages, version_of
from evalpipe.sources.session import Session, text_or_none

SOURCE = "sharegpt"

_ROLES = {
    "human": "user", "user": "user", "gpt": "assistant", "chatgpt": "assistant", "assistant": "assistant",
    "bing": "assistant", "bard": "assistant", "model": "assistant", "system": "system", "tool": "tool",
    "observation": "tool", "function_response": "tool", "function_call": "call",
}  # fmt: skip


class ShareGptParser(RowParser):
    """Parser of one file of conversations."""

    def read(self, record: Record) -> Session | str:
        """Take one conversation."""
        turns = record.get("conversations")
        if turns is None:
            return NOT_A_RECORD
        if type(turns) is not list or not all(type(t) is dict and type(t.get("from")) is str for t in turns):
            return BAD_FIELD
        own = text_or_none(record.get("id"))
        key = digest_of(turns)
        session = Session(SOURCE, f"{own}/{key}" if own else key, SOURCE)
        session.model = text_or_none(record.get("model"))
        tools = record.get("tools")
        session.tools = tool_names(_parsed(tools) if type(tools) is str else tools)
        prompt = record.get("system")
        if type(prompt) is str and prompt:
            session.prompt_version = version_of(prompt)
        add_messages(session, [message for n, turn in enumerate(turns) if (message := _message(turn, turns, n))])
        return session


def _message(turn: Record, turns: list[Record], position: int) -> Record | None:
    role = _ROLES.get(turn["from"].lower())
    value = turn.get("value")
    if role is None:
        return None
    if role == "call":
        called = _parsed(value)
        calls = called if type(called) is list else [called]
        named = [c for c in calls if type(c) is dict]
        call_ids = [{**c, "id": f"call{position}.{n}"} for n, c in enumerate(named)]
        return {"role": "assistant", "content": None if named else value, "tool_calls": call_ids}
    message = {"role": role, "content": value}
    if role == "tool":
        # Results bear no id: they answer the calls before them in order.
        start = position
        while start and _ROLES.get(turns[start - 1]["from"].lower()) == "tool":
            start -= 1
        message["tool_call_id"] = f"call{start - 1}.{position - start}"
    return message


def _parsed(text: object) -> object:
    if type(text) is not str:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _recognise(record: Record) -> bool:
    turns = record.get("conversations")
    first = turns[0] if type(turns) is list and turns else None
    return type(first) is dict and type(first.get("from")) is str


READERS = json_readers(row_reader(SOURCE, _recognise, ShareGptParser))
