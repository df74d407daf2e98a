"""Which of the files that were found are new, each with its bytes on this machine.

Belongs here: digests against the landing index, and copies of objects, a few ahead of the reading.
Does not belong here: parsing and committing (``steps/land.py``).

A file of this machine is named by the bytes that it has, so it is read to its end on every run. An
object costs money and time to read, so it is taken for the same while its size and time of writing are,
and copied only where the store gives it another name (ETag, version) than before. It is copied once,
whole, and what is parsed is the copy: a state that is replaced meanwhile is never mixed with the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

from evalpipe import sources
from evalpipe.sources import SourceFile, StoredObject, buckets
from evalpipe.sources.buckets import Copied
from evalpipe.steps.context import Context
from evalpipe.store.files import own_staging
from evalpipe.store.objects import KnownObject, is_old_mention

#: Objects that are copied at once, and that may wait for the reading, besides the limit in bytes.
_AT_ONCE, _AHEAD = 8, 64

#: An object that was written this recently may be replaced within the same second, by the store's clock.
_SETTLED = timedelta(seconds=60)

#: So many objects are read before what is known of them is written down.
_NOTED_AT = 5_000

_COPY = "object-"


class Intake:
    """The new ones of the files that were found; to be closed when they are landed.

    Args:
        context: The open home.
        found: What lies under the sources, in order.
    """

    def __init__(self, context: Context, found: Sequence[sources.Found]) -> None:
        self._context = context
        self._known = context.landing.known_files(context.readers)
        now = datetime.now(UTC)
        self._today = now.date()
        self._settled_ns = int((now - _SETTLED).timestamp() * 1e9)
        self._memory = context.objects.known({item.place for item in found if isinstance(item, StoredObject)})
        self._noted: dict[str, KnownObject] = {}
        #: Files that may be new: those of this machine are, and objects are unless their bytes are known.
        self.candidates = [item for place in found if (item := self._candidate(place)) is not None]

    @property
    def has_objects(self) -> bool:
        """Whether an object may have to be copied."""
        return any(isinstance(item, StoredObject) for item in self.candidates)

    def _candidate(self, item: sources.Found) -> SourceFile | StoredObject | None:
        if isinstance(item, Path):
            file = sources.fingerprint(item)
            if file.digest in self._known:
                return None
            file = sources.welcome(file, self._context.edge_terms)
            return None if file.digest in self._known else file
        seen = self._memory.get(item.place)
        if seen is None or seen.digest not in self._known or not _is_state(seen, item):
            return item
        if is_old_mention(seen, self._today):
            self._note(item.place, seen.n_bytes, seen.mtime_ns, seen.etag, seen.digest)
        return None

    def fresh(self) -> Generator[SourceFile]:
        """New files in order, each content once. A copy of an object is the caller's to delete.

        Raises:
            EvalpipeError: ``SOURCE_DENIED`` or ``SOURCE_UNREACHABLE``.
        """
        seen: set[str] = set()
        try:
            with self._copying() as files:
                for found in files:
                    is_new_object = found.uri and found.digest not in self._known
                    file = sources.welcome(found, self._context.edge_terms) if is_new_object else found
                    if file.digest not in self._known and file.digest not in seen:
                        seen.add(file.digest)
                        yield file
                    elif file.uri:
                        file.path.unlink(missing_ok=True)
        finally:
            self._write_down()

    def close(self) -> None:
        """Delete the copies that nobody landed; only after the last batch is done with them."""
        for path in own_staging(self._context.lake.staging).glob(f"{_COPY}*"):
            path.unlink(missing_ok=True)

    @contextmanager
    def _copying(self) -> Iterator[Iterator[SourceFile]]:
        pool, stop = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="copy"), Event()

        def copy(item: StoredObject, target: Path) -> Future[Copied]:
            return pool.submit(buckets.copy, item, target, self._etag(item), stop)

        try:
            yield self._ahead(copy)
        finally:
            # A person who interrupts does not wait for objects of gigabytes.
            stop.set()
            pool.shutdown(cancel_futures=True)

    def _ahead(self, copy: Callable[[StoredObject, Path], Future[Copied]]) -> Iterator[SourceFile]:
        """Files in order, while the objects after them are being copied."""
        folder = own_staging(self._context.lake.staging)
        rest = iter(self.candidates)
        waiting: deque[tuple[StoredObject, Path, Future[Copied]] | SourceFile] = deque()
        n_ahead, is_end = 0, False
        while waiting or not is_end:
            while not is_end and len(waiting) < _AHEAD and (n_ahead < self._context.settings.batch_bytes):
                item = next(rest, None)
                if item is None:
                    is_end = True
                elif isinstance(item, SourceFile):
                    waiting.append(item)
                else:
                    target = folder / f"{_COPY}{item.place}"
                    waiting.append((item, target, copy(item, target)))
                    n_ahead += item.n_bytes
            if not waiting:
                return
            first = waiting.popleft()
            if isinstance(first, SourceFile):
                yield first
                continue
            n_ahead -= first[0].n_bytes
            if (file := self._copied(*first)) is not None:
                yield file

    def _etag(self, item: StoredObject) -> str:
        seen = self._memory.get(item.place)
        return seen.etag if seen is not None and seen.digest in self._known else ""

    def _copied(self, item: StoredObject, target: Path, future: Future[Copied]) -> SourceFile | None:
        copied = future.result()
        digest = copied.digest
        if not copied.is_copied and copied.etag:
            digest = self._memory[item.place].digest
        elif not digest:
            target.unlink(missing_ok=True)
            return sources.unread_object(item, target)
        is_listed = copied.n_bytes == item.n_bytes and item.mtime_ns < self._settled_ns
        self._note(item.place, copied.n_bytes, item.mtime_ns if is_listed else -1, copied.etag, digest)
        return SourceFile(target, copied.n_bytes, digest, uri=str(item)) if copied.is_copied else None

    def _note(self, place: str, n_bytes: int, mtime_ns: int, etag: str, digest: str) -> None:
        self._noted[place] = KnownObject(n_bytes, mtime_ns, etag, digest, self._today)
        if len(self._noted) >= _NOTED_AT:
            self._write_down()

    def _write_down(self) -> None:
        self._context.objects.note(self._noted, self._today)
        self._noted = {}


def _is_state(seen: KnownObject, item: StoredObject) -> bool:
    return (seen.n_bytes, seen.mtime_ns) == (item.n_bytes, item.mtime_ns)
