"""OpenCode's hook log and exported sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalpipe_tests.sources.coding_logs import (
    CHILD,
    OC_FINISH,
    OC_TOKENS,
    OPENCODE,
    OPENCODE_LINES,
    ROOT,
    hook,
    millis,
    oc_agent,
    oc_part,
    oc_session,
    oc_tool,
    oc_user,
    written,
)
from evalpipe_tests.sources.helpers import Read


def read(folder: Path, records: list[Any], shape: str = "lines") -> Read:
    path = folder / "log"
    path.write_bytes(written(records, shape))
    return Read(path)


def export(folder: Path, *messages: tuple[dict[str, Any], list[dict[str, Any]]], **info: Any) -> Read:
    listed = [{"info": message, "parts": parts} for message, parts in messages]
    return read(folder, [{"info": {**oc_session(), **info}, "messages": listed}], "whole")


GO = (oc_user("m1", 1), [oc_part("p1", "m1", "text", text="go")])


def answer(*parts: dict[str, Any], **fields: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return oc_agent("m2", 2, **fields), list(parts)


def test_the_last_version_of_messages_and_parts_counts(tmp_path: Path) -> None:
    found = read(tmp_path, OPENCODE_LINES)
    assert found.rows("kind", "origin", "text", "name", "output", "exit_code", "model") == [
        ("user", "human", "build it", None, None, None, None),
        ("agent", "agent", "On it.", None, None, None, "model-a"),
        ("tool", "tool", None, "task", "seen", None, None),
        ("user", "meta", "look around", None, None, None, None),
        ("agent", "agent", None, None, None, None, "model-b"),
        ("tool", "tool", None, "bash", "x", 2, None),
    ]
    s = found.session
    assert (s["session_id"], s["agent"], s["agent_release"]) == (f"opencode:{ROOT}", "opencode", "1.2.3")
    assert (s["user_id"], s["workspace"], s["n_messages"]) == ("ana", "/home/ana/shop", 2)
    assert (found.file()["rows_kept"], found.file()["rows_noise"]) == (16, 2)
    assert str(s["started_at"])[:19] == "2026-01-05 10:00:01"


def test_a_sub_agents_steps_belong_to_the_call_that_started_it(tmp_path: Path) -> None:
    found = read(tmp_path, OPENCODE_LINES)
    assert found.rows("parent_id") == [None, None, None, "call_p3", "call_p3", "call_p3"]
    s = found.session
    assert (s["n_turns"], s["n_tool_calls"], s["n_models"], s["model"]) == (1, 2, 1, "model-a")
    assert (s["output_tokens"], s["logged_cost_usd"]) == (24, 0.5)


def test_a_sub_agent_whose_call_is_not_in_the_log_still_belongs_to_its_parent(tmp_path: Path) -> None:
    lines = [r for r in OPENCODE_LINES if "p3" not in str(r)]
    found = read(tmp_path, lines)
    assert found.rows("parent_id") == [None, None, CHILD, CHILD, CHILD]
    assert found.session["n_tool_calls"] == 1


def test_a_sub_agent_of_a_sub_agent(tmp_path: Path) -> None:
    deep = "ses_deep1"
    lines = [
        *OPENCODE_LINES,
        hook("session.created", info=oc_session(deep, CHILD)),
        hook("message.updated", info=oc_agent("d1", 4, deep)),
        hook("message.part.updated", part=oc_part("d2", "d1", "text", deep, text="deep")),
        hook("message.part.updated", part=oc_tool("k4", "k3", CHILD, output="x", metadata={"sessionId": deep})),
    ]
    found = read(tmp_path, lines)
    assert found.rows("parent_id", text="deep") == ["call_k4"]
    assert found.sessions.height == 1


def test_sessions_that_name_each_other_as_parents_do_not_hang(tmp_path: Path) -> None:
    lines = [
        hook("session.created", info=oc_session(ROOT)),
        hook("session.created", info=oc_session(CHILD, ROOT)),
        hook("session.updated", info=oc_session(ROOT, CHILD)),
        hook("session.updated", info=oc_session(ROOT, ROOT)),
        hook("session.created", info=oc_session("ses_deep1", CHILD)),
        hook("session.updated", info=oc_session(CHILD, "ses_deep1")),
        hook("session.created", info=oc_session("ses_own", "ses_own")),
        hook("message.updated", info=oc_user("m1", 1)),
    ]
    found = read(tmp_path, lines)
    assert (found.codes, found.sessions.height) == ([], 2)


def test_a_sub_agents_session_in_a_file_of_its_own_has_a_parent_and_no_turn(tmp_path: Path) -> None:
    s = export(tmp_path, GO, parentID="ses_other").session
    assert (s["parent_session_id"], s["n_turns"]) == ("opencode:ses_other", 0)


def test_an_exported_session(tmp_path: Path) -> None:
    found = read(tmp_path, [OPENCODE], "whole")
    assert found.rows("kind", "origin", "text", "error") == [
        ("user", "human", "build it", None),
        ("agent", "agent", "On it.", None),
        ("tool", "tool", None, "refused"),
        ("system", "system", "busy", "api_error"),
        ("agent", "synthetic", "overloaded", "api_error"),
    ]
    s = found.session
    assert (s["end_status_logged"], s["n_models"], s["logged_cost_usd"]) == ("error", 1, 0.5)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"output": "x", "metadata": {"exit": 0}}, ("x", None, 0, False, None)),
        ({"output": "x", "metadata": {"exit": None}}, ("x", None, None, False, None)),
        ({"status": "error", "error": "The user rejected permission to use this tool with the following feedback: use npm"},
         (None, "use npm", None, True, "refused")),
        ({"status": "error", "error": "Tool execution aborted"}, ("Tool execution aborted", None, None, True, "interrupted")),
        ({"status": "error", "error": "e", "metadata": {"interrupted": True, "output": "part"}},
         ("part", None, None, True, "interrupted")),
        ({"status": "error", "error": "File not found"}, ("File not found", None, None, True, "tool_error")),
        ({"output": "x\n<bash_metadata>\nterminated after exceeding timeout 1 ms\n</bash_metadata>"},
         ("x\n<bash_metadata>\nterminated after exceeding timeout 1 ms\n</bash_metadata>", None, None, False, "timeout")),
        ({"output": "it timed out"}, ("it timed out", None, None, False, None)),
        ({"status": "running"}, (None, None, None, None, "no_result")),
        ({"status": "pending", "input": {}}, (None, None, None, None, "no_result")),
    ],
)  # fmt: skip
def test_states_of_calls(tmp_path: Path, state: dict[str, Any], expected: tuple[Any, ...]) -> None:
    found = export(tmp_path, GO, answer(oc_tool("p", "m2", **state)))
    assert found.rows("output", "text", "exit_code", "is_error", "error", kind="tool") == [expected]


def test_an_abort_is_an_interrupt_of_the_user(tmp_path: Path) -> None:
    aborted = answer(oc_part("p", "m2", "text", text="I wi"), error={"name": "MessageAbortedError", "data": {}})
    found = export(tmp_path, GO, aborted)
    assert found.rows("origin", "error") == [("human", None), ("agent", None), ("interrupt", None)]
    assert found.session["end_status_logged"] == "interrupted"
    later = export(tmp_path, GO, aborted, (oc_user("m3", 9), [oc_part("q", "m3", "text", text="no")]))
    assert later.session["end_status_logged"] is None


@pytest.mark.parametrize(
    ("tokens", "output"),
    [
        (OC_TOKENS, 12),  # the total holds the reasoning beside the output
        ({**OC_TOKENS, "total": 37}, 7),
        ({k: v for k, v in OC_TOKENS.items() if k != "total"}, 7),
    ],
)
def test_reasoning_is_part_of_the_output(tmp_path: Path, tokens: dict[str, Any], output: int) -> None:
    s = export(tmp_path, GO, answer(tokens=tokens)).session
    assert (s["output_tokens"], s["reasoning_tokens"], s["input_tokens"]) == (output, 5, 20)


def test_tokens_of_all_steps_of_a_response_count(tmp_path: Path) -> None:
    """Older releases keep the tokens of the last step only in the message."""
    s = export(tmp_path, GO, answer(*[oc_part(k, "m2", "step-finish", **OC_FINISH) for k in "ab"])).session
    assert (s["input_tokens"], s["cache_read_tokens"], s["cache_write_tokens"]) == (40, 16, 4)
    assert s["logged_cost_usd"] == 0.25


def test_texts_that_the_harness_puts_in_are_no_turns(tmp_path: Path) -> None:
    parts = [
        oc_part("a", "m1", "text", text="look at this"),
        oc_part("b", "m1", "text", text="content of the file", synthetic=True),
        oc_part("c", "m1", "text", text="shown only", ignored=True),
        oc_part("d", "m1", "file", filename="a.c"),
    ]
    found = export(tmp_path, (oc_user("m1", 1), parts), (oc_user("m9", 8), [oc_part("e", "m9", "compaction", auto=True)]),
                   (oc_agent("m10", 9, summary=True), [oc_part("f", "m10", "text", text="so far")]))  # fmt: skip
    assert found.rows("origin", "text") == [
        ("human", "look at this"), ("injected", "content of the file"), ("command", "/compact"), ("compaction", "so far"),
        ("agent", None),
    ]  # fmt: skip
    assert found.session["n_turns"] == 1


def test_a_log_whose_start_is_cut_off_keeps_what_is_there(tmp_path: Path) -> None:
    found = read(tmp_path, OPENCODE_LINES[7:8] + OPENCODE_LINES[14:])
    assert (found.rows("kind"), found.session["n_turns"], found.codes) == (["agent", "tool"], 0, [])


def test_what_is_no_event_is_quarantined(tmp_path: Path) -> None:
    found = read(
        tmp_path, [*OPENCODE_LINES, hook("novel.event"), [], [1], ["event"], 3, hook("message.updated", info=1)]
    )
    assert found.codes == ["BAD_FIELD", *["NOT_A_RECORD"] * 5]


def test_a_cost_of_zero_beside_tokens_is_unknown(tmp_path: Path) -> None:
    assert export(tmp_path, GO, answer(cost=0)).session["logged_cost_usd"] is None
    assert export(tmp_path, GO, answer(cost=0, tokens={})).session["logged_cost_usd"] == 0


def test_times_are_milliseconds(tmp_path: Path) -> None:
    found = export(tmp_path, GO, answer(oc_tool("p", "m2", output="x")))
    assert [str(t)[11:19] for t in found.rows("started_at", kind="tool") + found.rows("ended_at", kind="tool")] == [
        "10:00:04", "10:00:05",
    ]  # fmt: skip
    assert millis(4) % 1000 == 0


def test_a_shorter_copy_of_an_export_adds_nothing(tmp_path: Path) -> None:
    short = {**OPENCODE, "messages": OPENCODE["messages"][:1]}
    for records in ([OPENCODE, short], [short, OPENCODE]):
        found = read(tmp_path, records)
        assert (found.session["n_messages"], found.codes) == (3, [])
