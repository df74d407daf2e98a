"""Locks, durable renames, and staging folders that only living processes keep."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from evalpipe.store.files import clear_staging, locked, own_staging, write_atomically

#: Another process that stages a file, says where, and waits for a line of input.
_STAGES = """
import sys
from pathlib import Path
from evalpipe.store.files import own_staging
folder = own_staging(Path(sys.argv[1]))
(folder / "part").write_text("rows")
print(folder, flush=True)
sys.stdin.readline()
"""


def _other(root: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", _STAGES, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_only_a_living_process_keeps_what_it_staged(tmp_path: Path) -> None:
    root = tmp_path / "staging"
    mine = own_staging(root)
    process, theirs = _other(root)
    clear_staging(root)
    assert mine.is_dir()
    assert (theirs / "part").is_file()
    process.kill()
    process.communicate()
    clear_staging(root)
    assert mine.is_dir()
    assert not theirs.exists()


def test_a_folder_is_not_kept_for_the_sake_of_a_process_id(tmp_path: Path) -> None:
    """In another container the id of a living process may be that of one which died here."""
    root = tmp_path / "staging"
    left = root / str(os.getpid())
    left.mkdir(parents=True)
    copied = root / f"{os.getpid()}-0011223344556677"
    copied.mkdir()
    (copied / ".held").touch()
    clear_staging(root)
    assert not left.exists()
    assert not copied.exists()


def test_the_folder_is_the_same_for_a_process_and_another_for_each_root(tmp_path: Path) -> None:
    one, two = own_staging(tmp_path / "a"), own_staging(tmp_path / "b")
    assert own_staging(tmp_path / "a") == one
    assert one.name != two.name, "two processes with one id must not share a folder"
    (one / ".held").unlink()
    one.rmdir()
    again = own_staging(tmp_path / "a")
    assert again.is_dir()
    assert again != one


def test_a_lock_falls_with_its_process(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom evalpipe.store.files import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.readline()\n"
    )
    path = tmp_path / ".lock"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    process.kill()
    process.communicate()
    with locked(path):
        assert path.exists()


def test_a_small_file_is_replaced_only_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.json"
    assert write_atomically(path, "one")
    assert not write_atomically(path, "one")
    assert write_atomically(path, "two")
    path.write_bytes(b"\xff\xfe broken")
    assert write_atomically(path, "two")
    assert [p.name for p in path.parent.iterdir()] == ["a.json"]
