"""The formats that evalpipe reads, and which of them a file is.

Belongs here: the list of readers and the sniffing of a file's first bytes. Does not belong here:
the formats themselves (``readers/``). To add one: write the module, add its ``READER`` here, and
add its row to ``docs/formats.md``.
"""

from __future__ import annotations

import orjson

from evalpipe.sources.readers import claude_code, codex, evalpipe_jsonl, tau2_bench, tau_bench
from evalpipe.sources.readers.base import Reader

#: In the order in which they are asked; the first that recognises the file reads it.
READERS: tuple[Reader, ...] = (
    evalpipe_jsonl.READER,
    claude_code.READER,
    codex.READER,
    tau2_bench.LINES_READER,
    tau2_bench.READER,
    tau_bench.READER,
)

#: Bytes at the head of a file that a format is recognised by.
HEAD_BYTES = 1 << 16

# Lines looked at before a file counts as unknown: the first ones may be damaged or mere noise.
_HEAD_LINES = 50


def reader_versions() -> dict[str, str]:
    """Version of each reader, by name; part of the digest of a batch."""
    return {reader.name: reader.version for reader in READERS}


def sniff(head: bytes) -> Reader | None:
    """The reader for a file that begins with these bytes (see ``HEAD_BYTES``); ``None``: unknown.

    A line that can be parsed decides first. Where none can, because the file is one document or its
    first line goes on beyond the head, the marks of each format do.
    """
    rows = [line for line in head.split(b"\n", _HEAD_LINES)[:_HEAD_LINES] if line[:1] == b"{"]
    for line in rows:
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        for reader in READERS:
            if not reader.is_document and reader.recognise(record):
                return reader
    if head.lstrip()[:1] in (b"[", b"{"):
        for reader in READERS:
            if reader.is_document and reader.hint(head):
                return reader
    for line in rows:
        for reader in READERS:
            if not reader.is_document and reader.hint(line):
                return reader
    return None
