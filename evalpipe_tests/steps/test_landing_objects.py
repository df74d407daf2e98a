"""Landing objects of a bucket: once, whole, and not asked for again."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.steps import intake
from evalpipe.steps.context import Context
from evalpipe.steps.found import holds_no_session, locate, unread
from evalpipe.steps.land import LandingResult, land, sources_state
from evalpipe_tests.bucket import BUCKET, ObjectStore, error
from evalpipe_tests.steps.test_landing_again import BAD, _bump
from evalpipe_tests.steps.world import make, opened, rows, session, write

LOGS = f"s3://{BUCKET}/logs"
READINGS = "GET .*/logs/.*"


def log(name: str, turns: int = 1, tail: str = "") -> bytes:
    return ("".join(json.dumps(row) + "\n" for row in session(name, turns=turns)) + tail).encode()


def landed(home: Path, *named: str | Path) -> LandingResult:
    with opened(home) as context:
        return land(context, named or (LOGS,))


def made(home: Path) -> dict[str, Any]:
    """What the raw layer holds after a landing, balance and all."""
    with opened(home) as context:
        assert {name: done.red for name, done in make(context, "raw").items() if done.red} == {}
        files, sessions, quarantine = (rows(context, f"raw.{name}") for name in ("files", "sessions", "quarantine"))
        assert not list(context.lake.staging.rglob("*object-*")), "copies are gone"
    return {
        "files": dict(files.select("source_file", "n_sessions").sort("source_file").rows()),
        "sessions": sorted(sessions["session_id"]),
        "codes": sorted(quarantine["code"]),
    }


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_objects_are_landed_as_files_of_the_same_bytes_are(store: ObjectStore, home: Path, tmp_path: Path) -> None:
    store.put("logs/a.jsonl", log("a", tail=BAD))
    store.put("logs/day=1/b c.jsonl.gz", gzip.compress(log("b")))
    first = landed(home)
    assert (first.n_files, first.n_new_files, first.rows["sessions"]) == (2, 2, 2)
    assert made(home) == {
        "files": {f"{LOGS}/a.jsonl": 1, f"{LOGS}/day=1/b c.jsonl.gz": 1},
        "sessions": ["evalpipe_jsonl:a", "evalpipe_jsonl:b"],
        "codes": ["BAD_JSON"],
    }
    (tmp_path / "copy.jsonl").write_bytes(log("a", tail=BAD))
    assert landed(home, tmp_path / "copy.jsonl").n_new_files == 0, "one parse per content, wherever it lies"


def in_small_batches(context: Context) -> Context:
    return replace(context, settings=replace(context.settings, batch_bytes=1_000))


def receipts(home: Path) -> dict[date, str]:
    with opened(home) as context:
        return {day: item.digest for day, item in context.landing.day_inputs().items()}


def test_a_bucket_lands_the_same_parts_as_a_folder(
    store: ObjectStore, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalpipe.steps.land._BATCHES_A_WORKER", 1)
    for number in range(9):
        data = log(f"s{number % 7}", turns=1 + number % 3)
        store.put(f"logs/{number}/log.jsonl", data)
        path = tmp_path / "logs" / str(number) / "log.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    for folder, source in ((home, LOGS), (tmp_path / "other", tmp_path / "logs")):
        with opened(folder) as context:
            assert land(in_small_batches(context), [source]).n_new_files == 9
            assert len(context.landing.entries()) > 3
    assert receipts(home) == receipts(tmp_path / "other")


def test_archives_of_a_bucket_are_read_like_others(store: ObjectStore, home: Path) -> None:
    tar, packed = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w:gz") as archive:
        info = tarfile.TarInfo("in/a.jsonl")
        info.size = len(log("a"))
        archive.addfile(info, io.BytesIO(log("a")))
    with zipfile.ZipFile(packed, "w") as archive_:
        archive_.writestr("in/b.jsonl", log("b"))
    table = io.BytesIO()
    pl.DataFrame(
        {"messages": [[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]]}
    ).write_parquet(table)
    store.put("logs/a.tar.gz", tar.getvalue())
    store.put("logs/b.zip", packed.getvalue())
    store.put("logs/c.parquet", table.getvalue())
    landed(home)
    found = made(home)
    assert found["codes"] == []
    assert found["sessions"][:2] == ["evalpipe_jsonl:a", "evalpipe_jsonl:b"]
    assert len(found["sessions"]) == 3


def test_an_unchanged_object_is_listed_and_not_read_again(store: ObjectStore, home: Path) -> None:
    for name in "abc":
        store.put(f"logs/{name}.jsonl", log(name))
    store.put("logs/twin.jsonl", log("a"))
    landed(home)
    assert store.count(READINGS) == 4
    store.requests.clear()
    again = landed(home)
    assert (again.n_files, again.n_new_files) == (4, 0)
    assert store.count(".*/logs/.*jsonl") == 0, store.requests
    assert store.count("GET .*list-type=2.*max-keys=1000.*") == 1
    store.put("logs/b.jsonl", log("b", turns=2), age_seconds=60 * 60 - 1)
    store.put("logs/d.jsonl", log("d"))
    store.requests.clear()
    assert landed(home).n_new_files == 2
    assert store.count(READINGS) == 2, "only what is new is read"
    assert made(home)["sessions"] == [f"evalpipe_jsonl:{name}" for name in "abcd"]


def test_an_object_written_again_with_the_same_bytes_is_asked_for_and_not_read(store: ObjectStore, home: Path) -> None:
    store.put("logs/a.jsonl", log("a"))
    landed(home)
    store.put("logs/a.jsonl", log("a"), age_seconds=600)
    store.requests.clear()
    assert landed(home).n_new_files == 0
    assert (store.count("HEAD .*/logs/a.jsonl"), store.count(READINGS)) == (1, 0)
    store.requests.clear()
    landed(home)
    assert store.count(".*/logs/a.jsonl") == 0, "its new time is known now"


def test_an_object_as_young_as_its_listing_is_asked_for_once_more(store: ObjectStore, home: Path) -> None:
    """Times of a store are whole seconds: the next state may have the same time, and the same size."""
    store.put("logs/a.jsonl", log("a"), age_seconds=0)
    landed(home)
    store.put("logs/a.jsonl", log("b"), age_seconds=0)
    landed(home)
    assert made(home)["sessions"] == ["evalpipe_jsonl:a", "evalpipe_jsonl:b"]


def test_what_is_known_of_objects_can_be_lost_and_says_so(store: ObjectStore, home: Path) -> None:
    store.put("logs/a.jsonl", log("a"))
    landed(home)
    with opened(home) as context:
        (memory,) = context.settings.landing.glob("_objects.parquet")
    memory.write_bytes(b"not Parquet")
    with pytest.raises(EvalpipeError, match=r"HOME_DAMAGED .*Delete it"):
        landed(home)
    memory.unlink()
    assert landed(home).n_new_files == 0
    store.requests.clear()
    landed(home)
    assert store.count(".*/logs/a.jsonl") == 0, "it is known again"


def test_newer_readers_read_objects_again(store: ObjectStore, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("logs/a.jsonl", log("a"))
    landed(home)
    _bump(monkeypatch, "99")
    assert landed(home).n_new_files == 1
    with opened(home) as context:
        make(context, "raw")
        assert rows(context, "raw.sessions")["reader_version"].to_list() == ["99"]


def test_an_object_that_grew_is_counted_once(store: ObjectStore, home: Path) -> None:
    for turns in (1, 2, 3):
        store.put("logs/a.jsonl", BAD.encode() + log("a", turns=turns), age_seconds=4000 - turns)
        landed(home)
    found = made(home)
    assert (found["files"], found["codes"]) == ({f"{LOGS}/a.jsonl": 1}, ["BAD_JSON"])


def test_what_cannot_be_read_is_counted_and_stops_no_other_object(store: ObjectStore, home: Path) -> None:
    for name in ("a", "closed", "gone", "in/../b", "in//c"):
        store.put(f"logs/{name}.jsonl", log(name[-1]))
    store.put("logs/empty.jsonl", b"")

    def answer(method: str, path: str) -> tuple[str, bytes] | None:
        if path.endswith("/gone.jsonl"):
            store.delete("logs/gone.jsonl")
        return error("403 Forbidden", "AccessDenied") if path.endswith("/closed.jsonl") else None

    store.answer = answer
    assert landed(home).n_new_files == 6
    found = made(home)
    assert found["sessions"] == ["evalpipe_jsonl:a"]
    assert found["codes"] == ["EMPTY_FILE", *["UNREADABLE_FILE"] * 4]
    store.answer = None
    assert landed(home).n_new_files == 1, "what is open now is read"
    assert made(home)["codes"] == ["EMPTY_FILE", *["UNREADABLE_FILE"] * 3], "and not told of any more"


def test_no_file_of_this_machine_is_taken_for_a_copy(
    store: ObjectStore, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key may read like a path, and copies are deleted."""
    monkeypatch.chdir(tmp_path)
    own = [write(tmp_path / name, *session("own")) for name in ("logs/a.jsonl", "twin.jsonl")]
    store.put("logs/a.jsonl", log("a"))
    store.put(f"{own[1]}", log("a"))
    store.answer = lambda method, path: error("403 Forbidden", "AccessDenied") if "jsonl" in path else None
    for _ in range(2):
        with opened(home) as context:
            land(context, [f"s3://{BUCKET}"])
    assert all(path.exists() for path in own)


def test_a_store_that_goes_away_stops_the_landing_and_leaves_what_was_landed(
    store: ObjectStore, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "_AHEAD", 1)
    monkeypatch.setattr("evalpipe.steps.land._BATCHES_A_WORKER", 1)
    for name in "abc":
        store.put(f"logs/{name}.jsonl", log(name, turns=3))
    store.answer = lambda method, path: error("400 Bad Request", "ExpiredToken") if path.endswith("/c.jsonl") else None
    with opened(home) as context, pytest.raises(EvalpipeError, match=r"SOURCE_UNREACHABLE \[s3://.*c.jsonl"):
        land(in_small_batches(context), [LOGS])
    with opened(home) as context:
        assert len(context.landing.known_files(context.readers)) == 1
        assert not list(context.lake.staging.rglob("*object-*")), "no copy is left behind"
    store.answer = None
    for folder in (home, tmp_path / "other"):
        with opened(folder) as context:
            land(in_small_batches(context), [LOGS])
    assert receipts(home) == receipts(tmp_path / "other"), "as if it had never stopped"
    assert made(home)["sessions"] == [f"evalpipe_jsonl:{name}" for name in "abc"]


def test_equal_names_in_two_stores_are_two_objects(store: ObjectStore, home: Path) -> None:
    store.put("logs/a.jsonl", log("a"))
    landed(home)
    store.put("logs/a.jsonl", log("b"))  # of the same size and time, as it stands in another store
    port = store.url.rpartition(":")[2]
    assert landed(home, f"{LOGS}?endpoint=http://localhost:{port}").n_new_files == 1


def test_places_of_what_could_not_be_read_are_told_without_reading_objects_again(
    store: ObjectStore, home: Path
) -> None:
    store.put("logs/a/bad.jsonl", log("a", tail=BAD))
    store.put("logs/strange.txt", b'{"colour": "blue"}\n' * 3)
    landed(home)
    made(home)
    with opened(home) as context:
        store.requests.clear()
        files = locate([LOGS])
        assert not holds_no_session(context, files)
        assert store.count(READINGS) == 0
        told = {item.name: (item.line, item.code, item.like) for item in unread(context, files, [LOGS])}
        assert told["a/bad.jsonl"] == (4, "BAD_JSON", "")
        assert told["strange.txt"][:2] == (0, "UNKNOWN_FORMAT")
        assert "JSON lines" in told["strange.txt"][2]
        assert holds_no_session(context, [f for f in files if str(f).endswith(".txt")])


def test_the_state_of_sources_changes_with_objects(store: ObjectStore, tmp_path: Path) -> None:
    local = write(tmp_path / "x.jsonl", *session("x"))

    def state() -> tuple[str, int]:
        return sources_state([LOGS, local.parent], datetime.now(UTC) - timedelta(seconds=60))

    store.put("logs/a.jsonl", log("a"))
    first = state()
    assert first[1] == 1, "a file that was just written is not still"
    assert state() == first
    store.put("logs/young.jsonl", log("b"), age_seconds=1)
    assert state() == first
    store.put("logs/b.jsonl", log("b"))
    assert state()[0] != first[0]
