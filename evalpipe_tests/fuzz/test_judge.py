"""The judge sees what it is there for: readers that crash, hang, lose records, or tell what a log says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalpipe.sources import registry
from evalpipe.sources.readers.base import KEPT, NOT_A_RECORD
from evalpipe.sources.readers.evalpipe_jsonl import READER
from evalpipe_tests.fuzz import judge as judging
from evalpipe_tests.fuzz.judge import MARKER, judge
from evalpipe_tests.fuzz.minimise import minimise, same_fault
from evalpipe_tests.fuzz.seeds import families

Feed = Any


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_bytes(families()["evalpipe_jsonl"][0].data)
    return path


def _reader(monkeypatch: pytest.MonkeyPatch, feed: Feed) -> None:
    """Exchange what the reader of evalpipe's own lines does with a record."""

    def parser(context: Any) -> Any:
        made = READER.parser(context)
        inner = made.feed
        made.feed = lambda record: feed(made, inner, record)  # type: ignore[method-assign]
        return made

    monkeypatch.setattr(registry, "READERS", (replace(READER, parser=parser), *registry.READERS[1:]))


def test_a_file_in_order_has_no_fault(log: Path) -> None:
    (verdict,) = judge([log])
    assert (verdict.fault, verdict.n_sessions, verdict.codes) == ("", 1, {})


def test_a_crash_names_its_place_and_only_its_file(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = log.with_name("other.jsonl")
    other.write_bytes(families()["codex"][0].data)
    _reader(monkeypatch, lambda parser, inner, record: record["no such key"])
    bad, good = judge([log, other])
    assert bad.fault.startswith("crash: KeyError")
    assert good.fault == ""


def test_a_hang_ends(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def feed(*_: Any) -> str:
        while True:
            pass

    monkeypatch.setattr(judging, "LIMIT_SECONDS", 0.2)
    _reader(monkeypatch, feed)
    assert judge([log])[0].fault.startswith("hang: ")


def test_a_session_without_its_records_is_seen(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _reader(monkeypatch, lambda parser, inner, record: KEPT)
    assert "NO_SESSION" in judge([log])[0].codes
    _reader(monkeypatch, lambda parser, inner, record: (inner(record), parser.sessions.clear(), KEPT)[2])
    assert judge([log])[0].codes == {"NO_SESSION": 1}


def test_a_code_that_tells_what_the_log_says_is_seen(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _reader(monkeypatch, lambda parser, inner, record: f"BAD {MARKER}")
    assert judge([log])[0].fault == "wrong: a quarantine code is not in the registry"


def test_a_value_that_breaks_the_contract_is_seen(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def feed(parser: Any, inner: Any, record: Any) -> Any:
        status = inner(record)
        for session in parser.sessions.values():
            session.reward = float("inf")
        return status

    _reader(monkeypatch, feed)
    assert "CONTRACT_BROKEN" in judge([log])[0].fault


def test_what_fails_is_made_small(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def feed(parser: Any, inner: Any, record: Any) -> Any:
        return inner(record) if record.get("kind") != "tool" else 1 // 0

    _reader(monkeypatch, feed)
    fault = judge([log])[0].fault
    small = minimise(log.read_bytes(), same_fault(log.parent, "small.jsonl", fault, {}))
    assert fault.startswith("crash: ZeroDivisionError")
    assert len(small) < 60
    assert b'"tool"' in small


def test_a_record_that_is_none_is_no_fault(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _reader(monkeypatch, lambda parser, inner, record: NOT_A_RECORD)
    (verdict,) = judge([log])
    assert (verdict.fault, verdict.codes) == ("", {"NOT_A_RECORD": 5})
