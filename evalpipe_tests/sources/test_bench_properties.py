"""Whatever stands in a benchmark's or data set's log: no reader crashes, and every record is accounted for."""

from __future__ import annotations

import json
import random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.sources.readers.base import BAD_FIELD, KEPT, NOISE, NOT_A_RECORD, FileContext, Parser, json_text
from evalpipe.sources.registry import READERS
from evalpipe.sources.session import summarise
from evalpipe_tests.sources.bench_logs import LOGS, eval_archive, inspect_log, recorded, sample
from evalpipe_tests.sources.helpers import Read, lines, tar
from evalpipe_tests.sources.test_reading_properties import STRANGE, places, put, strange

STATES = {KEPT, NOISE, NOT_A_RECORD, BAD_FIELD, "NO_SESSION_ID", "BAD_JSON"}
DEEP = json.loads("[" * 900 + "]" * 900)


def parsers(source: str) -> list[Parser]:
    """One parser of each kind that reads the source."""
    kinds = {reader.parser: reader for reader in READERS if reader.name == source}
    return [kind(FileContext("G1_answer/1_m_DFS.json", ("20260105_a_m",))) for kind in kinds]


def feed(source: str, records: list[Any]) -> None:
    for parser in parsers(source):
        if records and isinstance(records[0], dict) and "eval" in records[0]:
            parser.header(records[0]["eval"])
        for record in records:
            if isinstance(record, dict):
                assert parser.feed(record) in STATES
        parser.close()
        for _ in parser.rest():
            for key in list(parser.sessions):
                session = parser.sessions.pop(key)
                parser.finish(session)
                summarise(session)


CASES = [pytest.param(source, records, id=name) for name, (source, records) in LOGS.items()]


@pytest.mark.parametrize(("source", "records"), CASES)
def test_every_single_field_may_be_anything(source: str, records: list[Any]) -> None:
    for at, record in enumerate(records):
        for place in places(record):
            for new in (*STRANGE, DEEP):
                feed(source, [*records[:at], put(record, place, new), *records[at + 1 :]])


@pytest.mark.parametrize(("source", "records"), CASES)
def test_every_field_may_be_absent(source: str, records: list[Any]) -> None:
    for at, record in enumerate(records):
        for place in places(record):
            if place and isinstance(place[-1], str):
                inner = record
                for key in place[:-1]:
                    inner = inner[key]
                smaller = {k: v for k, v in inner.items() if k != place[-1]}
                feed(source, [*records[:at], put(record, place[:-1], smaller), *records[at + 1 :]])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(LOGS)), st.integers(0, 2**32))
def test_files_with_strange_records_are_accounted_for(name: str, seed: int) -> None:
    choose = random.Random(seed)
    _, records = LOGS[name]
    good = lines(*[json.dumps(record) for record in records])
    members = [("good.jsonl", good)]
    for n in range(4):
        odd = [strange(record, choose) for record in records for _ in range(choose.choice((1, 1, 2)))]
        members.append((f"{n}.jsonl", lines(json.dumps(records[0]), *[json.dumps(one) for one in odd])))
        members.append((f"{n}.json", json.dumps(odd, indent=choose.choice((None, 1))).encode()))
        members.append((f"{n}-whole.json", json.dumps(odd[0], indent=1).encode()))
    found = _read(tar(members))
    assert found.files.height == len(members)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_logs_of_inspect_and_recorded_calls_are_accounted_for(seed: int) -> None:
    choose = random.Random(seed)
    members = [
        ("log.json", json.dumps(strange(inspect_log(sample(), sample(id=2)), choose), indent=1).encode()),
        ("calls.jsonl", lines(*[json.dumps(one) for one in [recorded()[0], *strange(recorded(), choose)]])),
    ]
    assert _read(tar(members)).files.height == 2
    odd = strange(sample(), choose)
    assert _read(eval_archive(sample(), odd if isinstance(odd, dict) else {})).files.height == 1


def _read(data: bytes) -> Read:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        path.write_bytes(data)
        return Read(path)


@pytest.mark.parametrize("depth", [10, 300, 1000, 1020])
def test_arguments_of_any_depth_that_can_be_read_can_be_written(depth: int) -> None:
    text = '{"a":' * depth + '[1,"x\\"",true,null,{}]' + "}" * depth
    if depth < 1010:
        value = orjson.loads(text)
        assert json_text(value) == text
    list_text = "[" * depth + '1,{"k":[2]}' + "]" * depth
    if depth < 1010:
        assert json_text(orjson.loads(list_text)) == list_text
    else:
        assert json_text(orjson.loads("[" * depth + "]" * depth)) == "[" * depth + "]" * depth
