"""ATIF trajectories, and Harbor's traces and trial results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalpipe_tests.sources.bench_logs import atif, read, read_document, trace, trial

KINDS = ("kind", "origin", "name", "text", "output")


def test_a_trajectory_becomes_steps(tmp_path: Path) -> None:
    found = read_document(tmp_path, atif())
    assert found.rows(*KINDS, "exit_code", "model") == [
        ("user", "human", None, "count the files", None, None, None),
        ("agent", "agent", None, "I list them.", None, None, "small"),
        ("tool", "tool", "bash", None, "a\n[The command completed with exit code 2.]", 2, None),
        ("agent", "agent", None, "One.", None, None, "big"),
    ]
    s = found.session
    assert (s["session_id"], s["agent"], s["agent_release"], s["n_models"]) == ("atif:run-1", "worker", "3.1", 2)
    assert s["prompt_version"] is not None
    assert s["is_dated"]


def test_cached_tokens_are_part_of_the_prompt(tmp_path: Path) -> None:
    s = read_document(tmp_path, atif()).session
    assert (s["input_tokens"], s["cache_read_tokens"], s["output_tokens"], s["logged_cost_usd"]) == (4, 6, 4, 0.5)


def test_totals_that_hold_sub_agents_are_taken_only_where_no_step_has_metrics(tmp_path: Path) -> None:
    bare = atif()
    for step in bare["steps"]:
        step.pop("metrics", None)
    s = read_document(tmp_path, bare).session
    assert (s["input_tokens"], s["output_tokens"], s["logged_cost_usd"]) == (999, 99, 9.0)


def test_copied_steps_are_not_counted_again(tmp_path: Path) -> None:
    copied = [{**step, "is_copied_context": True} for step in atif()["steps"]]
    new = {"step_id": 9, "source": "agent", "message": "answer", "metrics": {"prompt_tokens": 1}}
    agent = {"name": "helper", "version": "1", "extra": {"parent_session_id": "run-1"}}
    found = read_document(tmp_path, atif(session_id="run-1-sub", agent=agent, steps=[*copied, new]))
    assert found.rows("text") == ["answer"]
    s = found.session
    assert (s["n_tool_calls"], s["n_turns"], s["input_tokens"], s["n_messages"]) == (0, 0, 1, 1)
    assert s["parent_session_id"] == "atif:run-1"


def test_what_the_harness_hands_over_after_a_summary_is_no_human_turn(tmp_path: Path) -> None:
    refs = [{"session_id": "run-1-sum", "trajectory_path": "x.json"}]
    steps = [
        {"step_id": 1, "source": "user", "message": "go"},
        {"step_id": 2, "source": "system", "message": "Performed context summarization and handoff.",
         "observation": {"results": [{"subagent_trajectory_ref": refs}]}},
        {"step_id": 3, "source": "user", "message": "answers of the other agent"},
        {"step_id": 4, "source": "user", "message": "and now this"},
    ]  # fmt: skip
    found = read_document(tmp_path, atif(steps=steps))
    assert found.rows("kind", "origin", "turn") == [
        ("user", "human", 1),
        ("system", "system", 1),
        ("user", "compaction", 1),
        ("user", "human", 2),
    ]


def test_the_user_of_a_sub_agent_is_the_agent(tmp_path: Path) -> None:
    agent = {"name": "helper", "extra": {"parent_session_id": "run-1"}}
    found = read_document(tmp_path, atif(agent=agent))
    assert found.rows("origin", kind="user") == ["meta"]
    assert found.session["n_turns"] == 0


def test_embedded_sub_agents_are_child_steps_of_their_call(tmp_path: Path) -> None:
    """From 1.7 on, runs share session ids, and sub-agents may lie in the document."""
    child = atif(trajectory_id="child", schema_version="ATIF-v1.7", agent={"name": "helper", "model_name": "tiny"})
    grandchild = atif(trajectory_id="grandchild", steps=[{"step_id": 1, "source": "agent", "message": "deep"}])
    child["subagent_trajectories"] = [grandchild]
    main = atif(schema_version="ATIF-v1.7", trajectory_id="main", subagent_trajectories=[child])
    main["steps"][2]["observation"]["results"][0]["subagent_trajectory_ref"] = [{"trajectory_id": "child"}]
    found = read_document(tmp_path, main)
    s = found.session
    assert s["session_id"] == "atif:main"
    assert (s["n_turns"], s["n_tool_calls"], s["input_tokens"]) == (1, 2, 8)
    assert s["model"] == "small"
    below = found.steps.filter(pl.col("parent_id").is_not_null())
    assert below.select("parent_id", "origin", "model").rows() == [
        ("c1", "meta", None),
        ("c1", "agent", "tiny"),
        ("c1", "tool", None),
        ("c1", "agent", "big"),
        ("grandchild", "agent", "small"),
    ]
    assert below["step_id"].to_list()[0] == "child.2"


def test_continuations_share_the_id_of_the_run_from_1_7_on(tmp_path: Path) -> None:
    first = atif(schema_version="ATIF-v1.7", continued_trajectory_ref="trajectory.cont-1.json")
    copied = [{**step, "is_copied_context": True} for step in first["steps"]]
    summary = {"source": "system", "message": "Performed context summarization.", "is_copied_context": True}
    copied.append({"step_id": 5, **summary})
    more = [{"step_id": n, "source": "user", "message": f"more {n}"} for n in (6, 7)]
    grown = [atif(schema_version="ATIF-v1.7", steps=[*copied, *more[:n]]) for n in (1, 2)]
    found = read(tmp_path, first, *grown)
    s = found.sessions.sort("n_messages", descending=True)
    assert s["parent_session_id"].to_list() == [None, "atif:run-1"]
    assert s["session_id"][0] == "atif:run-1"
    assert s["n_steps"].to_list() == [4, 2]
    assert found.steps.filter(session_id=s["session_id"][1])["origin"].to_list() == ["compaction", "human"]


def test_a_step_without_a_model_call_is_no_models(tmp_path: Path) -> None:
    steps = [{"step_id": 1, "source": "agent", "message": "dispatching", "llm_call_count": 0}]
    assert read_document(tmp_path, atif(steps=steps)).rows("origin", "model") == [("synthetic", None)]


def test_one_result_without_an_id_answers_all_calls_of_its_step(tmp_path: Path) -> None:
    calls = [{"tool_call_id": f"c{n}", "function_name": "keys", "arguments": {}} for n in range(2)]
    step = {"step_id": 1, "source": "agent", "message": "x", "tool_calls": calls}
    joint = {**step, "observation": {"results": [{"content": "screen"}]}}
    none = {**step, "step_id": 2}
    each = {**step, "step_id": 3, "observation": {"results": [{"content": "1"}, {"content": "2"}]}}
    found = read_document(tmp_path, atif(steps=[joint, none, each]))
    assert found.rows("output", "error", kind="tool") == [
        (None, None), ("screen", None), (None, "no_result"), (None, "no_result"), ("1", None), ("2", None),
    ]  # fmt: skip


def test_calls_that_stand_in_the_text_are_found(tmp_path: Path) -> None:
    text = "<function=run>\n<parameter=cmd>ls</parameter>\n</function>"
    terminus = '{"commands": [{"keystrokes": "ls\\n"}, {"keystrokes": "pwd\\n"}], "task_complete": true}'
    step = {"source": "agent", "observation": {"results": [{"content": "out"}]}}
    steps = [{**step, "step_id": 1, "message": text}, {**step, "step_id": 2, "message": terminus},
             {**step, "step_id": 3, "message": "no call at all"}]  # fmt: skip
    found = read_document(tmp_path, atif(steps=steps))
    assert found.rows("name", "arguments", "output", kind="tool") == [
        ("run", '{"cmd":"ls"}', "out"),
        ("bash_command", '{"keystrokes":"ls\\n"}', None),
        ("bash_command", '{"keystrokes":"pwd\\n"}', None),
        ("mark_task_complete", "{}", "out"),
        (None, None, "out"),  # a result without a call
    ]
    assert found.session["n_tool_calls"] == 4


def test_a_message_that_the_harness_could_not_read_called_nothing(tmp_path: Path) -> None:
    said = 'Here: {"commands": [{"keystrokes": "ls"}]} ok?'
    complaint = "Previous response had parsing errors: no plan"
    step = {"step_id": 1, "source": "agent", "message": said, "observation": {"results": [{"content": complaint}]}}
    assert read_document(tmp_path, atif(steps=[step])).rows("name", "output", kind="tool") == [(None, complaint)]
    episodes = [("user", "go"), ("assistant", said), ("user", complaint)]
    found = read(tmp_path, trace(0, conversations=[{"role": a, "content": b} for a, b in episodes]))
    assert found.rows("name", "output", kind="tool") == [(None, complaint)]


def test_calls_in_the_text_do_not_count_beside_real_ones(tmp_path: Path) -> None:
    log = atif()
    log["steps"][3] |= {"message": "<function=run></function>", "observation": {"results": [{"content": "x"}]}}
    assert read_document(tmp_path, log).rows("name", kind="tool") == ["bash", None]


def test_messages_of_content_parts(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "see"}, {"type": "image", "source": {"path": "x.png"}}]
    found = read_document(tmp_path, atif(steps=[{"step_id": 1, "source": "user", "message": parts}]))
    assert found.rows("text") == ["see"]


def test_a_trajectory_without_an_id_gets_one_from_its_content(tmp_path: Path) -> None:
    one = atif()
    del one["session_id"]
    first, again = read(tmp_path, one).session, read(tmp_path, one, name="copy.jsonl").session
    assert first["session_id"] == again["session_id"]
    assert read(tmp_path, {**one, "notes": "x"}).session["session_id"] != first["session_id"]


def test_episodes_of_a_trial_repeat_each_other_and_count_once(tmp_path: Path) -> None:
    found = read_document(tmp_path, [trace(1), trace(0)])
    assert found.session["n_messages"] == 4
    assert read_document(tmp_path, [trace(0), trace(1)], "b.json").session["session_id"] == found.session["session_id"]
    assert found.rows(*KINDS) == [
        ("user", "human", None, "make hello.txt", None),
        ("agent", "agent", None, trace(0)["conversations"][1]["content"], None),
        ("tool", "tool", "bash_command", None, "New output: $"),
        ("agent", "agent", None, "done", None),
    ]
    s = found.session
    assert (s["agent"], s["model"], s["task_id"], s["is_objective_success"]) == ("terminus", "p/m", "hello", True)


def test_of_several_messages_before_the_agent_one_is_the_task(tmp_path: Path) -> None:
    said = [("user", "You are an agent."), ("user", "make it"), ("user", "Added context"), ("assistant", "ok")]
    found = read(tmp_path, trace(0, conversations=[{"role": a, "content": b} for a, b in said]))
    assert found.rows("origin", "text") == [("human", "make it"), ("injected", "Added context"), ("agent", "ok")]
    assert found.session["prompt_version"] is not None


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("0.0", (0.0, False, None)),
        (1, (1.0, True, None)),
        ("AgentTimeoutError", (None, False, "timeout")),
        ("EnvironmentStartTimeoutError", (None, None, "error")),
        ("nan", (None, None, None)),
        (None, (None, None, None)),
        ([], (None, None, None)),
    ],
)
def test_results_of_traces(tmp_path: Path, result: Any, expected: tuple[Any, ...]) -> None:
    s = read(tmp_path, trace(0, result=result)).session
    assert (s["objective_reward"], s["is_objective_success"], s["end_status_logged"]) == expected


@pytest.mark.parametrize(
    ("exception", "reward", "expected"),
    [
        (None, 1.0, (True, None)),
        (None, 0.5, (False, None)),
        (None, 3, (None, None)),
        (None, -1, (None, None)),
        ("AgentTimeoutError", 0.0, (False, "timeout")),
        ("AgentTimeoutError", 1.0, (True, "timeout")),
        ("EnvironmentStartTimeoutError", None, (None, "error")),
        ("AgentSetupTimeoutError", 0.0, (None, "error")),
        ("NonZeroAgentExitCodeError", 0.0, (False, "error")),
    ],
)
def test_a_trial_that_the_environment_broke_is_no_failure_of_the_agent(
    tmp_path: Path, exception: str | None, reward: float | None, expected: tuple[Any, ...]
) -> None:
    info = {"exception_type": exception} if exception else None
    verified = None if reward is None else {"rewards": {"reward": reward}}
    s = read_document(tmp_path, trial(exception_info=info, verifier_result=verified)).session
    assert (s["is_objective_success"], s["end_status_logged"]) == expected


def test_a_trial_is_an_outcome_without_steps(tmp_path: Path) -> None:
    s = read_document(tmp_path, trial()).session
    assert (s["n_steps"], s["n_turns"], s["agent"], s["model"], s["task_id"]) == (0, 0, "worker", "p/m", "hello")
    assert (s["input_tokens"], s["cache_read_tokens"], s["output_tokens"], s["logged_cost_usd"]) == (20, 10, 5, 0.25)
    assert (s["ended_at"] - s["started_at"]).total_seconds() == 300


def test_of_several_rewards_only_the_one_of_that_name_is_an_outcome(tmp_path: Path) -> None:
    for rewards, expected in (
        ({"n_tests": 5, "accuracy": 0.2}, (None, None)),
        ({"accuracy": 1.0, "n_tests": 5}, (None, None)),
        ({"accuracy": 1.0}, (1.0, True)),
        ({"n_tests": 5, "reward": 0.0}, (0.0, False)),
    ):
        s = read_document(tmp_path, trial(verifier_result={"rewards": rewards})).session
        assert (s["objective_reward"], s["is_objective_success"]) == expected


def test_costs_of_some_steps_only_are_not_the_cost_of_the_run(tmp_path: Path) -> None:
    record = atif()
    assert read_document(tmp_path, record).session["logged_cost_usd"] == 0.5
    for cost in ({}, {"cost_usd": 0}):
        record["steps"][-1]["metrics"] = {"prompt_tokens": 1_000_000, "completion_tokens": 9, **cost}
        assert read_document(tmp_path, record).session["logged_cost_usd"] is None
    record["steps"][-1]["metrics"]["cost_usd"] = 0.25
    assert read_document(tmp_path, record).session["logged_cost_usd"] == 0.75
