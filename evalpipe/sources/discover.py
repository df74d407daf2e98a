"""Which files there are, what they are called by content, and how they are batched.

Belongs here: walking folders, digests of whole files, greedy batches. Does not belong here: what a
file holds (``registry.py``).
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.sources.event_folders import event_lines, event_names
from evalpipe.sources.model import Batch, SourceFile
from evalpipe.sources.registry import reader_versions

_BLOCK = 1 << 20


def discover(paths: Sequence[Path]) -> list[Path]:
    """Everything at or below the paths that must be read or accounted for, sorted, each once.

    Regular files and links to them are what is read. Pipes, sockets, devices, dead links, folders
    that cannot be listed, and links to folders outside the paths are returned too, so that
    :func:`fingerprint` says of them why they are not read. Links to folders are never entered, because
    a link to a parent never ends; one to a folder that is below the paths anyway holds nothing new.
    A folder whose files are the events of one session stands for them (``event_folders.py``).

    Raises:
        EvalpipeError: ``SOURCE_NOT_FOUND`` for a path that does not exist.
    """
    roots = [os.path.realpath(path) for path in paths]
    found: set[Path] = set()
    for path in paths:
        if not os.path.lexists(path):
            raise EvalpipeError("SOURCE_NOT_FOUND", "No file or folder is there.", where=str(path))
        if not os.path.isdir(path):
            found.add(path)
            continue
        unlisted: list[OSError] = []
        for folder, folders, names in os.walk(path, followlinks=False, onerror=unlisted.append):
            if joined := set(event_names(Path(folder), names)):
                found.add(Path(folder))
            found.update(Path(folder, name) for name in names if name not in joined)
            links = (Path(folder, name) for name in folders if os.path.islink(os.path.join(folder, name)))
            found.update(link for link in links if not _is_below(os.path.realpath(link), roots))
        found.update(Path(os.fsdecode(error.filename)) for error in unlisted)
    return sorted(found)


def _is_below(path: str, roots: Sequence[str]) -> bool:
    return any(path == root or path.startswith(root.rstrip(os.sep) + os.sep) for root in roots)


def fingerprint(path: Path) -> SourceFile:
    """Size and BLAKE2b digest of a file, streamed; what cannot be read is named by its path."""
    digest = hashlib.blake2b(digest_size=16)
    n_bytes = 0
    try:
        if path.is_dir() and not path.is_symlink():
            for block in event_lines(path):
                digest.update(block)
                n_bytes += len(block)
            return SourceFile(path, n_bytes, digest.hexdigest()) if n_bytes else _unread(path, "NOT_A_FILE")
        # Without O_NONBLOCK the opening of a pipe waits for a writer that may never come.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return _unread(path, "NOT_A_FILE")
            while block := os.read(descriptor, _BLOCK):
                digest.update(block)
                n_bytes += len(block)
        finally:
            os.close(descriptor)
    except OSError as error:
        is_dead_link = error.errno == errno.ELOOP or (error.errno == errno.ENOENT and path.is_symlink())
        # A socket refuses to be opened with ENXIO.
        return _unread(path, "NOT_A_FILE" if is_dead_link or error.errno == errno.ENXIO else "UNREADABLE_FILE")
    return SourceFile(path, n_bytes, digest.hexdigest())


def _unread(path: Path, code: str) -> SourceFile:
    name = hashlib.blake2b(os.fsencode(path), digest_size=16, person=b"unreadable").hexdigest()
    return SourceFile(path, 0, name, code)


def begins_with(file: SourceFile, digest: str, n_bytes: int) -> bool:
    """Whether a file begins with all the bytes of another, as a log does that has grown.

    Args:
        file: A file as fingerprinted.
        digest, n_bytes: Digest and size of the other, which must not be empty.
    """
    if not 0 < n_bytes < file.n_bytes:
        return False
    found = hashlib.blake2b(digest_size=16)
    try:
        for block in event_lines(file.path) if file.path.is_dir() else _blocks(file.path):
            found.update(block[:n_bytes])
            n_bytes -= min(n_bytes, len(block))
            if not n_bytes:
                break
    except OSError:
        return False
    return not n_bytes and found.hexdigest() == digest


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as stream:
        while block := stream.read(_BLOCK):
            yield block


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
