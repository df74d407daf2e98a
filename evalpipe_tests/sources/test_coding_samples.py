"""Real logs of coding agents, against counts made by a few lines that share nothing with the readers."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard

from evalpipe_tests.sources.helpers import SAMPLES, Read

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the sample logs are not beside the repository")

FOLDERS = (
    "gemini_cli", "opencode_events", "pi_agent_jsonl", "specstory_md", "openhands_events", "swe_agent_traj", "mini_swe_agent",
)  # fmt: skip


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_is_quarantined(folder: str) -> None:
    found = Read(SAMPLES / folder)
    assert found.codes == []
    assert (found.files["n_sessions"] > 0).all()


def values(path: Path) -> list[Any]:
    """All JSON values of a file, whatever lies between them."""
    raw = path.read_bytes()
    if path.suffix == ".zst":
        raw = zstandard.ZstdDecompressor().stream_reader(raw).read()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    out, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        value, at = decoder.raw_decode(text, at)
        out.append(value)
    return out


def inside(value: Any) -> Iterator[dict[str, Any]]:
    """Every object at any depth."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from inside(inner)


def sums(found: Read) -> dict[str, Any]:
    is_call = (pl.col("kind") == "tool") & pl.col("name").is_not_null()
    return found.steps.select(
        human=(pl.col("origin") == "human").sum(),
        calls=is_call.sum(),
        results=(is_call & pl.col("output").is_not_null()).sum(),
        errors=pl.col("is_error").sum(),
        exits=pl.col("exit_code").is_not_null().sum(),
    ).row(0, named=True)


@pytest.mark.parametrize("path", sorted((SAMPLES / "gemini_cli").glob("*.json")), ids=lambda p: p.stem)
def test_gemini(path: Path) -> None:
    (value,) = values(path)
    objects = list(inside(value))
    found = Read(path)
    if isinstance(value, dict):
        calls = [o for o in objects if "displayName" in o]
        tokens = [o for o in objects if "thoughts" in o and "total" in o]
        expected = {
            "human": sum(m["type"] == "user" for m in value["messages"]),
            "calls": len(calls),
            "results": len(calls),
            "errors": sum(c["status"] != "success" for c in calls),
        }
        s = found.session
        used = s["input_tokens"] + s["cache_read_tokens"] + s["output_tokens"]
        assert used == sum(t["total"] for t in tokens)
        assert {m.get("model") for m in value["messages"]} - {None} == set(found.steps["model"].drop_nulls())
    else:
        names = [o["functionCall"]["name"] for o in objects if "functionCall" in o]
        answers = [o["functionResponse"]["response"] for o in objects if "functionResponse" in o]
        said = [p["text"] for m in value if m["role"] == "user" for p in m["parts"] if "text" in p]
        expected = {
            "human": sum(not t.startswith("<session_context>") for t in said),
            "calls": len(names),
            "results": len(answers),
            "errors": sum("error" in a for a in answers),
        }
        assert Counter(names) == Counter(found.rows("name", kind="tool"))
    assert {k: v for k, v in sums(found).items() if k in expected} == expected


@pytest.mark.parametrize("path", sorted((SAMPLES / "opencode_events").glob("*")), ids=lambda p: p.stem)
def test_opencode(path: Path) -> None:
    last: dict[str, dict[str, Any]] = {}
    for o in inside(values(path)):
        if str(o.get("id", "")).startswith(("msg_", "prt_")):
            last[o["id"]] = o
    tools = [o for o in last.values() if o.get("type") == "tool"]
    answers = [o for o in last.values() if o.get("role") == "assistant"]
    found = Read(path)
    assert sums(found) == {
        "human": 1,
        "calls": len(tools),
        "results": len(tools),
        "errors": sum(t["state"]["status"] == "error" for t in tools),
        "exits": sum(isinstance(t["state"].get("metadata", {}).get("exit"), int) for t in tools),
    }
    s = found.session
    assert s["input_tokens"] == sum(a["tokens"]["input"] for a in answers)
    assert s["output_tokens"] == sum(a["tokens"]["output"] for a in answers)
    assert found.rows("text", kind="agent").count(None) == sum(
        not any(p.get("messageID") == a["id"] and p.get("type") == "text" for p in last.values()) for a in answers
    )


def test_opencode_sub_agents_are_inside_their_parents() -> None:
    found = Read(SAMPLES / "opencode_events" / "ses_subagents.jsonl")
    children = found.steps.filter(pl.col("parent_id").is_not_null())
    assert (children.filter(kind="tool").height, children.filter(kind="agent").height) == (1, 2)
    assert found.steps.filter(name="task")["step_id"].to_list() == children["parent_id"].unique().to_list()


@pytest.mark.parametrize("path", sorted((SAMPLES / "pi_agent_jsonl").glob("*")), ids=lambda p: p.stem)
def test_pi(path: Path) -> None:
    messages = [v["message"] for v in values(path) if v["type"] == "message"]
    blocks = [b for m in messages for b in (m.get("content") or []) if isinstance(b, dict)]
    results = [m for m in messages if m["role"] == "toolResult"]
    answers = [m for m in messages if m["role"] == "assistant"]
    found = Read(path)
    texts = ["".join(b.get("text", "") for b in r["content"]) for r in results if r["isError"]]
    bash = sum(m["role"] == "bashExecution" for m in messages)
    assert sums(found) == {
        "human": sum(m["role"] == "user" for m in messages),
        "calls": sum(b["type"] == "toolCall" for b in blocks),
        "results": len(results),
        "errors": len(texts),
        "exits": sum(bool(re.search(r"exited with code \d+$", t)) for t in texts) + bash,
    }
    s = found.session
    assert s["output_tokens"] == sum(m["usage"]["output"] for m in answers)
    assert s["cache_read_tokens"] == sum(m["usage"]["cacheRead"] for m in answers)
    assert s["logged_cost_usd"] == pytest.approx(sum(m["usage"]["cost"]["total"] for m in answers))
    assert found.steps.filter(origin="interrupt").height == sum(m["stopReason"] == "aborted" for m in answers)
    assert set(found.steps["model"].drop_nulls()) == {m["model"] for m in answers}


def test_specstory() -> None:
    paths = sorted((SAMPLES / "specstory_md").glob("*.md"))
    found = Read(SAMPLES / "specstory_md")
    by_id = {}
    for path in paths:
        text = path.read_text()
        session_id = re.search(r"^<!-- .* Session (\S+) ", text, re.M).group(1)  # type: ignore[union-attr]
        by_id[f"specstory:{session_id}"] = text
    assert set(found.sessions["session_id"]) == set(by_id)
    for session_id, text in by_id.items():
        steps = found.steps.filter(session_id=session_id)
        plain = len(re.findall(r"^Tool use: \*\*", text, re.M))
        assert steps.filter(kind="tool").height == text.count("\n<tool-use data-tool-type=") + plain
        assert steps.filter(kind="agent").height == len(re.findall(r"^_\*\*Agent \(.*\)\*\*_$", text, re.M))
        said = re.split(r"^_\*\*(?:User|Agent) \(.*\)\*\*_$", text, flags=re.M)[1:]
        roles = re.findall(r"^_\*\*(User|Agent) \(.*\)\*\*_$", text, re.M)
        user = [s.strip() for s, r in zip(said, roles, strict=True) if r == "User"]
        words = [s for s in user if not re.match(r"<(command|local)-|\[Request", s)]
        after_command = sum(bool(re.match(r"<command-message>", s)) for s in user)
        assert steps.filter(origin="human").height == len(words) - after_command
        shown = set(re.findall(r"^_\*\*Agent \((\S+) \d{4}-.*\)\*\*_$", text, re.M))
        assert set(steps["model"].drop_nulls()) == shown
    assert found.sessions["agent"].value_counts(sort=True).rows() == [
        ("claude-code", 8),
        ("codex", 4),
        ("gemini-cli", 1),
    ]


def test_openhands() -> None:
    for path in sorted((SAMPLES / "openhands_events").glob("*")):
        objects = [o for o in inside(values(path)) if "args" in o or "extras" in o]
        found = Read(path)
        called = [o["action"] for o in objects if o.get("action") in ("run", "run_ipython", "read", "edit", "write")]
        codes = [c for o in objects if (c := o.get("extras", {}).get("metadata", {}).get("exit_code")) is not None]
        typed = [o for o in objects if o.get("action") == "message" and o.get("source") == "user"]
        canned = sum(
            o["args"]["content"].lstrip().startswith(("Please continue", "If you are done", "Please run"))
            for o in typed
        )
        assert (sums(found)["calls"], sums(found)["exits"]) == (len(called), len(codes))
        assert sums(found)["human"] == len(typed) - canned
        usage = {r["id"]: r["usage"] for o in inside(objects) if "usage" in (r := o.get("model_response", {}))}
        s = found.sessions.select(
            pl.sum("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
        ).row(0)
        assert sum(s) == sum(u["total_tokens"] for u in usage.values())


def test_openhands_outcomes() -> None:
    found = Read(SAMPLES / "openhands_events")
    lines = [v for n in ("gorilla_codeact_gpt-4o_hf", "logic_reasoning_prontoqa_gpt-4o")
             for v in values(SAMPLES / "openhands_events" / f"{n}.jsonl")]  # fmt: skip
    solved = sum(bool(v.get("correct", (v.get("test_result") or {}).get("result"))) for v in lines)
    assert found.sessions["is_objective_success"].sum() == solved == 27
    assert found.sessions.height == len(lines) + 4


def test_swe_agent() -> None:
    for path in sorted((SAMPLES / "swe_agent_traj").glob("*")):
        (value,) = values(path)
        found = Read(path)
        steps = value.get("trajectory") or [m for m in value["history"] if m["role"] == "assistant"]
        assert sums(found)["calls"] == sum(bool(s.get("action", "").strip()) for s in steps)
        assert sums(found)["human"] == 1
        stats = value.get("info", {}).get("model_stats", {})
        s = found.session
        assert (s["input_tokens"] or 0) == stats.get("tokens_sent", 0)
        assert (s["logged_cost_usd"] or 0) == stats.get("instance_cost", 0)
        assert (s["end_status_logged"] == "completed") == (value.get("info", {}).get("exit_status") == "submitted")
        assert s["is_dated"] is False


def test_mini_swe_agent() -> None:
    found = Read(SAMPLES / "mini_swe_agent")
    runs: dict[Any, Any] = {}
    for path in sorted((SAMPLES / "mini_swe_agent").glob("deepseek*")):
        for v in values(path):
            first = next((m["extra"]["response"]["id"] for m in v["messages"] if m["role"] == "assistant"), None)
            key = (v["instance_id"], first or v["info"]["exit_status"])
            runs[key] = {**v, "resolved": v.get("resolved", runs.get(key, {}).get("resolved"))}
    assert found.sessions["session_id"].n_unique() == len(runs) + 1 == 62
    best = found.sessions.unique("session_id")
    messages = [m for v in runs.values() for m in v["messages"]]
    calls = [c for m in messages for c in m.get("tool_calls") or []]
    # A bare list of messages names no run and no call: its id has no task in front.
    steps = found.steps.filter(pl.col("session_id").str.contains("/")).filter(kind="tool")
    assert steps.unique(["session_id", "step_id"]).height == len({c["id"] for c in calls})
    usage = [m["extra"]["response"]["usage"] for m in messages if m["role"] == "assistant"]
    tokens = best.select(pl.sum("input_tokens", "cache_read_tokens", "output_tokens")).row(0)
    assert sum(tokens) == sum(u["total_tokens"] for u in usage)
    assert tokens[1] == sum(u["prompt_cache_hit_tokens"] for u in usage)
    broken = sum(v["info"]["exit_status"] in ("InternalServerError", "Timeout") for v in runs.values())
    assert best.filter(end_status_logged="error").height == broken == 10
    assert best.filter(end_status_logged="error")["is_objective_success"].null_count() == 10
    assert best["is_objective_success"].sum() == sum(v["resolved"] is True for v in runs.values())
    failed = Counter(
        m["extra"]["returncode"] for m in messages if m["role"] == "tool" and not m["extra"]["exception_info"]
    )
    codes = Counter(steps.unique(["session_id", "step_id"])["exit_code"].drop_nulls().to_list())
    assert codes == failed
