"""Second counts: sessions, human turns, calls, errors and tokens of a log, without any reader.

Belongs here: one function a format that walks plain JSON with the standard library (``zstandard`` only
unpacks). Nothing of ``evalpipe`` may be imported, so that a mistake of a reader is not made twice.
Does not belong here: the comparison (``independent_counts.py``).

Each function takes a folder of samples and gives a ``Counter`` of the measures it can count; what a
format does not log, or cannot be told in a few lines, is left out of it.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import zstandard

Count = Counter[str]


def unpacked(path: Path) -> bytes:
    """Bytes of a plain, gzip or zstd file."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data)
    return zstandard.ZstdDecompressor().stream_reader(data).read() if path.suffix == ".zst" else data


def values(text: str) -> list[Any]:
    """All JSON values of a text, however many stand on a line."""
    out, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        value, at = decoder.raw_decode(text, at)
        out.append(value)
    return out


def of_file(path: Path) -> list[Any]:
    return values(unpacked(path).decode())


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """Every object at any depth."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(inner)


def used(usage: dict[str, Any], *keys: str) -> int:
    return sum(int(usage.get(key) or 0) for key in keys)


CLAUDE = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def claude_code(folder: Path) -> Count:
    """Main lines only: a response's usage stands on each of its lines, the last one counts."""
    n: Count = Counter()
    stream = io.BytesIO(unpacked(folder / "entire_cli_sessions_A.tar.zst"))
    with tarfile.open(fileobj=stream) as archive:
        for member in archive:
            if (file := archive.extractfile(member)) is None:
                continue
            lines = values(file.read().decode())
            n["sessions"] += any(line["type"] in ("user", "assistant") for line in lines)
            usage: dict[str, int] = {}
            for line in lines:
                if line["type"] not in ("user", "assistant"):
                    continue
                message = line["message"]
                content = message["content"]
                blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
                if line["type"] == "assistant":
                    n["calls"] += sum(b["type"] == "tool_use" for b in blocks)
                    usage[message["id"]] = used(message["usage"], *CLAUDE)
                    continue
                said = [b["text"] for b in blocks if b["type"] == "text"]
                harness = r"\s*(<(ide_|command-|local-|bash-|task-)|\[Request int)"
                if not line.get("isMeta") and not line.get("isCompactSummary"):
                    n["human"] += any(not re.match(harness, text) for text in said)
                for b in blocks:
                    if b["type"] == "tool_result" and b.get("is_error"):
                        n["errors"] += 1
                        n["exits"] += str(b["content"]).startswith("Exit code ")
                    if b["type"] == "tool_result":
                        start = re.sub(r"^\[\{.*?'text': ['\"]", "", str(b["content"]))
                        n["refused"] += bool(
                            re.match(r"The user doesn't want to proceed|Permission for this tool use", start)
                        )
            n["tokens"] += sum(usage.values())
    return n


def codex(folder: Path) -> Count:
    n: Count = Counter()
    for path in sorted(folder.iterdir()):
        items = [line.get("payload", line) for line in of_file(path)]
        n["sessions"] += 1
        n["calls"] += sum(i.get("type") in ("function_call", "custom_tool_call", "local_shell_call") for i in items)
        typed = [i["message"] for i in items if i.get("type") == "user_message"]
        if not typed:
            texts = [b["text"] for i in items if i.get("role") == "user" for b in i["content"] if "text" in b]
            typed = [t for t in texts if not re.match(r"\s*(<(environment_context|user_instr)|# AGENTS)", t)]
        n["human"] += len(typed)
        totals = [i["info"]["total_token_usage"] for i in items if i.get("type") == "token_count" and i.get("info")]
        n["tokens"] += used(totals[-1], "input_tokens", "output_tokens") if totals else 0
    return n


def gemini_cli(folder: Path) -> Count:
    n: Count = Counter()
    for path in folder.glob("*.json"):
        (value,) = of_file(path)
        if not isinstance(value, dict):
            continue
        n["sessions"] += 1
        n["human"] += sum(m["type"] == "user" for m in value["messages"])
        calls = [o for o in walk(value) if "displayName" in o]
        n["calls"] += len(calls)
        n["errors"] += sum(c["status"] != "success" for c in calls)
        n["tokens"] += sum(o["total"] for o in walk(value) if "thoughts" in o and "total" in o)
    return n


def gemini_history(folder: Path) -> Count:
    n: Count = Counter()
    for path in folder.glob("*.json"):
        (value,) = of_file(path)
        if isinstance(value, dict):
            continue
        n["sessions"] += 1
        said = [p["text"] for m in value if m["role"] == "user" for p in m["parts"] if "text" in p]
        n["human"] += sum(not text.startswith("<session_context>") for text in said)
        n["calls"] += sum("functionCall" in o for o in walk(value))
        n["errors"] += sum("error" in o["functionResponse"]["response"] for o in walk(value) if "functionResponse" in o)
    return n


def opencode(folder: Path) -> Count:
    n: Count = Counter()
    for path in folder.iterdir():
        last = {o["id"]: o for o in walk(of_file(path)) if str(o.get("id", "")).startswith(("msg_", "prt_"))}
        tools = [o for o in last.values() if o.get("type") == "tool"]
        answers = [o for o in last.values() if o.get("role") == "assistant"]
        n["sessions"] += 1
        n["human"] += 1
        n["calls"] += len(tools)
        n["errors"] += sum(t["state"]["status"] == "error" for t in tools)
        n["tokens"] += sum(
            used(a["tokens"], "input", "output") + used(a["tokens"]["cache"], "read", "write") for a in answers
        )
    return n


def pi_agent(folder: Path) -> Count:
    n: Count = Counter()
    for path in folder.iterdir():
        messages = [v["message"] for v in of_file(path) if v["type"] == "message"]
        blocks = [b for m in messages for b in (m.get("content") or []) if isinstance(b, dict)]
        n["sessions"] += 1
        n["human"] += sum(m["role"] == "user" for m in messages)
        n["calls"] += sum(b["type"] == "toolCall" for b in blocks)
        n["errors"] += sum(m["role"] == "toolResult" and m["isError"] for m in messages)
        kinds = ("input", "output", "cacheRead", "cacheWrite")
        n["tokens"] += sum(used(m["usage"], *kinds) for m in messages if m["role"] == "assistant")
    return n


def specstory(folder: Path) -> Count:
    """The first heading of a file names its session; a file quotes others, and some files repeat one."""
    texts = {}
    for path in sorted(folder.glob("*.md")):
        text = path.read_text()
        if found := re.search(r"^<!-- .* Session (\S+) ", text, re.M):
            texts[found[1]] = text
    plain = sum(len(re.findall(r"^Tool use: \*\*", text, re.M)) for text in texts.values())
    blocks = sum(text.count("\n<tool-use data-tool-type=") for text in texts.values())
    return Counter(sessions=len(texts), calls=plain + blocks)


def openhands(folder: Path) -> Count:
    n: Count = Counter()
    for path in folder.iterdir():
        objects = [o for o in walk(of_file(path)) if "args" in o or "extras" in o]
        n["calls"] += sum(o.get("action") in ("run", "run_ipython", "read", "edit", "write") for o in objects)
        typed = [o["args"]["content"] for o in objects if o.get("action") == "message" and o.get("source") == "user"]
        canned = ("Please continue", "If you are done", "Please run")
        n["human"] += sum(not text.lstrip().startswith(canned) for text in typed)
        responses = [o["model_response"] for o in walk(objects) if "usage" in (o.get("model_response") or {})]
        n["tokens"] += sum({r["id"]: r["usage"]["total_tokens"] for r in responses}.values())
    return n


def swe_agent(folder: Path) -> Count:
    n: Count = Counter()
    for path in folder.iterdir():
        (value,) = of_file(path)
        steps = value.get("trajectory") or [m for m in value["history"] if m["role"] == "assistant"]
        n["sessions"] += 1
        n["human"] += 1
        n["calls"] += sum(bool(step.get("action", "").strip()) for step in steps)
        n["tokens"] += used(value.get("info", {}).get("model_stats", {}), "tokens_sent", "tokens_received")
    return n


def tau_bench(folder: Path) -> Count:
    n: Count = Counter()
    (runs,) = of_file(folder / "gpt-4o-airline.trial0.json.gz")
    for run in runs:
        n["sessions"] += 1
        said = [m["content"] for m in run["traj"] if m["role"] == "user"]
        n["human"] += sum(bool(re.sub(r"###[A-Z-]+###", "", text).strip()) for text in said)
        n["calls"] += sum(len(m.get("tool_calls") or []) for m in run["traj"])
        n["errors"] += sum(m["role"] == "tool" and str(m["content"]).startswith("Error") for m in run["traj"])
    return n


def tau2_bench(folder: Path) -> Count:
    n: Count = Counter()
    for run in of_file(folder / "tau2_sessions_A.jsonl.zst"):
        n["sessions"] += 1
        messages = run["messages"]
        said = [str(m.get("content") or "") for m in messages if m["role"] == "user"]
        n["human"] += sum(bool(re.sub(r"###[A-Z-]+###", "", text).strip()) for text in said)
        asked = {c["id"]: c for m in messages if m["role"] == "assistant" for c in m.get("tool_calls") or []}
        n["calls"] += sum(len(m.get("tool_calls") or []) for m in messages if m["role"] == "assistant")
        results = [m for m in messages if m["role"] == "tool"]
        n["errors"] += sum(bool(m.get("error")) and m["id"] in asked and m.get("requestor") != "user" for m in results)
    return n


def mini_swe_agent(folder: Path) -> Count:
    """Bundles and single files repeat runs; a run is its task and its first response."""
    runs: dict[Any, Any] = {}
    for path in sorted(folder.glob("deepseek*")):
        for run in of_file(path):
            first = next((m["extra"]["response"]["id"] for m in run["messages"] if m["role"] == "assistant"), None)
            runs[run["instance_id"], first or run["info"]["exit_status"]] = run
    messages = [m for run in runs.values() for m in run["messages"]]
    usage = [m["extra"]["response"]["usage"] for m in messages if m["role"] == "assistant"]
    ids = {c["id"] for m in messages for c in m.get("tool_calls") or []}
    return Counter(sessions=len(runs), calls=len(ids), tokens=sum(u["total_tokens"] for u in usage))


def harbor_traces(folder: Path) -> Count:
    n: Count = Counter()
    for path in folder.iterdir():
        (rows,) = of_file(path)
        longest = max(rows, key=lambda row: len(row["conversations"]))["conversations"]
        n["sessions"] += 1
        # What stands before the first answer: instructions of the harness, perhaps, and the task.
        n["human"] += any(m["role"] == "user" for m in longest[:2])
    return n


def toolbench(folder: Path) -> Count:
    """ToolEval's answers; ``Finish`` is the answer and no call."""
    (log,) = of_file(folder / "tooleval_gpt-3.5-turbo_CoT_G1_tool.json")
    tools = [str(o["message"]) for o in walk(log) if o.get("role") == "tool"]
    return Counter(sessions=len(log), human=len(log), calls=sum("'name': 'Finish'" not in text for text in tools))


def phoenix(folder: Path) -> Count:
    spans = of_file(folder / "example_traces_A.jsonl")
    return Counter(sessions=sum(span["span_kind"] == "LLM" for span in spans))


def atif(folder: Path) -> Count:
    n: Count = Counter()
    for path in folder.glob("golden*"):
        (log,) = of_file(path)
        fresh = [step for step in log["steps"] if not step.get("is_copied_context")]
        n["sessions"] += 1
        n["tokens"] += sum(used(step.get("metrics", {}), "prompt_tokens", "completion_tokens") for step in fresh)
        n["human"] += "summarization-1" not in path.name
    return n


def inspect(folder: Path) -> Count:
    n: Count = Counter()
    for path in folder.iterdir():
        if path.suffix == ".eval":
            archive = zipfile.ZipFile(path)
            samples = [json.loads(archive.read(name)) for name in archive.namelist() if name.startswith("samples/")]
        else:
            (log,) = of_file(path)
            samples = log.get("samples", [log])
        messages = [m for sample in samples for m in sample.get("messages", [])]
        n["sessions"] += len(samples)
        n["human"] += sum(m["role"] == "user" for m in messages) if messages else 1
        n["errors"] += sum("error" in m for m in messages)
    return n


def langfuse(folder: Path) -> Count:
    n: Count = Counter()
    for path in folder.iterdir():
        (export,) = of_file(path)
        usage = [o["usageDetails"] for o in export["observations"] if o["type"] == "GENERATION"]
        n["sessions"] += 1
        n["human"] += 1
        n["tokens"] += sum(used(u, "input", "output", "output_reasoning") for u in usage)
    return n


def mlflow(folder: Path) -> Count:
    n: Count = Counter()
    traces = of_file(folder / "mlflow_traces_A.jsonl")
    n["sessions"] = len({t["info"]["trace_metadata"]["mlflow.trace.session"] for t in traces})
    for trace in traces:
        kinds = [json.loads(s["attributes"]["mlflow.spanType"]) for s in trace["data"]["spans"]]
        n["calls"] += kinds.count("TOOL")
    return n


def otlp(folder: Path) -> Count:
    n: Count = Counter()
    for path in folder.iterdir():
        (value,) = of_file(path)
        sessions = set()
        for span in walk(value):
            if not span.keys() >= {"spanId", "attributes", "name"}:
                continue
            a = {item["key"]: next(iter(item["value"].values())) for item in span["attributes"]}
            ids = ("session.id", "gen_ai.conversation.id", "traceloop.association.properties.session_id")
            sessions.add(next(a[key] for key in ids if key in a))
            n["tokens"] += sum(
                int(v) for k, v in a.items()
                if re.fullmatch(r"gen_ai\.usage\.(input|prompt|output|completion)_tokens|llm\.token_count\.(prompt|completion)", k)
            )  # fmt: skip
            is_tool = "TOOL" in str(a.get("openinference.span.kind")) or span["name"].startswith("execute_tool")
            n["calls"] += is_tool or a.get("traceloop.span.kind") == "tool"
        n["sessions"] += len(sessions)
    return n


def mcpmark(folder: Path) -> Count:
    rows = of_file(folder / "mcpmark_runs.jsonl.zst")
    return Counter(sessions=len(rows), tokens=sum(used(row, "input_tokens", "output_tokens") for row in rows))


def agentbench(folder: Path) -> Count:
    n: Count = Counter()
    rows = [row for path in folder.iterdir() for row in of_file(path)]
    n["sessions"] = len(rows)
    said = [m["content"] for row in rows for m in (row["output"] or {}).get("history") or [] if m["role"] == "agent"]
    n["calls"] = sum(text.strip().startswith(("GET", "POST")) for text in said)
    return n


def whowhen(folder: Path) -> Count:
    rows = of_file(folder / "whowhen_A.jsonl.zst")
    codes = [m["content"] for row in rows for m in row["history"] if m["content"].startswith("exitcode: ")]
    return Counter(sessions=len(rows), human=len(rows), calls=len(codes), errors=sum(text[10] != "0" for text in codes))


def anthropic_events(folder: Path) -> Count:
    n: Count = Counter()
    for path in folder.iterdir():
        objects = list(walk(of_file(path)))
        n["sessions"] += 1
        n["calls"] += sum(o.get("type") in ("agent.tool_use", "agent.mcp_tool_use") for o in objects)
        n["tokens"] += sum(used(o["model_usage"], *CLAUDE) for o in objects if "model_usage" in o)
    return n


def openai_messages(folder: Path) -> Count:
    rows = of_file(folder / "tau2_sft_train_part.jsonl")
    messages = [m for row in rows for m in row["messages"]]
    calls = sum(len(m.get("tool_calls") or []) for m in messages)
    return Counter(sessions=len(rows), human=sum(m["role"] == "user" for m in messages), calls=calls)


def chats(name: str) -> Callable[[Path], Count]:
    def count(folder: Path) -> Count:
        rows = of_file(folder / name)
        turns = [m for row in rows for m in row["conversation"]]
        said = [re.sub(r"###[A-Z-]+###", "", m["content"]) for m in turns if m["role"] == "user"]
        return Counter(sessions=len(rows), human=sum(bool(text.strip()) for text in said))

    return count


def sharegpt(folder: Path) -> Count:
    rows = [row for path in folder.iterdir() for value in of_file(path) for row in value]
    said = [m["value"] for row in rows for m in row["conversations"] if m["from"] in ("human", "user")]
    said = [re.sub(r"###[A-Z-]+###", "", text) for text in said]
    return Counter(sessions=len(rows), human=sum(bool(text.strip()) for text in said))
