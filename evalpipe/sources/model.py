"""What goes into and comes out of reading: files, batches, options, chunks.

Belongs here: plain picklable values that cross a process border. Does not belong here: how a file
is found (``discover.py``), opened (``streams.py``) or parsed (``readers/``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import polars as pl

from evalpipe.contracts.edge import EdgeTerms


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One input file.

    Attributes:
        path: Where its bytes are.
        n_bytes: Size on disk.
        digest: BLAKE2b of the bytes (32 hex digits), or of the name where the bytes cannot be read.
        code: Quarantine code, where the bytes could not or must not be read when the digest was taken.
        uri: ``s3://bucket/key`` of an object, whose bytes are a copy; empty for a file of this machine.
    """

    path: Path
    n_bytes: int
    digest: str
    code: str = ""
    uri: str = ""

    @property
    def name(self) -> str:
        """What the person who named the source calls it."""
        return self.uri or str(self.path)


@dataclass(frozen=True, slots=True)
class Batch:
    """Files that are parsed together, and a digest of their digests and of the reader versions."""

    files: tuple[SourceFile, ...]
    digest: str


def nobody(user_id: str | None, tenant: str | None, source: str, session_id: str, parent: str | None) -> bool:
    """Whose sessions are left out where nobody was erased: nobody's."""
    del user_id, tenant, source, session_id, parent
    return False


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What reading depends on beyond the bytes.

    Attributes:
        first_day: First day of the home; an earlier session is quarantined ``DATE_OUT_OF_RANGE``.
        today: UTC day of the run; a session that starts after the next day is ``FUTURE_DATE``.
        undated_day: Day that sessions without any date are given.
        digest_key: Key of the digests in quarantine, at most 64 bytes.
        max_record_bytes: A longer record is skipped by streaming.
        chunk_bytes: Text after which a chunk is closed.
        held_bytes: Input after which what is gathered over a whole file goes to disk.
        max_session_bytes: A session that was logged in more bytes is quarantined ``SESSION_TOO_LARGE``.
        spool: Folder that nobody else may read, for temporary files with raw text; ``None`` to hold
            everything in memory, whatever the size of the file.
        is_erased: Tells of a session's user, tenant, source, id and parent's id whether it belongs to somebody
            who was erased; its records count as noise. Picklable.
        edge: Terms under which edge files are read; without any, none is.
    """

    first_day: date
    today: date
    undated_day: date
    digest_key: bytes
    max_record_bytes: int = 64_000_000
    chunk_bytes: int = 64_000_000
    held_bytes: int = 32_000_000
    max_session_bytes: int = 128_000_000
    spool: Path | None = None
    is_erased: Callable[[str | None, str | None, str, str, str | None], bool] = nobody
    edge: EdgeTerms | None = None

    def out_of_range(self, day: date) -> str:
        """Code of a session that starts on a day that the home cannot hold; empty for all others."""
        if day < self.first_day:
            return "DATE_OUT_OF_RANGE"
        return "FUTURE_DATE" if day > self.today + timedelta(days=1) else ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Frames of ``raw.sessions``, ``raw.steps``, ``raw.quarantine``, ``raw.files`` and ``raw.vectors``.

    Each has one more, leading column ``day``. A session is whole in one chunk; sessions, steps and
    vectors bear ``copy`` before their own columns, which numbers the copies of a session in the chunk;
    sessions bear ``said_digest``, ``first_step_at``, and ``extraction`` where they come from an edge
    file. Which copy counts is decided by whoever joins chunks.
    """

    sessions: pl.DataFrame
    steps: pl.DataFrame
    quarantine: pl.DataFrame
    files: pl.DataFrame
    vectors: pl.DataFrame
