"""Messages of the chat interfaces in all their wrappings, and public data sets of conversations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalpipe_tests.sources.bench_logs import (
    EVENTS,
    STREAM,
    chat_row,
    claude_row,
    event,
    lmsys,
    read,
    read_document,
    read_parquet,
    recorded,
    response,
    sharegpt,
    wildchat,
)
from evalpipe_tests.sources.helpers import Read, lines

STEP = ("kind", "origin", "name", "text", "output")


def test_a_row_of_messages(tmp_path: Path) -> None:
    found = read(tmp_path, chat_row(model="m", user="ana", id="conversation-0000001", created=1767607200))
    assert found.rows(*STEP, "model") == [
        ("user", "human", None, "weather?", None, None),
        ("tool", "tool", "weather", None, "sun", None),
        ("agent", "agent", None, "Sun.", None, "m"),
    ]
    s = found.session
    assert (s["session_id"], s["user_id"], s["tools"]) == ("openai_messages:conversation-0000001", "ana", ["weather"])
    assert s["prompt_version"] is not None
    assert str(s["started_at"]) == "2026-01-05 10:00:00+00:00"


def test_a_short_id_is_no_identity(tmp_path: Path) -> None:
    read(tmp_path, chat_row(id=1), name="a.jsonl")
    read(tmp_path, chat_row(id=1, messages=chat_row()["messages"][:2]), name="b.jsonl")
    read(tmp_path, chat_row(id=1), name="c.jsonl")
    assert Read(tmp_path).sessions["session_id"].n_unique() == 2


def test_growing_copies_of_a_conversation_count_once(tmp_path: Path) -> None:
    whole = chat_row(id="conversation-0000001")
    part = {**whole, "messages": whole["messages"][:3]}
    for order in ((whole, part), (part, whole)):
        assert read(tmp_path, *order).session["n_messages"] == 5


def test_older_function_calls_have_no_ids(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": "{}"}},
        {"role": "function", "name": "weather", "content": "sun"},
        {"role": "function", "name": "nobody asked", "content": "?"},
        {"role": "assistant", "content": None, "refusal": "I cannot."},
    ]
    found = read(tmp_path, {"messages": messages})
    assert found.rows(*STEP) == [
        ("user", "human", None, "weather?", None),
        ("tool", "tool", "weather", None, "sun"),
        ("tool", "tool", None, None, "?"),
        ("agent", "agent", None, "I cannot.", None),
    ]


def test_tokens_in_both_ways_of_counting(tmp_path: Path) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 6}, "completion_tokens_details": {"reasoning_tokens": 2}}
    usages = [
        ({"prompt_tokens": 10, "completion_tokens": 3, **details}, (4, 3, 6, None, 2)),
        ({"input_tokens": 4, "output_tokens": 3, "cache_read_input_tokens": 6, "cache_creation_input_tokens": 1}, (4, 3, 6, 1, None)),
        ({"input_tokens": 10, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 6}}, (4, 3, 6, None, None)),
        ({"prompt_tokens": 2, "prompt_tokens_details": {"cached_tokens": 6}}, (0, None, 6, None, None)),
        ({}, (None,) * 5),
    ]  # fmt: skip
    for usage, expected in usages:
        found = read(tmp_path, {"messages": [{"role": "assistant", "content": "x", "usage": usage}]})
        columns = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
        assert found.rows(*columns) == [expected]


def test_a_logged_request_with_its_response(tmp_path: Path) -> None:
    asked = [{"role": "user", "content": "hi"}]
    said = {"role": "assistant", "content": "hello"}
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    for record in (
        {"messages": asked, "choices": [{"message": said}], "usage": usage, "model": "m"},
        {"messages": asked, "response": {"choices": [{"message": said}], "usage": usage}, "model": "m"},
        {"messages": asked, "response": {**said, "usage": usage}, "model": "m"},
    ):
        found = read(tmp_path, record)
        assert found.rows("text", "model", "output_tokens") == [("hi", None, None), ("hello", "m", 2)]


def test_messages_on_lines_of_their_own_are_one_conversation(tmp_path: Path) -> None:
    found = read(tmp_path, *chat_row()["messages"])
    assert found.rows(*STEP) == read(tmp_path, chat_row(), name="row.jsonl").rows(*STEP)
    assert found.file()["rows_kept"] == 5
    again = read_document(tmp_path, chat_row()["messages"])
    assert again.session["session_id"] == found.session["session_id"]


def test_blocks_of_anthropic(tmp_path: Path) -> None:
    found = read(tmp_path, claude_row())
    assert found.rows(*STEP, "is_error", "turn") == [
        ("user", "human", None, "weather?", None, None, 1),
        ("agent", "agent", None, "I look.", None, None, 1),
        ("tool", "tool", "weather", None, "no", True, 1),
        ("user", "human", None, "and now?", None, None, 2),  # typed beside the result
        ("agent", "agent", None, "Rain.", None, None, 2),
    ]
    assert (found.session["input_tokens"], found.session["cache_read_tokens"]) == (4, 8)
    assert found.rows("arguments", kind="tool") == ['{"at":"x"}']


def test_tools_that_the_provider_runs(tmp_path: Path) -> None:
    blocks = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "text", "text": "found"}]},
        {"type": "tool_use", "id": "open", "name": "later", "input": {}},
    ]
    found = read(tmp_path, {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": blocks}]})
    assert found.rows("name", "output", "error", kind="tool") == [
        ("web_search", "found", None),
        ("later", None, "no_result"),
    ]


def test_responses_continue_each_other(tmp_path: Path) -> None:
    second = response(
        "resp_2",
        previous_response_id="resp_1",
        input=[{"type": "function_call_output", "call_id": "k1", "output": "sun"}],
        output=[
            {"type": "mcp_call", "id": "mc", "name": "log", "arguments": "{}", "output": None, "error": "down"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sun."}]},
        ],
        status="failed",
    )
    found = read(tmp_path, response("resp_1"), second, response("resp_3", input="other", output=[]))
    assert sorted(found.sessions["session_id"]) == ["openai_responses:resp_1", "openai_responses:resp_3"]
    steps = found.steps.filter(session_id="openai_responses:resp_1")
    assert steps.select(*STEP, "is_error").rows() == [
        ("user", "human", None, "weather?", None, None),
        ("agent", "agent", None, None, None, None),
        ("tool", "tool", "weather", None, "sun", None),
        ("agent", "agent", None, None, None, None),
        ("tool", "tool", "log", None, "down", True),
        ("agent", "agent", None, "Sun.", None, None),
    ]
    s = found.sessions.filter(session_id="openai_responses:resp_1").row(0, named=True)
    assert (s["input_tokens"], s["cache_read_tokens"], s["output_tokens"], s["end_status_logged"]) == (
        10,
        8,
        6,
        "error",
    )
    assert s["model"] == "m"


def test_pieces_of_a_stream_are_joined(tmp_path: Path) -> None:
    wrapped = [{"event": one["type"], "data": one} for one in STREAM[1:]]
    for records in ([STREAM[1], STREAM[0], *STREAM[2:]], wrapped):
        found = read(tmp_path, *records)
        agent = found.steps.filter(kind="agent")
        assert agent.select("text", "model", "input_tokens", "output_tokens").rows() == [("I look.", "claude", 4, 6)]
        assert found.rows("name", "arguments", "error", kind="tool") == [("w", '{"at":"x"}', "no_result")]
        assert found.file()["rows_noise"] == 1
    cut = read(tmp_path, *STREAM[1:5])
    assert cut.rows("text") == ["I look."]


def test_events_of_managed_agents(tmp_path: Path) -> None:
    found = read(tmp_path, *EVENTS, EVENTS[1])
    assert found.rows(*STEP, "error") == [
        ("user", "human", None, "what day?", None, None),
        ("tool", "tool", "bash", "ask me first", None, "refused"),
        ("agent", "agent", None, None, None, None),
        ("agent", "agent", None, "May I?", None, None),
        ("system", "system", None, "busy", None, "api_error"),
    ]
    s = found.session
    assert (s["input_tokens"], s["output_tokens"], s["cache_read_tokens"]) == (5, 6, 7)
    assert s["end_status_logged"] == "error"
    assert found.file()["rows_noise"] == 1  # an event of an id that was seen


def test_recorded_calls_hold_events_and_the_agent(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(lines(*[json.dumps(one) for one in recorded()], "[broken", '["client.beta.x", {}, 3]'))
    found = Read(path)
    s = found.session
    assert (s["session_id"], s["agent"], s["agent_release"], s["model"]) == (
        "anthropic_events:sesn_1",
        "Helper",
        "4",
        "claude",
    )
    assert s["n_turns"] == 1
    assert found.codes == ["BAD_JSON", "NOT_A_RECORD"]
    assert found.file()["rows_noise"] == 1  # what the client sent comes back in the stream


def test_an_idle_session_is_not_over_and_threads_are_sub_agents(tmp_path: Path) -> None:
    events = [
        EVENTS[0],
        event("user.message", 1, content=[{"type": "text", "text": "go"}], session_thread_id="main"),
        event("agent.message", 2, content=[{"type": "text", "text": "sub"}], session_thread_id="other"),
        event("user.interrupt", 3),
        event("session.status_idle", 4, stop_reason={"type": "end_turn"}),
        event("agent.custom_tool_use", 5, name="ask", input={}),
    ]
    found = read(tmp_path, *events)
    assert found.session["end_status_logged"] is None
    assert found.rows("origin", "parent_id", "error") == [
        ("human", None, None), ("agent", "other", None), ("interrupt", None, None), ("tool", None, "no_result"),
    ]  # fmt: skip


def test_conversations_of_sharegpt(tmp_path: Path) -> None:
    found = read_document(tmp_path, [sharegpt(), sharegpt(), sharegpt(id="identity_1")])
    assert found.sessions.height == 2
    one = found.steps.filter(session_id=found.sessions["session_id"][0])
    assert one.select(*STEP, "arguments").rows() == [
        ("user", "human", None, "sum 1 2", None, None),
        ("tool", "tool", "sum", None, "3", '{"a":1}'),
        ("agent", "agent", None, "3", None, None),
    ]
    assert found.sessions["is_dated"].any() is False


@pytest.mark.parametrize(
    ("speaker", "kinds"),
    [
        ("user", ["user"]),
        ("chatgpt", ["agent"]),
        ("bing", ["agent"]),
        ("system", []),
        ("wizard", []),
        ("function_call", ["agent"]),
    ],
)
def test_speakers_of_sharegpt(tmp_path: Path, speaker: str, kinds: list[str]) -> None:
    turns = [{"from": "human", "value": "hi"}, {"from": speaker, "value": "hello"}]
    found = read_document(tmp_path, [sharegpt(conversations=turns)])
    assert found.rows("kind")[1:] == kinds


def test_rows_of_wildchat(tmp_path: Path) -> None:
    found = read(tmp_path, wildchat())
    s = found.session
    assert (s["session_id"], s["user_id"], s["model"], s["n_turns"]) == ("wildchat:c0ffee", "ab12", "gpt-x", 2)
    # The row's time is that of the last turn.
    assert (s["started_at"].minute, s["ended_at"].minute) == (1, 9)
    assert [t.minute if t else None for t in found.rows("started_at")] == [None, 1, None, 9]


def test_a_user_who_is_named_in_the_turns_only(tmp_path: Path) -> None:
    assert read(tmp_path, wildchat(hashed_ip=None)).session["user_id"] == "ab12"


def test_parquet_holds_the_same(tmp_path: Path) -> None:
    rows = [wildchat(), wildchat(conversation_hash="d1ce")]
    found, expected = read_parquet(tmp_path, *rows), read(tmp_path, *rows)
    assert found.files["source"].to_list() == ["wildchat"]
    assert found.sessions.drop("file_id").equals(expected.sessions.drop("file_id"))
    assert found.steps.equals(expected.steps)


def test_rows_of_lmsys_are_undated_and_name_no_user(tmp_path: Path) -> None:
    s = read(tmp_path, lmsys()).session
    assert (s["source"], s["user_id"], s["is_dated"], s["model"]) == ("lmsys_chat", None, False, "gpt-y")


def test_the_first_edition_of_wildchat_has_the_other_ids_name(tmp_path: Path) -> None:
    old: dict[str, Any] = {**wildchat(), "conversation_id": "0ld", "detoxify_moderation": []}
    del old["conversation_hash"]
    assert read(tmp_path, old).session["session_id"] == "wildchat:0ld"
