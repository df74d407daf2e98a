"""What is known of objects in a store."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

from evalpipe.store.objects import KnownObject, ObjectMemory, is_old_mention

TODAY = date(2026, 1, 31)
ITEM = KnownObject(10, 1_700_000_000_000_000_000, '"etag"', "d" * 32, TODAY)


def test_the_last_note_of_a_place_counts(tmp_path: Path) -> None:
    path = tmp_path / "objects.parquet"
    assert ObjectMemory(path).known(["a"]) == {}
    ObjectMemory(path).note({"a": ITEM, "b": ITEM}, TODAY)
    newer = replace(ITEM, mtime_ns=-1, digest="e" * 32)
    ObjectMemory(path).note({"b": newer, "c": ITEM}, TODAY)
    assert ObjectMemory(path).known(["a", "b", "nowhere"]) == {"a": ITEM, "b": newer}
    before = path.stat().st_mtime_ns
    ObjectMemory(path).note({}, TODAY)
    assert path.stat().st_mtime_ns == before
    assert sorted(found.name for found in tmp_path.iterdir()) == ["objects.lock", "objects.parquet"]


def test_objects_that_are_listed_no_more_are_forgotten(tmp_path: Path) -> None:
    memory = ObjectMemory(tmp_path / "objects.parquet")
    memory.note({"gone": ITEM, "here": ITEM}, TODAY)
    later = TODAY + timedelta(days=59)
    assert not is_old_mention(ITEM, TODAY + timedelta(days=7))
    assert is_old_mention(ITEM, TODAY + timedelta(days=8))
    memory.note({"here": replace(ITEM, listed_on=later)}, later)
    assert set(memory.known(["gone", "here"])) == {"gone", "here"}
    memory.note({"new": replace(ITEM, listed_on=later)}, later + timedelta(days=1))
    assert set(memory.known(["gone", "here", "new"])) == {"here", "new"}
