"""A file with more open sessions than can be held gives the same sessions, each in bounded memory."""

from __future__ import annotations

import gzip
import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.sources import holding, registry
from evalpipe.sources import lines as lines_module
from evalpipe.sources.holding import Holding, LastLines
from evalpipe.sources.readers import evalpipe_jsonl
from evalpipe_tests.sources.helpers import Claude, Read, call, lines, result, text, write
from evalpipe_tests.sources.test_reading_properties import CODEX, OWN
from evalpipe_tests.sources.test_spilling import tables


def claude(session_id: str) -> list[dict[str, Any]]:
    log = Claude(session_id, day="2023-01-05" if session_id.endswith("7") else "2026-01-05")
    return [
        log.user([text(f"go {session_id}")]),
        log.agent(call("t1", command="ls"), message_id="m1"),
        log.user([result("t1", "x" * 50, is_error=False)]),
        log.queue("enqueue", "wait"),
        log.agent(text("half"), message_id="m2"),
        log.agent(text("whole"), message_id="m2", usage={"input_tokens": 9, "output_tokens": 9}),
        log.user([text("more")], forkedFrom={"sessionId": "s0", "messageUuid": "u"}),
        log.agent(call("t2", command="rm"), message_id="m3"),
    ]


def own(session_id: str) -> list[dict[str, Any]]:
    records = [{**record, "session_id": session_id} for record in OWN]
    begun = {
        "type": "step", "session_id": session_id, "kind": "tool", "step_id": "c", "name": "x", "is_open": True,
        "at": "2026-01-05T10:00:01Z",
    }  # fmt: skip
    ended = {"type": "result", "session_id": session_id, "step_id": "c", "output": "done"}
    return [*records[:2], begun, *records[2:4], ended, ended, *records[4:]]


def mixed(queues: list[list[dict[str, Any]]], choose: random.Random) -> list[Any]:
    out: list[Any] = []
    while queues := [queue for queue in queues if queue]:
        record = choose.choice(queues).pop(0)
        out += [record] * choose.choice((1, 1, 1, 2))
        if choose.random() < 0.05:
            out.append(choose.choice([b"{broken", '{"type":"summary","summary":"x","leafUuid":"u"}', b"[]"]))
    return out


@pytest.mark.parametrize("make", [claude, own])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), n_sessions=st.integers(8, 30), block=st.sampled_from([200, 2000, 1 << 20]))
def test_sessions_that_are_put_off_are_those_held_in_memory(
    make: Any, seed: int, n_sessions: int, block: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("log")
    records = mixed([make(f"s{n}") for n in range(n_sessions)], random.Random(seed))
    path = write(folder, make("s0")[0], *records)
    put_off: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "BLOCK_BYTES", block)
        held = Read(path, chunk_bytes=3000)
        second = Holding.second_reading

        def watched(self: Holding, *arguments: Any) -> Any:
            put_off.update(self.put_off)
            return second(self, *arguments)

        patch.setattr(Holding, "second_reading", watched)
        bounded = Read(path, chunk_bytes=3000, spool=folder, held_bytes=1500)
    assert put_off
    for expected, found in zip(tables(held), tables(bounded), strict=True):
        assert expected.equals(found)


def test_only_those_that_end_last_are_put_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "BLOCK_BYTES", 500)
    short = [record for n in range(40) for record in own(f"short{n}")]
    path = write(tmp_path, *own("long")[:3], *short, *own("long")[3:])
    asked: list[set[str]] = []
    second = Holding.second_reading
    monkeypatch.setattr(
        Holding, "second_reading", lambda self, *more: (asked.append(self.put_off), second(self, *more))[1]
    )
    read = Read(path, chunk_bytes=3000, spool=tmp_path, held_bytes=1500)
    assert read.sessions.height == 41
    assert "long" in asked[0]
    assert len(asked[0]) < 5


def test_one_session_above_the_limit_among_others_is_quarantined(tmp_path: Path) -> None:
    log = Claude("large")
    large = [log.user([text("x" * 900)]) for _ in range(20)]
    path = write(tmp_path, *claude("s1")[:3], *large, *claude("s1")[3:])
    read = Read(path, chunk_bytes=3000, spool=tmp_path, held_bytes=1500, max_session_bytes=9000)
    assert read.sessions["session_id"].to_list() == ["claude_code:s1"]
    assert set(read.quarantine.select("code", "session_id").rows()) == {("SESSION_TOO_LARGE", "claude_code:large")}
    assert read.file()["rows_quarantined"] == 20


def test_a_file_of_one_session_above_the_limit_is_one_record_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_module, "BLOCK_BYTES", 500)
    path = tmp_path / "log.jsonl.gz"
    data = lines(*CODEX, *CODEX[2:4] * 40)
    path.write_bytes(gzip.compress(data))
    read = Read(path, spool=tmp_path, held_bytes=1500, max_session_bytes=4000)
    assert read.sessions.is_empty()
    assert read.quarantine.select("code", "session_id", "n_bytes").rows() == [
        ("SESSION_TOO_LARGE", "codex:c1", len(data))
    ]
    assert Read(path, spool=tmp_path, max_session_bytes=len(data)).sessions.height == 1


@settings(max_examples=60, deadline=None)
@given(names=st.lists(st.text(max_size=2), max_size=60), unpacked=st.integers(0, 10))
def test_last_lines_are_those_of_a_plain_dict(names: list[str], unpacked: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holding, "_UNPACKED", unpacked)
        last = LastLines()
        for line, name in enumerate(names, 1):
            last.note(name.encode(), line)
        last.pack()
        expected = {name: line for line, name in enumerate(names, 1)}
        assert {name: last.of(name) for name in names} == expected
        assert last.of("absent") == float("inf")


def test_ids_are_the_same_however_json_spells_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "BLOCK_BYTES", 500)
    names = [f'gespräch-{n} "\\ 😀' for n in range(6)]
    records = [record for together in zip(*map(own, names), strict=True) for record in together]
    path = tmp_path / "log.jsonl"
    spelt = [json.dumps(record, ensure_ascii=n % 2 == 0) for n, record in enumerate(records)]
    path.write_text("\n".join(spelt), "utf-8")
    read = Read(path, chunk_bytes=3000, spool=tmp_path, held_bytes=1500)
    assert sorted(read.sessions["session_id"]) == sorted(f"evalpipe_jsonl:{name}" for name in names)
    whole = Read(path)
    assert read.steps.height == whole.steps.height
    assert read.codes == whole.codes


def test_a_session_that_the_second_reading_does_not_find_is_quarantined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_module, "BLOCK_BYTES", 500)
    blind = replace(evalpipe_jsonl.READER, session_key=re.compile(rb'"session_id":\s*"(s1)"'))
    others = tuple(reader for reader in registry.READERS if reader.name != blind.name)
    monkeypatch.setattr(registry, "READERS", (blind, *others))
    records = [record for together in zip(*(own(f"s{n}") for n in range(4)), strict=True) for record in together]
    read = Read(write(tmp_path, *records), chunk_bytes=3000, spool=tmp_path, held_bytes=1500)
    lost = set(read.quarantine.filter(code="READER_FAILED")["session_id"])
    assert lost
    assert lost | set(read.sessions["session_id"]) == {f"evalpipe_jsonl:s{n}" for n in range(4)}
    assert read.file()["rows_quarantined"] == read.quarantine.height
