"""What is gathered by key over a whole file, in bounded memory: on disk once there is much of it.

Belongs here: partitions in a temporary file. Does not belong here: what is gathered, or when there is
too much of it (``parse.py`` says so).

The spans of a trace, or the lines of a session, may stand anywhere in a file. What was read is written
in pieces, each into one of many partitions by its key, and afterwards the partitions come back one by
one, each small enough to be held. Without a spill nothing is written and all comes back at once.

The temporary file holds raw text. It lies in the folder that is given, only its owner may open it, and
it has no name, so that it is gone with the process however that ends.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import zstandard

from evalpipe.contracts.errors import EvalpipeError

#: Room for values that nest as deep as they are read; far below what fits the stack of a process.
_PICKLE_LEVELS = 10_000
#: Partitions of one level; one that is still too large is partitioned again.
_PARTITIONS = 256


@dataclass(frozen=True, slots=True)
class SpoolOptions:
    """Where a spool writes, and how much of it is held at a time.

    Attributes:
        folder: Folder of the temporary files, which nobody else may read.
        partition_bytes: Pickled bytes of a partition that are loaded together.
        key_bytes: Pickled bytes of one key above which it is not loaded at all.
    """

    folder: Path
    partition_bytes: int
    key_bytes: int


@dataclass(frozen=True, slots=True)
class Oversized:
    """A key with more than can be loaded; its items can only be walked through, once.

    Attributes:
        key: The key.
        items: Its items in the order in which they were put, one spill at a time.
    """

    key: str
    items: Iterator[Any]


class Spool:
    """Items by key.

    Args:
        options: Where to write; ``None`` to hold everything in memory.
        level: How often the keys were partitioned before.
    """

    def __init__(self, options: SpoolOptions | None, level: int = 0) -> None:
        self._options = options
        self._level = level
        self._held: dict[str, list[Any]] = {}
        self._file: IO[bytes] | None = None
        #: Place and length of the pieces of each partition, in the order in which they were written.
        self._pieces: list[list[tuple[int, int]]] = [[] for _ in range(_PARTITIONS)]
        self._n_bytes = [0] * _PARTITIONS

    def __del__(self) -> None:
        # A reading that is given up leaves groups unread.
        if self._file is not None:
            self._file.close()

    @property
    def is_spilled(self) -> bool:
        """Whether anything was written to disk."""
        return self._file is not None

    def put(self, key: str, item: Any) -> None:
        """Take an item; items of one key come back in the order in which they were put."""
        self._held.setdefault(key, []).append(item)

    def spill(self) -> None:
        """Write all that is held to disk, if there is a place for it."""
        if self._options is None or not self._held:
            return
        with _deep_values():
            pickled = {key: pickle.dumps(items, pickle.HIGHEST_PROTOCOL) for key, items in self._held.items()}
        self._write(pickled, self._options)
        self._held = {}

    def groups(self) -> Iterator[tuple[dict[str, list[Any]], list[Oversized]]]:
        """Everything, in groups that can be held: items by key, and keys that are too large.

        A group is forgotten before the next one is loaded. What was not spilled comes as one group.
        """
        if self._options is None or self._file is None:
            held, self._held = self._held, {}
            if held:
                yield held, []
            return
        self.spill()
        small: list[int] = []
        for partition in filter(self._n_bytes.__getitem__, range(_PARTITIONS)):
            if self._n_bytes[partition] > self._most(self._options):
                yield from self._partition(partition, self._options)
                self._pieces[partition] = []
                continue
            if sum(self._n_bytes[other] for other in (*small, partition)) > self._most(self._options):
                yield self._loaded(small, frozenset(), self._options), []
                small = []
            small.append(partition)
        if small:
            yield self._loaded(small, frozenset(), self._options), []
        self._file.close()
        self._file = None

    @staticmethod
    def _most(options: SpoolOptions) -> int:
        """Bytes that may be loaded together without a look at single keys."""
        return min(options.partition_bytes, options.key_bytes)

    def _partition(
        self, partition: int, options: SpoolOptions
    ) -> Iterator[tuple[dict[str, list[Any]], list[Oversized]]]:
        sizes: Counter[str] = Counter()
        for piece in self._read(partition, options):
            sizes.update({key: len(data) for key, data in piece.items()})
        too_large = frozenset(key for key, n_bytes in sizes.items() if n_bytes > options.key_bytes)
        rest = [key for key in sizes if key not in too_large]
        if too_large:
            yield {}, [Oversized(key, self._walk(partition, key, options)) for key in sorted(too_large)]
        if len(rest) < 2 or sum(sizes[key] for key in rest) <= options.partition_bytes:
            if rest:
                yield self._loaded([partition], too_large, options), []
            return
        finer = Spool(options, self._level + 1)
        for piece in self._read(partition, options):
            finer._write({key: data for key, data in piece.items() if key not in too_large}, options)
        yield from finer.groups()

    def _loaded(self, partitions: list[int], without: frozenset[str], options: SpoolOptions) -> dict[str, list[Any]]:
        loaded: dict[str, list[Any]] = {}
        for piece in (piece for partition in partitions for piece in self._read(partition, options)):
            for key, data in piece.items():
                if key not in without:
                    loaded.setdefault(key, []).extend(pickle.loads(data))
        return loaded

    def _walk(self, partition: int, key: str, options: SpoolOptions) -> Iterator[Any]:
        for piece in self._read(partition, options):
            if key in piece:
                yield from pickle.loads(piece[key])

    def _write(self, pickled: dict[str, bytes], options: SpoolOptions) -> None:
        if self._file is None:
            with _failures_told(options):
                self._file = tempfile.TemporaryFile(dir=options.folder)  # noqa: SIM115 - groups() closes it
        by_partition: dict[int, dict[str, bytes]] = {}
        for key, data in pickled.items():
            by_partition.setdefault(self._partition_of(key), {})[key] = data
        packer = zstandard.ZstdCompressor(level=1)
        at = self._file.seek(0, 2)
        for partition, piece in by_partition.items():
            # Histories are resent with every call: a piece shrinks to a fraction.
            data = packer.compress(pickle.dumps(piece, pickle.HIGHEST_PROTOCOL))
            with _failures_told(options):
                self._file.write(data)
            self._pieces[partition].append((at, len(data)))
            self._n_bytes[partition] += sum(map(len, piece.values()))
            at += len(data)

    def _read(self, partition: int, options: SpoolOptions) -> Iterator[dict[str, bytes]]:
        assert self._file is not None
        unpacker = zstandard.ZstdDecompressor()
        for at, length in self._pieces[partition]:
            with _failures_told(options):
                self._file.seek(at)
                data = self._file.read(length)
            yield pickle.loads(unpacker.decompress(data))

    def _partition_of(self, key: str) -> int:
        name = key.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(name, digest_size=4, salt=self._level.to_bytes(4, "big")).digest()
        return int.from_bytes(digest, "big") % _PARTITIONS


@contextmanager
def _deep_values() -> Iterator[None]:
    """JSON is read 1,024 levels deep, and pickle takes several of the interpreter's for each of them."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _PICKLE_LEVELS))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


@contextmanager
def _failures_told(options: SpoolOptions) -> Iterator[None]:
    """A disk that is full is no fault of the log, and must not be taken for one."""
    try:
        yield
    except OSError as error:
        what = f"The temporary file of a large log cannot be used: {error.strerror}."
        raise EvalpipeError("FILE_FAILED", what, where=str(options.folder)) from None
