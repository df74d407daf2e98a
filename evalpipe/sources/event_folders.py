"""Folders that hold one session with each event in a file of its own, read as one file of lines.

Belongs here: telling such a folder, the order of its events, their bytes as one stream. Does not
belong here: what an event means (``readers/openhands*.py``).

OpenHands' server keeps ``events/0.json``, ``events/1.json`` and so on, its agent SDK
``events/event-00000-<id>.json``. No single one of them is a session, and a result names its call by
number, so they are joined before they are read: an event becomes a line, in order of numbers. Events
are only ever added, so the stream of a session that went on begins with the stream it was before,
like any log that has grown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson

from evalpipe.sources.readers.openhands import is_any_event

_FOLDER = "events"
_EVENT = re.compile(r"^(?:event-)?(\d+)(?:-[0-9A-Za-z-]+)?\.json$")
_BLOCK = 1 << 20
#: A first event above this is none: OpenHands' begins with a prompt or a message.
_FIRST_BYTES = 16_000_000


def event_names(folder: Path, names: Sequence[str]) -> list[str]:
    """Names of the files that hold the events of one session, in order.

    Args:
        folder: A folder.
        names: Names of the files in it.

    Returns:
        The names by number; empty where the folder is not called ``events``, has no numbered files,
        or the first of them is no event.
    """
    if folder.name != _FOLDER:
        return []
    numbered = sorted((int(match[1]), name) for name in names if (match := _EVENT.match(name)))
    if not numbered or not _holds_event(folder / numbered[0][1]):
        return []
    return [name for _, name in numbered if not (folder / name).is_symlink()]


def event_lines(folder: Path) -> Iterator[bytes]:
    """The events of a folder as JSON lines, in pieces where one is large.

    Line ends inside JSON stand between values only, so that spaces in their place change nothing.

    Raises:
        OSError: A file of the folder cannot be read.
    """
    for name in event_names(folder, [path.name for path in folder.iterdir() if path.is_file()]):
        with (folder / name).open("rb") as file:
            while block := file.read(_BLOCK):
                yield block.replace(b"\r", b" ").replace(b"\n", b" ")
        yield b"\n"


def _holds_event(path: Path) -> bool:
    try:
        if path.stat().st_size > _FIRST_BYTES:
            return False
        record = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return False
    return type(record) is dict and is_any_event(record)
