"""The formats that evalpipe reads, and which of them a file is.

Belongs here: the list of readers, those that other packages add, and the sniffing of a file's first
bytes. Does not belong here: the formats themselves (``readers/``). To add one: write the module, add
its readers here, and add its row to ``docs/formats.md``; or publish them from a package of your own
under the entry point group ``evalpipe.readers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import orjson
from pydantic_core import from_json

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.sources.readers import (
    agentbench,
    anthropic_stream,
    atif,
    chat_rows,
    claude_code,
    codex,
    coze_loop,
    evalpipe_jsonl,
    gemini_cli,
    gemini_history,
    harbor,
    inspect_log,
    langfuse,
    langsmith,
    managed_agents,
    mcpmark,
    mini_swe_agent,
    mlflow_traces,
    openai_responses,
    opencode,
    openhands,
    otlp,
    phoenix,
    pi_agent,
    public_chats,
    sharegpt,
    specstory,
    swe_agent,
    tau2_bench,
    tau_bench,
    terminal_bench,
    toolbench,
    whowhen,
)
from evalpipe.sources.readers.base import FileContext, Reader
from evalpipe.sources.readers.spans import SpanParser

#: In the order in which they are asked; the first that recognises the file reads it. Formats with
#: unmistakable marks come before those that only say "a list of messages".
READERS: tuple[Reader, ...] = (
    evalpipe_jsonl.READER,
    claude_code.READER,
    codex.READER,
    *gemini_cli.READERS,
    *opencode.READERS,
    pi_agent.READER,
    *openhands.READERS,
    *swe_agent.READERS,
    *mini_swe_agent.READERS,
    *gemini_history.READERS,
    *otlp.READERS,
    *mlflow_traces.READERS,
    *coze_loop.READERS,
    *langfuse.READERS,
    *langsmith.READERS,
    *phoenix.READERS,
    tau2_bench.LINES_READER,
    tau2_bench.READER,
    tau_bench.READER,
    specstory.READER,
    *atif.READERS,
    *harbor.READERS,
    *inspect_log.READERS,
    *terminal_bench.READERS,
    *mcpmark.READERS,
    *toolbench.READERS,
    *agentbench.READERS,
    *whowhen.READERS,
    *managed_agents.READERS,
    *anthropic_stream.READERS,
    *openai_responses.READERS,
    *public_chats.READERS,
    *sharegpt.READERS,
    # Last: what only says "a list of messages".
    *chat_rows.READERS,
)

#: Where other packages name theirs: each entry is a ``Reader`` or a sequence of them.
ENTRY_POINTS = "evalpipe.readers"

#: Bytes at the head of a file that a format is recognised by.
HEAD_BYTES = 1 << 16

# Lines looked at before a file counts as unknown: the first ones may be damaged or mere noise.
_HEAD_LINES = 50


@cache
def added_readers() -> tuple[Reader, ...]:
    """Readers of installed packages, in the order of their entry points' names.

    Raises:
        EvalpipeError: ``BAD_READER`` if an entry point cannot be loaded, gives something else than
            readers, or takes the name of another reader.
    """
    found: list[Reader] = []
    taken = {reader.name for reader in READERS}
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        readers = _load(entry)
        names = {reader.name for reader in readers}
        if names & taken:
            raise EvalpipeError("BAD_READER", f"The name {min(names & taken)} is taken.", where=entry.value)
        taken |= names
        found += readers
    return tuple(found)


def _load(entry: EntryPoint) -> list[Reader]:
    try:
        value = entry.load()
    except Exception as error:  # noqa: BLE001 - whatever a foreign package raises while it is imported
        raise EvalpipeError("BAD_READER", f"It cannot be loaded: {type(error).__name__}.", where=entry.value) from None
    readers = [value] if isinstance(value, Reader) else list(value) if isinstance(value, list | tuple) else []
    if not readers or not all(isinstance(reader, Reader) for reader in readers):
        raise EvalpipeError("BAD_READER", "It is neither a Reader nor a list of Readers.", where=entry.value)
    return readers


def all_readers() -> tuple[Reader, ...]:
    """Own readers, then added ones: a foreign reader cannot take over a format that is known here."""
    return READERS + added_readers()


def reader_versions() -> dict[str, str]:
    """Version of each reader, by name; part of the digest of a batch."""
    return {reader.name: reader.version for reader in all_readers()}


def span_parser(source: str) -> SpanParser:
    """A parser of a trace format that has read nothing yet, to join spans with.

    Raises:
        EvalpipeError: ``BAD_READER`` if there is no such format any more.
    """
    for reader in all_readers():
        if reader.name == source:
            parser = reader.parser(FileContext(""))
            if isinstance(parser, SpanParser):
                return parser
    raise EvalpipeError("BAD_READER", "It read the spans of landed sessions and is not installed.", where=source)


def sniff(head: bytes, failed: list[Reader] | None = None) -> Reader | None:
    """The reader for a file that begins with these bytes (see ``HEAD_BYTES``); ``None``: unknown.

    Args:
        head: First bytes of a file.
        failed: Takes the readers that raised when they were asked; they do not recognise the file.

    A line that can be parsed decides first. Where none can, because the file is one document or its
    first line goes on beyond the head, what can be read of it does: values that the head cuts off
    are read as far as they go.
    """
    readers = tuple(_Asked(reader, [] if failed is None else failed) for reader in all_readers())
    found = _sniff(head, readers)
    return None if found is None else found.reader


class _Asked:
    """A reader that is asked whether a file is its own; raising is no yes."""

    def __init__(self, reader: Reader, failed: list[Reader]) -> None:
        self.reader, self._failed = reader, failed
        self.shape, self.lists, self.array_key = reader.shape, reader.lists, reader.array_key

    def recognise(self, record: Any) -> bool:
        return self._ask(self.reader.recognise, record)

    def hint(self, head: bytes) -> bool:
        return self._ask(self.reader.hint, head)

    def _ask(self, question: Callable[[Any], bool], of: Any) -> bool:
        try:
            return question(of)
        except Exception:  # noqa: BLE001 - readers of other packages raise what they like
            if self.reader not in self._failed:
                self._failed.append(self.reader)
            return False


def _sniff(head: bytes, readers: tuple[_Asked, ...]) -> _Asked | None:
    rows = [line for line in head.split(b"\n", _HEAD_LINES)[:_HEAD_LINES] if line[:1] == b"{"]
    for line in rows:
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        for reader in readers:
            if reader.shape == "lines" and reader.recognise(record):
                return reader
    if found := _sniff_array_line(head, readers):
        return found
    if head.lstrip()[:1] in (b"[", b"{") and (found := _sniff_document(head, readers)):
        return found
    for line in rows:
        part = _partial(line)
        for reader in readers:
            if reader.shape == "lines" and (reader.hint(line) or (type(part) is dict and reader.recognise(part))):
                return reader
    return next((reader for reader in readers if reader.shape == "text" and reader.hint(head)), None)


def _sniff_array_line(head: bytes, readers: tuple[_Asked, ...]) -> _Asked | None:
    """The reader whose lines are arrays, if the first line is one of them."""
    line = head.lstrip().partition(b"\n")[0]
    if line[:1] != b"[":
        return None
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return next((r for r in readers if r.array_key and r.recognise({r.array_key: value})), None)


def _sniff_document(head: bytes, readers: tuple[_Asked, ...]) -> _Asked | None:
    value = _partial(head)
    items = [item for item in value[:_HEAD_LINES] if type(item) is dict] if type(value) is list else []
    # One object over several lines. A first line that the head cuts off may be one of many.
    is_spread = type(value) is dict and b"\n" in head.lstrip().partition(b"{")[2][: HEAD_BYTES - 1]
    for reader in readers:
        if reader.shape == "items":
            if reader.hint(head) or any(map(reader.recognise, items)):
                return reader
            if type(value) is dict and any(map(reader.recognise, _first_items(value, reader))):
                return reader
        elif reader.shape == "whole" and is_spread and (reader.hint(head) or reader.recognise(value)):
            return reader
    return None


def _first_items(value: dict[str, Any], reader: _Asked) -> Iterator[dict[str, Any]]:
    for key in reader.lists:
        listed = value.get(key)
        if type(listed) is list:
            yield from (item for item in listed[:1] if type(item) is dict)


def _partial(data: bytes) -> Any:
    """What can be read of JSON that is cut off; ``None`` where it is not JSON."""
    try:
        return from_json(data, allow_partial="trailing-strings")
    except ValueError:
        return None
