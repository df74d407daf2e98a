"""ToolBench, AgentBench and Who&When."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalpipe_tests.sources.bench_logs import (
    FINISH,
    act,
    failure,
    mistake,
    node,
    read,
    read_document,
    run,
    tooleval,
    tree,
)
from evalpipe_tests.sources.helpers import Read

CALL = ("name", "arguments", "output", "is_error", "error")


def test_of_a_search_the_path_to_the_answer_is_the_session(tmp_path: Path) -> None:
    found = read_document(tmp_path, tree(), "G1_answer/10_ChatGPT_DFS_woFilter_w2.json")
    assert found.rows("kind", "text", "name", "output") == [
        ("user", "what is 3 and 4?", None, None),
        ("agent", "try the other", None, None),
        ("tool", None, "sum", '{"error": "", "response": "7"}'),
        ("agent", "It is 7.", None, None),
    ]
    s = found.session
    assert (s["agent"], s["model"], s["task_id"]) == ("DFS_woFilter_w2", "ChatGPT", "G1_answer__10")
    assert (s["is_objective_success"], s["end_status_logged"], s["tools"]) == (True, "completed", ["Finish", "sum"])
    assert (s["n_tool_calls"], s["input_tokens"], s["is_dated"]) == (1, None, False)


def test_without_an_answer_the_last_branch_that_gave_up_counts_else_the_last_visited(tmp_path: Path) -> None:
    def give_up(thought: str) -> dict[str, Any]:
        finish = act("Finish", '{"return_type": "give_up_and_restart"}', 4, '{"response":"chose to give up"}')
        return node("Thought", thought, finish)

    last = act("late", "{}", 0, "{}")
    gave_up = read_document(tmp_path, tree(give_up("first"), give_up("second"), last, win=False), "a.json")
    assert gave_up.rows("text") == ["what is 3 and 4?", "second", "give_up_and_restart"]
    assert (gave_up.session["end_status_logged"], gave_up.session["is_objective_success"]) == ("completed", False)
    visited = read_document(tmp_path, tree(act("early", "{}", 0, "{}"), last, win=False), "b.json")
    assert visited.rows("name", kind="tool") == ["late"]
    assert visited.session["end_status_logged"] == "timeout"


@pytest.mark.parametrize(
    ("code", "observation", "expected"),
    [
        (0, '{"error": "", "response": "x"}', (False, None)),
        (0, '{"error": "401", "response": ""}', (True, "tool_error")),
        (0, "plain", (False, None)),
        (1, "{}", (True, "tool_error")),
        (5, "{}", (True, "timeout")),
        (12, "{}", (True, "tool_error")),
        (None, "{}", (None, None)),
    ],
)
def test_observation_codes(tmp_path: Path, code: Any, observation: str, expected: tuple[Any, ...]) -> None:
    found = read_document(tmp_path, tree(act("x", "{}", code, observation, FINISH)))
    assert found.rows("is_error", "error", kind="tool") == [expected]


def test_an_action_without_input_got_no_result(tmp_path: Path) -> None:
    found = read_document(tmp_path, tree(node("Action", "x")))
    assert found.rows("name", "error", kind="tool") == [("x", "no_result")]


def test_answers_of_tooleval(tmp_path: Path) -> None:
    found = read_document(tmp_path, tooleval())
    assert found.file()["rows_read"] == 1
    s = found.sessions.sort("task_id")
    assert s.select("task_id", "agent", "model", "end_status_logged", "is_objective_success").rows() == [
        ("11", "CoT@1", "m-1", "completed", None),
        ("12", "CoT@1", "m-1", None, None),
    ]
    one = found.steps.filter(session_id=s["session_id"][0]).select("kind", "text", *CALL).rows()
    assert one == [
        ("user", "what is 3 and 4?", None, None, None, None, None),
        ("tool", None, "sum", "{}", '{"error": "no key", "response": ""}', True, "tool_error"),
        ("agent", "7", None, None, None, None, None),
    ]


def test_messages_of_tooleval_that_are_no_literal_are_kept_as_calls(tmp_path: Path) -> None:
    log = tooleval()
    chain = log["11"]["answer"]["answer_details"][0]["next"][0]["next"]
    for odd in ("{'name': ", "__import__('os')", "(" * 5000, "[1]"):
        chain[0]["message"] = odd
        found = read_document(tmp_path, {"11": log["11"]})
        assert found.rows("name", kind="tool") == ["unknown"]


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        (
            "{'name': 'sum', 'arguments': '{\\n  \"a\": 1}', 'response': '{\"error\": \"no",
            ("sum", '{\n  "a": 1}', True),
        ),
        ("{'name': 'sum', 'arguments': '{}', 'response': '{\"error\": \"\", \"resp", ("sum", "{}", None)),
        ("{'name': 'sum', 'arguments': '{\"a", ("sum", '{"a', None)),
        ("{'name': 'sum', 'argu", ("sum", None, None)),
    ],
)
def test_messages_of_tooleval_are_cut_after_a_hundred_characters(
    tmp_path: Path, cut: str, expected: tuple[Any, ...]
) -> None:
    log = tooleval()
    log["11"]["query"] = "the whole question"
    log["11"]["answer"]["answer_details"][0]["next"][0]["next"][0]["message"] = cut
    found = read_document(tmp_path, {"11": log["11"]})
    assert found.rows("name", "arguments", "is_error", kind="tool") == [expected]
    assert found.rows("text", kind="user") == ["the whole question"]
    assert found.rows("text", kind="agent") == ["7"]


def test_a_final_answer_that_is_no_json_is_an_answer(tmp_path: Path) -> None:
    log = tooleval()
    log["11"]["answer"]["final_answer"] = said = '{"return_type": "give_answer", "final_answer": seven'
    found = read_document(tmp_path, {"11": log["11"]})
    assert (found.session["end_status_logged"], found.rows("text", kind="agent")) == ("completed", [said])


def test_calls_of_agentbench_stand_in_the_text(tmp_path: Path) -> None:
    found = read_document(tmp_path, [run()], "outputs/r1/gpt-x/medagentbench-std/runs.json")
    assert found.rows(*CALL, kind="tool") == [
        ("GET", "http://fhir.example/Patient?id=1", "Error in sending the GET request: 400", True, "tool_error"),
        ("GET", "http://fhir.example/Patient/1", "Here is the response: 40", False, None),
    ]
    assert found.rows("origin", "text", kind="user") == [("human", "Use GET, POST or FINISH. How old?")]
    assert found.rows("text", kind="agent")[-1] == "FINISH([40])"
    s = found.session
    assert (s["model"], s["scenario_declared"], s["task_id"]) == ("gpt-x", "medagentbench-std", "5")
    assert (s["is_objective_success"], s["end_status_logged"]) == (True, "completed")
    assert s["is_dated"]
    assert str(s["started_at"]) == "2026-01-05 10:00:00+00:00"
    assert found.steps["started_at"].null_count() == found.steps.height


def test_failures_of_the_harness_lie_in_a_file_of_their_own_and_stay_sessions(tmp_path: Path) -> None:
    """Leaving them out would flatter a model of which half the runs are missing."""
    read(tmp_path, run(), run(index=7, scored_status="completedIncorrect"), name="medagentbench_g-2.0.runs.jsonl")
    read(tmp_path, failure(), name="medagentbench_g-2.0.error.jsonl")
    s = Read(tmp_path).sessions.sort("task_id")
    assert s.select("task_id", "is_objective_success", "end_status_logged").rows() == [
        ("5", True, "completed"),
        ("6", None, "error"),
        ("7", False, "completed"),
    ]
    assert s["model"].unique().to_list() == ["g-2.0"]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("task limit reached", (False, "timeout")),
        ("agent validation failed", (False, "error")),
        ("completed", (None, "completed")),
        ("running", (None, None)),
        ("cancelled", (None, "interrupted")),
    ],
)
def test_unscored_runs(tmp_path: Path, status: str, expected: tuple[Any, ...]) -> None:
    one = run(output={"status": status, "history": [{"role": "agent", "content": "POST http://x {}"}]})
    del one["scored_status"]
    found = read(tmp_path, one)
    assert (found.session["is_objective_success"], found.session["end_status_logged"]) == expected
    assert found.rows("error", kind="tool") == ["no_result"]


def test_gold_labels_never_become_text(tmp_path: Path) -> None:
    found = read_document(tmp_path, mistake())
    for frame in (found.sessions, found.steps):
        for column in frame.select(pl.col(pl.String)).iter_columns():
            assert not any("GOLD" in value for value in column.drop_nulls())
    assert found.session["is_objective_success"] is False


def test_terminals_run_the_code_of_the_message_before(tmp_path: Path) -> None:
    found = read_document(tmp_path, mistake())
    assert found.rows("kind", "origin", "name", "arguments", "exit_code", "is_error") == [
        ("user", "human", None, None, None, None),
        ("agent", "agent", None, None, None, None),
        ("tool", "tool", "terminal", "print(1)\n", 1, True),
        ("user", "meta", None, None, None, None),
        ("agent", "agent", None, None, None, None),
    ]
    assert found.rows("text", origin="human") == ["How many rows?"]
    assert found.session["scenario_declared"] == "level_2"


def test_the_hand_made_half_has_its_human_in_the_history(tmp_path: Path) -> None:
    said = [("human", "find it"), ("Orchestrator (thought)", "plan"), ("WebSurfer", "I clicked"), ("human", "more")]
    log = mistake(history=[{"role": a, "content": b} for a, b in said], is_corrected=False)
    del log["is_correct"]
    found = read_document(tmp_path, log)
    assert found.rows("origin", "turn") == [("human", 1), ("agent", 1), ("agent", 1), ("human", 2)]
    assert (found.session["agent"], found.session["is_objective_success"]) == ("hand_crafted", False)
