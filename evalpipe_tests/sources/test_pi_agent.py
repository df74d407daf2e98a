"""pi's session files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalpipe_tests.sources.coding_logs import (
    PI,
    PI_HEAD,
    PI_USAGE,
    SID,
    clock,
    millis,
    pi_agent,
    pi_call,
    pi_entry,
    pi_result,
    pi_user,
)
from evalpipe_tests.sources.helpers import Read, write


def read(folder: Path, *records: Any) -> Read:
    return Read(write(folder, *records))


def test_a_session_becomes_steps(tmp_path: Path) -> None:
    found = read(tmp_path, *PI)
    assert found.rows("step_id", "kind", "origin", "text", "exit_code", "is_error", "error", "turn") == [
        ("e1", "user", "human", "build it", None, None, None, 1),
        ("e2", "agent", "agent", "On it.", None, None, None, 1),
        ("t1", "tool", "tool", None, 2, True, None, 1),
        ("e4", "agent", "agent", None, None, None, None, 1),
        ("t2", "tool", "tool", None, None, None, "interrupted", 1),
        ("e4.aborted", "user", "interrupt", "aborted", None, None, None, 1),
        ("e5", "user", "human", "try again", None, None, None, 2),
        ("e6", "agent", "agent", "Done.", None, None, None, 2),
    ]
    s = found.session
    assert (s["session_id"], s["agent"], s["model"], s["user_id"]) == (f"pi_agent:{SID}", "pi", "model-a", "ana")
    assert (s["workspace"], s["n_turns"], s["n_tool_calls"]) == ("/home/ana/shop", 2, 2)
    assert (s["input_tokens"], s["output_tokens"], s["cache_read_tokens"], s["cache_write_tokens"]) == (9, 27, 150, 12)
    assert s["logged_cost_usd"] == 1.5
    assert found.file()["rows_noise"] == 1


def test_two_objects_on_one_line_are_two_entries(tmp_path: Path) -> None:
    found = read(tmp_path, PI_HEAD, json.dumps(PI[2]) + json.dumps(PI[3]), *PI[4:])
    assert (found.codes, found.session["n_turns"], found.session["n_tool_calls"]) == ([], 2, 2)


@pytest.mark.parametrize(
    ("text", "is_error", "expected"),
    [
        ("(no output)\n\nCommand exited with code 1", True, (1, "x", None)),
        ("it says: Command exited with code 1\nok", False, (None, "x", None)),
        ("x\n\nCommand aborted", True, (None, "x", "interrupted")),
        ("Command timed out after 30 seconds", True, (None, "x", "timeout")),
        ("ENOENT: no such file", True, (None, "x", "tool_error")),
    ],
)
def test_results(tmp_path: Path, text: str, is_error: bool, expected: tuple[Any, ...]) -> None:
    found = read(
        tmp_path, PI_HEAD, pi_user(1, "go"), pi_agent(2, pi_call("t")), pi_result(3, "t", text, is_error=is_error)
    )
    code, _, error = expected
    assert found.rows("exit_code", "output", "is_error", "error", kind="tool") == [(code, text, is_error, error)]


@pytest.mark.parametrize(
    ("reason", "status"), [("aborted", "interrupted"), ("error", "error"), ("stop", None), ("length", None)]
)
def test_the_end_is_what_the_last_answer_says(tmp_path: Path, reason: str, status: str | None) -> None:
    assert (
        read(tmp_path, PI_HEAD, pi_user(1, "go"), pi_agent(2, stopReason=reason)).session["end_status_logged"] == status
    )
    later = read(tmp_path, PI_HEAD, pi_user(1, "go"), pi_agent(2, stopReason=reason), pi_user(3, "and?"))
    assert later.session["end_status_logged"] is None


def test_an_answer_that_is_only_an_error_names_no_model(tmp_path: Path) -> None:
    failed = pi_agent(2, stopReason="error", errorMessage="overloaded", usage={})
    found = read(tmp_path, PI_HEAD, pi_user(1, "go"), failed)
    assert found.rows("origin", "text", "model", "error", kind="agent") == [
        ("synthetic", "overloaded", None, "api_error")
    ]
    assert found.session["model"] is None


def test_models_are_credited_step_by_step(tmp_path: Path) -> None:
    records = [
        pi_user(1, "a"),
        pi_agent(2),
        pi_user(3, "b"),
        pi_agent(4, model="model-b"),
        pi_user(5, "c"),
        pi_agent(6),
    ]
    found = read(tmp_path, PI_HEAD, *records)
    assert found.rows("model", kind="agent") == ["model-a", "model-b", "model-a"]
    assert (found.session["model"], found.session["n_models"]) == ("model-a", 2)


def test_a_command_of_the_user_is_none_of_the_agents_calls(tmp_path: Path) -> None:
    message = {"role": "bashExecution", "command": "ls", "output": "a.c", "exitCode": 1, "cancelled": False}
    found = read(tmp_path, PI_HEAD, pi_user(1, "go"), pi_entry(2, message=message))
    assert found.rows("kind", "name", "arguments", "output", "exit_code", origin="local_command") == [
        ("user", "bash", '{"command":"ls"}', "a.c", 1)
    ]
    assert (found.session["n_tool_calls"], found.session["n_turns"]) == (0, 1)


def test_summaries_and_injected_messages_are_no_turns(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        PI_HEAD,
        pi_user(1, "go"),
        pi_entry(2, "compaction", summary="so far", firstKeptEntryId="e1", tokensBefore=9),
        pi_entry(3, "branch_summary", summary="tried", fromId="e1"),
        pi_entry(4, "custom_message", customType="x", content="context", display=False),
        pi_entry(5, "custom", customType="x", data={}),
        pi_entry(6, "label", targetId="e1", label="l"),
        pi_entry(7, message={"role": "hookMessage", "content": "hook"}),
    )
    assert found.rows("origin") == ["human", "compaction", "compaction", "injected", "injected"]
    assert found.file()["rows_noise"] == 2


def test_all_branches_of_the_tree_are_kept_in_the_order_of_the_file(tmp_path: Path) -> None:
    other = {**pi_user(5, "another way"), "parentId": "e1"}
    found = read(
        tmp_path, PI_HEAD, pi_user(1, "go"), pi_agent(2), pi_user(3, "this way"), pi_agent(4), other, pi_agent(6)
    )
    assert found.rows("text", origin="human") == ["go", "this way", "another way"]


def test_a_fork_names_its_parent(tmp_path: Path) -> None:
    parent = "9a1b2c3d-1111-2222-3333-444455556666"
    head = {**PI_HEAD, "parentSession": f"/home/ana/.pi/sessions/--shop--/2026-01-04T10-00-00-000Z_{parent}.jsonl"}
    assert read(tmp_path, head, pi_user(1, "go")).session["parent_session_id"] == f"pi_agent:{parent}"


def test_a_header_written_after_the_first_message_is_no_broken_clock(tmp_path: Path) -> None:
    s = read(tmp_path, {**PI_HEAD, "timestamp": clock(20)}, *PI[1:]).session
    assert (s["is_clock_repaired"], str(s["started_at"])[:19]) == (False, "2026-01-05 10:00:01")


def test_entries_without_times_take_the_messages(tmp_path: Path) -> None:
    entry = {k: v for k, v in pi_user(7, "go").items() if k != "timestamp"}
    assert str(read(tmp_path, PI_HEAD, entry).session["started_at"])[:19] == "2026-01-05 10:00:07"
    assert millis(7) == entry["message"]["timestamp"]


def test_old_entries_have_no_ids(tmp_path: Path) -> None:
    bare = [{k: v for k, v in r.items() if k not in ("id", "parentId")} for r in PI[2:]]
    found = read(tmp_path, {k: v for k, v in PI_HEAD.items() if k != "version"}, *bare)
    assert (found.codes, found.session["n_steps"]) == ([], 8)
    assert found.steps["step_id"].n_unique() == 8


def test_messages_before_the_header_are_quarantined(tmp_path: Path) -> None:
    found = read(tmp_path, PI[2], *PI, {"type": "novel"})
    assert found.codes == ["NOT_A_RECORD", "NO_SESSION_ID"]


def test_a_cost_of_zero_beside_tokens_is_unknown(tmp_path: Path) -> None:
    free = pi_agent(2, usage={**PI_USAGE, "cost": {"total": 0}})
    assert read(tmp_path, PI_HEAD, pi_user(1, "go"), free).session["logged_cost_usd"] is None


def test_a_result_that_comes_after_the_interrupt_still_belongs_to_its_call(tmp_path: Path) -> None:
    stopped = pi_agent(2, pi_call("t1"), pi_call("t2"), stopReason="aborted", errorMessage="aborted")
    found = read(tmp_path, PI_HEAD, pi_user(1, "go"), stopped, pi_result(3, "t1", "half", is_error=False))
    assert found.rows("name", "output", "error", kind="tool") == [("bash", "half", None), ("bash", None, "interrupted")]


def test_a_cost_that_some_responses_lack_is_no_cost_of_the_session(tmp_path: Path) -> None:
    def answers(*costs: float | None) -> list[dict[str, Any]]:
        found = []
        for n, cost in enumerate(costs):
            entry = json.loads(json.dumps(PI[-1]))
            entry["id"] = f"x{n}"
            entry["message"]["usage"]["cost"] = {} if cost is None else {"total": cost}
            found.append(entry)
        return found

    for costs, expected in (((0.1, 0.2), 0.3), ((0.1, None), None), ((0, 0.1), None), ((0, 0), None)):
        found = read(tmp_path, PI_HEAD, pi_user(1, "q"), *answers(*costs))
        assert found.session["logged_cost_usd"] == (None if expected is None else pytest.approx(expected))


def test_what_a_fork_copied_is_its_parents(tmp_path: Path) -> None:
    other = "99999999-2222-4333-8444-5555aaaabbbb"
    head = {**PI_HEAD, "id": other, "timestamp": clock(30), "parentSession": f"/x/2026-01-05_{SID}.jsonl"}
    answer = json.loads(json.dumps(PI[-1]))
    late = {**answer, "id": "x9", "timestamp": clock(41)}
    found = read(tmp_path, head, *PI[1:], {**pi_user(1, "go on"), "id": "x8", "timestamp": clock(40)}, late)
    assert found.rows("origin", "text") == [("human", "go on"), ("agent", "Done.")]
    assert found.session["parent_session_id"] == f"pi_agent:{SID}"
    assert found.session["logged_cost_usd"] == answer["message"]["usage"]["cost"]["total"]
