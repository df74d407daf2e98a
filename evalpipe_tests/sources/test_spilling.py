"""What is gathered over a whole file gives the same sessions from disk as from memory."""

from __future__ import annotations

import json
import os
import random
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.sources.spool import Oversized, Spool, SpoolOptions
from evalpipe_tests.sources.helpers import Read, lines
from evalpipe_tests.sources.test_trace_properties import CASES

RESPONSES: list[dict[str, Any]] = [
    {
        "id": f"resp_{at}",
        "object": "response",
        "created_at": 1_767_607_200 + at,
        "model": "m",
        "previous_response_id": f"resp_{at - 1}" if at else None,
        "instructions": "Be brief.",
        "input": f"question {at}",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"a{at}"}]}],
        "usage": {"input_tokens": 5, "output_tokens": 2},
    }
    for at in range(3)
]
GATHERED = {**{name: records for name, (_, records) in CASES.items()}, "openai_responses": RESPONSES}


def renamed(value: Any, suffix: str, *, is_id: bool = False) -> Any:
    """The same records with other ids: of spans, traces and responses; the sessions they name stay."""
    if isinstance(value, dict):
        return {
            key: renamed(item, suffix, is_id=key.lower().endswith("id") and not key.lower().startswith("session"))
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [renamed(item, suffix) for item in value]
    return f"{value}{suffix}" if is_id and isinstance(value, str) and value else value


def document(records: list[dict[str, Any]], seed: int, copies: int) -> bytes:
    """An array of several copies of a log, mixed; records of one response chain stay in order."""
    choose = random.Random(seed)
    queues = [[renamed(record, f"-{copy}") for record in records] for copy in range(copies)]
    queues.append(records)
    mixed: list[dict[str, Any]] = []
    while queues := [queue for queue in queues if queue]:
        mixed.append(choose.choice(queues).pop(0))
    # Some come twice, as exports that overlap hold them.
    mixed += choose.choices(mixed, k=2)
    return json.dumps(mixed).encode()


def tables(read: Read) -> list[Any]:
    return [
        read.sessions.sort("session_id"),
        read.steps.sort("session_id", "seq"),
        read.quarantine.sort("code", "byte_offset", "session_id") if read.quarantine.height else read.quarantine,
        read.files,
    ]


@pytest.mark.parametrize("name", GATHERED)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32), copies=st.integers(0, 12))
def test_spilled_sessions_are_those_held_in_memory(
    name: str, seed: int, copies: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    path = folder / "log.json"
    path.write_bytes(document([*GATHERED[name]], seed, copies))
    held = Read(path)
    # Spilled after every record, and every partition split until it holds one key.
    spilled = Read(path, spool=folder, held_bytes=-1)
    assert held.sessions.height
    for expected, found in zip(tables(held), tables(spilled), strict=True):
        assert expected.equals(found)
    assert [item.name for item in folder.iterdir()] == ["log.json"]


@pytest.mark.parametrize("name", GATHERED)
def test_values_that_nest_as_deep_as_json_is_read_are_spilled(name: str, tmp_path: Path) -> None:
    deep = "[" * 1000 + "]" * 1000
    path = tmp_path / "log.jsonl"
    records = [json.dumps({**record, "deeper": 0}) for record in GATHERED[name]]
    path.write_text("\n".join(r.replace('"deeper": 0', f'"deeper": {deep}') for r in records), "utf-8")
    held = Read(path)
    spilled = Read(path, spool=tmp_path, held_bytes=-1)
    assert held.sessions.height
    for expected, found in zip(tables(held), tables(spilled), strict=True):
        assert expected.equals(found)


def test_a_session_that_is_too_large_is_quarantined_and_the_others_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    large = [{**renamed(record, "-x"), "input": "x" * 5000} for record in RESPONSES]
    path.write_bytes(json.dumps([*RESPONSES, *large]).encode())
    read = Read(path, spool=tmp_path, held_bytes=-1, max_session_bytes=8000)
    assert read.sessions["session_id"].to_list() == ["openai_responses:resp_0"]
    assert read.quarantine.select("code", "session_id").unique().rows() == [
        ("SESSION_TOO_LARGE", "openai_responses:resp_0-x")
    ]
    assert read.file()["rows_kept"] == 3
    assert read.quarantine.height == 3


def test_a_trace_that_is_too_large_is_quarantined_and_the_others_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    traces = [
        {"info": {"trace_id": name}, "data": {"spans": [span(f"{name}{at}", size) for at in range(4)]}}
        for name, size in (("small", 10), ("large", 5000))
    ]
    path.write_bytes(json.dumps(traces).encode())
    read = Read(path, spool=tmp_path, held_bytes=-1, max_session_bytes=8000)
    assert read.sessions["session_id"].to_list() == ["mlflow:small"]
    assert read.quarantine.select("code", "session_id").rows() == [("SESSION_TOO_LARGE", "mlflow:large")]


def span(span_id: str, size: int) -> dict[str, Any]:
    return {
        "span_id": span_id,
        "name": "call",
        "start_time_unix_nano": 1_767_607_200_000_000_000,
        "attributes": {
            "mlflow.spanType": '"CHAT_MODEL"',
            "mlflow.spanInputs": json.dumps({"messages": [{"role": "user", "content": span_id + "x" * size}]}),
        },
    }


keys = st.text(max_size=3)


@settings(max_examples=100, deadline=None)
@given(items=st.lists(st.tuples(keys, st.integers())), every=st.integers(1, 6), size=st.sampled_from([-1, 60, 10**6]))
def test_a_spool_gives_back_all_items_in_order(
    items: list[tuple[str, int]], every: int, size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    spool = Spool(SpoolOptions(tmp_path_factory.mktemp("spool"), size, 10**6))
    expected: dict[str, list[int]] = {}
    for at, (key, item) in enumerate(items):
        spool.put(key, item)
        expected.setdefault(key, []).append(item)
        if at % every == 0:
            spool.spill()
    found: dict[str, list[int]] = {}
    for group, too_large in spool.groups():
        assert not too_large
        assert not found.keys() & group.keys()
        found |= group
        assert size > 0 or len(group) == 1
    assert found == expected


def test_a_key_above_the_limit_is_not_loaded_but_can_be_walked(tmp_path: Path) -> None:
    spool = Spool(SpoolOptions(tmp_path, 1000, 1000))
    for at in range(50):
        spool.put("large", "x" * 100 + str(at))
        spool.put("small", at)
        spool.spill()
    held: dict[str, list[Any]] = {}
    walked: dict[str, list[Any]] = {}
    for group, too_large in spool.groups():
        held |= group
        walked |= {item.key: list(item.items) for item in too_large if isinstance(item, Oversized)}
    assert held == {"small": list(range(50))}
    assert walked == {"large": ["x" * 100 + str(at) for at in range(50)]}


def test_the_temporary_file_has_no_name_and_only_its_owner_may_open_it(tmp_path: Path) -> None:
    spool = Spool(SpoolOptions(tmp_path, 1000, 1000))
    spool.put("k", "raw text")
    spool.spill()
    assert not list(tmp_path.iterdir())
    assert spool._file is not None
    assert stat.S_IMODE(os.fstat(spool._file.fileno()).st_mode) == 0o600


def test_a_folder_that_cannot_be_written_is_not_taken_for_a_bad_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(*RESPONSES))
    with pytest.raises(EvalpipeError, match="FILE_FAILED"):
        Read(path, spool=tmp_path / "absent", held_bytes=-1)
