"""Landing: seen files are a no-op, and one copy of a session wins whatever the order."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

from evalpipe.contracts import render
from evalpipe.contracts.tables import TABLES
from evalpipe.store.landing import Landing, StagedBatch, group_stems, stage_chunk
from evalpipe.store.manifest import digest_of

DAY = date(2026, 1, 5)
NEXT = date(2026, 1, 6)


def _session(session_id: str, n_messages: int, digest: str, day: date, reader: str = "1") -> dict[str, object]:
    start = datetime(day.year, day.month, day.day, 10, tzinfo=UTC)
    return {
        "session_id": session_id, "source": "s", "reader_version": reader, "file_id": "f", "agent": "a",
        "n_models": 1, "started_at": start, "ended_at": start, "is_dated": True, "is_clock_repaired": False,
        "n_turns": 1, "n_steps": 1, "n_tool_calls": 0, "n_messages": n_messages, "content_digest": digest,
    }  # fmt: skip


def _land(landing: Landing, name: str, sessions: list[tuple[dict[str, object], date]]) -> None:
    tables: dict[str, pl.DataFrame] = {}
    for table in ("sessions", "steps", "quarantine", "files"):
        rows = [s for s, _ in sessions] if table == "sessions" else []
        frame = render.frame(TABLES[f"raw.{table}"], rows)
        days = [d for _, d in sessions] if table == "sessions" else []
        tables[table] = frame.insert_column(0, pl.Series("day", days, dtype=pl.Date))
    batch = digest_of(name)
    folder = landing.staging_folder(batch)
    parts = stage_chunk(batch, 0, tables, folder)
    landing.commit(StagedBatch(batch, tuple(parts), folder), files=[(name, 1)], readers="r", landed_on=DAY)


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path / "landing", tmp_path / "staging")


def _winners(landing: Landing) -> dict[date, list[str]]:
    return {
        day: sorted(itertools.chain.from_iterable(item.winners.values()))
        for day, item in landing.day_inputs().items()
        if any(item.winners.values())
    }


COPIES = {
    "short": (_session("a", 2, "d1", DAY), DAY),
    "long": (_session("a", 5, "d2", DAY), DAY),
    "cut": (_session("a", 1, "d0", NEXT), NEXT),
    "other": (_session("b", 1, "d9", NEXT), NEXT),
}


@pytest.mark.parametrize("order", list(itertools.permutations(COPIES)))
def test_the_copy_with_the_most_messages_wins_in_any_order(landing: Landing, order: tuple[str, ...]) -> None:
    for name in order:
        _land(landing, name, [COPIES[name]])
    assert _winners(landing) == {DAY: ["a"], NEXT: ["b"]}
    stem = next(s for s, ids in landing.day_inputs()[DAY].winners.items() if ids)
    assert pl.read_parquet(landing.path(DAY, stem, "sessions"))["n_messages"].to_list() == [5]


def test_equal_copies_are_decided_by_digest_not_by_order(landing: Landing) -> None:
    for name, digest in (("x", "bbb"), ("y", "aaa")):
        _land(landing, name, [(_session("a", 3, digest, DAY), DAY)])
    stem = next(s for s, ids in landing.day_inputs()[DAY].winners.items() if ids)
    assert pl.read_parquet(landing.path(DAY, stem, "sessions"))["content_digest"].to_list() == ["aaa"]


def test_a_newer_reader_wins_over_a_longer_copy_of_an_older_one(landing: Landing) -> None:
    _land(landing, "old", [(_session("a", 9, "d1", DAY, "1"), DAY)])
    _land(landing, "new", [(_session("a", 3, "d2", DAY, "2"), DAY)])
    stem = next(s for s, ids in landing.day_inputs()[DAY].winners.items() if ids)
    assert pl.read_parquet(landing.path(DAY, stem, "sessions"))["reader_version"].to_list() == ["2"]


def test_a_file_is_known_to_the_readers_that_parsed_it(landing: Landing) -> None:
    _land(landing, "x", [COPIES["short"]])
    assert landing.known_files("r") == {"x"}
    assert landing.known_files("newer") == set()


def test_the_receipt_of_a_day_changes_with_its_winners_only(landing: Landing) -> None:
    _land(landing, "long", [COPIES["long"]])
    before = landing.day_inputs()[DAY].digest
    _land(landing, "other", [COPIES["other"]])
    assert landing.day_inputs()[DAY].digest == before
    _land(landing, "short", [COPIES["short"]])
    after = landing.day_inputs()[DAY]
    assert after.digest != before
    assert sum(len(ids) for ids in after.winners.values()) == 1


def test_parts_are_grouped_up_to_the_limit(landing: Landing) -> None:
    for name in ("long", "short"):
        _land(landing, name, [COPIES[name]])
    day = landing.day_inputs()[DAY]
    assert len(group_stems(day, 10)) == 1
    assert [len(g) for g in group_stems(type(day)(day.stems, day.winners, dict.fromkeys(day.stems, 8)), 10)] == [1, 1]
