"""OpenHands: event streams and evaluation outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalpipe_tests.sources.coding_logs import (
    OPENHANDS,
    OPENHANDS_EVALUATED,
    OPENHANDS_SDK,
    oh_action,
    oh_call,
    oh_seen,
    sdk,
    sdk_call,
    sdk_result,
    sdk_say,
    written,
)
from evalpipe_tests.sources.helpers import Read


def read(folder: Path, records: list[Any], shape: str = "items") -> Read:
    path = folder / "log"
    path.write_bytes(written(records, shape))
    return Read(path)


ASK = oh_action(1, "message", "user", args={"content": "go"})


def test_events_become_steps(tmp_path: Path) -> None:
    found = read(tmp_path, OPENHANDS)
    assert found.rows("kind", "text", "name", "arguments", "output", "exit_code", "is_error") == [
        ("user", "build it", None, None, None, None, None),
        ("agent", "Let me build.", None, None, None, None, None),
        ("tool", None, "execute_bash", '{"command":"make"}', "no rule", 2, True),
        ("tool", None, "str_replace_editor", '{"path":"/a"}', "text of a", None, None),
        ("agent", "Built.", None, None, None, None, None),
    ]
    s = found.session
    assert (s["agent"], s["model"], s["end_status_logged"], s["tools"]) == (
        "openhands",
        "model-a",
        "completed",
        ["execute_bash"],
    )
    assert (s["n_turns"], s["n_tool_calls"], s["logged_cost_usd"], s["is_dated"]) == (1, 2, 0.75, True)
    assert (found.file()["rows_kept"], found.file()["rows_noise"]) == (7, 2)
    assert s["prompt_version"] is not None


def test_the_usage_of_a_response_with_several_calls_counts_once(tmp_path: Path) -> None:
    s = read(tmp_path, OPENHANDS).session
    assert (s["input_tokens"], s["cache_read_tokens"], s["output_tokens"], s["reasoning_tokens"]) == (40, 60, 12, 4)


def test_costs_are_running_totals(tmp_path: Path) -> None:
    assert read(tmp_path, OPENHANDS).session["logged_cost_usd"] == 0.75


@pytest.mark.parametrize("shape", ["items", "lines"])
def test_a_longer_copy_of_a_stream_is_the_same_session(tmp_path: Path, shape: str) -> None:
    cut = read(tmp_path, OPENHANDS[:4], shape)
    full = read(tmp_path, OPENHANDS, shape)
    assert cut.session["session_id"] == full.session["session_id"]
    both = read(tmp_path, [*OPENHANDS[:4], *OPENHANDS], "lines")
    assert both.session["n_messages"] == 7


def test_streams_without_times_are_told_apart_by_what_was_said(tmp_path: Path) -> None:
    bare = [{k: v for k, v in e.items() if k != "timestamp"} for e in OPENHANDS]
    one, two = read(tmp_path, bare), read(tmp_path, bare[:5])
    assert one.session["session_id"] != two.session["session_id"]
    assert one.session["is_dated"] is False


def test_an_evaluated_instance(tmp_path: Path) -> None:
    s = read(tmp_path, [OPENHANDS_EVALUATED], "lines").session
    assert s["session_id"].startswith("openhands:repo__task-1/")
    assert (s["task_id"], s["model"], s["scenario_declared"], s["harness"]) == (
        "repo__task-1",
        "model-z",
        "bench",
        "CodeActAgent",
    )
    assert (s["is_objective_success"], s["logged_cost_usd"], s["end_status_logged"]) == (True, 0.9, "completed")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"test_result": {"result": False}}, False),
        ({"test_result": {"result": {"resolved": True}}}, True),
        ({"test_result": None, "correct": True}, True),
        ({"test_result": {}, "resolved": False}, False),
        ({"test_result": {"result": "x"}}, None),
    ],
)
def test_outcomes(tmp_path: Path, fields: dict[str, Any], expected: bool | None) -> None:
    s = read(tmp_path, [{**OPENHANDS_EVALUATED, **fields}], "lines").session
    assert s["is_objective_success"] is expected


def test_a_failure_of_the_infrastructure_is_not_the_agents(tmp_path: Path) -> None:
    failed = {**OPENHANDS_EVALUATED, "error": "STATUS$ERROR: docker is gone", "test_result": {"result": False}}
    s = read(tmp_path, [failed], "lines").session
    assert (s["end_status_logged"], s["is_objective_success"]) == ("error", None)
    limit = {**failed, "error": "RuntimeError: Agent reached maximum iteration"}
    s = read(tmp_path, [limit], "lines").session
    assert (s["end_status_logged"], s["is_objective_success"]) == ("timeout", False)


def test_pairs_of_action_and_observation(tmp_path: Path) -> None:
    nothing = {"message": "No observation", "observation": "null", "content": "", "extras": {}}
    pairs = [
        [ASK, nothing],
        [oh_action(2, "run_ipython", args={"code": "1", "thought": "Try."}), oh_seen(3, "run_ipython", 2, "1")],
        [oh_action(4, "message", args={"content": "It is 1."}), nothing],
        [
            oh_action(
                5, "message", "user", args={"content": "Please continue working on the task on whatever approach"}
            ),
            nothing,
        ],
        [oh_action(6, "finish", args={}), nothing],
    ]
    found = read(
        tmp_path, [{"id": "P_1", "metadata": {"model_name": "model-m"}, "history": pairs, "correct": False}], "lines"
    )
    assert found.rows("kind", "origin", "text", "output") == [
        ("user", "human", "go", None),
        ("agent", "agent", "Try.", None),
        ("tool", "tool", None, "1"),
        ("agent", "agent", "It is 1.", None),
        ("user", "meta", "Please continue working on the task on whatever approach", None),
    ]
    assert (found.session["n_turns"], found.session["model"], found.session["n_models"]) == (1, "model-m", 1)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (oh_seen(3, "run", 2, "x", extras={"exit_code": 1}), (1, True, None)),
        (oh_seen(3, "run", 2, "x", extras={"metadata": {"exit_code": 0}}, success=True), (0, False, None)),
        (oh_seen(3, "run", 2, "x", extras={"metadata": {"exit_code": -1, "suffix": "[The command has no new output after 10 seconds."}}),
         (None, None, "timeout")),
        (oh_seen(3, "error", 2, "bad path"), (None, True, "tool_error")),
        (oh_seen(9, "run", 7, "of another"), (None, None, "no_result")),
    ],
)  # fmt: skip
def test_observations(tmp_path: Path, seen: dict[str, Any], expected: tuple[Any, ...]) -> None:
    found = read(tmp_path, [ASK, oh_action(2, "run", args={"command": "make"}), seen])
    assert found.rows("exit_code", "is_error", "error", kind="tool", name="run") == [expected]


def test_a_rejected_action_is_a_refusal_with_its_reason(tmp_path: Path) -> None:
    found = read(
        tmp_path, [ASK, oh_action(2, "run", args={"command": "rm"}), oh_seen(3, "user_rejected", 2, "no, keep it")]
    )
    assert found.rows("text", "output", "error", kind="tool") == [("no, keep it", None, "refused")]


def test_steps_of_a_delegate_are_child_steps(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        [
            ASK,
            oh_action(
                2,
                "delegate",
                args={"agent": "BrowsingAgent", "inputs": {"task": "t"}},
                tool_call_metadata=oh_call("d1"),
            ),
            oh_action(3, "message", "user", args={"content": "TASK: t"}),
            oh_action(4, "browse", args={"url": "u"}),
            oh_seen(5, "browse", 4, "page"),
            oh_action(6, "finish", args={"thought": "found"}),
            oh_seen(7, "delegate", 2, "", extras={"outputs": {"content": "found"}}),
            oh_action(8, "message", args={"content": "It is there."}),
        ],
    )
    assert found.rows("parent_id", "kind", "name") == [
        (None, "user", None), (None, "agent", None), (None, "tool", "execute_bash"), ("d1", "user", None),
        ("d1", "tool", "browse"), ("d1", "agent", None), (None, "agent", None),
    ]  # fmt: skip
    s = found.session
    assert (s["n_turns"], s["end_status_logged"]) == (1, None)
    assert found.rows("output", step_id="d1") == ['{"content":"found"}']


@pytest.mark.parametrize(
    ("extras", "status", "error"),
    [
        (
            {"agent_state": "error", "reason": "RuntimeError: Agent reached maximum iteration in headless mode"},
            "timeout",
            None,
        ),
        ({"agent_state": "error", "reason": "litellm.InternalServerError: 500"}, "error", "api_error"),
        ({"agent_state": "stopped"}, "interrupted", None),
        ({"agent_state": "awaiting_user_input"}, None, None),
    ],
)
def test_the_state_of_the_agent_tells_the_end(
    tmp_path: Path, extras: dict[str, Any], status: str | None, error: str | None
) -> None:
    found = read(tmp_path, [ASK, oh_seen(2, "agent_state_changed", None, extras=extras)])
    assert found.session["end_status_logged"] == status
    assert found.rows("error", kind="system") == ([error] if extras["agent_state"] == "error" else [])


def test_a_session_that_goes_on_after_finishing_is_not_over(tmp_path: Path) -> None:
    more = oh_action(9, "message", "user", args={"content": "and now?"})
    assert read(tmp_path, [*OPENHANDS, more]).session["end_status_logged"] is None


def test_an_error_that_answers_no_call_is_the_harness(tmp_path: Path) -> None:
    found = read(
        tmp_path, [ASK, oh_seen(2, "error", None, "litellm.RateLimitError: busy"), oh_seen(3, "error", None, "odd")]
    )
    assert found.rows("text", "error", kind="system") == [("litellm.RateLimitError: busy", "api_error"), ("odd", None)]


def test_summaries_are_compactions_and_stops_are_interrupts(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        [
            ASK,
            oh_action(2, "condensation", args={"summary": "so far"}),
            oh_action(3, "run", args={"command": "make"}),
            oh_action(4, "change_agent_state", "user", args={"agent_state": "stopped"}),
        ],
    )
    assert found.rows("origin") == ["human", "compaction", "tool", "interrupt"]
    assert (found.session["end_status_logged"], found.rows("error", kind="tool")) == ("interrupted", ["interrupted"])


def test_a_command_of_the_user_is_none_of_the_agents(tmp_path: Path) -> None:
    found = read(tmp_path, [ASK, oh_action(2, "run", "user", args={"command": "ls"}), oh_seen(3, "run", 2, "a.c")])
    assert found.rows("kind", "output", origin="local_command") == [("user", "a.c")]
    assert found.session["n_tool_calls"] == 0


def test_unknown_events_are_quarantined(tmp_path: Path) -> None:
    found = read(tmp_path, [ASK, {"x": 1}, oh_action(2, "novel", "environment")])
    assert found.codes == ["NOT_A_RECORD", "NOT_A_RECORD"]


def test_one_event_alone_is_no_session(tmp_path: Path) -> None:
    """A server keeps each event in a file of its own: reading each as a session would invent sessions."""
    assert read(tmp_path, [ASK], "lines").codes == ["NO_SESSION"]
    assert read(tmp_path, [ASK], "items").codes == ["NO_SESSION"]


def test_sdk_events_become_steps(tmp_path: Path) -> None:
    found = read(tmp_path, OPENHANDS_SDK)
    assert found.rows("kind", "text", "name", "arguments", "output", "exit_code", "is_error") == [
        ("user", "build it", None, None, None, None, None),
        ("agent", "Let me.", None, None, None, None, None),  # two calls of one response
        ("tool", None, "terminal", '{"command": "make"}', "no rule", 2, False),
        ("tool", None, "terminal", '{"command": "make"}', "ok", 0, False),
        ("agent", "Built.", None, None, None, None, None),
    ]
    s = found.session
    assert (s["model"], s["tools"], s["end_status_logged"], s["n_turns"]) == ("p/model-a", ["terminal"], "completed", 1)
    assert (s["input_tokens"], s["cache_read_tokens"], s["cache_write_tokens"]) == (30 + 7, 60, 10)
    assert (s["output_tokens"], s["reasoning_tokens"], s["logged_cost_usd"]) == (10, 4, 0.75)
    assert (found.file()["rows_kept"], found.file()["rows_noise"]) == (8, 2)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (sdk_result(3, "t1", "x", exit_code=-1, timeout=True), ("x", None, None, None, "timeout")),
        (sdk_result(3, "t1", "x", is_error=True), ("x", None, None, True, "tool_error")),
        (sdk(3, "AgentErrorEvent", tool_call_id="t1", tool_name="terminal", error="bad"), ("bad", None, None, True, "tool_error")),
        (sdk(3, "UserRejectObservation", "environment", tool_call_id="t1", rejection_reason="no"), (None, "no", None, None, "refused")),
        (sdk(3, "UserRejectObservation", "environment", tool_call_id="t1", rejection_reason="no", rejection_source="hook"),
         ("no", None, None, True, "tool_error")),
        (sdk(3, "TokenEvent"), (None, None, None, None, "no_result")),
    ],
)  # fmt: skip
def test_sdk_results(tmp_path: Path, event: dict[str, Any], expected: tuple[Any, ...]) -> None:
    found = read(tmp_path, [sdk_say(1, "user", "go"), sdk_call(2, "t1"), event])
    assert found.rows("output", "text", "exit_code", "is_error", "error", kind="tool") == [expected]


def test_sdk_other_events(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        [
            sdk_say(1, "user", "go", extended_content=[{"type": "text", "text": "a rule"}]),
            sdk(2, "Condensation", "environment", summary="so far"),
            sdk(3, "PauseEvent", "user"),
            sdk_say(4, "user", "a task", sender="another agent"),
            sdk(5, "ConversationErrorEvent", "environment", code="LLMRateLimitError", detail="busy"),
            sdk(6, "ConversationErrorEvent", "environment", code="MaxIterationsReached", detail="500"),
        ],
    )
    assert found.rows("origin", "text", "error") == [
        ("human", "go", None), ("injected", "a rule", None), ("compaction", "so far", None), ("interrupt", None, None),
        ("meta", "a task", None), ("system", "busy", "api_error"), ("system", "500", None),
    ]  # fmt: skip
    assert found.session["end_status_logged"] == "timeout"


def test_sdk_the_state_finished_follows_every_answer_and_is_no_end(tmp_path: Path) -> None:
    state = sdk(3, "ConversationStateUpdateEvent", "environment", key="execution_status", value="finished")
    assert (
        read(tmp_path, [sdk_say(1, "user", "go"), sdk_say(2, "agent", "ok"), state]).session["end_status_logged"]
        is None
    )
