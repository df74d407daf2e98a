"""Every coding agent's log is taken by its own reader, and whatever stands in it is accounted for."""

from __future__ import annotations

import copy
import json
import random
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.contracts.tables.raw import END_STATUS_LOGGED, STEP_ERRORS, STEP_KINDS, STEP_ORIGINS
from evalpipe.sources.readers import chat_rows
from evalpipe.sources.readers.base import FileContext
from evalpipe.sources.registry import HEAD_BYTES, all_readers, sniff
from evalpipe.sources.session import (
    ARGUMENTS,
    CACHE_READ,
    CACHE_WRITE,
    END,
    ERROR,
    EXIT_CODE,
    INPUT,
    IS_ERROR,
    KIND,
    MODEL,
    NAME,
    ORIGIN,
    OUTPUT,
    OUTPUT_TOKENS,
    PARENT,
    REASONING,
    SLOTS,
    START,
    STEP_ID,
    TEXT,
    Session,
    summarise,
)
from evalpipe_tests.sources.coding_logs import LOGS, ROOT, SID, written
from evalpipe_tests.sources.helpers import OPTIONS, Read, tar
from evalpipe_tests.sources.test_reading_properties import FILES, STRANGE, places, put, strange


def read(data: bytes, name: str = "log", **options: Any) -> Read:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        return Read(path, **options)


@pytest.mark.parametrize("name", LOGS)
def test_each_log_is_taken_by_its_own_reader_only(name: str) -> None:
    log = LOGS[name]
    reader = sniff(log.data[:HEAD_BYTES])
    assert reader is not None
    assert reader.name == log.source
    # Those that know no more than "messages" stand last, for what no other reader takes.
    generic = {reader.name for reader in chat_rows.READERS}
    others = [r for r in all_readers() if r.name not in {log.source, *generic}]
    for record in log.records:
        if type(record) is dict:
            assert [r.name for r in others if r.recognise(record)] == []


@pytest.mark.parametrize("name", LOGS)
def test_each_log_is_read_in_full(name: str) -> None:
    found = read(LOGS[name].data)
    assert found.codes == []
    assert found.sessions.height == 1
    assert found.sessions["source"].to_list() == [LOGS[name].source]
    assert found.session["n_turns"] >= 1
    assert found.session["session_id"].startswith(f"{LOGS[name].source}:")


@pytest.mark.parametrize("name", LOGS)
def test_the_same_log_gives_the_same_rows(name: str) -> None:
    one, two = read(LOGS[name].data), read(LOGS[name].data)
    assert one.sessions.drop("file_id").equals(two.sessions.drop("file_id"))
    assert one.steps.equals(two.steps)


@pytest.mark.parametrize("name", [n for n, log in LOGS.items() if log.shape != "text"])
def test_a_head_that_cuts_the_log_off_is_recognised(name: str) -> None:
    log = LOGS[name]
    large = copy.deepcopy(log.records)
    where = large[-1] if log.shape != "whole" and len(large) > 1 else large[0]
    if type(where) is dict:
        where["padding"] = "x" * HEAD_BYTES
    reader = sniff(written(large, log.shape)[:HEAD_BYTES])
    assert reader is not None
    assert reader.name == log.source


@pytest.mark.parametrize("name", [n for n, log in LOGS.items() if log.shape != "text" and n != "gemini_checkpoint"])
def test_every_single_field_may_be_anything(name: str) -> None:
    """Asked of the parsers themselves, since a file of one strange record may be of no known format."""
    log = LOGS[name]
    reader = next(
        r
        for r in all_readers()
        if r.name == log.source and type(record := _record(log.records[0], r)) is dict and r.recognise(record)
    )
    for at, record in enumerate(log.records):
        for place in places(record):
            for new in STRANGE:
                parser = reader.parser(FileContext("log.json"))
                for index, other in enumerate(log.records):
                    value = put(record, place, new) if index == at else other
                    value = _record(value, reader)
                    if type(value) is dict:
                        status = parser.feed(value)
                        assert status in ("kept", "noise", "NOT_A_RECORD", "BAD_FIELD", "NO_SESSION_ID")
                for session in parser.sessions.values():
                    parser.finish(session)
                    _fits_the_tables(session)


_TEXTS = (STEP_ID, KIND, ORIGIN)
_TEXTS_OR_NONE = (PARENT, NAME, TEXT, ARGUMENTS, OUTPUT, ERROR, START, END, MODEL)
_COUNTS = (EXIT_CODE, INPUT, OUTPUT_TOKENS, CACHE_READ, CACHE_WRITE, REASONING)


def _fits_the_tables(session: Session) -> None:
    for row in session.rows:
        assert len(row) == len(SLOTS)
        assert all(type(row[slot]) is str for slot in _TEXTS)
        assert all(row[slot] is None or type(row[slot]) is str for slot in _TEXTS_OR_NONE)
        assert all(row[slot] is None or type(row[slot]) is int for slot in _COUNTS)
        assert row[IS_ERROR] in (None, True, False)
        assert row[KIND] in STEP_KINDS
        assert row[ORIGIN] in STEP_ORIGINS
        assert row[ERROR] is None or row[ERROR] in STEP_ERRORS
    assert session.end_status is None or session.end_status in END_STATUS_LOGGED
    for name in ("agent_release", "model", "user_id", "workspace", "task_id", "scenario", "harness", "prompt_version"):
        assert getattr(session, name) is None or type(getattr(session, name)) is str
    assert session.is_success in (None, True, False)
    assert session.cost_usd is None or session.cost_usd >= 0
    session.dates(OPTIONS.undated_day)
    summarise(session)


def _record(value: Any, reader: Any) -> Any:
    return {reader.array_key: value} if type(value) is list and reader.array_key else value


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(LOGS)), st.integers(0, 2**32))
def test_strange_records_are_accounted_for(name: str, seed: int) -> None:
    choose = random.Random(seed)
    log = LOGS[name]
    if log.shape == "text":
        text = log.data.decode().split("\n")
        choose.shuffle(text)
        read("\n".join(text).encode())
        return
    records = [strange(record, choose) for record in log.records]
    keep = log.records[:1] if log.shape in ("lines", "items") else []
    found = read(written([*keep, *records], log.shape))
    assert found.files.height == 1


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(LOGS)), st.integers(0, 2**32))
def test_cut_and_flipped_logs_are_accounted_for(name: str, seed: int) -> None:
    choose = random.Random(seed)
    data = LOGS[name].data
    a, b = sorted(choose.randrange(len(data) + 1) for _ in range(2))
    read(choose.choice((data[:a], data[:a] + data[b:], data[a:], data[:a] + b"\xff" + data[a:])))


def test_logs_in_an_archive_keep_their_readers() -> None:
    found = read(tar([(name, log.data) for name, log in LOGS.items()]), "all.tar")
    assert dict(found.files.select("member", "source").rows()) == {name: log.source for name, log in LOGS.items()}
    assert found.codes == []


@pytest.mark.parametrize("name", LOGS)
def test_a_session_of_the_future_is_quarantined_record_by_record(name: str) -> None:
    whole = read(LOGS[name].data)
    if not whole.session["is_dated"]:
        return
    found = read(LOGS[name].data, today=date(2025, 1, 1))
    assert found.sessions.height == 0
    assert found.codes == ["FUTURE_DATE"] * whole.file()["rows_kept"]
    assert set(found.quarantine["session_id"]) == {whole.session["session_id"]}


@pytest.mark.parametrize("name", ["gemini_document", "opencode_export", "openhands_evaluated", "swe", "mini"])
def test_a_bundle_of_whole_sessions_is_not_held_in_memory(name: str) -> None:
    """Evaluation outputs reach gigabytes: each session is handed on when it is read."""
    log = LOGS[name]
    record = json.dumps(log.records[0])
    ids = (SID, ROOT, "repo__task-1", "resp1", "fix the issue")
    copies = []
    for number in range(40):
        text = record
        for known in ids:
            text = text.replace(known, f"{known}{number}")
        copies.append(text)
    data = "\n".join(copies).encode()
    reader = sniff(data[:HEAD_BYTES])
    assert reader is not None
    assert reader.is_one_record_a_session
    assert read(data, chunk_bytes=200).sessions.height == 40


def test_logs_of_other_formats_are_left_to_their_readers() -> None:
    expected = ["claude_code", "codex", "evalpipe_jsonl", "tau_bench", "tau2_bench", "tau2_bench"]
    assert [reader.name for data in FILES if (reader := sniff(data[:HEAD_BYTES]))] == expected


@pytest.mark.parametrize("depth", [300, 1015])
def test_arguments_may_be_nested_as_deep_as_they_can_be_read(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    record = json.dumps(LOGS["pi"].records[3]).replace('"make"', deep)
    found = read(written([LOGS["pi"].records[0]], "lines") + record.encode() + b"\n")
    assert found.rows("arguments", kind="tool") == [f'{{"command":{deep}}}'] or "TOO_DEEP" in found.codes
    assert depth > 1000 or found.codes == []
