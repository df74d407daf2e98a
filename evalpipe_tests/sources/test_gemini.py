"""Gemini CLI: recordings as documents and lines, and the history that is sent to the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalpipe_tests.sources.coding_logs import (
    GEMINI,
    GEMINI_HEAD,
    GEMINI_LINES,
    GEMINI_MESSAGES,
    GEMINI_TOKENS,
    HISTORY,
    SID,
    clock,
    gemini_call,
    gemini_message,
    written,
)
from evalpipe_tests.sources.helpers import Read, write


def read(folder: Path, records: list[Any], shape: str = "lines", name: str = "log") -> Read:
    path = folder / name
    path.write_bytes(written(records, shape))
    return Read(path)


def document(folder: Path, *messages: dict[str, Any], **fields: Any) -> Read:
    return read(folder, [{**GEMINI_HEAD, "messages": list(messages), **fields}], "whole")


def test_a_recording_becomes_steps(tmp_path: Path) -> None:
    found = read(tmp_path, [GEMINI], "whole")
    assert found.rows("kind", "origin", "name", "text", "output", "exit_code", "is_error", "error", "turn") == [
        ("user", "human", None, "build it", None, None, None, None, 1),
        ("agent", "agent", None, "On it.", None, None, None, None, 1),
        (
            "tool", "tool", "run_shell_command", None, "Command: make\nOutput: no rule\nExit Code: 2", 2, False, None, 1,
        ),
        ("system", "system", None, "Update available", None, None, None, None, 1),
        ("user", "human", None, "again", None, None, None, None, 2),
        ("agent", "agent", None, None, None, None, None, None, 2),
        ("tool", "tool", "run_shell_command", None, "no such file", None, True, "tool_error", 2),
    ]  # fmt: skip
    s = found.session
    assert (s["session_id"], s["agent"], s["workspace"]) == (f"gemini_cli:{SID}", "gemini-cli", "ab12")
    assert (s["n_turns"], s["n_tool_calls"], s["n_messages"], s["n_models"]) == (2, 2, 5, 2)
    assert (str(s["started_at"])[:19], str(s["ended_at"])[:19]) == ("2026-01-05 10:00:01", "2026-01-05 10:01:30")


def test_cached_tokens_are_told_apart_and_thoughts_are_output(tmp_path: Path) -> None:
    """The log counts cached tokens inside the input, and thoughts outside the output."""
    s = read(tmp_path, [GEMINI], "whole").session
    tokens = (s["input_tokens"], s["cache_read_tokens"], s["output_tokens"], s["reasoning_tokens"])
    assert tokens == (100 - 60 + 3, 60, 7 + 5, 5)
    assert sum(tokens[:3]) == GEMINI_TOKENS["total"]


def test_a_message_written_again_counts_once_and_its_last_version_counts(tmp_path: Path) -> None:
    lines = read(tmp_path, GEMINI_LINES, name="a")
    whole = read(tmp_path, [GEMINI], "whole", name="b")
    assert lines.steps.equals(whole.steps)
    assert (lines.session["n_messages"], lines.session["input_tokens"]) == (5, 43)
    assert lines.file()["rows_kept"] == len(GEMINI_LINES)


def test_what_was_rewound_was_said_all_the_same(tmp_path: Path) -> None:
    records = [GEMINI_HEAD, *GEMINI_MESSAGES[:2], {"$rewindTo": "m1"}, gemini_message(9, "user", "build it again")]
    found = read(tmp_path, records)
    assert found.rows("origin", "text", kind="user") == [
        ("human", "build it"), ("command", "/rewind"), ("human", "build it again"),
    ]  # fmt: skip


def test_a_shortened_history_does_not_replace_what_was_said(tmp_path: Path) -> None:
    shortened = [
        {"id": "new", "timestamp": clock(50), "type": "user", "content": [{"text": "<state_snapshot>so far</state_snapshot>"}]},
        {"id": "ok", "timestamp": clock(50), "type": "gemini", "content": [{"text": "Got it. Thanks for the additional context!"}]},
        {**GEMINI_MESSAGES[1], "toolCalls": [gemini_call("c1", {"output": "(left out)"})]},
        {"id": "other", "timestamp": clock(50), "type": "user", "content": [{"text": "again"}]},
    ]  # fmt: skip
    found = read(tmp_path, [GEMINI_HEAD, *GEMINI_MESSAGES, {"$set": {"messages": shortened}}])
    assert found.rows("origin", kind="user") == ["human", "human", "compaction"]
    assert found.rows("origin", kind="agent") == ["agent", "agent", "synthetic"]
    assert "no rule" in found.rows("output", kind="tool")[0]


@pytest.mark.parametrize(
    ("response", "status", "expected"),
    [
        ({"error": "[Operation Cancelled] Reason: User cancelled the operation."}, "cancelled", (None, True, "interrupted")),
        ({"error": "[Operation Cancelled] Reason: User did not allow tool call"}, "cancelled", (None, True, "refused")),
        ({"error": "Command timed out after 60 s"}, "error", (None, True, "timeout")),
        ({"output": "Output: ok\nExit Code: 0\nSignal: 0"}, "success", (0, False, None)),
        ({"output": "Exit Code: 7\nExit Code: 1"}, "success", (1, False, None)),
        ({"output": "Exit Code: (none)\nSignal: 9"}, "success", (None, False, None)),
        ({"output": "x", "more": [1]}, "success", (None, False, None)),
    ],
)  # fmt: skip
def test_results(tmp_path: Path, response: Any, status: str, expected: tuple[Any, ...]) -> None:
    message = gemini_message(2, "gemini", "", toolCalls=[gemini_call("c", response, status)])
    found = document(tmp_path, gemini_message(1, "user", "go"), message)
    assert found.rows("exit_code", "is_error", "error", kind="tool") == [expected]


@pytest.mark.parametrize("status", ["executing", "awaiting_approval", None])
def test_a_call_that_was_never_answered(tmp_path: Path, status: str | None) -> None:
    message = gemini_message(2, "gemini", "", toolCalls=[gemini_call("c", None, status or "", result=None)])
    found = document(tmp_path, gemini_message(1, "user", "go"), message)
    assert found.rows("output", "error", kind="tool") == [(None, "no_result")]


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("please continue with it", "human"),
        ("Please continue.", "meta"),
        ("Please continue. Then run the tests", "human"),
        ("System: Potential loop detected", "meta"),
        ("I ran the following shell command:\n```sh\nls\n```", "local_command"),
        ("<session_context>\nx\n</session_context>", "injected"),
        ("<state_snapshot>x</state_snapshot>", "compaction"),
    ],
)
def test_not_all_that_stands_in_a_user_message_is_the_users(tmp_path: Path, text: str, origin: str) -> None:
    assert document(tmp_path, gemini_message(1, "user", text)).rows("origin") == [origin]
    assert read(tmp_path, [{"role": "user", "parts": [{"text": text}]}], "items").rows("origin") == [origin]


def test_the_words_count_and_not_the_files_that_they_name(tmp_path: Path) -> None:
    parts = [
        {"text": "explain @a.c"},
        {"text": "\n--- Content from referenced files ---"},
        {"text": "\nContent from @a.c:\n"},
        {"text": "int main;"},
        {"text": "\n--- End of content ---"},
    ]
    found = read(tmp_path, [{"role": "user", "parts": parts}], "items")
    assert found.rows("origin", "turn") == [("human", 1), ("injected", 1)]
    assert found.rows("text")[0] == "explain @a.c"
    typed = document(tmp_path, gemini_message(1, "user", parts, displayContent=[{"text": "explain @a.c"}]))
    assert typed.rows("origin", "text") == [("human", "explain @a.c")]


def test_lines_of_a_sub_agent_are_noise(tmp_path: Path) -> None:
    found = read(tmp_path, [{**GEMINI_HEAD, "kind": "subagent"}, *GEMINI_MESSAGES])
    assert found.codes == ["NO_SESSION"]
    assert found.file()["rows_noise"] == 6


def test_lines_before_any_header_have_no_session(tmp_path: Path) -> None:
    found = read(tmp_path, [*GEMINI_MESSAGES[:1], GEMINI_HEAD, *GEMINI_MESSAGES, {"strange": 1}])
    assert found.codes == ["NOT_A_RECORD", "NO_SESSION_ID"]
    assert found.session["n_turns"] == 2


def test_a_recording_and_a_longer_copy_of_it_count_once(tmp_path: Path) -> None:
    short = {**GEMINI, "messages": GEMINI_MESSAGES[:2]}
    found = read(tmp_path, [short, GEMINI], "lines")
    assert found.session["n_messages"] == 5


def test_results_of_a_history_belong_to_calls_by_id_or_else_by_name(tmp_path: Path) -> None:
    found = read(tmp_path, HISTORY, "items")
    assert found.rows("arguments", "output", "is_error", "error", kind="tool") == [
        ('{"pattern":"*.c"}', "a.c", None, None),
        ('{"pattern":"*.h"}', "denied", True, "tool_error"),
    ]
    named = [
        {"role": "model", "parts": [{"functionCall": {"id": i, "name": "f", "args": {"n": i}}} for i in ("x", "y")]},
        {"role": "user", "parts": [{"functionResponse": {"id": "y", "name": "f", "response": {"output": "of y"}}}]},
    ]
    found = read(tmp_path, named, "items")
    assert found.rows("step_id", "output", "error") == [("x", None, "no_result"), ("y", "of y", None)]


def test_a_history_has_neither_times_nor_models_and_is_named_by_what_was_said(tmp_path: Path) -> None:
    one, two = read(tmp_path, HISTORY, "items"), read(tmp_path, [*HISTORY, HISTORY[1]], "items")
    s = one.session
    assert (s["is_dated"], s["model"], s["input_tokens"], s["n_turns"]) == (False, None, None, 1)
    assert one.rows("started_at") == [None] * one.steps.height
    assert s["session_id"] != two.session["session_id"]
    assert s["session_id"] == read(tmp_path, [{"history": HISTORY}], "whole").session["session_id"]


def test_thoughts_of_a_history_are_no_words(tmp_path: Path) -> None:
    records = [{"role": "model", "parts": [{"text": "thinking", "thought": True}, {"text": "said"}]}]
    assert read(tmp_path, records, "items").rows("text") == ["said"]


def test_a_pretty_document_named_like_lines_is_a_document(tmp_path: Path) -> None:
    """A tool stores Gemini's documents under the name full.jsonl."""
    path = tmp_path / "full.jsonl"
    path.write_bytes(written([GEMINI], "whole"))
    assert Read(path).session["source"] == "gemini_cli"
    assert Read(write(tmp_path, GEMINI, name="one.json")).session["source"] == "gemini_cli"
