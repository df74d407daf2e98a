"""Anthropic's streaming events, one a line: responses in pieces, with user messages between them.

Belongs here: pieces to messages. Does not belong here: the messages (``chat_messages.py``). A line is
an event, or holds one under ``data``. Of the two counts of tokens the later one holds; a response
that breaks off keeps what had come.
"""

from __future__ import annotations

import orjson

from evalpipe.sources.readers.base import KEPT, NOISE, FileContext, Reader, Record, json_readers, word_of
from evalpipe.sources.readers.chat_messages import ANTHROPIC, AnthropicMessagesParser
from evalpipe.sources.session import text_or_none

_PIECES = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
_TYPES = frozenset({
    "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
    "message_stop",
})  # fmt: skip


class StreamParser(AnthropicMessagesParser):
    """Parser of one file, which is one conversation."""

    # Pieces are put into a message that was gathered already: it must not lie on disk meanwhile.
    is_gathering = False

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self._message: Record = {}
        self._blocks: dict[object, Record] = {}

    def feed(self, record: Record) -> str:
        """Take one event, or a message that stands between the events."""
        data = record.get("data")
        event = data if type(data) is dict else record
        kind = event.get("type")
        if kind == "ping":
            return NOISE
        if type(kind) is not str or kind not in _TYPES:
            return super().feed(event)
        if kind == "message_start":
            return self._start(event)
        if not self._message:
            return NOISE
        if kind == "content_block_start" and type(event.get("content_block")) is dict:
            self._block(event.get("index")).update(event["content_block"])
        elif kind == "content_block_delta" and type(event.get("delta")) is dict:
            self._piece(self._block(event.get("index")), event["delta"])
        elif kind == "content_block_stop":
            self._close(self._block(event.get("index")))
        elif kind == "message_delta" and type(event.get("usage")) is dict:
            before = self._message.get("usage")
            self._message["usage"] = {**(before if type(before) is dict else {}), **event["usage"]}
        if self.current is not None:
            self.current.n_records += 1
        return KEPT

    def spill(self) -> None:
        """Nothing: see ``is_gathering``."""

    def _start(self, event: Record) -> str:
        message = event.get("message")
        body = message if type(message) is dict else {}
        self._blocks = {}
        self._message = {**body, "role": "assistant", "content": []}
        return super().feed(self._message)

    def _block(self, index: object) -> Record:
        key = index if type(index) is int else -1
        if key not in self._blocks:
            self._blocks[key] = {}
            self._message["content"].append(self._blocks[key])
        return self._blocks[key]

    @staticmethod
    def _piece(block: Record, delta: Record) -> None:
        name = _PIECES.get(word_of(delta.get("type")))
        piece = text_or_none(delta.get(name)) if name else None
        if name is not None and piece is not None:
            block.setdefault("pieces", []).append(piece)
            if name == "text":
                block["text"] = (text_or_none(block.get("text")) or "") + piece

    @staticmethod
    def _close(block: Record) -> None:
        """Arguments come as pieces of JSON text."""
        if block.get("type") not in ("tool_use", "server_tool_use", "mcp_tool_use"):
            return
        text = "".join(block.pop("pieces", []))
        try:
            block["input"] = orjson.loads(text) if text else block.get("input")
        except orjson.JSONDecodeError:
            block["input"] = text


def _recognise(record: Record) -> bool:
    data = record.get("data")
    event = data if type(data) is dict else record
    return event.get("type") == "message_start" and "message" in event


READERS = json_readers(Reader(name=ANTHROPIC, version="4", shape="lines", recognise=_recognise, parser=StreamParser))[
    :2
]
