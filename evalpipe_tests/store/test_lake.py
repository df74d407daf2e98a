"""Slices: atomic, content-addressed, unchanged where nothing changed."""

from __future__ import annotations

import os
import time
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from evalpipe.contracts import render
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables import TABLES
from evalpipe.store.lake import Lake, stage_part
from evalpipe.store.manifest import Manifest, SliceKey, contiguous

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


def test_what_a_dead_process_staged_is_cleared_and_a_living_one_keeps_its_own(lake: Lake) -> None:
    mine = lake.staging_folder(KEY)
    mine.mkdir(parents=True)
    dead = lake.staging / "999999999" / "x"
    dead.mkdir(parents=True)
    lake.prepare()
    assert mine.exists()
    assert not dead.parent.exists()


def test_old_parts_stay_for_readers_and_go_after_the_grace_time(lake: Lake) -> None:
    old = _commit(lake, "BAD_JSON")
    old_path = lake.paths("masked.quarantine", [old])[0]
    _commit(lake, "TOO_DEEP")
    assert old_path.exists()
    past = time.time() - 2 * lake.grace_seconds
    os.utime(old_path, (past, past))
    _commit(lake, "BAD_FIELD")
    assert not old_path.exists()


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


def test_appending_the_same_rows_twice_keeps_one_file(lake: Lake) -> None:
    empty = render.empty(TABLES["analysis.corrections"])
    assert lake.append("analysis.corrections", empty) is None
    assert lake.appended("analysis.corrections") == []


def test_contiguous_days_become_runs() -> None:
    days = [date(2026, 1, d) for d in (9, 1, 2, 3, 5)]
    assert contiguous(days) == [
        (date(2026, 1, 1), date(2026, 1, 3)),
        (date(2026, 1, 5), date(2026, 1, 5)),
        (date(2026, 1, 9), date(2026, 1, 9)),
    ]
