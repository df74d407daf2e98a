"""Recall and harm on the labelled corpus that lies beside the repository, where it is present.

The numbers are floors of what the rule set reaches, so that a change of rules that loses ground shows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from evalpipe.contracts import render
from evalpipe.contracts.tables import masked
from evalpipe.masking import Canaries, leak_check, mask_part
from evalpipe_tests.masking.support import PLAN, SHARED, frames, session

CORPUS = SHARED / "pii"
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the labelled corpus is not beside the repository")

#: Share of rule-tier spans that must be gone, by entity; all others together must reach the last.
FLOORS = {
    "SECRET": 0.99,
    "EMAIL_ADDRESS": 1.0,
    "PHONE_NUMBER": 0.98,
    "CREDIT_CARD": 1.0,
    "IBAN_CODE": 1.0,
    "IP_ADDRESS": 1.0,
    "USERNAME": 0.96,
    "PERSON": 0.96,
    "": 0.96,
}
MAX_NEGATIVES_TOUCHED = 3
MAX_OVER_MASKING = 0.03
SESSION_FLOOR = 0.99


def _load(name: str) -> Iterator[dict[str, Any]]:
    for line in (CORPUS / name).read_text("utf-8").splitlines():
        row = json.loads(line)
        for part in row.get("turns", [row]):
            part["text"] = part["text"].replace("<~>", "")
            assert len(part["text"]) == part["len"]
        yield row


def _covered(text: str) -> list[bool]:
    """Whether each character of a text is replaced."""
    spans = PLAN.engine.find(text.encode(), "abcd")
    assert spans is not None
    out, at = [], 0
    for char in text:
        out.append(any(s.start <= at < s.end for s in spans))
        at += len(char.encode())
    return out


def test_recall_by_entity_and_over_masking() -> None:
    found, total = Counter[str](), Counter[str]()
    outside = inside = 0
    for row in _load("positives.jsonl"):
        covered, labelled = _covered(row["text"]), set[int]()
        for span in row["spans"]:
            where = range(span["start"], span["end"])
            labelled |= set(where)
            letters = [i for i in where if row["text"][i].isalnum()]
            if row["tier"] == "rule":
                entity = span["type"] if span["type"] in FLOORS else ""
                total[entity] += 1
                found[entity] += sum(covered[i] for i in letters) >= 0.9 * len(letters)
        outside += sum(hidden for i, hidden in enumerate(covered) if i not in labelled)
        inside += len(labelled)
    recall = {entity: found[entity] / total[entity] for entity in FLOORS}
    assert all(recall[entity] >= floor for entity, floor in FLOORS.items()), recall
    assert outside / inside <= MAX_OVER_MASKING


def test_texts_with_nothing_to_hide_stay_as_they_are() -> None:
    touched = [row["id"] for row in _load("negatives.jsonl") if PLAN.mask_text(row["text"])[0] != row["text"]]
    assert len(touched) <= MAX_NEGATIVES_TOUCHED, touched


def test_sessions_hide_what_they_named_once_under_one_token() -> None:
    hidden = total = 0
    for row in _load("sessions.jsonl"):
        field = {"tool_args": "arguments", "tool_output": "output"}
        steps = [("s1", {field.get(turn["role"], "text"): turn["text"]}) for turn in row["turns"]]
        part = mask_part(*frames([session()], steps), PLAN)
        texts = part.steps.sort("seq").select(pl.coalesce("text", "arguments", "output")).to_series().to_list()
        tokens: dict[str, set[str]] = {}
        for turn, text in zip(row["turns"], texts, strict=True):
            for span in turn["spans"]:
                total += 1
                hidden += turn["text"][span["start"] : span["end"]] not in text
            values = {s.get("canon", "") for s in turn["spans"] if s["type"] == "EMAIL_ADDRESS"} - {""}
            if len(values) == 1 and text.count("<EMAIL_ADDRESS:") == 1:
                tokens.setdefault(values.pop(), set()).add(text.split("<EMAIL_ADDRESS:")[1].split(">")[0])
        assert all(len(forms) == 1 for forms in tokens.values())
    assert hidden / total >= SESSION_FLOOR


def test_the_leak_check_raises_no_false_alarm_on_the_masked_corpus() -> None:
    rows = [row["text"] for name in ("positives.jsonl", "negatives.jsonl") for row in _load(name)]
    part = mask_part(*frames([session()], [("s1", {"output": text}) for text in rows]), PLAN)
    others = {table.name: render.empty(table) for table in (masked.FILES, masked.QUARANTINE, masked.COPIES)}
    nobody = Canaries(part.sessions, part.steps, **others, values=(), witnesses=())
    report = leak_check(part.sessions, part.steps, nobody, part.redactions, PLAN, **others)
    assert [f for f in report.findings if f.is_high] == []
