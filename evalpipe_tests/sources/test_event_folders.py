"""Each event in a file of its own: the folder is one session, and grows like a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalpipe.sources import begins_with, discover, fingerprint
from evalpipe_tests.sources.coding_logs import OPENHANDS, OPENHANDS_SDK, written
from evalpipe_tests.sources.helpers import Read


def _folder(root: Path, events: list[Any], name: str = "{n}.json") -> Path:
    folder = root / "sessions" / "one" / "events"
    folder.mkdir(parents=True, exist_ok=True)
    for n, event in enumerate(events):
        # As the server writes them, over several lines.
        (folder / name.format(n=n)).write_text(json.dumps(event, indent=1), "utf-8")
    return folder


@pytest.mark.parametrize(
    ("events", "name"),
    [(OPENHANDS, "{n}.json"), (OPENHANDS_SDK, "event-{n:05d}-3f0c5a1e-94b7.json")],
    ids=["server", "sdk"],
)
def test_a_folder_of_events_is_the_session_that_its_events_in_one_file_are(
    tmp_path: Path, events: list[Any], name: str
) -> None:
    # More than ten, so that the order of names is not that of numbers.
    events = [*events, *({**events[-1], "id": 1000 + n} for n in range(12 - len(events)))]
    joined = tmp_path / "joined"
    joined.write_bytes(written(events, "lines"))
    one, folder = Read(joined), Read(_folder(tmp_path, events, name))
    assert folder.sessions.drop("file_id", "content_digest").equals(one.sessions.drop("file_id", "content_digest"))
    assert folder.steps.equals(one.steps)
    assert folder.file()["rows_read"] == one.file()["rows_read"] == len(events)
    assert folder.file()["source_file"].endswith("sessions/one/events")


def test_an_event_that_is_broken_is_one_bad_line_and_others_are_read(tmp_path: Path) -> None:
    folder = _folder(tmp_path, OPENHANDS)
    (folder / "2.json").write_text('{"id": 2,\n "source', "utf-8")
    found = Read(folder.parents[1])
    assert found.quarantine.select("code", "line").rows() == [("BAD_JSON", 3)]
    assert found.sessions.height == 1


def test_other_files_beside_the_events_are_accounted_for_by_themselves(tmp_path: Path) -> None:
    folder = _folder(tmp_path, OPENHANDS)
    (folder / "notes.txt").write_text("x", "utf-8")
    assert discover([tmp_path]) == [folder, folder / "notes.txt"]
    assert Read(tmp_path).codes == ["UNKNOWN_FORMAT"]


@pytest.mark.parametrize("document", [{"name": "x"}, {"schema_version": "ATIF-v1.5", "steps": []}, []])
def test_numbered_files_that_are_no_events_stay_files_of_their_own(tmp_path: Path, document: object) -> None:
    folder = _folder(tmp_path, [document, document])
    assert discover([tmp_path]) == [folder / "0.json", folder / "1.json"]


def test_a_folder_that_went_on_begins_with_what_it_was(tmp_path: Path) -> None:
    folder = _folder(tmp_path, OPENHANDS[:5])
    before = fingerprint(folder)
    assert fingerprint(folder) == before
    _folder(tmp_path, OPENHANDS)
    after = fingerprint(folder)
    assert begins_with(after, before.digest, before.n_bytes)
    assert not begins_with(after, "0" * 32, before.n_bytes)
