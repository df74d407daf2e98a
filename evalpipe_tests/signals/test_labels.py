"""Precision and recall on labelled turns and tool outputs that lie beside the repository.

The labels are other people's texts and no part of the repository; without them these tests skip.
Thresholds are what was reached, less a margin of a few rows.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalpipe.signals import calls, extract_part
from evalpipe_tests.signals.build import EXTRACTION, Talk, frames

LABELS = Path(__file__).resolve().parents[2].parent / "shared" / "labels"
pytestmark = pytest.mark.skipif(not LABELS.is_dir(), reason="labelled data does not lie beside the repository")
CLASS_OF = {
    "confirm.explicit": "confirm",
    "praise": "praise",
    "complaint.sentiment": "complaint",
    "complaint.failure_report": "complaint",
    "correction": "correction",
}
#: (split, class) -> least precision, least recall
TURNS = {
    ("train", "confirm"): (0.90, 0.70),
    ("train", "praise"): (0.88, 0.72),
    ("train", "complaint"): (0.82, 0.58),
    ("train", "correction"): (0.87, 0.54),
    ("train", "negative"): (0.92, 0.62),
    ("dev", "confirm"): (0.80, 0.45),
    ("dev", "praise"): (0.80, 0.60),
    ("dev", "complaint"): (0.72, 0.38),
    ("dev", "correction"): (0.80, 0.38),
    ("dev", "negative"): (0.82, 0.42),
}


def rows(name: str) -> list[dict[str, Any]]:
    with (LABELS / name).open(encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def labelled_turns(split: str) -> list[dict[str, Any]]:
    final = {row["id"]: row["final"] for row in rows("adjudicated.train.jsonl")}
    out = rows(f"user_turns.{split}.jsonl")
    for row in out:
        if row["id"] in final:
            row["label"], row["labels"] = final[row["id"]], [final[row["id"]], *row["labels"]]
    return out


def emitted(turns: list[dict[str, Any]]) -> list[set[str]]:
    """Classes emitted for each labelled turn, read as the last turn of a session of its own."""
    talks = []
    for i, row in enumerate(turns):
        # Of some rows the turn before is not told; there was one all the same.
        talk = Talk(f"s{i:05}").user(row["prev_user"])
        talks.append(talk.agent(row["prev_agent_tail"]).user(row["text"]))
    semantic = extract_part(*frames(*talks), EXTRACTION).semantic
    last = {f"s{i:05}": len(talk.steps) - 1 for i, talk in enumerate(talks)}
    found: list[set[str]] = [set() for _ in turns]
    for session, seq, signal in semantic.select("session_id", "seq", "signal").iter_rows():
        if seq == last[session] and signal in CLASS_OF:
            found[int(session[1:])].add(CLASS_OF[signal])
    return found


@pytest.mark.parametrize("split", ["train", "dev"])
def test_turns(split: str) -> None:
    turns = labelled_turns(split)
    counts: Counter[tuple[str, str]] = Counter()
    for row, got in zip(turns, emitted(turns), strict=True):
        for name in ("confirm", "praise", "complaint", "correction", "negative"):
            members = {"complaint", "correction"} if name == "negative" else {name}
            hit, is_true = bool(got & members), bool(members & set(row["labels"]))
            counts[name, "right"] += hit and is_true
            counts[name, "emitted"] += hit
            counts[name, "primary"] += row["label"] in members
            counts[name, "found"] += hit and row["label"] in members
    for name in ("confirm", "praise", "complaint", "correction", "negative"):
        least_precision, least_recall = TURNS[split, name]
        assert counts[name, "right"] / counts[name, "emitted"] >= least_precision, (name, counts)
        assert counts[name, "found"] / counts[name, "primary"] >= least_recall, (name, counts)


@pytest.mark.parametrize("split", ["train", "dev"])
def test_tool_outputs(split: str) -> None:
    outputs = rows(f"tool_outputs.{split}.jsonl")
    talk = Talk().user("go")
    for row in outputs:
        key = "command" if calls.tool_class(row["tool"]) == "shell" else "file_path"
        talk.tool(
            row["tool"], row["output"], exit_code=row["exit_code"], arguments=json.dumps({key: row["command"]})
        )  # fmt: skip
    found = calls.tool_calls(*frames(talk))
    is_error = found["status"] == "error"
    truth = pl.Series([row["is_command_error"] for row in outputs])
    assert (is_error & truth).sum() / is_error.sum() >= 0.95
    assert (is_error & truth).sum() / truth.sum() >= 0.95
    name_of = {"benign": "benign_nonzero", "refused": "interaction", "interrupted": "interaction"}
    same = [name_of.get(got, got) == row["status"] for got, row in zip(found["status"], outputs, strict=True)]
    assert sum(same) / len(same) >= 0.95
