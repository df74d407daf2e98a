"""Files that several processes share: locks, durable renames, staging folders of living processes.

Belongs here: what the lake, the landing zone and the warehouse need of the file system. Does not
belong here: what lies in the files.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

#: File in a folder that stays locked for as long as whoever uses the folder lives.
HELD = ".held"
#: Staging folder of this process in each staging root, with the open file that marks it as in use.
_MINE: dict[tuple[int, Path], tuple[Path, int]] = {}


@contextmanager
def locked(path: Path, *, shared: bool = False, looking: bool = False) -> Iterator[None]:
    """Hold the lock file at ``path``, made if absent, waiting for whoever holds it.

    Args:
        path: Lock file.
        shared: Let others hold it too who ask so; whoever asks alone waits for all of them.
        looking: Only read: where nothing can be written, hold the file that is there, or nothing.

    The kernel drops the lock when the process dies, however it dies. It is not re-entrant.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = lock_handle(path, looking=looking)
    if handle is None:
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def lock_handle(path: Path, *, looking: bool) -> int | None:
    """Open a lock file, made if absent.

    Args:
        path: Lock file.
        looking: Where nothing can be written, open the file that is there.

    Returns:
        The open file; null only when looking, where there is none: nobody writes there.
    """
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if not looking or error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return None


def sync(path: Path) -> None:
    """Make a file's bytes, or a folder's entries, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def move_durably(moves: Iterable[tuple[Path, Path]]) -> None:
    """Rename whole files into place, so that all of them are there before this returns.

    Bytes go to disk before the names do, and the names before whatever is written next.

    Args:
        moves: (from, to); folders of ``to`` must exist, on the same file system.
    """
    moves = list(moves)
    for source, _ in moves:
        sync(source)
    for source, target in moves:
        source.replace(target)
    # The parent too: a folder that was just made is a name in it.
    for folder in sorted({up for _, target in moves for up in (target.parent, target.parent.parent)}):
        sync(folder)


def write_atomically(path: Path, text: str) -> bool:
    """Write a small file by rename, unless it holds that text already; returns whether it changed."""
    try:
        if path.read_text("utf-8") == text:
            return False
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    except UnicodeDecodeError:
        pass  # damaged: it is about to be replaced
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    draft.write_text(text, "utf-8")
    move_durably([(draft, path)])
    return True


def own_staging(root: Path) -> Path:
    """The staging folder of this process below ``root``, made at the first call.

    Two containers on one volume have the same process ids and may have the same host name, so the
    name is random, and a file in the folder stays locked for as long as the process lives.
    """
    mine = (os.getpid(), root)
    if mine in _MINE:
        folder, _ = _MINE[mine]
        if (folder / HELD).exists():
            return folder
        os.close(_MINE.pop(mine)[1])
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Under the lock, because a folder that is made and not held yet looks like one left behind.
    with locked(root / ".lock"):
        folder = root / f"{os.getpid()}-{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        handle = os.open(folder / HELD, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
    _MINE[mine] = (folder, handle)
    return folder


def clear_staging(root: Path) -> None:
    """Remove the staging folders below ``root`` whose processes are gone, whatever their names."""
    with locked(root / ".lock"):
        for folder in sorted(path for path in root.iterdir() if path.is_dir()):
            if not is_held(folder / HELD):
                shutil.rmtree(folder, ignore_errors=True)


def is_held(path: Path) -> bool:
    """Whether a process that lives holds the lock file; not where there is none."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
