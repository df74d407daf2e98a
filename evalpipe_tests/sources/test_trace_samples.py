"""Real traces: counts made in another way, and the same conversations in several formats."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalpipe_tests.sources.helpers import SAMPLES, Read

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the sample logs are not beside the repository")

OTLP = SAMPLES / "otlp_genai_json"
MLFLOW = SAMPLES / "mlflow_trace"
FILES = ("otlp_semconv_A.json", "otlp_legacy_A.json", "otlp_openinference_A.json")


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """All objects inside a value, texts that hold JSON included."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            yield from objects(json.loads(value))
        except ValueError:
            return
    elif isinstance(value, dict):
        yield value
        for member in value.values():
            yield from objects(member)
    elif isinstance(value, list):
        for member in value:
            yield from objects(member)


def spans_of(path: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Spans of an OTLP file with their attributes."""
    found = [
        value for value in objects(json.loads(path.read_text())) if value.keys() >= {"spanId", "attributes", "name"}
    ]
    return [(span, {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}) for span in found]


def asked_by_users(attributes: dict[str, Any]) -> set[str]:
    """User texts in the input of a model call."""
    found = set()
    for key, value in attributes.items():
        if re.fullmatch(r"(gen_ai\.prompt|llm\.input_messages)\.\d+\.(message\.)?role", key) and value == "user":
            found.add(attributes.get(key.removesuffix("role") + "content"))
    for message in json.loads(attributes.get("gen_ai.input.messages", "[]")):
        if message["role"] == "user":
            found.update(part["content"] for part in message["parts"] if part["type"] == "text")
    # A simulated user that only worked its phone said nothing.
    return found - {'{"type":"text","content":""}'}


@pytest.mark.parametrize("name", FILES)
def test_otlp_counts_agree_with_a_count_made_apart(name: str) -> None:
    read = Read(OTLP / name)
    expected: dict[str, Counter[str]] = {}
    users: dict[str, set[str]] = {}
    for span, a in spans_of(OTLP / name):
        ids = ("session.id", "gen_ai.conversation.id", "traceloop.association.properties.session_id")
        session = next(a[key] for key in ids if key in a)
        n = expected.setdefault(session, Counter())
        inputs = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
        outputs = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion")
        n["input"] += sum(int(a.get(key, 0)) for key in inputs)
        n["output"] += sum(int(a.get(key, 0)) for key in outputs)
        is_tool = "TOOL" in str(a.get("openinference.span.kind")) or span["name"].startswith("execute_tool")
        n["calls"] += is_tool or a.get("traceloop.span.kind") == "tool"
        users.setdefault(session, set()).update(asked_by_users(a))
    assert set(read.sessions["session_id"]) == {f"otlp:{session}" for session in expected}
    for session, n in expected.items():
        row = read.sessions.row(by_predicate=pl.col("session_id") == f"otlp:{session}", named=True)
        assert (row["n_tool_calls"], row["input_tokens"] or 0, row["output_tokens"] or 0) == (
            n["calls"],
            n["input"],
            n["output"],
        )
        said = read.steps.filter(pl.col("session_id") == f"otlp:{session}", pl.col("origin") == "human")[
            "text"
        ].to_list()
        # A last turn that no model call answered is in no call's input, only at the root.
        assert users[session] <= set(said)
        assert len(said) - len(users[session]) in (0, 1)
        assert len(set(said)) == len(said)
    assert read.steps.filter(kind="tool")["output"].null_count() == 0


def test_the_same_conversations_read_alike_from_mlflow_and_otlp() -> None:
    mlflow = Read(MLFLOW)
    shared = 0
    for name in FILES[:2]:
        otlp = Read(OTLP / name)
        for session in mlflow.sessions["session_id"].to_list():
            other = "otlp:" + session.removeprefix("mlflow:")
            if other not in set(otlp.sessions["session_id"]):
                continue
            shared += 1
            one, two = (r.steps.filter(pl.col("session_id") == s) for r, s in ((mlflow, session), (otlp, other)))
            for kind, column in (("user", "text"), ("tool", "name"), ("tool", "output")):
                here, there = (steps.filter(pl.col("kind") == kind)[column].to_list() for steps in (one, two))
                assert here[: len(there)] == there[: len(here)]
                assert abs(len(here) - len(there)) <= 1
            texts = [steps.filter(pl.col("kind") == "agent")["text"].drop_nulls().to_list() for steps in (one, two)]
            assert texts[0] == texts[1]
            assert one["input_tokens"].sum() == two["input_tokens"].sum()
    assert shared == 10


def test_mlflow_outcomes_are_the_rewards_in_the_log() -> None:
    read = Read(MLFLOW)
    rewards = {
        trace["info"]["trace_metadata"]["mlflow.trace.session"]: trace["info"]["assessments"][0]["feedback"]["value"]
        for trace in map(json.loads, (MLFLOW / "mlflow_traces_A.jsonl").read_text().splitlines())
    }
    found = dict(read.sessions.select("session_id", "objective_reward").rows())
    assert found == {f"mlflow:{session}": reward for session, reward in rewards.items()}
    assert set(read.sessions["is_objective_success"]) == {True, False}
    assert read.sessions["task_id"].null_count() == read.sessions["scenario_declared"].null_count() == 0


def test_langfuse_frameworks_each_give_one_conversation() -> None:
    folder = SAMPLES / "langfuse_trace"
    read = Read(folder)
    assert read.codes == []
    assert read.sessions.height == len(list(folder.iterdir())) == 10
    for path in folder.iterdir():
        export = json.loads(path.read_text())
        calls = [o for o in export["observations"] if o["type"] == "GENERATION"]
        (name,) = set(read.rows("session_id", step_id=calls[0]["id"]))
        session = read.sessions.row(by_predicate=pl.col("session_id") == name, named=True)
        steps = read.steps.filter(pl.col("session_id") == session["session_id"])
        assert session["n_turns"] == 1
        assert steps.filter(pl.col("kind") == "agent").height == len(calls)
        assert session["logged_cost_usd"] == pytest.approx(sum(o["totalCost"] for o in calls))
        used = [o["usageDetails"] for o in calls]
        assert session["input_tokens"] == sum(u["input"] for u in used)
        assert session["output_tokens"] == sum(u["output"] + u.get("output_reasoning", 0) for u in used)
        tools = {o["name"] for o in export["observations"] if o["type"] == "TOOL"}
        assert session["n_tool_calls"] >= len(tools)
        assert steps.filter(pl.col("kind") == "tool", pl.col("error").is_not_null()).is_empty()
    assert set(read.sessions["n_tool_calls"]) == {0, 1, 2}


def test_langsmith_halves_make_one_run() -> None:
    path = SAMPLES / "langsmith_runs" / "run_ops_part1.jsonl"
    read = Read(path)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    calls = [r for r in records if r.get("run_type") == "llm"]
    assert read.sessions.height == 1
    assert read.file()["rows_kept"] == len(records)
    assert read.session["session_id"] == f"langsmith:{calls[0]['extra']['metadata']['thread_id']}"
    modelled = read.steps.filter(pl.col("kind") == "agent", pl.col("model").is_not_null())
    assert modelled["step_id"].to_list() == [r["id"] for r in calls]
    assert read.steps.filter(kind="graph").height == sum(r.get("run_type") == "retriever" for r in records)
    # The question at the root is the turn; the plan's prompts are not.
    assert read.session["n_turns"] == 1
    assert read.rows("text", origin="human")[0] == records[0]["inputs"]["messages"][-1]["content"]


def test_phoenix_parquet_holds_one_question_a_trace() -> None:
    path = SAMPLES / "phoenix_spans" / "traces_A.parquet"
    read = Read(path)
    frame = pl.read_parquet(path)
    with_model = frame.filter(pl.col("span_kind") == "LLM")["context.trace_id"].unique()
    assert set(read.sessions["session_id"]) == {f"phoenix:{trace}" for trace in with_model}
    f = read.file()
    kept = frame.filter(pl.col("context.trace_id").is_in(with_model.to_list())).height
    assert (f["rows_read"], f["rows_kept"], f["rows_noise"]) == (frame.height, kept, frame.height - kept)
    roots = frame.filter(pl.col("parent_id").is_null(), pl.col("context.trace_id").is_in(with_model.to_list()))
    assert sorted(read.rows("text", origin="human")) == sorted(roots["attributes.input.value"])


def test_phoenix_rows_with_python_reprs_are_read() -> None:
    path = SAMPLES / "phoenix_spans" / "example_traces_A.jsonl"
    read = Read(path)
    kinds = Counter(json.loads(line)["span_kind"] for line in path.read_text().splitlines())
    assert read.sessions.height == kinds["LLM"]
    f = read.file()
    assert (f["rows_kept"], f["rows_noise"]) == (kinds["LLM"], kinds.total() - kinds["LLM"])


def test_results_of_evaluations_are_no_spans() -> None:
    for name in ("mcp_eval_runs.jsonl", "agent_traj_tau_langgraph.json"):
        assert Read(SAMPLES / "phoenix_spans" / name).codes == ["UNKNOWN_FORMAT"]
