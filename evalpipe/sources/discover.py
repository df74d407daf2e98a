"""Which files there are, what they are called by content, and how they are batched.

Belongs here: walking folders, digests of whole files, greedy batches. Does not belong here: what a
file holds (``registry.py``).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.sources.model import Batch, SourceFile
from evalpipe.sources.registry import reader_versions

_BLOCK = 1 << 20


def discover(paths: Sequence[Path]) -> list[Path]:
    """All regular files at or below the paths, sorted, each once.

    Folders that are symbolic links are not entered, because a link to a parent never ends.

    Raises:
        EvalpipeError: ``SOURCE_NOT_FOUND`` for a path that does not exist.
    """
    found: set[Path] = set()
    for path in paths:
        if path.is_dir():
            for folder, _, names in os.walk(path, followlinks=False):
                found.update(file for name in names if (file := Path(folder, name)).is_file())
        elif path.exists():
            found.add(path)
        else:
            raise EvalpipeError("SOURCE_NOT_FOUND", "No file or folder is there.", where=str(path))
    return sorted(found)


def fingerprint(path: Path) -> SourceFile:
    """Size and BLAKE2b digest of a file, streamed; an unreadable file is named by its path."""
    digest = hashlib.blake2b(digest_size=16)
    n_bytes = 0
    try:
        with path.open("rb", buffering=0) as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                n_bytes += len(block)
    except OSError:
        name = hashlib.blake2b(os.fsencode(path), digest_size=16, person=b"unreadable").hexdigest()
        return SourceFile(path, 0, name, unreadable=True)
    return SourceFile(path, n_bytes, digest.hexdigest())


def plan_batches(files: Sequence[SourceFile], max_bytes: int) -> list[Batch]:
    """Pack files, in path order, into batches of about ``max_bytes`` on disk.

    Of several files with the same bytes only the first is kept: the others hold nothing new, and
    a file's digest is its key in every table.
    """
    distinct: dict[str, SourceFile] = {}
    for file in sorted(files, key=lambda f: str(f.path)):
        distinct.setdefault(file.digest, file)
    groups: list[list[SourceFile]] = []
    held = 0
    for file in distinct.values():
        if not groups or held + file.n_bytes > max_bytes:
            groups.append([])
            held = 0
        groups[-1].append(file)
        held += file.n_bytes
    return [Batch(tuple(group), _batch_digest(group)) for group in groups]


def _batch_digest(files: Sequence[SourceFile]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name, version in sorted(reader_versions().items()):
        digest.update(f"{name}={version}\n".encode())
    for file in files:
        digest.update(file.digest.encode() + b"\n")
    return digest.hexdigest()
