"""Every log is taken by the reader of its own format, in whatever layout, and read in full."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalpipe.sources.registry import READERS, sniff
from evalpipe_tests.sources.bench_logs import (
    LOGS,
    eval_archive,
    inspect_log,
    read,
    read_document,
    recorded,
    tb,
    wildchat,
)
from evalpipe_tests.sources.helpers import Read, lines

CASES = [pytest.param(source, records, id=name) for name, (source, records) in LOGS.items()]
#: Whose records cannot stand in an array or alone: a stream of events is always lines.
LINES_ONLY = {"stream", "events", "chat-messages", "claude-messages"}


def source_of(head: bytes) -> str | None:
    reader = sniff(head)
    return None if reader is None else reader.name


@pytest.mark.parametrize(("source", "records"), CASES)
def test_lines_are_taken_by_their_own_reader(source: str, records: list[Any], tmp_path: Path) -> None:
    found = read(tmp_path, *records)
    assert found.files["source"].to_list() == [source]
    assert found.codes == []
    assert found.sessions.height >= 1


@pytest.mark.parametrize(("source", "records"), CASES)
def test_no_other_reader_would_take_the_record(source: str, records: list[Any]) -> None:
    """The order of the readers matters for the generic ones only, which stand last."""
    generic = {"openai_messages", "anthropic_messages"}
    for record in records[:1]:
        takers = {reader.name for reader in READERS if reader.recognise(record)}
        assert source in takers
        assert takers - {source} <= generic


@pytest.mark.parametrize(
    ("source", "records"), [case for case in CASES if case.id not in LINES_ONLY | {"tooleval", "inspect-events"}]
)
def test_arrays_and_documents_are_taken_too(source: str, records: list[Any], tmp_path: Path) -> None:
    for n, value in enumerate((records, records[0])):
        found = read_document(tmp_path, value, f"{n}.json")
        if source == "inspect" and n == 1:
            continue  # a sample never lies alone in a document
        assert found.files["source"].to_list() == [source]
        assert found.codes == []


@pytest.mark.parametrize(("source", "records"), CASES)
def test_a_first_record_that_goes_on_beyond_the_head_is_recognised(source: str, records: list[Any]) -> None:
    first = json.dumps({**records[0], "zz_more": "x" * 200_000}).encode()
    assert source_of(first[: 1 << 16]) == source


def test_documents_with_a_list_are_taken(tmp_path: Path) -> None:
    assert read_document(tmp_path, {"id": "run", "results": [tb()], "accuracy": 1.0}).codes == []
    assert read_document(tmp_path, inspect_log(), "x.json").files["source"].to_list() == ["inspect"]
    (tmp_path / "one_line.json").write_text(json.dumps(inspect_log()))
    assert Read(tmp_path / "one_line.json").files["source"].to_list() == ["inspect"]


def test_archives_and_recorded_calls_are_taken(tmp_path: Path) -> None:
    (tmp_path / "x.eval").write_bytes(eval_archive())
    assert Read(tmp_path / "x.eval").files["source"].to_list() == ["inspect"]
    (tmp_path / "calls.jsonl").write_bytes(b"\n" + lines(*[json.dumps(one) for one in recorded()]))
    assert Read(tmp_path / "calls.jsonl").files["source"].to_list() == ["anthropic_events"]


@pytest.mark.parametrize(
    "record",
    [
        {"messages": []},
        {"messages": [{"text": "no role"}]},
        {"messages": [{"role": "wizard", "content": "x"}]},
        {"role": "user"},
        {"conversations": []},
        {"conversations": ["x"]},
        {"conversation": "text"},
        {"history": []},
        {"results": [{"task_id": "x"}]},
        {"steps": [], "session_id": "x"},
        {"tree": {}},
        {"samples": [{"id": 1}]},
        {"output": [], "input": ""},
        {"type": "user.message"},
        {"first": {"answer": {}}},
    ],
)
def test_what_only_resembles_a_format_is_unknown(record: dict[str, Any]) -> None:
    assert source_of(json.dumps(record).encode()) is None
    assert source_of(json.dumps(record, indent=1).encode()) is None


def test_sessions_out_of_range_are_quarantined_record_by_record(tmp_path: Path) -> None:
    rows = [wildchat(), wildchat(conversation_hash="old", timestamp="1999-01-05T10:00:00", conversation=[])]
    rows[1]["conversation"] = [{"role": "user", "content": "hi"}]
    found = read(tmp_path, *rows)
    assert found.codes == ["DATE_OUT_OF_RANGE"]
    assert found.sessions["session_id"].to_list() == ["wildchat:c0ffee"]
    future = {"role": "user", "content": "hi", "timestamp": "2031-01-05T10:00:00Z"}
    assert read(tmp_path, future, future, name="f.jsonl").codes == ["FUTURE_DATE"] * 2
