"""Whatever the bytes: nothing crashes, every record is accounted for, sessions are whole."""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe_tests.sources.helpers import Claude, Read, call, lines, result, tar, text

C = Claude("s1")
CLAUDE = [
    C.user([text("<ide_selection>x</ide_selection>"), text("go")]),
    C.agent(text("ok"), call("t1", command="ls"), call("t2", "Task", prompt="p")),
    C.user([result("t1", "Exit code 1\nbad", is_error=True)], toolUseResult={"interrupted": False}),
    C.line("progress", parentToolUseID="t2", data={"type": "agent_progress", "message": C.agent(call("c1"))}),
    C.queue("enqueue", "wait"),
    C.queue("remove"),
    C.line("attachment", attachment={"type": "queued_command", "prompt": "also"}),
    C.line("system", subtype="api_error", error={"message": "503"}),
    C.user("[Request interrupted by user]"),
    {"type": "summary", "summary": "x", "leafUuid": "u"},
]
CODEX = [
    {"timestamp": "2026-01-05T10:00:00.000Z", "type": kind, "payload": payload}
    for kind, payload in (
        ("session_meta", {"id": "c1", "timestamp": "2026-01-05T10:00:00Z", "cwd": "/home/a/b", "cli_version": "1"}),
        ("turn_context", {"model": "m", "cwd": "/x"}),
        ("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}),
        ("event_msg", {"type": "user_message", "message": "go"}),
        ("response_item", {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "k"}),
        (
            "response_item",
            {"type": "function_call_output", "call_id": "k", "output": '{"output":"x","metadata":{"exit_code":1}}'},
        ),
        (
            "response_item",
            {"type": "custom_tool_call_output", "call_id": "j", "output": {"content": "x", "success": True}},
        ),
        ("event_msg", {"type": "token_count", "info": {"total_token_usage": {"input_tokens": 5, "output_tokens": 2}}}),
        ("event_msg", {"type": "turn_aborted", "reason": "interrupted"}),
        ("compacted", {"message": "so far"}),
    )
]
OWN = [
    {
        "evalpipe": 1,
        "type": "session",
        "session_id": "s",
        "agent": "a",
        "started_at": "2026-01-05T10:00:00Z",
        "trial": 1,
        "tools": ["x"],
        "assignment": {"policy": "p", "unit": "user", "probability": 0.5, "epoch": "e"},
    },
    {"type": "step", "session_id": "s", "kind": "user", "text": "go", "at": "2026-01-05T10:00:00Z"},
    {
        "type": "step",
        "session_id": "s",
        "kind": "tool",
        "name": "x",
        "arguments": {"a": 1},
        "output": ["y"],
        "exit_code": 0,
    },
    {
        "type": "step",
        "session_id": "s",
        "kind": "agent",
        "text": "x",
        "tokens": {"input": 1, "output": 2},
        "model": "m",
    },
    {"type": "end", "session_id": "s", "status": "error", "outcome": {"reward": 0.5, "success": False}, "cost_usd": 1},
]
MESSAGES = [
    {"role": "system", "content": "# Airline policy"},
    {"role": "user", "content": "hi ###STOP###", "timestamp": "2026-01-05T10:00:00.5"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "k", "function": {"name": "f", "arguments": "{}"}}],
        "usage": {},
    },
    {"role": "tool", "tool_call_id": "k", "content": "x", "error": True, "requestor": "user"},
]
SIMULATION = {
    "id": "i",
    "task_id": 1,
    "trial": 0,
    "reward_info": {"reward": 1.0},
    "agent_cost": 0.1,
    "messages": MESSAGES,
}
TAU = [
    [{"task_id": 1, "reward": 1.0, "trial": 0, "traj": MESSAGES}],
    {"info": {"num_trials": 1, "agent_info": {}}, "simulations": [SIMULATION]},
]

FILES = [
    lines(*CLAUDE),
    lines(*CODEX),
    lines(*OWN),
    *[json.dumps(t).encode() for t in TAU],
    lines({"_config": {}, **SIMULATION}),
]

STRANGE: list[Any] = [
    None,
    True,
    -1,
    2**70,
    1.5,
    "",
    "x",
    "\x00",
    [],
    {},
    [[]],
    [None],
    {"a": None},
    "9999-99-99T99:99:99.999Z",
    ["x"],
]


def read(data: bytes, **options: Any) -> Read:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        path.write_bytes(data)
        return Read(path, **options)


def strange(value: Any, choose: random.Random) -> Any:
    """The value with one or a few of its inner values exchanged, dropped or repeated."""
    if choose.random() < 0.04:
        return choose.choice(STRANGE)
    if isinstance(value, dict):
        return {k: strange(v, choose) for k, v in value.items() if choose.random() > 0.02}
    if isinstance(value, list):
        return [strange(v, choose) for v in value for _ in range(choose.choice((1, 1, 1, 1, 1, 1, 2)))]
    return value


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 2**32))
def test_fields_of_any_type_never_crash_a_reader(seed: int) -> None:
    choose = random.Random(seed)
    kind = choose.randrange(6)
    if kind < 3:
        records = (CLAUDE, CODEX, OWN)[kind]
        data = lines(records[0], *[json.dumps(strange(r, choose)) for r in records])
    elif kind < 5:
        data = json.dumps(strange(TAU[kind - 3], choose)).encode()
    else:
        data = lines(
            {"_config": {}, **SIMULATION}, json.dumps(strange({"_config": {"domain": "x"}, **SIMULATION}, choose))
        )
    read(data)


def places(value: Any) -> list[tuple[Any, ...]]:
    """Paths of all inner values."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(), *[(key, *rest) for key, member in inner for rest in places(member)]]


def put(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    copy = value.copy()
    copy[place[0]] = put(value[place[0]], place[1:], new)
    return copy


def as_lines(records: list[Any]) -> bytes:
    return lines(*[json.dumps(record) for record in records])


def as_array(records: list[Any]) -> bytes:
    return json.dumps(records).encode()


def as_document(records: list[Any]) -> bytes:
    return json.dumps(records[0]).encode()


@pytest.mark.parametrize(
    ("records", "to_bytes"),
    [(CLAUDE, as_lines), (CODEX, as_lines), (OWN, as_lines), (TAU[0], as_array), ([TAU[1]], as_document)],
    ids=["claude", "codex", "own", "tau", "tau2"],
)
def test_every_single_field_may_be_anything(records: list[Any], to_bytes: Callable[[list[Any]], bytes]) -> None:
    for at, record in enumerate(records):
        for place in places(record):
            members = []
            for n, new in enumerate(STRANGE):
                data = to_bytes([*records[:at], put(record, place, new), *records[at + 1 :]])
                for session_id in (b'"s1"', b'"c1"', b'"s"'):
                    data = data.replace(b": " + session_id, b': "%d"' % n)  # so that each variant counts
                members.append((str(n), data))
            found = read(tar(members))
            assert found.files.height == len(STRANGE)


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(FILES), st.integers(0, 2**32))
def test_bytes_flipped_cut_or_doubled_are_accounted_for(data: bytes, seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(choose.randrange(1, 6)):
        a, b = sorted(choose.randrange(len(data) + 1) for _ in range(2))
        b = min(b, a + choose.choice((0, 1, 3, 40)))
        middle = choose.choice((b"", b"\n", b"\xff", b"\x00", b'"', b"}", b"[", b"{}", data[a:b] * 2, b"\\ud800"))
        data = data[:a] + middle + data[b:]
    read(choose.choice((lambda d: d, gzip.compress, lambda d: tar([("m", d), ("n", FILES[0])])))(data))


@settings(max_examples=80, deadline=None)
@given(
    st.binary(max_size=200),
    st.sampled_from([b"", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf", b"\xff\xfe", b"[", b"{"]),
)
def test_any_bytes_at_all(data: bytes, start: bytes) -> None:
    found = read(start + data)
    assert found.files.height >= 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), max_size=40), st.integers(1, 5_000))
def test_chunks_never_split_a_session(turns: list[tuple[int, int]], chunk_bytes: int) -> None:
    writers = [Claude(f"s{i}") for i in range(5)]
    data = lines(*[writers[i].user("x" * size) for i, size in turns])
    expected = {f"claude_code:s{i}": sum(j == i for j, _ in turns) for i in {i for i, _ in turns}}
    found = read(data, chunk_bytes=chunk_bytes)
    # Read checks for every chunk that it holds all steps of its sessions.
    assert dict(found.sessions.select("session_id", "n_turns").rows()) == expected


@pytest.mark.parametrize("data", FILES)
def test_the_starting_points_are_read_in_full(data: bytes) -> None:
    found = read(data)
    assert found.codes == []
    assert found.sessions.height == 1
