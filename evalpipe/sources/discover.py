"""Which files there are, what they are called by content, and how they are batched.

Belongs here: walking folders, digests of whole files, greedy batches. Does not belong here: what a
file holds (``registry.py``), or talking to an object store (``buckets.py``).
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.sources.buckets import StoredObject, list_objects
from evalpipe.sources.event_folders import event_lines, event_names
from evalpipe.sources.model import Batch, SourceFile
from evalpipe.sources.named import Source, is_remote, parse_prefix
from evalpipe.sources.patterns import expand, fixed_part, is_pattern
from evalpipe.sources.registry import reader_versions

#: What lies under the sources: a file of this machine, or an object of a store.
Found = Path | StoredObject

_BLOCK = 1 << 20


def check(sources: Iterable[Source]) -> None:
    """Look whether sources can be what a person meant, without asking any object store.

    Raises:
        EvalpipeError: ``SOURCE_NOT_FOUND``; ``BAD_ARGUMENT`` for what is no source at all.
    """
    for source in sources:
        if is_remote(source):
            parse_prefix(str(source))
        else:
            local_paths(source)


def local_paths(source: Source) -> list[Path]:
    """Files and folders of this machine that a source names; what exists is never taken for a pattern.

    Raises:
        EvalpipeError: ``SOURCE_NOT_FOUND``.
    """
    path = Path(source)
    if not os.path.lexists(path):
        # A shell leaves a tilde in quotes alone, and so do settings.
        path = Path(os.path.expanduser(path))
    if os.path.lexists(path):
        return [path]
    if not is_pattern(str(path)):
        raise EvalpipeError("SOURCE_NOT_FOUND", "No file or folder is there.", where=str(source))
    if found := expand(str(path)):
        return found
    raise EvalpipeError("SOURCE_NOT_FOUND", "Nothing matches that pattern.", where=str(source))


def discover(sources: Sequence[Source]) -> list[Found]:
    """Everything at or below the sources that must be read or accounted for, sorted by name, each once.

    Objects of a store are listed once, with their sizes and times. Of this machine, files.

    Raises:
        EvalpipeError: ``SOURCE_NOT_FOUND``, ``SOURCE_DENIED``, ``SOURCE_UNREACHABLE``; ``BAD_ARGUMENT``
            for what is no source at all.
    """
    paths = [path for source in sources if not is_remote(source) for path in local_paths(source)]
    found: dict[str, Found] = {str(path): path for path in _files_below(paths)}
    for source in sources:
        if is_remote(source):
            found.update((item.place, item) for item in list_objects(parse_prefix(str(source))))
    return sorted(found.values(), key=str)


def _files_below(paths: Sequence[Path]) -> set[Path]:
    """Files at or below paths that exist.

    Regular files and links to them are what is read. Pipes, sockets, devices, dead links, folders
    that cannot be listed, and links to folders outside the paths are returned too, so that
    :func:`fingerprint` says of them why they are not read. Links to folders are never entered, because
    a link to a parent never ends; one to a folder that is below the paths anyway holds nothing new.
    A folder whose files are the events of one session stands for them (``event_folders.py``).
    """
    roots = [os.path.realpath(path) for path in paths]
    found: set[Path] = set()
    for path in paths:
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
    return found


def _is_below(path: str, roots: Sequence[str]) -> bool:
    return any(path == root or path.startswith(root.rstrip(os.sep) + os.sep) for root in roots)


def short_name(item: Found, named: Sequence[Source]) -> str:
    """The name of a file below the source that it was found under; with its folder where there are several.

    Args:
        item: A file or object.
        named: The sources.
    """
    name = str(item)
    for source in named:
        text = str(parse_prefix(str(source))) if is_remote(source) else str(Path(os.path.expanduser(source)))
        base = (fixed_part(text) if is_pattern(text) else text).rstrip("/")
        if len(named) > 1:
            base = base.rpartition("/")[0] if "/" in base else ""
        if base in (".", "") and not name.startswith("/"):
            return name
        if name.startswith(f"{base}/"):
            return name[len(base) + 1 :]
    return name.rpartition("/")[2]


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
    return SourceFile(path, 0, _unread_digest(os.fsencode(path)), code)


def unread_object(item: StoredObject, copy: Path) -> SourceFile:
    """An object whose bytes cannot be had, named by its place; ``copy`` is where they would be."""
    return SourceFile(copy, 0, _unread_digest(item.place.encode()), "UNREADABLE_FILE", str(item))


def _unread_digest(place: bytes) -> str:
    return hashlib.blake2b(place, digest_size=16, person=b"unreadable").hexdigest()


def unwelcome(file: SourceFile, code: str) -> SourceFile:
    """A file whose bytes must not be read under the home's terms, named by its place and the reason."""
    place = os.fsencode(file.name) + b"\0" + code.encode()
    return SourceFile(file.path, 0, _unread_digest(place), code, file.uri)


def is_unread(digest: str, n_bytes: int) -> bool:
    """Whether a digest stands for a file that could not be read, rather than for its bytes."""
    return n_bytes == 0 and digest != hashlib.blake2b(digest_size=16).hexdigest()


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


def plan_batches(files: Iterable[SourceFile], max_bytes: int) -> Iterator[Batch]:
    """Pack files into batches of about ``max_bytes`` on disk, each as soon as it is full.

    Of several files with the same bytes only the first is kept: the others hold nothing new, and
    a file's digest is its key in every table.

    Args:
        files: In order of names, so that what is left over after a crash makes the same batches.
        max_bytes: Size; a batch of one file may be larger.
    """
    seen: set[str] = set()
    group: list[SourceFile] = []
    held = 0
    for file in files:
        if file.digest in seen:
            continue
        seen.add(file.digest)
        if group and held + file.n_bytes > max_bytes:
            yield Batch(tuple(group), _batch_digest(group))
            group, held = [], 0
        group.append(file)
        held += file.n_bytes
    if group:
        yield Batch(tuple(group), _batch_digest(group))


def _batch_digest(files: Sequence[SourceFile]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name, version in sorted(reader_versions().items()):
        digest.update(f"{name}={version}\n".encode())
    for file in files:
        digest.update(file.digest.encode() + b"\n")
    return digest.hexdigest()
