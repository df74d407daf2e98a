"""Codex rollouts, wrapped and flat. One test a trap of real logs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evalpipe.signals.usage import session_usage
from evalpipe_tests.sources.helpers import Read, write


class Codex:
    def __init__(self) -> None:
        self.n = 0

    def wrap(self, kind: str, **payload: Any) -> dict[str, Any]:
        self.n += 1
        return {"timestamp": f"2026-01-05T10:00:{self.n:02d}.000Z", "type": kind, "payload": payload}

    def meta(self, session_id: str = "c1", **fields: Any) -> dict[str, Any]:
        fields = {"cwd": "/home/ana/shop", "originator": "codex_cli_rs", "cli_version": "0.77.0", **fields}
        return self.wrap("session_meta", id=session_id, timestamp="2026-01-05T10:00:00.500Z", **fields)

    def item(self, kind: str, **fields: Any) -> dict[str, Any]:
        return self.wrap("response_item", **{"type": kind, **fields})

    def event(self, kind: str, **fields: Any) -> dict[str, Any]:
        return self.wrap("event_msg", **{"type": kind, **fields})

    def says(self, role: str, words: str) -> dict[str, Any]:
        return self.item("message", role=role, content=[{"type": "input_text", "text": words}])

    def tokens(self, fresh: int, cached: int, output: int, reasoning: int) -> dict[str, Any]:
        names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
        return self.event(
            "token_count", info={"total_token_usage": dict(zip(names, (fresh, cached, output, reasoning), strict=True))}
        )


def test_a_rollout_is_described_by_its_header_and_turn_contexts(tmp_path: Path) -> None:
    c = Codex()
    read = Read(
        write(
            tmp_path, c.meta(), c.wrap("turn_context", model="gpt-x"), c.says("user", "hi"), c.says("assistant", "yes")
        )
    )
    s = read.session
    assert (s["session_id"], s["agent"], s["agent_release"], s["harness"]) == (
        "codex:c1",
        "codex",
        "0.77.0",
        "codex_cli_rs",
    )
    assert (s["model"], s["user_id"], s["workspace"]) == ("gpt-x", "ana", "/home/ana/shop")
    assert s["started_at"] == datetime(2026, 1, 5, 10, 0, 0, 500_000, tzinfo=UTC)
    assert read.file()["rows_noise"] == 1


def test_calls_are_credited_to_the_model_and_an_unanswered_session_keeps_its_label(tmp_path: Path) -> None:
    c = Codex()
    head = [c.meta(), c.wrap("turn_context", model="gpt-x"), c.says("user", "hi")]
    calls = [c.item("function_call", name="shell", arguments="{}", call_id="k1")]
    other = [c.wrap("turn_context", model="gpt-y"), c.says("user", "again"), c.says("assistant", "yes")]
    for name, records, models in (("a", head, 1), ("b", head + calls, 1), ("c", head + calls + other, 2)):
        s = Read(write(tmp_path, *records, name=name)).session
        assert (s["model"], s["n_models"]) == ("gpt-x", models)


@pytest.mark.parametrize("is_event_first", [False, True])
def test_what_is_logged_as_event_and_as_item_counts_once(tmp_path: Path, is_event_first: bool) -> None:
    c = Codex()

    def twice(role: str, words: str) -> list[dict[str, Any]]:
        kind = "user_message" if role == "user" else "agent_message"
        pair = [c.says(role, words), c.event(kind, message=words)]
        return pair[::-1] if is_event_first else pair

    read = Read(
        write(
            tmp_path,
            c.meta(),
            *twice("user", "continue"),
            *twice("assistant", "done"),
            *twice("user", "continue"),
            c.event("agent_reasoning", text="hm"),
            c.item("reasoning", encrypted_content="AAAA"),
        )
    )
    assert read.rows("kind", "text", "turn") == [("user", "continue", 1), ("agent", "done", 1), ("user", "continue", 2)]


def test_an_event_without_item_is_kept(tmp_path: Path) -> None:
    c = Codex()
    assert Read(write(tmp_path, c.meta(), c.event("user_message", message="only here"))).rows("text") == ["only here"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("<environment_context>\n<cwd>/x</cwd></environment_context>", [("injected", None)]),
        ("<user_instructions>be kind</user_instructions>", [("injected", None)]),
        ("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>..", [("injected", None)]),
        ("<turn_aborted>the user interrupted</turn_aborted>", [("injected", None)]),
        ("<user_shell_command>ls</user_shell_command>", [("local_command", None)]),
        ("# AGENTS.md is missing, write one", [("human", None)]),
        (
            "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nfix it\n",
            [("injected", "# Context from my IDE setup:\n\n## Open tabs:\n- a.py"), ("human", "fix it")],
        ),
    ],
)
def test_context_in_user_messages_is_not_human(
    tmp_path: Path, words: str, expected: list[tuple[str, str | None]]
) -> None:
    c = Codex()
    read = Read(write(tmp_path, c.meta(), c.says("user", words), c.event("user_message", message=words)))
    assert read.rows("origin", "text") == [(origin, piece or words) for origin, piece in expected]


def test_developer_messages_are_injected(tmp_path: Path) -> None:
    c = Codex()
    read = Read(write(tmp_path, c.meta(), c.says("developer", "rules")))
    assert read.rows("origin") == ["injected"]
    assert read.session["n_turns"] == 0


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            json.dumps({"output": "no\n", "metadata": {"exit_code": 1, "duration_seconds": 0.1}}),
            ("no\n", 1, None, None),
        ),
        ("Exit code: 2\nWall time: 0.1 seconds\nOutput:\nbad\n", ("bad\n", 2, None, None)),
        (
            "Chunk ID: 1\nWall time: 1 s\nProcess exited with code 0\nOutput:\nExit code: 7\n",
            ("Exit code: 7\n", 0, None, None),
        ),
        ("plain\nExit code: 7\n", ("plain\nExit code: 7\n", None, None, None)),
        ('{"a": 1}', ('{"a": 1}', None, None, None)),
        ('{"metadata": broken', ('{"metadata": broken', None, None, None)),
        ({"content": "x", "success": False}, ("x", None, True, None)),
        ({"content": "x", "success": "no"}, ("x", None, None, None)),
        ([{"type": "output_text", "text": "y"}], ("y", None, None, None)),
        ("execution error: No such file", ("execution error: No such file", None, None, "tool_error")),
        ("exec command rejected by user", ("exec command rejected by user", None, None, "refused")),
        ("aborted by user after 3.1s", ("aborted by user after 3.1s", None, None, "interrupted")),
        (
            "command timed out after 1000 milliseconds",
            ("command timed out after 1000 milliseconds", None, None, "timeout"),
        ),
    ],
)
def test_results_state_their_exit_code_in_several_ways(tmp_path: Path, output: Any, expected: tuple[Any, ...]) -> None:
    c = Codex()
    path = write(
        tmp_path,
        c.meta(),
        c.item("function_call", name="shell", arguments='{"command":["ls"]}', call_id="k1"),
        c.item("function_call_output", call_id="k1", output=output),
    )
    read = Read(path)
    assert read.rows("output", "exit_code", "is_error", "error") == [expected]
    assert read.rows("name", "arguments", "step_id") == [("shell", '{"command":["ls"]}', "k1")]


def test_calls_of_all_kinds_and_results_without_call(tmp_path: Path) -> None:
    c = Codex()
    read = Read(
        write(
            tmp_path,
            c.meta(),
            c.item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="k1"),
            c.item("custom_tool_call_output", call_id="k1", output="Done"),
            c.item("local_shell_call", action={"command": ["ls"]}, call_id="k2"),
            c.item("web_search_call", action={"query": "x"}),
            c.item("function_call_output", call_id="k9", output="?"),
            c.item("function_call_output", call_id="k9", output="again"),
            c.item("function_call_output", output="whose"),
        )
    )
    assert read.rows("name", "arguments", "output", "error") == [
        ("apply_patch", "*** Begin", "Done", None),
        ("local_shell", '{"command":["ls"]}', None, "no_result"),
        ("web_search", '{"query":"x"}', None, None),
        (None, None, "?", None),
    ]
    assert read.codes == ["BAD_FIELD"]
    assert read.session["n_tool_calls"] == 3


def test_token_counts_are_running_totals(tmp_path: Path) -> None:
    c = Codex()
    read = Read(
        write(
            tmp_path, c.meta(), c.tokens(100, 40, 10, 4), c.event("token_count", info=None), c.tokens(250, 150, 30, 9)
        )
    )
    s = read.session
    assert (s["input_tokens"], s["cache_read_tokens"], s["output_tokens"], s["reasoning_tokens"]) == (100, 150, 30, 9)
    assert s["cache_write_tokens"] is None


def test_totals_that_begin_anew_are_added(tmp_path: Path) -> None:
    c = Codex()
    s = Read(write(tmp_path, c.meta(), c.tokens(100, 0, 10, 0), c.tokens(30, 0, 2, 0))).session
    assert (s["input_tokens"], s["output_tokens"]) == (130, 12)


def test_without_token_counts_tokens_are_unknown(tmp_path: Path) -> None:
    c = Codex()
    assert Read(write(tmp_path, c.meta(), c.says("user", "x"))).session["input_tokens"] is None


def test_an_aborted_turn_is_an_interrupt_and_ends_the_session_unless_it_goes_on(tmp_path: Path) -> None:
    c = Codex()
    aborted = [
        c.meta(), c.says("user", "go"), c.item("function_call", name="shell", arguments="{}", call_id="k1"),
        c.event("turn_aborted", reason="interrupted"),
    ]  # fmt: skip
    read = Read(write(tmp_path, *aborted, name="a.jsonl"))
    assert read.rows("origin", "text")[-1] == ("interrupt", "interrupted")
    assert read.rows("error", kind="tool") == ["interrupted"]
    assert read.session["end_status_logged"] == "interrupted"
    went_on = Read(write(tmp_path, *aborted, c.says("user", "go on"), c.says("assistant", "ok"), name="b.jsonl"))
    assert went_on.session["end_status_logged"] is None


def test_compactions_and_stream_errors_are_steps(tmp_path: Path) -> None:
    c = Codex()
    read = Read(
        write(tmp_path, c.meta(), c.wrap("compacted", message="so far"), c.event("stream_error", message="502"))
    )
    assert read.rows("kind", "origin", "text", "error") == [
        ("user", "compaction", "so far", None),
        ("system", "system", "502", "api_error"),
    ]


def test_a_repeated_header_names_the_parent(tmp_path: Path) -> None:
    c = Codex()
    read = Read(write(tmp_path, c.meta("new"), c.meta("old"), c.says("user", "x")))
    assert read.session["session_id"] == "codex:new"
    assert read.session["parent_session_id"] == "codex:old"


def test_the_flat_layout_of_old_releases(tmp_path: Path) -> None:
    read = Read(
        write(
            tmp_path,
            {"id": "old1", "timestamp": "2025-06-01T08:00:00.000Z", "instructions": None, "git": {}},
            {"record_type": "state"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "k1"},
            {"type": "function_call_output", "call_id": "k1", "output": '{"output":"x","metadata":{"exit_code":0}}'},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        )
    )
    assert read.rows("kind", "text", "exit_code") == [("user", "hi", None), ("tool", None, 0), ("agent", "done", None)]
    s = read.session
    assert s["session_id"] == "codex:old1"
    assert s["started_at"] == datetime(2025, 6, 1, 8, tzinfo=UTC)
    assert read.file()["rows_noise"] == 1


def test_lines_before_the_header_name_no_session(tmp_path: Path) -> None:
    c = Codex()
    read = Read(write(tmp_path, c.says("user", "lost"), c.meta(), c.wrap("unheard_of"), c.item("unheard_of"), {"x": 1}))
    assert read.codes == ["NOT_A_RECORD", "NOT_A_RECORD", "NOT_A_RECORD", "NO_SESSION_ID"]


def test_two_rollouts_in_one_file_are_two_sessions(tmp_path: Path) -> None:
    c = Codex()
    one = [c.meta("c1"), c.event("user_message", message="q one"), c.event("agent_message", message="a one")]
    later = {"timestamp": "2026-01-05T10:00:30.000Z", "type": "session_meta"}
    head = {**later, "payload": {"id": "c2", "timestamp": "2026-01-05T10:00:30.000Z"}}
    two = [head, c.event("user_message", message="q two"), c.event("agent_message", message="a two")]
    read = Read(write(tmp_path, *one, *two))
    said = dict(read.steps.group_by("session_id", maintain_order=True).agg("text").iter_rows())
    assert said == {"codex:c1": ["q one", "a one"], "codex:c2": ["q two", "a two"]}
    assert read.sessions["parent_session_id"].to_list() == [None, None]


def test_a_message_with_an_image_is_said_once(tmp_path: Path) -> None:
    c = Codex()
    pieces = ["<image name=[Image #1]>", "</image>", "[Image #1] what is this?"]
    blocks = [{"type": "input_text", "text": piece} for piece in pieces]
    blocks.insert(1, {"type": "input_image", "image_url": "data:x"})
    item = c.item("message", role="user", content=blocks)
    event = c.event("user_message", message="[Image #1] what is this?", images=[], local_images=["/a.png"])
    read = Read(write(tmp_path, c.meta(), item, event, c.event("agent_message", message="a cat")))
    assert read.rows("origin", "text") == [("human", "[Image #1] what is this?"), ("agent", "a cat")]


@pytest.mark.parametrize(
    ("source", "parent"),
    [({"thread_spawn": {"parent_thread_id": "c0", "depth": 1}}, "codex:c0"), ("review", None)],
)
def test_what_a_sub_agent_is_told_is_no_human_turn(tmp_path: Path, source: object, parent: str | None) -> None:
    c = Codex()
    told = "You are a helper. Look for the bug."
    lines = [c.says("user", told), c.event("user_message", message=told), c.event("agent_message", message="found")]
    s = (read := Read(write(tmp_path, c.meta(source={"subagent": source}), *lines))).session
    assert (s["parent_session_id"], s["n_turns"]) == (parent, 0)
    assert read.rows("origin", "text") == [("meta", told), ("agent", "found")]


def test_tokens_are_credited_to_the_model_of_their_turn(tmp_path: Path) -> None:
    c = Codex()
    lines = [
        c.meta(), c.wrap("turn_context", model="large"), c.says("user", "q1"), c.says("assistant", "a1"),
        c.tokens(1_000, 0, 10, 0), c.tokens(1_000, 0, 10, 0),
        c.wrap("turn_context", model="small"), c.says("user", "q2"),
        c.item("function_call", name="shell", arguments="{}", call_id="k1"), c.tokens(301_000, 100_000, 20, 5),
        c.says("assistant", "a2"), c.tokens(1_001_000, 400_000, 30, 10),
    ]  # fmt: skip
    read = Read(write(tmp_path, *lines))
    usage = session_usage(read.sessions, read.steps).sort("model", "prompt_above_tokens")
    columns = ("model", "input_tokens", "cache_read_tokens", "output_tokens", "n_responses")
    assert usage.select(columns).rows() == [("large", 1_000, 0, 10, 1), ("small", 600_000, 400_000, 20, 2)]
    s = read.session
    assert (s["input_tokens"], s["cache_read_tokens"], s["output_tokens"]) == (601_000, 400_000, 30)


def test_what_a_fork_copied_with_its_times_counts_in_its_parent(tmp_path: Path) -> None:
    c = Codex()
    old = [c.meta("c1"), c.wrap("turn_context", model="m"), c.says("user", "q1"), c.says("assistant", "a1")]
    old.append(c.tokens(1_000, 200, 10, 0))
    start = "2026-01-05T10:00:05.500Z"
    head = {
        "timestamp": start,
        "type": "session_meta",
        "payload": {"id": "c2", "timestamp": start, "forked_from_id": "c1"},
    }
    new = [c.says("user", "q2"), c.says("assistant", "a2"), c.tokens(1_500, 300, 15, 0)]
    read = Read(write(tmp_path, head, *old, *new))
    assert read.rows("text", "model") == [("q2", None), ("a2", "m")]
    s = read.session
    assert (s["parent_session_id"], s["n_turns"]) == ("codex:c1", 1)
    assert (s["input_tokens"], s["cache_read_tokens"], s["output_tokens"]) == (400, 100, 5)
    anew = Read(write(tmp_path, head, *old, *new[:2], c.tokens(70, 20, 5, 0), name="anew")).session
    assert (anew["input_tokens"], anew["cache_read_tokens"], anew["output_tokens"]) == (50, 20, 5)
