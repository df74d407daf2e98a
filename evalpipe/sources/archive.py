"""Members of a tar archive, as streams, in one pass.

Belongs here: headers, names, sizes, what is unsafe. Does not belong here: what wraps the archive or
its members (``streams.py``).
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator

from evalpipe.contracts.names import printable_name
from evalpipe.sources.inflate import Readable

TAR_BLOCK = 512

_BLOCK = 1 << 18
_LONGEST_NAME = 1 << 16
_PAX_TYPES = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_PAX_HEAD = re.compile(rb"(\d{1,10}) ([^=\n]+)=")


def is_tar(block: bytes) -> bool:
    """Whether a first block of :data:`TAR_BLOCK` bytes begins an archive."""
    return len(block) == TAR_BLOCK and block[257:262] == b"ustar"


class _Section:
    """The bytes of one archive member; what is left unread is skipped by ``drain``."""

    def __init__(self, source: Readable, size: int) -> None:
        self._source = source
        self._left = size
        self._padding = -size % TAR_BLOCK

    def read(self, size: int, /) -> bytes:
        if not self._left:
            return b""
        block = self._source.read(min(size, self._left))
        if not block:
            raise EOFError("archive ends inside a member")
        self._left -= len(block)
        return block

    def drain(self) -> None:
        while self.read(_BLOCK):
            pass
        while self._padding and (block := self._source.read(self._padding)):
            self._padding -= len(block)


def tar_members(source: Readable) -> Iterator[tuple[str, _Section | None, str]]:
    """(name, stream, code) of each member.

    Reads headers itself: ``tarfile`` ends quietly at a damaged header and hides all later members.
    Here a damaged header is reported once, and reading goes on at the next header that is whole.
    """
    used: dict[str, int] = {}
    long_name, long_size = "", -1
    is_lost = False
    while block := _exactly(source, TAR_BLOCK):
        if not block.strip(b"\0"):
            continue
        info = _header(block)
        if info is None:
            if not is_lost:
                yield _distinct("", used), None, "UNREADABLE_FILE"
            is_lost = True
            continue
        is_lost = False
        if info.type == tarfile.GNUTYPE_LONGNAME:
            long_name = _whole(_Section(source, info.size)).rstrip(b"\0").decode("utf-8", "surrogateescape")
        elif info.type in _PAX_TYPES:
            facts = _pax(_whole(_Section(source, info.size)))
            long_name = facts.get(b"path", b"").decode("utf-8", "surrogateescape") or long_name
            long_size = int(facts[b"size"]) if facts.get(b"size", b"").isdigit() else -1
        elif info.type in (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK):
            _Section(source, info.size).drain()
        else:
            section = _Section(source, long_size if long_size >= 0 else info.size)
            name = long_name or info.name
            long_name, long_size = "", -1
            if not info.isdir():
                is_safe = info.isreg() and _is_inside(name)
                yield _distinct(name, used), section if is_safe else None, "" if is_safe else "UNSAFE_PATH"
            section.drain()


def _header(block: bytes) -> tarfile.TarInfo | None:
    try:
        info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return None
    # A negative size can be written down, and would make the reader go back or on for ever.
    return info if info.size >= 0 else None


def _exactly(source: Readable, size: int) -> bytes:
    block = source.read(size)
    while len(block) < size and (more := source.read(size - len(block))):
        block += more
    if 0 < len(block) < size:
        raise EOFError("archive ends inside a header")
    return block


def _whole(section: _Section) -> bytes:
    data = b""
    while len(data) < _LONGEST_NAME and (block := section.read(_LONGEST_NAME)):
        data += block
    section.drain()
    return data


def _pax(data: bytes) -> dict[bytes, bytes]:
    """The facts of an extended header: ``LENGTH KEY=VALUE`` lines whose values may hold newlines."""
    facts: dict[bytes, bytes] = {}
    at = 0
    while match := _PAX_HEAD.match(data, at):
        end = at + int(match[1])
        if end <= match.end() or end > len(data):
            break
        facts[match[2]] = data[match.end() : end - 1]
        at = end
    return facts


def _is_inside(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")
    return bool(name) and not name.startswith(("/", "\\")) and ".." not in parts and name[1:2] != ":"


def _distinct(name: str, used: dict[str, int]) -> str:
    # Archives may hold a name twice, and the name is a key.
    name = printable_name(name) or "(damaged)"
    used[name] = used.get(name, 0) + 1
    return name if used[name] == 1 else f"{name}#{used[name]}"
