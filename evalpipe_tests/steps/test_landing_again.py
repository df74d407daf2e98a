"""A file that is landed again: parsed anew by newer readers, in two batches at once, or grown."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from evalpipe.sources import registry
from evalpipe.steps.land import land
from evalpipe_tests.steps.world import DAY, make, opened, rows, session, write

#: A line that no reader can parse, so that every file has a row in quarantine.
BAD = '{"type": "step", "session_id"\n'


def _bump(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    newer = tuple(replace(r, version=version) if r.name == "evalpipe_jsonl" else r for r in registry.READERS)
    assert newer != registry.READERS
    monkeypatch.setattr(registry, "READERS", newer)


def _balance(home: Path) -> dict[str, int]:
    """Rows of the masked tables; making them checks the reading balance and the keys."""
    with opened(home) as context:
        done = make(context)
        assert {name: result.red for name, result in done.items() if result.red} == {}
        files, quarantine = rows(context, "raw.files"), rows(context, "raw.quarantine")
        assert files.height == files.select("file_id", "member").unique().height
        return {
            "files": files.height,
            "quarantine": quarantine.height,
            "read": int(files["rows_read"].sum()),
            "sessions": rows(context, "raw.sessions").height,
        }


def test_a_file_parsed_anew_by_a_newer_reader_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write(tmp_path / "logs" / "a.jsonl", *session("a"), tail=BAD)
    with opened(tmp_path / "home") as context:
        land(context, [log])
    once = _balance(tmp_path / "home")
    assert once == {"files": 1, "quarantine": 1, "read": 4, "sessions": 1}
    for version in ("98", "99"):
        _bump(monkeypatch, version)
        with opened(tmp_path / "home") as context:
            land(context, [log])
        assert _balance(tmp_path / "home") == once
        with opened(tmp_path / "home") as context:
            assert rows(context, "raw.sessions")["reader_version"].to_list() == [version]
            assert rows(context, "raw.files")["reader_version"].to_list() == [version]


@pytest.mark.parametrize("first", [0, 1])
def test_two_batches_that_hold_the_same_file_count_it_once(
    tmp_path: Path, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As two processes do that list the folder at the same time."""
    a = write(tmp_path / "logs" / "a.jsonl", *session("a"), tail=BAD)
    b = write(tmp_path / "logs" / "b.jsonl", *session("b"), tail=BAD)
    c = write(tmp_path / "logs" / "c.jsonl", *session("c"), tail=BAD)
    batches = [[a, b], [b, c]]
    with opened(tmp_path / "home") as context:
        monkeypatch.setattr(type(context.landing), "known_files", lambda self, readers: set())
        land(context, batches[first])
        land(context, batches[1 - first])
    assert _balance(tmp_path / "home") == {"files": 3, "quarantine": 3, "read": 12, "sessions": 3}


def test_a_file_that_grew_is_counted_once(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "a.jsonl"
    for turns in (1, 2, 3):
        lines = session("a", turns=turns)
        # The bad line is the first one, so that every copy holds it.
        log.parent.mkdir(exist_ok=True)
        log.write_text(BAD + write(tmp_path / "x", *lines).read_text("utf-8"), "utf-8")
        with opened(tmp_path / "home") as context:
            land(context, [log])
        assert _balance(tmp_path / "home") == {"files": 1, "quarantine": 1, "read": 2 + 2 * turns, "sessions": 1}


def test_a_file_that_was_written_anew_under_its_name_is_another_file(tmp_path: Path) -> None:
    log = write(tmp_path / "logs" / "a.jsonl", *session("a"), tail=BAD)
    with opened(tmp_path / "home") as context:
        land(context, [log])
    write(log, *session("b", turns=2), tail=BAD)
    with opened(tmp_path / "home") as context:
        land(context, [log])
    assert _balance(tmp_path / "home") == {"files": 2, "quarantine": 2, "read": 10, "sessions": 2}


def test_landing_order_does_not_change_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write(tmp_path / "logs" / "a.jsonl", *session("a"), tail=BAD)
    later = write(tmp_path / "logs" / "b.jsonl", *session("b"), tail=BAD)
    receipts = []
    for number, order in enumerate((("1", "2"), ("2", "1"))):
        home = tmp_path / f"home{number}"
        for version in order:
            with monkeypatch.context() as patched:
                _bump(patched, "v" + version)
                with opened(home) as context:
                    land(context, [log, later] if version == "2" else [log])
        with opened(home) as context:
            receipts.append({day: item.digest for day, item in context.landing.day_inputs().items()})
    assert list(receipts[0]) == [DAY]
    assert receipts[0] == receipts[1]


def test_the_members_of_a_large_archive_are_shared_and_land_as_one_batch(tmp_path: Path) -> None:
    path = tmp_path / "log.tar"
    with tarfile.open(path, "w") as archive:
        for name in ("a", "b", "c"):
            archive.add(write(tmp_path / name / f"{name}.jsonl", *session(name), tail=BAD))
    alone = tmp_path / "alone"
    with opened(alone) as context:
        land(context, [path])
    with opened(tmp_path / "home") as context:
        result = land(replace(context, settings=replace(context.settings, batch_bytes=1)), [path])
        assert [len(entry.parts) for entry in context.landing.entries()] == [2]
    assert (result.rows["sessions"], result.days) == (3, {DAY})
    assert _balance(tmp_path / "home") == _balance(alone)
    with opened(tmp_path / "home") as context, opened(alone) as whole:
        for table in ("raw.sessions", "raw.steps", "raw.files"):
            assert rows(context, table).equals(rows(whole, table))
