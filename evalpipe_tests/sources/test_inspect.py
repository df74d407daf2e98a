"""Inspect's logs: documents, archives, lists of events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalpipe_tests.sources.bench_logs import (
    ASKS,
    EVAL,
    SAYS,
    answer,
    eval_archive,
    inspect_log,
    model_event,
    read_document,
    sample,
    span,
)
from evalpipe_tests.sources.helpers import Read


def test_messages_get_times_and_tokens_from_events(tmp_path: Path) -> None:
    found = read_document(tmp_path, inspect_log())
    rows = found.steps.select("kind", "origin", "name", "text", "output", "model", "input_tokens").rows()
    assert rows == [
        ("user", "human", None, "capital of X?", None, None, None),
        ("agent", "agent", None, None, None, "lab/m", 7),
        ("tool", "tool", "lookup", None, "X: Y", None, None),
        ("agent", "agent", None, "Y", None, "lab/m", 7),
    ]
    seconds = [(a.second, b.second) for a, b in found.steps.select("started_at", "ended_at").drop_nulls().rows()]
    assert seconds == [(1, 2), (3, 4), (5, 6)]
    s = found.session
    assert (s["session_id"], s["model"], s["agent"], s["harness"]) == (
        "inspect:sample-uuid-1",
        "lab/m",
        "inspect",
        "inspect",
    )
    assert (s["scenario_declared"], s["task_id"], s["trial"], s["end_status_logged"]) == (
        "capitals",
        "7",
        2,
        "completed",
    )
    assert (s["objective_reward"], s["is_objective_success"]) == (1.0, True)
    assert s["n_models"] == 1


def test_tokens_of_the_grader_are_not_the_agents(tmp_path: Path) -> None:
    s = read_document(tmp_path, inspect_log()).session
    assert (s["input_tokens"], s["cache_read_tokens"], s["output_tokens"]) == (14, 6, 4)


def test_steps_of_older_logs_mark_the_grader_too(tmp_path: Path) -> None:
    def step(action: str, kind: str | None = None) -> dict[str, Any]:
        return {"event": "step", "action": action, "type": kind, "name": "x", "timestamp": "2026-01-05T10:00:00Z"}

    said = {k: v for k, v in SAYS.items() if k != "id"}  # nor had messages ids
    events = [
        step("begin", "solver"), model_event(said, 1), step("end"),
        step("begin", "scorer"), model_event(answer("g", "GRADE: C"), 5), step("end"),
    ]  # fmt: skip
    messages = [{"role": "user", "content": "?"}, said]
    found = read_document(tmp_path, inspect_log(sample(messages=messages, events=events)))
    assert found.rows("text", "input_tokens") == [("?", None), ("Y", 7)]


def test_without_events_the_totals_of_the_evaluated_model_are_taken(tmp_path: Path) -> None:
    usage = {"lab/m": {"input_tokens": 21, "output_tokens": 6}, "lab/grader": {"input_tokens": 900, "output_tokens": 9}}
    s = read_document(tmp_path, inspect_log(sample(events=[], model_usage=usage))).session
    assert (s["input_tokens"], s["output_tokens"]) == (21, 6)
    assert s["is_dated"]  # by the run


def test_the_header_may_stand_behind_the_samples(tmp_path: Path) -> None:
    found = read_document(tmp_path, {"samples": [sample(), sample(uuid="other")], "status": "success", "eval": EVAL})
    assert found.sessions["model"].to_list() == ["lab/m"] * 2


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"scores": {"a": {"value": "I"}, "b": {"value": "C"}}}, (0.0, False, "completed")),
        ({"scores": {"a": {"value": "P"}}}, (0.5, False, "completed")),
        ({"scores": {"a": {"value": True}}}, (1.0, True, "completed")),
        ({"scores": {"a": {"value": "0.25"}}}, (0.25, None, "completed")),
        ({"scores": {"a": {"value": "1"}}}, (1.0, True, "completed")),
        ({"scores": {"a": {"value": 0}}}, (0.0, False, "completed")),
        ({"scores": {"quality": {"value": 3}}}, (3.0, None, "completed")),
        ({"scores": {"latency_seconds": {"value": 1.5}}}, (1.5, None, "completed")),
        ({"scores": {"advantage": {"value": -1}}}, (-1.0, None, "completed")),
        ({"scores": {"a": {"value": {"x": 1}}}}, (None, None, "completed")),
        ({"scores": {}}, (None, None, None)),
        ({"scores": None, "score": {"value": "C"}}, (1.0, True, "completed")),
        ({"limit": {"type": "token", "limit": 5}}, (1.0, True, "timeout")),
        ({"limit": {"type": "operator", "limit": 1}, "scores": None}, (None, None, "interrupted")),
        ({"error": {"message": "docker died", "traceback": ""}}, (None, None, "error")),
        ({"error": {"message": "x"}, "scores": {"a": {"value": "I"}}}, (None, None, "error")),
        ({"invalidation": {"reason": "wrong target"}}, (None, None, "error")),
    ],
)
def test_scores_limits_and_errors(tmp_path: Path, fields: dict[str, Any], expected: tuple[Any, ...]) -> None:
    s = read_document(tmp_path, inspect_log(sample(**fields))).session
    assert (s["objective_reward"], s["is_objective_success"], s["end_status_logged"]) == expected


def test_errors_of_tools(tmp_path: Path) -> None:
    kinds = ["timeout", "approval", "permission", "parsing"]
    messages = [{"role": "user", "content": "go"}]
    for n, kind in enumerate(kinds):
        call = {"id": f"k{n}", "function": "bash", "arguments": {}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append(
            {"role": "tool", "tool_call_id": f"k{n}", "content": "", "error": {"type": kind, "message": "why"}}
        )
    found = read_document(tmp_path, inspect_log(sample(messages=messages, events=[])))
    assert found.rows("error", "is_error", "output", kind="tool") == [
        ("timeout", True, "why"), ("refused", True, "why"), ("tool_error", True, "why"), ("tool_error", True, "why"),
    ]  # fmt: skip


def test_epochs_of_one_sample_are_sessions_of_their_own(tmp_path: Path) -> None:
    def one(epoch: int) -> dict[str, Any]:
        return {k: v for k, v in sample(epoch=epoch).items() if k != "uuid"}

    found = read_document(tmp_path, inspect_log(one(1), one(2)))
    assert found.sessions["session_id"].n_unique() == 2
    assert sorted(found.sessions["trial"]) == [1, 2]


def test_a_retried_run_copies_samples_which_count_once(tmp_path: Path) -> None:
    read_document(tmp_path, inspect_log(), "first.json")
    read_document(tmp_path, inspect_log(sample(), sample(uuid="new"), eval={**EVAL, "run_id": "again"}), "retry.json")
    assert Read(tmp_path).sessions["session_id"].n_unique() == 2


def test_archives_hold_the_same(tmp_path: Path) -> None:
    (tmp_path / "x.eval").write_bytes(eval_archive(sample(), sample(uuid="two")))
    found = Read(tmp_path / "x.eval")
    assert found.sessions["model"].to_list() == ["lab/m"] * 2
    assert found.files.select("rows_read", "rows_kept", "n_sessions").rows() == [(3, 3, 2)]
    document = read_document(tmp_path, inspect_log(sample(), sample(uuid="two")))
    digests = document.sessions.sort("session_id")["content_digest"].to_list()
    assert found.sessions.sort("session_id")["content_digest"].to_list() == digests


def test_an_archive_without_a_run_in_its_header_says_so(tmp_path: Path) -> None:
    lines = [
        json.dumps({"evalpipe_inspect_header": {"status": "x"}}),
        json.dumps({"evalpipe_inspect_sample": sample()}),
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    found = Read(tmp_path / "x.jsonl")
    assert found.codes == ["BAD_FIELD"]
    assert found.session["scenario_declared"] is None


def test_sub_agents_are_child_steps_at_their_time(tmp_path: Path) -> None:
    helper = answer("h1", "Y", tool_calls=[{"id": "h-call", "function": "grep", "arguments": {}}])
    events = [
        span("solver", "solver"),
        model_event(ASKS, 1),
        {**span("k1", "tool", "solver"), "timestamp": "2026-01-05T10:00:03Z"},
        {**span("helper", "agent", "k1"), "timestamp": "2026-01-05T10:00:03Z"},
        model_event(helper, 3, "helper"),
        {"event": "tool", "id": "h-call", "function": "grep", "span_id": "helper", "timestamp": "2026-01-05T10:00:04Z",
         "result": "", "error": {"type": "timeout", "message": "slow"}},
        model_event(SAYS, 5),
    ]  # fmt: skip
    found = read_document(tmp_path, inspect_log(sample(events=events)))
    assert found.rows("kind", "parent_id", "text", "error") == [
        ("user", None, "capital of X?", None),
        ("agent", None, None, None),
        ("tool", None, None, None),
        ("agent", "k1", "Y", None),
        ("tool", "k1", None, "timeout"),
        ("agent", None, "Y", None),
    ]
    s = found.session
    assert (s["input_tokens"], s["n_tool_calls"], s["n_turns"]) == (21, 2, 1)


def test_tool_events_that_nest_what_their_agent_did(tmp_path: Path) -> None:
    """Older logs hold a sub-agent's events inside the event of the call."""
    inner = [model_event(answer("h1", "sub"), 3)]
    tool = {"event": "tool", "id": "k1", "function": "lookup", "timestamp": "2026-01-05T10:00:03Z", "events": inner}
    found = read_document(tmp_path, inspect_log(sample(events=[model_event(ASKS, 1), tool, model_event(SAYS, 5)])))
    assert found.steps.filter(pl.col("parent_id") == "k1")["text"].to_list() == ["sub"]


def test_an_answer_that_is_logged_twice_counts_once(tmp_path: Path) -> None:
    found = read_document(tmp_path, inspect_log(sample(events=[model_event(SAYS, 1), model_event(SAYS, 1)])))
    assert found.session["input_tokens"] == 7


def test_a_request_that_failed_is_an_api_error(tmp_path: Path) -> None:
    failed = {**model_event(SAYS, 1), "output": {"choices": []}, "error": "503"}
    found = read_document(tmp_path, inspect_log(sample(events=[failed, model_event(SAYS, 5)])))
    assert found.rows("text", "parent_id", error="api_error") == [(None, "solver")]


def test_long_texts_lie_apart(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "attachment://d1"},
        {"role": "user", "content": [{"type": "text", "text": "attachment://d2"}, {"type": "image"}]},
        {"role": "assistant", "content": "attachment://gone"},
    ]
    one = sample(messages=messages, events=[], attachments={"d1": "long one", "d2": "long two"})
    assert read_document(tmp_path, inspect_log(one)).rows("text") == ["long one", "long two", "attachment://gone"]


def test_a_list_of_events_is_a_session(tmp_path: Path) -> None:
    helper = model_event(answer("h1", "title", tool_calls=None), 4)
    helper["input"] = [{"role": "system", "content": "Extract a title."}, {"role": "user", "content": "go"}]
    events = sample()["events"]
    found = read_document(tmp_path, {"description": "x", "events": [*events[:3], helper, *events[3:]]})
    assert found.rows("kind", "text", "parent_id") == [
        ("user", "capital of X?", None),
        ("agent", None, None),
        ("tool", None, None),
        ("agent", "title", "solver"),  # asked beside the conversation, with another prompt
        ("agent", "Y", None),
    ]
    assert found.session["n_turns"] == 1


def test_a_number_that_changes_in_the_prompt_makes_no_helper(tmp_path: Path) -> None:
    events = sample()["events"][:4]
    for n, event in enumerate(e for e in events if e["event"] == "model"):
        event = event["input"]
        event[0] = {"role": "system", "content": f"x-anthropic-billing-header: cch={n}\nBe brief."}
    found = read_document(tmp_path, {"events": events})
    assert found.steps["parent_id"].null_count() == 4
