"""A small reader of the simulated files, written apart from the product's readers: it only counts."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalpipe.locations import data_dir

CLASSES = {"confirm": "confirmations", "correction": "corrections", "failure": "complaints", "sentiment": "complaints"}


@dataclass
class Session:
    """One session as read: human texts, tool results as (command, text, is_error), times, models, counts."""

    source: str
    texts: list[str] = field(default_factory=list)
    results: list[tuple[str, str, bool, str]] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    models: set[str] = field(default_factory=set)
    responses: set[str] = field(default_factory=set)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    interrupts: int = 0
    queued: int = 0
    head: dict[str, Any] = field(default_factory=dict)
    paths: set[Path] = field(default_factory=set)


def read(root: Path) -> dict[str, Session]:
    sessions: dict[str, Session] = {}
    for path in sorted(root.rglob("*.jsonl")):
        is_claude = "claude" in path.parts
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            key = path.stem if is_claude else row["session_id"]
            session = sessions.setdefault(key, Session("claude_code" if is_claude else "evalpipe_jsonl"))
            session.paths.add(path)
            (_claude if is_claude else _evalpipe)(session, row)
    return sessions


def _claude(session: Session, row: dict[str, Any]) -> None:
    if "timestamp" in row:
        session.times.append(row["timestamp"])
    if row["type"] == "queue-operation" and row["operation"] == "enqueue":
        session.texts.append(row["content"])
        session.queued += 1
    if row["type"] == "assistant" and row["message"]["model"] != "<synthetic>":
        session.models.add(row["message"]["model"])
        session.responses.add(row["message"]["id"])
        for block in row["message"]["content"]:
            if block["type"] == "tool_use":
                session.calls[block["id"]] = block["input"]
    if row["type"] != "user" or row.get("isMeta") or row.get("isCompactSummary"):
        return
    session.head = row
    content = row["message"]["content"]
    if isinstance(content, str):
        if not content.startswith("<"):
            session.texts.append(content)
        return
    for block in content:
        if block["type"] == "text":
            session.interrupts += block["text"].startswith("[Request interrupted")
        else:
            command = session.calls[block["tool_use_id"]].get("command", "")
            text = block["content"]
            refused, cascade = "doesn't want to proceed" in text, "Sibling tool call" in text
            kind = "refused" if refused else "cascade" if cascade else ""
            session.results.append((command, text, bool(block.get("is_error")), kind))


def _evalpipe(session: Session, row: dict[str, Any]) -> None:
    session.times.extend(row[key] for key in ("at", "ended_at") if key in row)
    if row["type"] == "session":
        session.head = row
    if row["type"] != "step":
        return
    if row["kind"] == "user" and row.get("origin") == "interrupt":
        session.interrupts += 1
    elif row["kind"] == "user":
        session.texts.append(row["text"])
        session.queued += row.get("origin") == "queued"
    elif row["kind"] == "agent":
        session.models.add(row["model"])
        session.responses.add(row["step_id"])
    else:
        session.calls[row["step_id"]] = row["arguments"]
        command = row["arguments"].get("command", "")
        session.results.append((command, row["output"] or "", row["is_error"], row["error"] or ""))


def feedback_patterns() -> dict[str, re.Pattern[str]]:
    """Pattern a class: the whole message is one of the class's phrases."""
    texts: dict[str, list[str]] = {name: [] for name in CLASSES}
    for path in sorted((data_dir() / "simulate").glob("phrases_*.toml")):
        data = tomllib.loads(path.read_text("utf-8"))["feedback"]
        for name in CLASSES:
            texts[name] += [re.escape(t).replace(r"\{right\}", ".+").replace(r"\{wrong\}", ".+") for t in data[name]]
    return {name: re.compile("|".join(f"(?:{t})" for t in some)) for name, some in texts.items()}


def count(sessions: dict[str, Session]) -> Counter[str]:
    patterns, out = feedback_patterns(), Counter[str]()
    for session in sessions.values():
        out["sessions"] += 1
        out[f"sessions_{session.source}"] += 1
        out["turns"] += len(session.texts)
        out["responses"] += len(session.responses)
        out["tool_calls"] += len(session.calls)
        out["interrupts"] += session.interrupts
        out["queued"] += session.queued
        out["sessions_across_midnight"] += min(session.times)[:10] != max(session.times)[:10]
        out["sessions_that_switch_model"] += len(session.models) > 1
        out["sessions_late"] += any("late" in path.parts for path in session.paths)
        for text in session.texts:
            for name, total in CLASSES.items():
                out[total] += patterns[name].fullmatch(text) is not None
        for command, text, is_error, kind in session.results:
            out["refusals"] += kind == "refused"
            out["cascades"] += kind == "cascade"
            is_check, is_benign = "FAILURES" in text, command.startswith("grep -rn") and is_error
            out["check_failures"] += is_check
            out["benign_exits"] += is_benign
            out["command_errors"] += is_error and not kind and not is_check and not is_benign
    return out
