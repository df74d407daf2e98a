"""The reading balance of one file or archive member, and what of it was quarantined.

Belongs here: counts and quarantine rows. Does not belong here: deciding what a record is.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import date
from typing import Any

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.names import printable_name
from evalpipe.sources.chunk import ChunkBuilder
from evalpipe.sources.lines import Hasher
from evalpipe.sources.model import ReadOptions, SourceFile
from evalpipe.sources.readers.base import Reader
from evalpipe.sources.streams import BLOCK, STREAM_ERRORS, Peeked

# More bad rows than this are handed on before the file is read to its end.
_WAITING_ROWS = 50_000


class Ledger:
    """Counts every record of one file or archive member exactly once."""

    def __init__(self, file: SourceFile, member: str, options: ReadOptions) -> None:
        self.file = file
        self.source_file = printable_name(file.name)
        self.member = member
        self.options = options
        self.reader: Reader | None = None
        self.n_bytes = 0
        self.n_read = 0
        self.n_kept = 0
        self.n_noise = 0
        self.n_quarantined = 0
        self.n_sessions = 0
        self.first_day: date | None = None
        self._rows: list[tuple[Any, ...]] = []

    @property
    def source(self) -> str:
        """Name of the reader, or 'unknown'."""
        return self.reader.name if self.reader else "unknown"

    @property
    def day(self) -> date:
        """Day of the first session found in the file, else the day for what has no date."""
        return self.first_day or self.options.undated_day

    def hasher(self) -> Hasher:
        """A keyed digest: equal records are seen to be equal, and nobody can guess their bytes."""
        return hashlib.blake2b(key=self.options.digest_key, digest_size=16)

    def digest(self, data: bytes) -> str:
        """Keyed digest of a record."""
        hasher = self.hasher()
        hasher.update(data)
        return hasher.hexdigest()

    def quarantine(self, code: str, offset: int, line: int, n_bytes: int, digest: str, session_id: str = "") -> None:
        """Note one record that is not kept."""
        self.n_quarantined += 1
        self._rows.append((
            self.file.digest, self.source_file, self.member, self.source, offset, line, code, session_id,
            n_bytes, digest,
        ))  # fmt: skip

    def quarantine_file(self, code: str) -> None:
        """Note something that concerns the file as a whole; counts as one record read."""
        self.n_read += 1
        place = f"{self.file.digest}/{self.member}".encode()
        self.quarantine(code, self.n_bytes, 0, 0, self.digest(place))

    def quarantine_rest(self, stream: Peeked, code: str) -> None:
        """Note a file that no reader takes, with its size.

        What is one line above the limit is ``RECORD_TOO_LARGE``: its format cannot be known.
        """
        hasher = self.hasher()
        is_one_line = stream.peek(1) == b"{"
        rest = b""
        try:
            while block := stream.read(BLOCK):
                hasher.update(block)
                is_one_line = is_one_line and b"\n" not in rest
                rest = block.rstrip()
        except STREAM_ERRORS:
            code = "UNREADABLE_FILE"
        is_one_line = is_one_line and b"\n" not in rest
        if is_one_line and code == "UNKNOWN_FORMAT" and stream.n_read > self.options.max_record_bytes:
            code = "RECORD_TOO_LARGE"
        self.n_read += 1
        self.n_bytes = stream.n_read
        self.quarantine(code, 0, int(code == "RECORD_TOO_LARGE"), stream.n_read, hasher.hexdigest())

    def quarantine_all(self, stream: Peeked, code: str, session_id: str) -> None:
        """Note a file that is one record too large to be kept, in place of the records read so far."""
        with suppress(*STREAM_ERRORS):
            while stream.read(BLOCK):
                pass
        self.n_bytes = stream.n_read
        self.n_kept = self.n_noise = 0
        self.n_read = self.n_quarantined + 1
        place = f"{self.file.digest}/{self.member}".encode()
        self.quarantine(code, 0, 0, self.n_bytes, self.digest(place), session_id)

    def flush(self, builder: ChunkBuilder, *, is_end: bool) -> None:
        """Hand quarantine rows to the builder once there are many, or at the end of the file."""
        if self._rows and (is_end or len(self._rows) > _WAITING_ROWS):
            builder.add_quarantine(self.day, self._rows)
            self._rows = []

    def close(self, builder: ChunkBuilder) -> None:
        """Check the balance and hand everything to the builder.

        Raises:
            EvalpipeError: ``ROWS_UNACCOUNTED`` if a record was lost or counted twice.
        """
        if self.n_read != self.n_kept + self.n_noise + self.n_quarantined:
            raise EvalpipeError(
                "ROWS_UNACCOUNTED",
                f"Reader {self.source}: {self.n_read} read, {self.n_kept} kept, {self.n_noise} noise, "
                f"{self.n_quarantined} quarantined.",
                where=self.file.digest,
            )
        self.flush(builder, is_end=True)
        version = self.reader.version if self.reader else ""
        builder.add_file(self.day, (
            self.file.digest, self.source_file, self.member, self.source, version, self.n_bytes, self.n_read,
            self.n_kept, self.n_noise, self.n_quarantined, self.n_sessions,
        ))  # fmt: skip
