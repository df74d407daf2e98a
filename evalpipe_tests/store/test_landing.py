"""Landing: seen files are a no-op; one parse of a file and one copy of a session count, in any order."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

from evalpipe.contracts import render
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables import TABLES
from evalpipe.sources.chunk import LOGGED
from evalpipe.store import files as files_module
from evalpipe.store.day_input import DayInput
from evalpipe.store.entries import LandedFile, version_key
from evalpipe.store.landing import LANDED_ONLY, Landing, StagedBatch, group_stems, stage_chunk
from evalpipe.store.manifest import LAYOUT, digest_of

DAY = date(2026, 1, 5)
NEXT = date(2026, 1, 6)
READERS = {"s": "1", "t": "1"}

Row = dict[str, object]


def _session(session_id: str, n_messages: int, digest: str, day: date, reader: str = "1") -> Row:
    start = datetime(day.year, day.month, day.day, 10, tzinfo=UTC)
    return {
        "session_id": session_id, "source": "s", "reader_version": reader, "agent": "a",
        "n_models": 1, "started_at": start, "ended_at": start, "is_dated": True, "is_clock_repaired": False,
        "n_turns": 1, "n_steps": 1, "n_tool_calls": 0, "n_messages": n_messages, "content_digest": digest,
    }  # fmt: skip


def _file(name: str, reader: str, n_bytes: int) -> Row:
    counts = dict.fromkeys(("rows_read", "rows_kept", "rows_noise", "rows_quarantined", "n_sessions"), 1)
    return {"file_id": name, "source_file": name, "member": "", "source": "s", "reader_version": reader,
            "n_bytes": n_bytes, **counts}  # fmt: skip


def _land(
    landing: Landing,
    files: Mapping[str, list[tuple[Row, date]]],
    *,
    readers: Mapping[str, str] = READERS,
    grown: Mapping[str, str] | None = None,
) -> bool:
    """Land one batch: sessions of each file; the file's own row lies on the day of its first session."""
    sessions = [({**row, "file_id": name}, day) for name, rows in files.items() for row, day in rows]
    ledgers = [(_file(name, readers["s"], 1), rows[0][1] if rows else DAY) for name, rows in files.items()]
    tables: dict[str, pl.DataFrame] = {}
    told = {"copy": pl.lit(0, pl.Int32()), "said_digest": pl.lit(None, pl.String())}
    told["extraction"] = pl.lit(None, pl.String())
    told["first_step_at"] = pl.lit(None, pl.Datetime("us", "UTC"))
    told |= {name: pl.lit(None, dtype) for name, dtype in LOGGED.items()}
    for table in ("sessions", "steps", "quarantine", "files", "vectors"):
        rows = {"sessions": sessions, "files": ledgers}.get(table, [])
        frame = render.frame(TABLES[f"raw.{table}"], [row for row, _ in rows])
        frame = frame.with_columns(**{name: told[name] for name in LANDED_ONLY.get(table, ())})
        tables[table] = frame.insert_column(0, pl.Series("day", [day for _, day in rows], dtype=pl.Date))
    batch = digest_of([sorted(files), dict(readers)])
    folder = landing.staging_folder(batch)
    parts = stage_chunk(batch, 0, tables, folder)
    old = grown or {}
    landed = [LandedFile(name, 1, f"/logs/{name}", (old[name],) if name in old else ()) for name in files]
    return landing.commit(StagedBatch(batch, tuple(parts), folder), files=landed, readers=readers, landed_on=DAY)


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path / "landing", tmp_path / "staging")


def _winners(landing: Landing) -> dict[date, list[str]]:
    return {
        day: sorted(session for session, _ in itertools.chain.from_iterable(item.winners.values()))
        for day, item in landing.day_inputs().items()
        if any(item.winners.values())
    }


def _winning(landing: Landing, column: str) -> list[object]:
    item = landing.day_inputs()[DAY]
    stem = next(stem for stem, ids in item.winners.items() if ids)
    data = pl.read_parquet(landing.path(DAY, stem, "sessions"))
    return data.filter(pl.col("session_id").is_in([one for one, _ in item.winners[stem]]))[column].to_list()


def _counted(item: DayInput) -> list[str]:
    return sorted(itertools.chain.from_iterable(item.files.values()))


COPIES = {
    "short": (_session("a", 2, "d1", DAY), DAY),
    "long": (_session("a", 5, "d2", DAY), DAY),
    "cut": (_session("a", 1, "d0", NEXT), NEXT),
    "other": (_session("b", 1, "d9", NEXT), NEXT),
}


@pytest.mark.parametrize("order", list(itertools.permutations(COPIES)))
def test_the_copy_with_the_most_messages_wins_in_any_order(landing: Landing, order: tuple[str, ...]) -> None:
    for name in order:
        _land(landing, {name: [COPIES[name]]})
    assert _winners(landing) == {DAY: ["a"], NEXT: ["b"]}
    assert _winning(landing, "n_messages") == [5]


def test_equal_copies_are_decided_by_digest_not_by_order(landing: Landing) -> None:
    for name, digest in (("x", "bbb"), ("y", "aaa")):
        _land(landing, {name: [(_session("a", 3, digest, DAY), DAY)]})
    assert _winning(landing, "content_digest") == ["aaa"]


@pytest.mark.parametrize(("older", "newer"), [("1", "2"), ("9", "10"), ("1.9", "1.10"), ("", "1"), ("1rc", "1.0")])
def test_a_newer_reader_wins_over_a_longer_copy_of_an_older_one(landing: Landing, older: str, newer: str) -> None:
    assert version_key(older) < version_key(newer)
    for name, n_messages, version in (("old", 9, older), ("new", 3, newer)):
        rows = [(_session("a", n_messages, name, DAY, version), DAY)]
        _land(landing, {name: rows}, readers={**READERS, "s": version})
    assert _winning(landing, "reader_version") == [newer]


def test_a_file_is_known_to_the_readers_that_parsed_it(landing: Landing) -> None:
    _land(landing, {"x": [COPIES["short"]]})
    assert landing.known_files(READERS) == {"x"}
    assert landing.known_files({**READERS, "s": "2"}) == set()


@pytest.mark.parametrize("order", list(itertools.permutations(["1", "2", "10"])))
def test_of_several_parses_of_a_file_the_newest_counts_in_any_order(landing: Landing, order: tuple[str, ...]) -> None:
    for version in order:
        # The newer the reader, the fewer messages it finds: the older copy must not win for its length.
        copy = _session("a", 20 - int(version), f"d{version}", DAY, version)
        extra = _session("ghost", 1, "g", DAY, version)
        rows = [(copy, DAY)] + ([(extra, DAY)] if version == "1" else [])
        _land(landing, {"x": rows}, readers={**READERS, "s": version})
    day = landing.day_inputs()[DAY]
    assert _counted(day) == ["x"]
    assert _winning(landing, "reader_version") == ["10"]
    assert _winners(landing) == {DAY: ["a"]}, "a session that only a superseded parse has is no session"
    assert len(day.stems) == 1, "a part of which nothing counts is no input of the day"


@pytest.mark.parametrize("order", list(itertools.permutations([0, 1, 2])))
def test_of_overlapping_batches_each_file_counts_once_in_any_order(landing: Landing, order: tuple[int, ...]) -> None:
    rows = {name: [(_session(f"s-{name}", 1, name, DAY), DAY)] for name in "abcdef"}
    batches = ["abd", "bce", "caf"]
    for i in order:
        assert _land(landing, {name: rows[name] for name in batches[i]})
    day = landing.day_inputs()[DAY]
    assert _counted(day) == list("abcdef")
    assert _winners(landing) == {DAY: [f"s-{name}" for name in "abcdef"]}
    best = {name: min(digest_of([sorted(b), READERS]) for b in batches if name in b) for name in "abcdef"}
    assert {name: stem.rpartition("-")[0] for stem, names in day.files.items() for name in names} == best


def test_a_batch_whose_files_another_process_has_landed_is_dropped(landing: Landing) -> None:
    rows = {name: [(_session(f"s-{name}", 1, name, DAY), DAY)] for name in "ab"}
    assert _land(landing, rows)
    before = landing.day_inputs()
    late = Landing(landing.root, landing.root.parent / "staging")
    assert not _land(late, {"b": rows["b"]})
    assert not _land(late, rows)
    assert landing.day_inputs() == before
    assert len(landing.entries()) == 1
    assert list((landing.root.parent / "staging").rglob("*.parquet")) == []


def test_a_file_that_a_longer_copy_begins_with_is_left_out_of_the_balance(landing: Landing) -> None:
    _land(landing, {"x": [COPIES["short"]]})
    _land(landing, {"xx": [COPIES["long"]]}, grown={"xx": "x"})
    day = landing.day_inputs()[DAY]
    assert _counted(day) == ["xx"]
    assert _winning(landing, "file_id") == ["xx"]
    assert {path: [f.digest for f in found] for path, found in landing.copies_at(["/logs/x", "/logs/xx"]).items()} == {
        "/logs/xx": ["xx"]
    }


def test_the_receipt_of_a_day_changes_with_what_counts_in_it_and_with_nothing_else(landing: Landing) -> None:
    _land(landing, {"long": [COPIES["long"]]})
    before = landing.day_inputs()[DAY]
    _land(landing, {"other": [COPIES["other"]]})
    assert landing.day_inputs()[DAY].digest == before.digest, "another day"
    _land(landing, {"short": [COPIES["short"]]})
    after = landing.day_inputs()[DAY]
    assert after.digest != before.digest, "one more file is counted"
    assert [ids for ids in after.winners.values() if ids] == [(("a", 0),)]
    _land(landing, {"long": [(_session("a", 4, "d4", DAY), DAY)]}, readers={**READERS, "s": "0"})
    assert landing.day_inputs()[DAY].digest == after.digest, "an older parse of a file that is there"


def test_nothing_is_opened_twice_to_learn_what_counts(landing: Landing, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, copy in COPIES.items():
        _land(landing, {name: [copy]})
    read: list[str] = []
    real = pl.read_parquet
    monkeypatch.setattr(pl, "read_parquet", lambda path, **more: read.append(str(path)) or real(path, **more))
    landing.day_inputs()
    assert len(read) == len(landing.entries()), "one small file a batch, and no part"
    assert not any("day=" in path for path in read)
    assert Landing(landing.root, landing.root).day_inputs() == landing.day_inputs()
    assert len(read) == len(landing.entries())
    _land(landing, {"more": [(_session("c", 1, "d", DAY), DAY)]})
    assert _winners(landing)[DAY] == ["a", "c"]


def test_parts_are_on_disk_before_the_entry_that_names_them(landing: Landing, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[str, bool]] = []
    index = landing.root / "_batches"
    monkeypatch.setattr(
        files_module, "sync", lambda path: synced.append((path.suffix or path.name, any(index.glob("*.json"))))
    )
    _land(landing, {"long": [COPIES["long"]]})
    before = [kind for kind, is_named in synced if not is_named]
    assert before.count(".parquet") == 3  # sessions, files, and what decides between copies
    assert f"day={DAY}" in before
    assert ("_batches", True) in synced


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", f'{{"layout": {LAYOUT}, "batch": "x"}}'])
def test_a_broken_index_entry_has_a_code_a_place_and_a_fix(landing: Landing, text: str) -> None:
    _land(landing, {"x": [COPIES["short"]]})
    path = next((landing.root / "_batches").glob("*.json"))
    path.write_text(text, "utf-8")
    for read in (landing.entries, landing.day_inputs, lambda: Landing(landing.root, landing.root).known_files({})):
        with pytest.raises(EvalpipeError, match="HOME_DAMAGED") as caught:
            read()
        assert caught.value.where == str(path)
        assert path.name in caught.value.fix


def test_a_lost_list_of_copies_is_told_too(landing: Landing) -> None:
    _land(landing, {"x": [COPIES["short"]]})
    path = next((landing.root / "_batches").glob("*.copies.parquet"))
    path.write_bytes(b"PAR1")
    with pytest.raises(EvalpipeError, match="HOME_DAMAGED") as caught:
        landing.day_inputs()
    assert path.name.split(".")[0] + ".json" in caught.value.fix


def test_parts_are_grouped_up_to_the_limit(landing: Landing) -> None:
    for name in ("long", "short"):
        _land(landing, {name: [COPIES[name]]})
    day = landing.day_inputs()[DAY]
    assert len(day.stems) == 2
    assert len(group_stems(day, 10)) == 1
    heavy = DayInput(day.stems, day.winners, day.files, dict.fromkeys(day.stems, 8), day.rows)
    assert [len(g) for g in group_stems(heavy, 10)] == [1, 1]
