"""A reader whose code changed has a new version, or somebody said that its rows are the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalpipe.sources.registry import READERS
from evalpipe_tests.sources import reader_record


def test_no_reader_changed_without_a_new_version() -> None:
    assert reader_record.changed() == {}, "see python -m evalpipe_tests.sources.reader_record"


def test_a_shared_helper_is_part_of_every_reader_that_uses_it() -> None:
    spans = reader_record.imported("evalpipe.sources.readers.otlp")
    assert {f"evalpipe.sources.{name}" for name in ("times", "session", "readers.spans", "readers.thread")} <= spans
    assert "evalpipe.sources.readers.spans" not in reader_record.imported("evalpipe.sources.readers.codex")


def test_a_changed_reader_is_not_recorded_under_its_old_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    was = reader_record.now()
    was["codex"]["code"], was["otlp"] = "another", {"code": "another", "version": "0"}
    record = tmp_path / "record.json"
    record.write_text(json.dumps(was))
    monkeypatch.setattr(reader_record, "RECORD", record)
    assert reader_record.changed() == {"codex": False, "otlp": True}
    assert reader_record.main(["--write"]) == 1
    assert json.loads(record.read_text()) == was
    assert "codex: raise its version" in capsys.readouterr().out
    assert reader_record.main(["--write", "--same-rows", "codex"]) == 0
    assert reader_record.changed() == {}


def test_readers_of_one_name_have_one_version() -> None:
    """Files are read again by the version of a name: a second one would hide that the first was raised."""
    versions: dict[str, set[str]] = {}
    for reader in READERS:
        versions.setdefault(reader.name, set()).add(reader.version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}
