"""SWE-agent and mini-SWE-agent."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from evalpipe_tests.sources.coding_logs import (
    MINI,
    MINI_TEXT,
    SUBMIT,
    SWE,
    millis,
    mini_agent,
    mini_result,
    swe_step,
    written,
)
from evalpipe_tests.sources.helpers import Read


def read(folder: Path, records: list[Any], shape: str = "whole", name: str = "repo__task-1.traj") -> Read:
    path = folder / name
    path.write_bytes(written(records, shape))
    return Read(path)


def swe(folder: Path, info: dict[str, Any] | None = None, **fields: Any) -> Read:
    return read(folder, [{**SWE, "info": {**SWE["info"], **(info or {})}, **fields}])


def mini(folder: Path, *messages: dict[str, Any], status: str = "Submitted", **fields: Any) -> Read:
    record = copy.deepcopy(MINI)
    record["info"]["exit_status"] = status
    if messages:
        record["messages"] = [*record["messages"][:2], *messages]
    return read(folder, [{**record, **fields}], name="x.traj.json")


def test_swe_a_run_becomes_steps(tmp_path: Path) -> None:
    found = read(tmp_path, [SWE])
    assert found.rows("kind", "text", "name", "arguments", "output", "exit_code") == [
        ("user", "fix the issue", None, None, None, None),
        ("agent", "Hm.", None, None, None, None),
        ("tool", None, "shell", '{"command":"open a.py"}', "text of a", None),
        ("agent", "Hm.", None, None, None, None),
        ("agent", "Hm.", None, None, None, None),
        ("tool", None, "shell", '{"command":"submit"}', "diff", None),
    ]
    s = found.session
    assert (s["task_id"], s["agent"], s["harness"], s["end_status_logged"]) == (
        "repo__task-1",
        "swe-agent",
        "swe_main",
        "completed",
    )
    assert (s["input_tokens"], s["output_tokens"], s["logged_cost_usd"]) == (900, 80, 0.5)
    assert (s["is_objective_success"], s["is_dated"], s["model"], s["n_turns"]) == (None, False, None, 1)
    assert found.rows("started_at") == [None] * 6


def test_swe_demonstrations_are_no_part_of_the_run(tmp_path: Path) -> None:
    assert read(tmp_path, [SWE]).rows("text", kind="user") == ["fix the issue"]


def test_swe_a_run_made_by_hand_has_no_tokens_and_no_cost(tmp_path: Path) -> None:
    s = swe(
        tmp_path, {"model_stats": {"instance_cost": 0, "tokens_sent": 0, "tokens_received": 0, "api_calls": 0}}
    ).session
    assert (s["input_tokens"], s["output_tokens"], s["logged_cost_usd"]) == (None, None, None)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("submitted", "completed"),
        ("submitted (exit_context)", "timeout"),
        ("exit_cost", "timeout"),
        ("exit_total_execution_time", "timeout"),
        ("exit_environment_error", "error"),
        ("exit_api", "error"),
        (None, None),
    ],
)
def test_swe_exit_status(tmp_path: Path, status: str | None, expected: str | None) -> None:
    found = swe(tmp_path, {"exit_status": status})
    assert found.session["end_status_logged"] == expected
    assert found.rows("text", kind="system") == ([status] if expected == "error" else [])


@pytest.mark.parametrize("as_text", [True, False])
def test_swe_the_model_stands_in_the_replay_configuration(tmp_path: Path, as_text: bool) -> None:
    config: Any = {"agent": {"model": {"name": "model-r"}}}
    found = swe(tmp_path, replay_config=json.dumps(config) if as_text else config)
    assert found.session["model"] == "model-r"
    assert swe(tmp_path, replay_config="{not json").session["model"] is None


def test_swe_names_of_tools_come_from_the_calls(tmp_path: Path) -> None:
    calls = [{"id": "c9", "function": {"name": "find_file", "arguments": "{}"}}]
    steps = [{**swe_step("open a.py", "x"), "tool_calls": calls}]
    assert swe(tmp_path, trajectory=steps).rows("step_id", "name", kind="tool") == [("c9", "find_file")]
    history = copy.deepcopy(SWE["history"])
    history[4]["tool_calls"] = calls
    assert swe(tmp_path, history=history).rows("name", kind="tool") == ["find_file", "shell"]


def test_swe_messages_alone_make_a_run(tmp_path: Path) -> None:
    history = [
        *SWE["history"],
        {"role": "assistant", "content": "Bye.\nexit", "action": "exit", "thought": "Bye.", "agent": "primary"},
    ]
    found = read(tmp_path, [{"history": history}])
    assert found.rows("text", "output", "error") == [
        ("fix the issue", None, None), ("Hm.", None, None), (None, "text of a", None), ("Bye.", None, None), (None, None, "no_result"),
    ]  # fmt: skip
    assert found.session["end_status_logged"] is None


def test_swe_a_command_that_ran_out_of_time(tmp_path: Path) -> None:
    steps = [swe_step("python x.py", "\nEXECUTION TIMED OUT BECAUSE IT TOOK TOO LONG"), swe_step("ls", "a.py")]
    assert swe(tmp_path, trajectory=steps).rows("error", kind="tool") == ["timeout", None]


def test_mini_a_run_becomes_steps(tmp_path: Path) -> None:
    found = mini(tmp_path)
    assert found.rows("kind", "text", "arguments", "output", "exit_code", "error") == [
        ("user", "fix the issue", None, None, None, None),
        ("agent", "Next.", None, None, None, None),
        ("tool", None, '{"command":"make"}', "no rule", 2, None),
        ("agent", "Next.", None, None, None, None),
        ("tool", None, json.dumps({"command": SUBMIT}, separators=(",", ":")), "diff", None, None),
    ]
    s = found.session
    assert (s["task_id"], s["agent"], s["agent_release"], s["model"]) == (
        "repo__task-1",
        "mini-swe-agent",
        "2.0.0",
        "model-a",
    )
    assert (s["input_tokens"], s["cache_read_tokens"], s["output_tokens"], s["logged_cost_usd"]) == (60, 40, 12, 0.5)
    assert (s["is_objective_success"], s["end_status_logged"], s["is_dated"]) == (True, "completed", True)
    assert str(s["started_at"])[:19] == "2026-01-05 10:00:01"


@pytest.mark.parametrize("status", ["InternalServerError", "Timeout", "RateLimitError", "CalledProcessError"])
def test_mini_a_failure_of_the_infrastructure_is_not_the_agents(tmp_path: Path, status: str) -> None:
    """``Timeout`` is the model's interface, not the agent."""
    found = mini(tmp_path, mini_agent(1, "make"), status=status, resolved=False)
    s = found.session
    assert (s["end_status_logged"], s["is_objective_success"]) == ("error", None)
    assert found.rows("text", "error", kind="system") == [(status, "api_error")]
    assert found.rows("error", kind="tool") == ["no_result"]


def test_mini_a_run_that_reached_its_limit_did_fail(tmp_path: Path) -> None:
    s = mini(tmp_path, status="LimitsExceeded", resolved=False).session
    assert (s["end_status_logged"], s["is_objective_success"]) == ("timeout", False)


def test_mini_a_run_without_an_answer_names_the_configured_model(tmp_path: Path) -> None:
    found = mini(tmp_path, {"role": "exit", "content": "x"}, status="Timeout")
    assert (found.session["model"], found.session["n_tool_calls"]) == ("model-a", 0)


def test_mini_copies_with_cut_texts_are_one_run(tmp_path: Path) -> None:
    cut = copy.deepcopy(MINI)
    cut["messages"][3]["content"] = "<returncode>2</returncode>\n<output>…[cut]…"
    first = mini(tmp_path).session["session_id"]
    assert read(tmp_path, [{**cut, "run": "r"}], "lines").session["session_id"] == first
    other = copy.deepcopy(MINI)
    other["messages"][2]["extra"]["response"]["id"] = "resp77"
    assert read(tmp_path, [other], "lines").session["session_id"] != first


def test_mini_commands_in_the_text(tmp_path: Path) -> None:
    found = read(tmp_path, [MINI_TEXT[0], *MINI_TEXT[1:]], "items", "y.traj.json")
    assert found.rows("kind", "origin", "output", "exit_code") == [
        ("user", "human", None, None),
        ("agent", "agent", None, None),
        ("tool", "tool", "a.py", 0),
        ("agent", "agent", None, None),  # two commands: the harness runs none
        ("user", "meta", None, None),
        ("agent", "agent", None, None),
        ("tool", "tool", "diff --git a b", None),
    ]
    assert (found.session["n_turns"], found.session["is_dated"]) == (1, False)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (mini_result(1, 0, "x"), ("x", 0, None)),
        (mini_result(1, -1, "x", exception_info="Command timed out after 60 seconds"), ("x", None, "timeout")),
        (mini_result(1, -1, "x", exception_info="OSError: argument list too long"), ("x", None, "tool_error")),
        ({"role": "tool", "tool_call_id": "c1", "content": "<returncode>3</returncode>\n<output_head>\na\n</output_head>"},
         ("<output_head>\na\n</output_head>", 3, None)),
        ({"role": "user", "content": "The last command <command>make</command> timed out and has been killed."},
         ("The last command <command>make</command> timed out and has been killed.", None, "timeout")),
    ],
)  # fmt: skip
def test_mini_results(tmp_path: Path, message: dict[str, Any], expected: tuple[Any, ...]) -> None:
    found = mini(tmp_path, mini_agent(1, "make"), message)
    assert found.rows("output", "exit_code", "error", kind="tool") == [expected]


def test_mini_times_are_seconds(tmp_path: Path) -> None:
    found = mini(tmp_path)
    assert [str(t)[:23] for t in found.rows("started_at", "ended_at", kind="tool")[0]] == [
        "2026-01-05 10:00:01+00:", "2026-01-05 10:00:01.500",
    ]  # fmt: skip
    assert millis(1) == 1_767_607_201_000


def told(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_mini_a_person_who_watches_may_refuse_steer_and_ask_for_more(tmp_path: Path) -> None:
    found = mini(
        tmp_path,
        mini_agent(1, "rm -r x"),
        told("Command not executed. The user rejected your command with the following message: use git rm"),
        mini_agent(2, "make"),
        told("Interrupted by user: try ninja"),
        mini_agent(3, "ninja"),
        mini_result(3, 0, "ok"),
        told("The user added a new task: now the docs"),
        mini_agent(4, "ls"),
        told("Command not executed. Switching to human mode"),
    )
    assert found.rows("text", "output", "error", kind="tool") == [
        ("use git rm", None, "refused"), (None, None, "interrupted"), (None, "ok", None), (None, None, "refused"),
    ]  # fmt: skip
    assert found.rows("origin", "text", kind="user") == [
        ("human", "fix the issue"), ("interrupt", None), ("human", "try ninja"), ("human", "now the docs"),
    ]  # fmt: skip
