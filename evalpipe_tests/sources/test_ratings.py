"""Marks that users give by hand: whose they are, what they mean, and the steps that formats make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalpipe.sources.readers.ratings import is_users, value_of
from evalpipe_tests.sources.bench_logs import event
from evalpipe_tests.sources.helpers import Read, write
from evalpipe_tests.sources.test_evalpipe_jsonl import SESSION, step
from evalpipe_tests.sources.traces import MLFLOW, observation, run


@pytest.mark.parametrize(
    "name",
    [
        "user-feedback",
        "user_score",
        "thumbs",
        "thumbs_up",
        "feedback",
        "star-rating",
        "CSAT",
        "nps",
        "is_helpful",
        "dislike",
    ],
)
def test_names_of_acts_of_users(name: str) -> None:
    assert is_users(name)


@pytest.mark.parametrize(
    "name",
    [
        "helpfulness_judge",
        "correctness",
        "toxicity",
        "task_reward",
        "restart",
        "feedbackloop_latency",
        "likelihood",
        "uprating",
        "user_tone",
    ],
)
def test_names_of_judgements(name: str) -> None:
    assert not is_users(name)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("thumbs", 1, 1), ("thumbs", 0, -1), ("thumbs", -1, -1), ("user_feedback", 0.5, 0), ("user_feedback", "1", 1),
        ("user_feedback", True, 1), ("user_feedback", False, -1), ("feedback", "thumbs_down", -1), ("feedback", "👍", 1),
        ("feedback", "Positive", 1), ("feedback", "it was slow", None), ("feedback", None, None), ("feedback", float("nan"), None),
        ("star_rating", 1, -1), ("star_rating", 5, 1), ("star_rating", 3, 0), ("user_rating", 4, 1), ("user_rating", 2, -1),
        ("nps", 9, 1), ("nps", 7, 0), ("nps", 6, -1), ("user_rating", 70, None),
        ("thumbs_down", 1, -1), ("thumbs_down", 0, None), ("thumbs_up", 1, 1), ("thumbs_up", 0, None), ("like", 0, None),
        ("thumbs_up_down", 0, -1), ("dislike", True, -1), ("dislike", False, None),
    ],
)  # fmt: skip
def test_what_a_mark_means(name: str, value: object, expected: int | None) -> None:
    assert value_of(name, value) == expected


def marks(read: Read) -> list[tuple[Any, ...]]:
    return [row for row in read.rows("kind", "name", "arguments", "text", "turn", "origin") if row[-1] == "feedback"]


def test_langfuse(tmp_path: Path) -> None:
    scores = [
        {"id": "a", "name": "user-feedback", "value": 0, "dataType": "NUMERIC", "source": "API", "comment": "too long",
         "timestamp": "2026-01-07T10:00:00Z"},
        {"id": "b", "name": "user-feedback", "value": 1, "dataType": "NUMERIC", "source": "EVAL"},
        {"id": "c", "name": "feedback", "value": 1, "dataType": "NUMERIC", "source": "ANNOTATION"},
        {"id": "d", "name": "thumbs", "value": 1, "dataType": "BOOLEAN", "source": "API", "observationId": "l1"},
        {"id": "e", "name": "toxicity", "value": 1, "dataType": "NUMERIC", "source": "API"},
    ]  # fmt: skip
    trace = {
        "id": "t1", "timestamp": "2026-01-05T10:00:00Z", "sessionId": "s", "projectId": "p", "name": "chat",
        "input": [{"role": "user", "content": "hello"}],
        "observations": [observation("l1", None, "GENERATION", 0, output="hi", model="m")], "scores": scores,
    }  # fmt: skip
    read = Read(write(tmp_path, trace))
    assert sorted(marks(read), key=str) == [
        ("user", "rating", '{"rating":-1}', "too long", 1, "feedback"),
        ("user", "rating", '{"rating":1}', None, 1, "feedback"),
    ]
    assert read.session["n_turns"] == 1
    assert str(read.session["ended_at"]).startswith("2026-01-05"), "a mark given days later is no part of the talk"


def test_langsmith(tmp_path: Path) -> None:
    stats = {
        "user_score": {"n": 1, "avg": 0.0, "comments": ["no"]}, "thumbs": {"n": 1, "avg": None, "values": {"up": 1}},
        "correctness": {"n": 1, "avg": 1.0},
    }  # fmt: skip
    read = Read(write(tmp_path, run("r1", "r1", "llm", 0, feedback_stats=stats)))
    assert [(row[2], row[3]) for row in marks(read)] == [('{"rating":-1}', "no"), ('{"rating":1}', None)]


def test_mlflow(tmp_path: Path) -> None:
    def mark(source: str, **more: Any) -> dict[str, Any]:
        about = {"assessment_name": "user_feedback", "source": {"source_type": source}, "feedback": {"value": True}}
        return {**about, "create_time": "2026-01-05T10:00:09Z", **more}

    given = [mark("HUMAN", rationale="neat"), mark("CODE"), mark("LLM_JUDGE"), mark("HUMAN", valid=False)]
    trace = {**MLFLOW, "info": {**MLFLOW["info"], "assessments": given}}
    assert [(row[2], row[3]) for row in marks(Read(write(tmp_path, trace)))] == [('{"rating":1}', "neat")]


def test_an_approved_call_of_a_managed_agent(tmp_path: Path) -> None:
    lines = [
        event("user.message", 0, content=[{"type": "text", "text": "go"}]),
        event("agent.tool_use", 1, name="bash", input={"command": "date"}),
        event("user.tool_confirmation", 2, tool_use_id="sevt_agent.tool_use_1", result="allow"),
        event("agent.tool_result", 3, tool_use_id="sevt_agent.tool_use_1", content=[]),
    ]
    read = Read(write(tmp_path, *lines))
    assert [row[1:3] for row in marks(read)] == [("approval", '{"rating":1}')]
    assert read.rows("error", kind="tool") == [None]


def test_evalpipe_jsonl(tmp_path: Path) -> None:
    def mark(n: int, **fields: Any) -> dict[str, Any]:
        return step(n, "user", origin="feedback", **fields)

    read = Read(
        write(
            tmp_path, SESSION, step(1, "user", text="go"), step(2, "agent", text="done"), mark(3, rating=-1, text="wrong"),
            mark(4, rating=1, name="approval"), mark(5), mark(6, rating=5), mark(7, rating=True),
            step(8, "agent", origin="feedback", rating=1),
        )
    )  # fmt: skip
    assert [row[1:4] for row in marks(read)] == [
        ("rating", '{"rating":-1}', "wrong"),
        ("approval", '{"rating":1}', None),
    ]
    assert read.codes == ["BAD_FIELD"] * 4
    assert read.session["n_turns"] == 1
