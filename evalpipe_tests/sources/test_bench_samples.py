"""Real logs of benchmarks and data sets: published rates, and counts made by walking the raw JSON."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard

from evalpipe_tests.sources.helpers import SAMPLES, Read

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the sample logs are not beside the repository")


def text_of(path: Path) -> str:
    with path.open("rb") as file:
        data = zstandard.ZstdDecompressor().stream_reader(file).read() if path.suffix == ".zst" else file.read()
    return data.decode()


def rows_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in text_of(path).splitlines() if line.strip()]


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """All objects anywhere inside a JSON value."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(inner)


def counts(read: Read) -> dict[str, int]:
    steps, is_call = read.steps, pl.col("name").is_not_null() & (pl.col("kind") == "tool")
    return steps.select(
        human=(pl.col("origin") == "human").sum(),
        calls=is_call.sum(),
        errors=pl.col("is_error").sum(),
        tokens_in=pl.col("input_tokens").sum(),
        tokens_out=pl.col("output_tokens").sum(),
    ).row(0, named=True)


@pytest.mark.parametrize("path", sorted((SAMPLES / "atif_trajectory").glob("golden*")), ids=lambda p: p.name[7:60])
def test_atif(path: Path) -> None:
    log = json.loads(text_of(path))
    fresh = [step for step in log["steps"] if not step.get("is_copied_context")]
    found = Read(path)
    assert found.codes == []
    got = counts(found)
    tokens = [step.get("metrics", {}) for step in fresh]
    assert got["tokens_in"] == sum(m.get("prompt_tokens", 0) - m.get("cached_tokens", 0) for m in tokens)
    assert got["tokens_out"] == sum(m.get("completion_tokens", 0) for m in tokens)
    outputs = [r["content"] for step in fresh for r in step.get("observation", {}).get("results", []) if "content" in r]
    assert sorted(found.steps["output"].drop_nulls()) == sorted(outputs)
    if any("tool_calls" in step for step in fresh):
        assert got["calls"] == sum(len(step.get("tool_calls", [])) for step in fresh)
    s = found.session
    assert s["n_turns"] == int("summarization-1" not in path.name)
    assert s["logged_cost_usd"] == pytest.approx(sum(m.get("cost_usd", 0) for m in tokens))
    exits = found.steps["exit_code"].drop_nulls().to_list()
    assert len(exits) == sum("completed with exit code" in output for output in outputs)


def test_harbor_traces() -> None:
    read = Read(SAMPLES / "harbor_sft_traces")
    assert read.codes == []
    for path in sorted((SAMPLES / "harbor_sft_traces").iterdir()):
        longest = max(json.loads(text_of(path)), key=lambda row: len(row["conversations"]))["conversations"]
        steps = Read(path).steps
        said = [m["content"] for m in longest if m["role"] == "assistant"]
        assert steps.filter(kind="agent")["text"].to_list() == said
        first = [m["role"] for m in longest].index("assistant")
        results = [m["content"] for m in longest[first:] if m["role"] == "user"]
        assert sorted(steps["output"].drop_nulls()) == sorted(results)
        # Every result answers a call, but for the complaint about a message without one.
        assert steps.filter(pl.col("output").is_not_null(), pl.col("name").is_null()).height <= 1
        assert Read(path).session["n_turns"] == 1


@pytest.mark.parametrize("path", sorted((SAMPLES / "inspect_ai").glob("*")), ids=lambda p: p.name[:40])
def test_inspect(path: Path) -> None:
    found = Read(path)
    assert found.codes == []
    if path.suffix == ".eval":
        archive = zipfile.ZipFile(path)
        names = [name for name in archive.namelist() if name.startswith("samples/")]
        samples = [json.loads(archive.read(name)) for name in names]
    else:
        log = json.loads(path.read_text())
        samples = log.get("samples", [log])
    assert found.sessions.height == len(samples)
    got = counts(found)
    messages = [m for sample in samples for m in sample.get("messages", [])]
    assert got["human"] == (sum(m["role"] == "user" for m in messages) if messages else 1)
    assert got["errors"] == sum("error" in m for m in messages)
    graded: set[str] = set()
    used = 0
    for sample in samples:
        is_open = False
        for event in sample.get("events", []):
            if event["event"] == "span_begin" and event["type"] in ("scorer", "scorers"):
                graded.add(event["id"])
            if event["event"] == "step" and event.get("type") == "scorer":
                is_open = event["action"] == "begin"
            if event["event"] == "model" and event.get("span_id") not in graded and not is_open:
                used += event["output"].get("usage", {}).get("input_tokens", 0)
    assert found.sessions["input_tokens"].sum() == used
    letters = [next(iter(s["scores"].values()))["value"] for s in samples if s.get("scores")]
    assert found.sessions["is_objective_success"].sum() == letters.count("C")


def test_mcpmark_rates_as_published() -> None:
    read = Read(SAMPLES / "multi_model_outcomes" / "mcpmark_runs.jsonl.zst")
    assert read.codes == []
    s = read.sessions
    rates = dict(s.group_by("model").agg(100 * pl.col("is_objective_success").fill_null(value=False).mean()).rows())
    published = {
        "gpt-5-2-high": 57.5, "gemini-3-pro-high": 53.9, "gpt-5-medium": 52.6, "gpt-5-high": 51.6,
        "gemini-3-pro-low": 50.8, "gpt-5-low": 46.9, "claude-opus-4-5-high": 42.3, "deepseek-v3-2-thinking": 36.8,
        "claude-sonnet-4-5": 32.1, "grok-4": 31.7, "gemini-2-5-flash": 9.1,
    }  # fmt: skip
    assert {model: round(rates[model], 1) for model in published} == published
    raw = rows_of(SAMPLES / "multi_model_outcomes" / "mcpmark_runs.jsonl.zst")
    assert s.height == len(raw) == 19_431
    broken = s.filter(pl.col("is_objective_success").is_null())
    assert 0 < broken.height < sum(row["error_message"] is not None for row in raw)
    assert broken["end_status_logged"].unique().to_list() == ["error"]
    assert s["input_tokens"].sum() == sum(row["input_tokens"] or 0 for row in raw)
    assert read.steps.is_empty()


def test_toolbench_trees() -> None:
    for path in sorted((SAMPLES / "toolbench").glob("G*")):
        log = json.loads(text_of(path))
        found = Read(path)
        assert found.codes == []
        s = found.session
        assert s["is_objective_success"] is log["win"]
        answers = [o for o in walk(log["tree"]) if o.get("observation_code") == 3]
        assert len(answers) == int(log["win"])
        # The chosen path repeats the calls of the last training example.
        messages = log["answer_generation"].get("train_messages")
        if messages and log["win"]:
            called = [m["function_call"]["name"] for m in messages[-1] if m.get("function_call")]
            assert [*found.rows("name", kind="tool"), "Finish"] == called
        assert found.rows("text", origin="human") == [log["answer_generation"]["query"]]
        assert s["task_id"] == path.name.split("_ChatGPT")[0]


def test_tooleval_answers() -> None:
    path = SAMPLES / "toolbench" / "tooleval_gpt-3.5-turbo_CoT_G1_tool.json"
    log = json.loads(text_of(path))
    found = Read(path)
    tools = sum(o.get("role") == "tool" for o in walk(log))
    finished = sum(o.get("role") == "tool" and "'name': 'Finish'" in str(o["message"]) for o in walk(log))
    assert found.sessions.height == len(log) == 25
    assert counts(found)["calls"] == tools - finished
    assert found.sessions.filter(end_status_logged="completed").height == sum(
        '"give_answer"' in value["answer"]["final_answer"] for value in log.values()
    )


def test_agentbench_accuracy_as_published() -> None:
    """Published: 0.76."""
    read = Read(SAMPLES / "agentbench")
    assert read.codes == []
    s = read.sessions
    assert s.filter(model="gpt-4o-mini")["is_objective_success"].mean() == 0.76
    failed = s.filter(model="gemini-2.0")
    assert failed.height == 22
    assert failed["is_objective_success"].null_count() == 22
    raw = rows_of(SAMPLES / "agentbench" / "medagentbench_gpt-4o-mini.runs.jsonl.zst")
    said = [m["content"] for row in raw for m in row["output"]["history"] if m["role"] == "agent"]
    assert counts(read)["calls"] == sum(text.startswith(("GET", "POST")) for text in said)
    assert s["is_dated"].all()


def test_whowhen() -> None:
    read = Read(SAMPLES / "mas_whowhen")
    assert read.codes == []
    raw = rows_of(SAMPLES / "mas_whowhen" / "whowhen_A.jsonl.zst")
    assert read.sessions.height == len(raw) == 155
    said = [m["content"] for row in raw for m in row["history"]]
    assert counts(read)["calls"] == sum(text.startswith("exitcode: ") for text in said)
    assert counts(read)["errors"] == sum(text.startswith("exitcode: ") and text[10] != "0" for text in said)
    assert counts(read)["human"] == 155
    assert read.sessions["is_objective_success"].to_list() == [False] * 155
    reasons = {row["mistake_reason"] for row in raw}
    texts = set(read.steps["text"].drop_nulls())
    assert not reasons & texts


def test_openai_messages() -> None:
    read = Read(SAMPLES / "openai_messages_jsonl")
    raw = rows_of(SAMPLES / "openai_messages_jsonl" / "tau2_sft_train_part.jsonl")
    roles = Counter(m["role"] for row in raw for m in row["messages"])
    got = counts(read)
    assert got["human"] == roles["user"]
    assert got["calls"] == sum(len(m.get("tool_calls") or []) for row in raw for m in row["messages"])
    assert read.steps.filter(kind="tool")["output"].null_count() == 0
    assert read.sessions.height == len(raw)
    assert read.codes == []


def test_anthropic_events() -> None:
    read = Read(SAMPLES / "anthropic_messages_jsonl")
    raw = [
        o
        for path in sorted((SAMPLES / "anthropic_messages_jsonl").iterdir())
        for row in rows_of(path)
        for o in walk(row)
    ]
    usage = [o["model_usage"] for o in raw if "model_usage" in o]
    got = counts(read)
    assert got["tokens_in"] == sum(u["input_tokens"] for u in usage)
    assert got["tokens_out"] == sum(u["output_tokens"] for u in usage)
    assert got["calls"] == sum(o.get("type") in ("agent.tool_use", "agent.mcp_tool_use") for o in raw)
    assert got["human"] == 2
    assert read.sessions["model"].sort().to_list() == ["claude-opus-4-8", "claude-sonnet-5"]
    assert read.codes == []


@pytest.mark.parametrize("name", ["sharegpt", "wildchat_lmsys_rows"])
def test_public_chats(name: str) -> None:
    read = Read(SAMPLES / name)
    assert read.codes == []
    n_sessions = n_user = 0
    for path in (SAMPLES / name).iterdir():
        rows = json.loads(path.read_text()) if path.suffix == ".json" else rows_of(path)
        n_sessions += len(rows)
        turns = [m for row in rows for m in row.get("conversations", row.get("conversation"))]
        said = [m.get("value", m.get("content")) for m in turns if m.get("from", m.get("role")) in ("human", "user")]
        # A simulated user's control word is no turn.
        n_user += sum(bool(text.replace("###STOP###", "").replace("###TRANSFER###", "").strip()) for text in said)
    assert read.sessions.height == n_sessions
    assert counts(read)["human"] == n_user


def test_users_of_wildchat() -> None:
    path = SAMPLES / "wildchat_lmsys_rows" / "wildchat_style.jsonl"
    read = Read(path)
    assert read.sessions["user_id"].n_unique() == len({row["hashed_ip"] for row in rows_of(path)})
    assert read.sessions["is_dated"].all()
