"""What is held of the sessions that are open while a file is read, and how that is bounded.

Belongs here: which sessions are over, and which wait for a second reading because too much is open at
the same time. Does not belong here: what becomes of sessions (``parse.py``), or formats that gather
over the whole file by themselves (``readers/gathering.py``).

A session is over when no later line names it. Where even so much is open that it cannot be held, the
sessions that end last are put off: nothing of them is kept in the first reading, and a second one
sorts their lines by session on disk, so that each session is read by itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np

from evalpipe.sources.feed import feed_block
from evalpipe.sources.ledger import Ledger
from evalpipe.sources.lines import Block, line_blocks
from evalpipe.sources.readers.base import FileContext, Parser, Reader
from evalpipe.sources.session import ARGUMENTS, OUTPUT, TEXT, Session
from evalpipe.sources.spool import Spool
from evalpipe.sources.streams import STREAM_ERRORS, Member

#: What is held at most, in units of ``held_bytes``; half of it stays when sessions are put off.
_MOST_HELD = 3
#: What a row weighs beside its texts.
_ROW_BYTES = 700
#: Ids noted one by one before they are packed.
_UNPACKED = 100_000
#: Lines of one session fed at a time.
_LINES = 2_000


class Holding:
    """The open sessions of one file or member.

    Args:
        member: Where the bytes can be read again.
        reader: Its reader.
        ledger: Its ledger, for the limits.

    Attributes:
        put_off: Ids (in the log) of sessions that wait for the second reading.
    """

    def __init__(self, member: Member, reader: Reader, ledger: Ledger) -> None:
        self.put_off: set[str] = set()
        self._member, self._reader, self._ledger = member, reader, ledger
        self._options = ledger.options
        self._next_look = self._options.held_bytes
        self._last: LastLines | None = None

    def is_too_much(self, parser: Parser, n_bytes: int) -> bool:
        """Whether a session is larger than can be held, in a format that does not tell sessions apart by line."""
        reader = self._reader
        is_bounded = reader.is_one_record_a_session or reader.session_key is not None or parser.is_gathering
        return not is_bounded and self._options.spool is not None and n_bytes > self._options.max_session_bytes

    def over(self, parser: Parser, n_bytes: int, next_line: int) -> list[str]:
        """Ids of the sessions that are over; sessions that must wait are emptied.

        Args:
            parser: Holds the sessions.
            n_bytes: Bytes read so far.
            next_line: Number of the next line.
        """
        key = self._reader.session_key
        if self._reader.is_one_record_a_session:
            return list(parser.sessions)
        if key is None or n_bytes <= min(self._options.chunk_bytes, self._options.held_bytes):
            return []
        if len(parser.sessions) > 1 and self._last is None:
            self._last = last_lines(self._member, self._reader, self._ledger)
        last = self._last
        if self._options.spool is not None:
            if n_bytes >= self._next_look:
                self._look(parser, n_bytes)
            for name in self.put_off & parser.sessions.keys():
                parser.empty(parser.sessions[name])
        return [] if last is None else [name for name in parser.sessions if last.of(name) < next_line]

    def _look(self, parser: Parser, n_bytes: int) -> None:
        """Put sessions off where too much is held, those first that end last."""
        options, last = self._options, self._last
        most = _MOST_HELD * options.held_bytes
        sizes = {name: _size(session) for name, session in parser.sessions.items() if name not in self.put_off}
        held = sum(sizes.values())
        is_much = held > most
        ranked = sorted(sizes, key=lambda name: (last.of(name) if last else 0, name), reverse=True)
        for place, name in enumerate(ranked):
            is_last = place == len(ranked) - 1
            if sizes[name] > options.max_session_bytes or (is_much and held > most // 2 and not is_last):
                self.put_off.add(name)
                held -= sizes[name]
        # What is held grows by what is read at most.
        self._next_look = n_bytes + max(options.held_bytes, most - held)

    def second_reading(
        self, context: FileContext, too_large: list[str], not_found: list[str]
    ) -> Iterator[tuple[Parser, str]]:
        """Read the sessions that were put off, each by itself.

        Args:
            context: Of the file.
            too_large: Takes the ids of sessions that are larger than can be held.
            not_found: Takes the ids of sessions that no line names as the first reading did.

        Yields:
            A parser, and the id of the one session of it that is whole.
        """
        if not self.put_off:
            return
        lost = set(self.put_off)
        for group, beyond in self._sorted_lines(context).groups():
            too_large += [session.key for session in beyond]
            lost -= {session.key for session in beyond}
            for name in sorted(group):
                parser = self._reader.parser(context)
                lines = group.pop(name)
                # What is wrong with them was told in the first reading.
                unheard = Ledger(self._ledger.file, self._ledger.member, self._options)
                for start in range(0, len(lines), _LINES):
                    part = lines[start : start + _LINES]
                    lines[start : start + _LINES] = [b""] * len(part)
                    feed_block(Block(0, 1, part), self._reader, parser, unheard, None)
                if name in parser.sessions:
                    lost.discard(name)
                    yield parser, name
        not_found += sorted(lost)

    def _sorted_lines(self, context: FileContext) -> Spool:
        key, options = self._reader.session_key, self._options
        assert key is not None
        wanted = {name.encode("utf-8", "surrogatepass"): name for name in self.put_off}
        spool = Spool(context.spool)
        n_bytes = 0
        with ExitStack() as stack:
            # Where the stream breaks, the first reading told so.
            try:
                for block in line_blocks(self._member.reopen(stack), options.max_record_bytes, self._ledger.hasher):
                    for line in block.lines if isinstance(block, Block) else ():
                        for found in wanted.keys() & _names_in(line, key):
                            spool.put(wanted[found], line)
                            n_bytes += len(line)
                    if n_bytes > options.held_bytes:
                        spool.spill()
                        n_bytes = 0
            except STREAM_ERRORS:
                pass
        spool.spill()
        return spool


def _size(session: Session) -> int:
    n_bytes = _ROW_BYTES * len(session.rows)
    for row in session.rows:
        for slot in (TEXT, ARGUMENTS, OUTPUT):
            if type(row[slot]) is str:
                n_bytes += len(row[slot])
    return n_bytes


class LastLines:
    """The last line that names each session, packed: a file may hold millions of short sessions."""

    def __init__(self) -> None:
        self._new: dict[bytes, int] = {}
        self._names = np.empty(0, np.uint64)
        self._lines = np.empty(0, np.int64)
        self._asked: dict[str, int] = {}

    def note(self, name: bytes, line: int) -> None:
        """Take one place where a session is named; lines come in order."""
        self._new[name] = line
        if len(self._new) > _UNPACKED:
            self.pack()

    def pack(self) -> None:
        """Called after the last line, too."""
        names = np.concatenate([self._names, np.fromiter(map(_packed, self._new), np.uint64, len(self._new))])
        lines = np.concatenate([self._lines, np.fromiter(self._new.values(), np.int64, len(self._new))])
        order = np.argsort(names, kind="stable")
        names, lines = names[order], lines[order]
        # Of equal names the last is the latest.
        is_last = np.append(names[1:] != names[:-1], True)[: len(names)]
        self._names, self._lines, self._new = names[is_last], lines[is_last], {}

    def of(self, name: str) -> float:
        """Number of the last line that names a session; infinite for one that no line names plainly."""
        known = self._asked.get(name)
        if known is not None:
            return known
        packed = _packed(name.encode("utf-8", "surrogatepass"))
        place = int(np.searchsorted(self._names, np.uint64(packed)))
        if place == len(self._names) or int(self._names[place]) != packed:
            return float("inf")
        if len(self._asked) > _UNPACKED:
            self._asked.clear()
        self._asked[name] = int(self._lines[place])
        return self._asked[name]


def _names_in(line: bytes, key: re.Pattern[bytes]) -> set[bytes]:
    """Ids in a line, as they are and not as JSON may spell them."""
    return {_plain(found) if b"\\" in found else found for found in key.findall(line)}


def _plain(spelt: bytes) -> bytes:
    try:
        return str(json.loads(b'"' + spelt + b'"')).encode("utf-8", "surrogatepass")
    except ValueError:
        return spelt  # the line is no JSON, and is quarantined as such


def _packed(name: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big")


def last_lines(member: Member, reader: Reader, ledger: Ledger) -> LastLines:
    """The last line that names each session, from a reading of the file of its own.

    A line may name ids in places that are not the session's own. That only keeps a session open
    for longer, never closes it too early.
    """
    last = LastLines()
    key = reader.session_key
    assert key is not None
    with ExitStack() as stack:
        try:
            for block in line_blocks(member.reopen(stack), ledger.options.max_record_bytes, ledger.hasher):
                for number, line in enumerate(block.lines, block.number) if isinstance(block, Block) else ():
                    for found in _names_in(line, key):
                        last.note(found, number)
        except STREAM_ERRORS:
            return LastLines()
    last.pack()
    return last
