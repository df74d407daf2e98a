"""Real logs: published success rates, and counts made by a few lines that share nothing with the readers."""

from __future__ import annotations

import json
import re
import tarfile
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
import zstandard

from evalpipe_tests.sources.helpers import SAMPLES, Read

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the sample logs are not beside the repository")

CLAUDE = SAMPLES / "claude_code_jsonl"


@pytest.fixture(scope="module")
def claude() -> Read:
    return Read(CLAUDE)


@pytest.fixture(scope="module")
def bundle() -> Read:
    return Read(CLAUDE / "entire_cli_sessions_A.tar.zst")


def texts_of(path: Path) -> list[str]:
    """Every line of every file of the bundle."""
    out = []
    with (
        path.open("rb") as file,
        tarfile.open(fileobj=zstandard.ZstdDecompressor().stream_reader(file), mode="r|") as archive,
    ):
        for member in archive:
            if (data := archive.extractfile(member)) is not None:
                out += data.read().decode().split("\n")
    return out


def count_apart(rows: list[str]) -> Counter[str]:
    """What stands in Claude Code lines, counted by hand."""
    n: Counter[str] = Counter()
    for row in rows:
        at = 0
        while at < len(row):
            line, at = json.JSONDecoder().raw_decode(row, at)
            content = line["message"]["content"] if line["type"] in ("user", "assistant") else []
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            said = [b["text"] for b in blocks if b["type"] == "text"] if line["type"] == "user" else []
            n["interrupts"] += sum(t.startswith("[Request interrupted") for t in said)
            if not line.get("isMeta") and not line.get("isCompactSummary"):
                n["human"] += any(
                    not re.match(r"\s*(<(ide_|command-|local-|bash-|task-)|\[Request int)", t) for t in said
                )
            for b in blocks:
                n["calls"] += b["type"] == "tool_use"
                if b["type"] == "tool_result":
                    start = re.sub(r"^\[\{.*?'text': ['\"]", "", str(b["content"]))
                    n["refused"] += bool(
                        re.match(r"The user doesn't want to proceed|Permission for this tool use", start)
                    )
                if b["type"] == "tool_result" and b.get("is_error"):
                    n["errors"] += 1
                    n["exit"] += str(b["content"]).startswith("Exit code ")
            if line["type"] == "progress" and line["data"].get("message", {}).get("type") == "assistant":
                n["sub_calls"] += sum(b["type"] == "tool_use" for b in line["data"]["message"]["message"]["content"])
    return n


def test_claude_code_counts_agree_with_a_count_made_apart(bundle: Read) -> None:
    expected = count_apart(texts_of(CLAUDE / "entire_cli_sessions_A.tar.zst"))
    main, sub = pl.col("parent_id").is_null(), pl.col("parent_id").is_not_null()
    is_tool = pl.col("kind") == "tool"
    found = bundle.steps.select(
        human=(pl.col("origin") == "human").sum(),
        interrupts=(pl.col("origin") == "interrupt").sum(),
        calls=(is_tool & main & pl.col("name").is_not_null()).sum(),
        sub_calls=(is_tool & sub).sum(),
        errors=(main & pl.col("is_error")).sum(),
        refused=(main & (pl.col("error") == "refused")).sum(),
        exit=(main & pl.col("exit_code").is_not_null()).sum(),
    ).row(0, named=True)
    assert found == dict(expected)
    assert found["human"] == 799


def test_claude_code_sub_agents_as_published(bundle: Read) -> None:
    sub = bundle.steps.filter(pl.col("parent_id").is_not_null())
    tokens = sub.select(pl.sum("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")).row(0)
    assert (sub.filter(kind="tool").height, sub["is_error"].sum(), round(sum(tokens) / 1e6)) == (1516, 82, 51)


def test_claude_code_queued_messages(bundle: Read) -> None:
    """62 typed texts stand in the queue; what was pulled back, sent later or a command is not counted."""
    assert 50 <= bundle.steps.filter(origin="queued").height <= 55


def test_each_session_of_the_folder_counts_once(claude: Read) -> None:
    best = claude.sessions.sort("n_messages", "content_digest", descending=[True, False]).unique(
        "session_id", keep="first"
    )
    names = {
        path.name.split(".")[0].split("__")[0]
        for path in CLAUDE.rglob("*.jsonl*")
        if re.match(r"[0-9a-f]{8}-", path.name)
    }
    ids = set(best["session_id"].to_list())
    assert {f"claude_code:{name}" for name in names} <= ids
    assert claude.sessions.height > best.height or len(claude.chunks) == 1
    snapshots = Read(CLAUDE / "snapshots")
    assert (
        snapshots.session["n_messages"]
        == Read(CLAUDE / "snapshots" / "37a27d31-4a70-427b-8518-5fad6045d347__snap3.jsonl").session["n_messages"]
    )
    assert snapshots.files["n_sessions"].to_list() == [1, 1, 1]


def test_only_strange_files_and_fixture_lines_are_quarantined(claude: Read) -> None:
    codes = Counter(claude.codes)
    assert codes == {"UNKNOWN_FORMAT": 1, "NOT_A_RECORD": 4, "BAD_FIELD": 3}


def rates(sessions: pl.DataFrame, *by: str) -> dict[tuple[str, ...], tuple[int, float]]:
    table = sessions.group_by(by).agg(pl.len(), 100 * pl.col("is_objective_success").mean())
    return {row[:-2]: (row[-2], round(row[-1], 1)) for row in table.rows()}


def test_tau_bench_airline_of_the_published_run() -> None:
    """Published: 0.420."""
    read = Read(SAMPLES / "tau_bench")
    s = read.sessions
    assert rates(s, "agent", "model", "scenario_declared") == {("tau_bench", "gpt-4o", "airline"): (50, 42.0)}
    assert s["objective_reward"].null_count() == 0
    assert read.codes == ["UNKNOWN_FORMAT"]


def test_tau2_success_rates_as_published() -> None:
    read = Read(SAMPLES / "tau2_bench")
    found = rates(read.sessions, "agent", "model", "scenario_declared")
    airline = {
        ("experimental_agent", "claude-opus-4-6"): (50, 76.0),
        ("llm_agent", "claude-opus-4-6"): (44, 70.5),
        ("llm_agent", "claude-sonnet-4-5"): (50, 72.0),
        ("whissle", "whissle"): (50, 56.0),
        ("llm_agent", "gpt-5.4"): (50, 56.0),
        ("llm_agent", "gpt-4.1"): (20, 50.0),
        ("llm_agent", "azure/gpt-4o-2024-11-20"): (50, 46.0),
        ("langchain_agent", "openai/gpt-oss-120b"): (50, 38.0),
    }
    for (agent, model), expected in airline.items():
        assert found[agent, model, "airline"] == expected
    by_start = {(m.split("(")[0].split("-2025")[0], d): v for (a, m, d), v in found.items() if a == "llm_agent"}
    assert by_start["ft:gpt-4.1", "airline"] == (20, 65.0)
    assert by_start["toolorchestra", "airline"] == (50, 56.0)
    assert by_start["toolorchestra", "retail"] == (114, 84.2)
    assert by_start["ft:gpt-4.1", "retail"] == (40, 85.0)
    assert by_start["gpt-4.1", "retail"] == (40, 85.0)
    assert by_start["gpt-4.1", "telecom"] == (40, 45.0)
    assert by_start["ft:gpt-4.1", "telecom"] == (40, 75.0)


def test_tau2_results_files_repeat_sessions_of_the_bundle() -> None:
    """Three native files hold runs that the bundle holds too: each simulation counts once."""
    read = Read(SAMPLES / "tau2_bench")
    assert read.files["n_sessions"].sum() == 747 + 41
    assert read.sessions["session_id"].n_unique() == 747
    assert read.sessions.filter(~pl.col("is_dated")).height == 50


def test_codex_rollouts() -> None:
    read = Read(SAMPLES / "codex_rollout_jsonl")
    assert read.sessions["n_tool_calls"].sum() == 16 + 84 + 34
    assert read.sessions["n_turns"].sum() == 2 + 1 + 1 + 1
    assert read.codes == []
    calls = read.steps.filter(kind="tool", name="shell")
    assert calls.filter(pl.col("exit_code").is_null())["error"].to_list() == ["tool_error"]
    assert calls["output"].null_count() == 0
    assert read.sessions["model"].null_count() == 0
    assert read.sessions["output_tokens"].null_count() == 1
