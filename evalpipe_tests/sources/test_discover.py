"""Finding files, naming them by content, packing them."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.sources import discover, fingerprint, plan_batches, reader_versions, registry


def test_files_below_folders_are_found_sorted_and_once(tmp_path: Path) -> None:
    for name in ("b/2.jsonl", "a/1.jsonl", "a/.hidden", "c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(tmp_path / "pipe")
    found = discover([tmp_path / "b", tmp_path, tmp_path / "c.txt"])
    assert [str(p.relative_to(tmp_path)) for p in found] == ["a/.hidden", "a/1.jsonl", "b/2.jsonl", "c.txt"]


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(EvalpipeError, match=r"SOURCE_NOT_FOUND.*nowhere"):
        discover([tmp_path / "nowhere"])


def test_a_fingerprint_depends_on_the_bytes_alone(tmp_path: Path) -> None:
    for name, data in (("a", b"x" * 3_000_000), ("b", b"x" * 3_000_000), ("c", b"y")):
        (tmp_path / name).write_bytes(data)
    a, b, c = (fingerprint(tmp_path / name) for name in "abc")
    assert a.digest == b.digest != c.digest
    assert (a.n_bytes, c.n_bytes) == (3_000_000, 1)
    assert not a.unreadable


def test_an_unreadable_file_has_a_digest_of_its_own(tmp_path: Path) -> None:
    gone, other = fingerprint(tmp_path / "gone"), fingerprint(tmp_path / "other")
    assert gone.unreadable
    assert gone.digest != other.digest


def test_batches_are_packed_by_path_without_twins(tmp_path: Path) -> None:
    for name, size in (("d", 10), ("a", 60), ("b", 50), ("c", 500), ("twin_of_b", 50)):
        (tmp_path / name).write_bytes(name[-1:].encode() * size)
    files = [fingerprint(p) for p in tmp_path.iterdir()]
    batches = plan_batches(files, 100)
    assert [[f.path.name for f in batch.files] for batch in batches] == [["a"], ["b"], ["c"], ["d"]]
    assert [f.path.name for f in plan_batches(files, 110)[0].files] == ["a", "b"]
    assert plan_batches(reversed(files), 100) == batches
    assert len({batch.digest for batch in batches}) == 4
    assert plan_batches([], 100) == []
    assert pickle.loads(pickle.dumps(batches)) == batches


def test_a_new_reader_version_is_a_new_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("x")
    files = [fingerprint(tmp_path / "a")]
    before = plan_batches(files, 10)[0].digest
    first, *others = registry.READERS
    monkeypatch.setattr(registry, "READERS", (replace(first, version="next"), *others))
    assert plan_batches(files, 10)[0].digest != before


def test_readers_have_versions() -> None:
    assert set(reader_versions()) == {"evalpipe_jsonl", "claude_code", "codex", "tau_bench", "tau2_bench"}
    assert all(reader_versions().values())
