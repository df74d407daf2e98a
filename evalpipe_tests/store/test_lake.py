"""Slices: atomic, content-addressed, unchanged where nothing changed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from evalpipe.contracts import render
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables import TABLES
from evalpipe.store import files
from evalpipe.store.lake import Lake, read_part, stage_part
from evalpipe.store.manifest import LAYOUT, Manifest, Part, SliceKey, StagedPart, contiguous

DAY = date(2026, 1, 5)
KEY = SliceKey("masked", DAY)


def _quarantine(*codes: str) -> pl.DataFrame:
    return render.frame(
        TABLES["masked.quarantine"],
        [
            {"file_id": "f", "member": "", "source": "s", "byte_offset": i, "line": i, "code": code, "session_id": "",
             "n_bytes": 1, "digest": "d"}
            for i, code in enumerate(codes)
        ],
    )  # fmt: skip


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path / "lake")
    made.prepare()
    return made


def _commit(lake: Lake, *codes: str, inputs: str = "i") -> Manifest:
    staged = [stage_part("masked.quarantine", _quarantine(*codes), lake.staging_folder(KEY), "0")]
    return lake.commit(KEY, staged, inputs={"raw": inputs}, code_version="1")


def _files(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(p.relative_to(root)): (p.read_bytes(), p.stat().st_mtime_ns) for p in sorted(root.rglob("*")) if p.is_file()
    }


def test_a_committed_slice_reads_back(lake: Lake) -> None:
    _commit(lake, "BAD_JSON", "TOO_DEEP")
    manifest = lake.manifest(KEY)
    assert manifest is not None
    assert manifest.rows("masked.quarantine") == 2
    assert lake.read("masked.quarantine", [manifest])["code"].to_list() == ["BAD_JSON", "TOO_DEEP"]
    assert lake.days("masked") == [DAY]
    assert Manifest.from_json(manifest.to_json()) == manifest


def test_a_part_that_is_older_than_a_column_reads_as_null_there(tmp_path: Path) -> None:
    table = TABLES["masked.sessions"]
    later = next(c.name for c in table.columns if c.nullable)
    old = render.empty(table).clear(1).with_columns(pl.lit("s").alias("session_id")).drop(later)
    old.write_parquet(tmp_path / "p.parquet")
    whole = read_part(table.full_name, tmp_path / "p.parquet")
    assert whole.schema == render.polars_schema(table)
    assert read_part(table.full_name, tmp_path / "p.parquet", [later, "session_id"]).rows() == [(None, "s")]
    old.drop("agent").write_parquet(tmp_path / "p.parquet")
    with pytest.raises(EvalpipeError, match="CONTRACT_BROKEN"):
        read_part(table.full_name, tmp_path / "p.parquet", ["agent"])


def test_committing_the_same_again_changes_no_file(lake: Lake) -> None:
    _commit(lake, "BAD_JSON")
    before = _files(lake.root)
    time.sleep(0.01)
    _commit(lake, "BAD_JSON")
    assert _files(lake.root) == before


def test_a_crash_before_the_commit_leaves_the_old_slice(lake: Lake) -> None:
    old = _commit(lake, "BAD_JSON")
    stage_part("masked.quarantine", _quarantine("TOO_DEEP"), lake.staging_folder(KEY), "0")
    assert lake.manifest(KEY) == old
    assert lake.read("masked.quarantine", [old])["code"].to_list() == ["BAD_JSON"]


def _age(path: Path, seconds: float) -> None:
    past = time.time() - seconds
    os.utime(path, (past, past))


def test_old_parts_stay_for_readers_and_go_after_the_grace_time(lake: Lake) -> None:
    old = _commit(lake, "BAD_JSON")
    old_path = lake.paths("masked.quarantine", [old])[0]
    _commit(lake, "TOO_DEEP")
    assert old_path.exists()
    _age(old_path, 2 * lake.grace_seconds)
    _commit(lake, "BAD_FIELD")
    assert not old_path.exists()


def test_the_grace_of_a_part_begins_when_it_loses_its_name_not_when_it_was_written(lake: Lake) -> None:
    old = _commit(lake, "BAD_JSON")
    old_path = lake.paths("masked.quarantine", [old])[0]
    _age(old_path, 2 * lake.grace_seconds)
    _commit(lake, "TOO_DEEP")
    assert old_path.exists(), "a reader may have opened the old manifest a moment ago"
    _commit(lake, "BAD_FIELD")
    assert old_path.exists()


def test_a_part_that_is_named_again_gets_its_grace_again(lake: Lake) -> None:
    path = lake.paths("masked.quarantine", [_commit(lake, "BAD_JSON")])[0]
    _commit(lake, "TOO_DEEP")
    _age(path, 2 * lake.grace_seconds)
    _commit(lake, "BAD_JSON")
    assert time.time() - path.stat().st_mtime < lake.grace_seconds
    other = lake.paths("masked.quarantine", [_commit(lake, "TOO_DEEP")])[0]
    assert path.exists()
    assert other.exists()


def test_a_part_that_was_damaged_in_place_is_replaced_by_the_next_commit(lake: Lake) -> None:
    made = _commit(lake, "BAD_JSON")
    path = lake.paths("masked.quarantine", [made])[0]
    whole = path.read_bytes()
    path.write_bytes(b"x" * len(whole))
    _commit(lake, "BAD_JSON", inputs="other")
    assert path.read_bytes() == whole


def test_a_manifest_never_names_a_part_that_is_not_there(lake: Lake) -> None:
    old = _commit(lake, "BAD_JSON")
    staged = stage_part("masked.quarantine", _quarantine("TOO_DEEP"), lake.staging_folder(KEY), "0")
    claimed = StagedPart(Part("masked.quarantine", "0" * 32, 1, 1), staged.path)
    with pytest.raises(EvalpipeError, match="HOME_DAMAGED"):
        lake.commit(KEY, [claimed], inputs={"raw": "j"}, code_version="1")
    assert lake.manifest(KEY) == old
    assert lake.read("masked.quarantine", [old])["code"].to_list() == ["BAD_JSON"]


#: Commits and collects without any grace, again and again.
_HAMMER = """
import sys
from pathlib import Path
from evalpipe.store.lake import Lake, stage_part
from evalpipe_tests.store.test_lake import KEY, _quarantine
lake = Lake(Path(sys.argv[1]), grace_seconds=0.0)
lake.prepare()
for turn in range(60):
    code = ("BAD_JSON", "TOO_DEEP")[turn % 2]
    staged = [stage_part("masked.quarantine", _quarantine(code), lake.staging_folder(KEY), "0")]
    lake.commit(KEY, staged, inputs={"raw": code}, code_version="1")
"""


def test_processes_that_commit_one_slice_at_once_leave_a_whole_one(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    running = [
        subprocess.Popen([sys.executable, "-c", _HAMMER, str(root)], stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in running:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    lake = Lake(root)
    manifest = lake.manifest(KEY)
    assert manifest is not None
    assert lake.damage(manifest) is None
    assert lake.read("masked.quarantine", [manifest]).height == 1


@pytest.mark.parametrize("harm", ["lost", "cut"])
def test_a_lost_or_cut_part_is_seen(lake: Lake, harm: str) -> None:
    made = _commit(lake, "BAD_JSON")
    assert lake.damage(made) is None
    path = lake.paths("masked.quarantine", [made])[0]
    if harm == "lost":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])
    assert lake.damage(made) == {"lost": "a part is missing", "cut": "a part is damaged"}[harm]
    with pytest.raises(EvalpipeError, match="HOME_DAMAGED") as caught:
        lake.read("masked.quarantine", [made])
    assert str(path) in str(caught.value)
    assert f"evalpipe backfill {DAY}..{DAY}" in caught.value.fix


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", f'{{"layout": {LAYOUT}, "step": "masked"}}', "\udcff"])
def test_a_broken_manifest_has_a_code_a_place_and_a_fix(lake: Lake, text: str) -> None:
    _commit(lake, "BAD_JSON")
    path = lake.manifest_path(KEY)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    for read in (lambda: lake.manifest(KEY), lambda: lake.manifests("masked")):
        with pytest.raises(EvalpipeError, match="HOME_DAMAGED") as caught:
            read()
        assert caught.value.where == str(path)
        assert f"backfill {DAY}..{DAY}" in caught.value.fix
    path.unlink()
    _commit(lake, "BAD_JSON")
    assert lake.manifest(KEY) is not None


def test_a_manifest_of_another_layout_is_refused(lake: Lake) -> None:
    _commit(lake, "BAD_JSON")
    path = lake.manifest_path(KEY)
    path.write_text(path.read_text("utf-8").replace(f'"layout": {LAYOUT}', '"layout": 1'), "utf-8")
    with pytest.raises(EvalpipeError, match="HOME_INCOMPATIBLE"):
        lake.manifest(KEY)


def test_parts_are_on_disk_before_the_manifest_that_names_them(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[str, bool]] = []
    monkeypatch.setattr(
        files, "sync", lambda path: synced.append((path.suffix or "folder", lake.manifest_path(KEY).exists()))
    )
    _commit(lake, "BAD_JSON")
    before = [kind for kind, is_named in synced if not is_named]
    assert before[0] == ".parquet"
    assert "folder" in before[1:], "the part's name as well as its bytes"
    assert ("folder", True) in synced


def test_a_step_cannot_write_the_table_of_another(lake: Lake) -> None:
    staged = [stage_part("masked.quarantine", _quarantine("BAD_JSON"), lake.staging_folder(KEY), "0")]
    with pytest.raises(EvalpipeError, match="CONTRACT_BROKEN"):
        lake.commit(SliceKey("raw", DAY), staged, inputs={}, code_version="1")


def test_restricted_folders_are_closed_to_others(lake: Lake) -> None:
    for folder in (lake.root / "raw", lake.staging, lake.rejected):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_parts_are_the_same_bytes_whatever_the_order_of_rows(lake: Lake, tmp_path: Path) -> None:
    data = _quarantine("BAD_JSON", "TOO_DEEP", "BAD_FIELD")
    a = stage_part("masked.quarantine", data, tmp_path / "a", "0")
    b = stage_part("masked.quarantine", data.reverse(), tmp_path / "b", "0")
    assert a.part.digest == b.part.digest


def test_appending_nothing_makes_no_file(lake: Lake) -> None:
    assert lake.append("masked.quarantine", _quarantine()) is None
    assert lake.appended("masked.quarantine") == []


def test_appending_the_same_rows_twice_keeps_one_file(lake: Lake) -> None:
    first = lake.append("masked.quarantine", _quarantine("BAD_JSON", "TOO_DEEP"))
    again = lake.append("masked.quarantine", _quarantine("BAD_JSON", "TOO_DEEP"))
    assert first == again
    assert lake.appended("masked.quarantine") == [first]
    other = lake.append("masked.quarantine", _quarantine("BAD_FIELD"))
    found = lake.appended("masked.quarantine")
    assert sorted(path for path in (first, other) if path) == found
    assert sorted(pl.concat(map(pl.read_parquet, found))["code"]) == ["BAD_FIELD", "BAD_JSON", "TOO_DEEP"]


def test_contiguous_days_become_runs() -> None:
    days = [date(2026, 1, d) for d in (9, 1, 2, 3, 5)]
    assert contiguous(days) == [
        (date(2026, 1, 1), date(2026, 1, 3)),
        (date(2026, 1, 5), date(2026, 1, 5)),
        (date(2026, 1, 9), date(2026, 1, 9)),
    ]
