"""Precision and recall on labelled turns and tool outputs that lie beside the repository.

The labels are other people's texts and no part of the repository; without them these tests skip.
Thresholds are what was reached, less a margin of a few rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalpipe.signals import labelled, replay, scoring
from evalpipe_tests.signals.build import EXTRACTION

LABELS = Path(__file__).resolve().parents[2].parent / "shared" / "labels"
pytestmark = pytest.mark.skipif(not LABELS.is_dir(), reason="labelled data does not lie beside the repository")
#: (split, class) -> least precision, least recall
TURNS = {
    ("train", "confirm"): (0.90, 0.70),
    ("train", "praise"): (0.88, 0.72),
    ("train", "complaint"): (0.82, 0.58),
    ("train", "correction"): (0.87, 0.54),
    ("train", "negative_joined"): (0.92, 0.62),
    ("dev", "confirm"): (0.80, 0.45),
    ("dev", "praise"): (0.80, 0.60),
    ("dev", "complaint"): (0.72, 0.38),
    ("dev", "correction"): (0.80, 0.38),
    ("dev", "negative_joined"): (0.82, 0.42),
}


def rows(name: str) -> list[Any]:
    with (LABELS / name).open("rb") as stream:
        return [labelled.read_row(line, number) for number, line in enumerate(stream, 1)]


def finals() -> dict[str, str]:
    with (LABELS / "adjudicated.train.jsonl").open("rb") as stream:
        return dict(labelled.read_final(line) for line in stream)


@pytest.mark.parametrize("split", ["train", "dev"])
def test_turns(split: str) -> None:
    final = finals()
    turns: list[Any] = [labelled.adjudicated(row, final) for row in rows(f"user_turns.{split}.jsonl")]
    scored = scoring.score_turns(turns, replay.extracted_classes(turns, EXTRACTION))
    for name in ("confirm", "praise", "complaint", "correction", "negative_joined"):
        hits = scored.hits[scoring.ALL_LANGUAGES, name]
        least_precision, least_recall = TURNS[split, name]
        assert hits.right / hits.emitted >= least_precision, (name, hits)
        assert hits.found / hits.labelled >= least_recall, (name, hits)


@pytest.mark.parametrize("split", ["train", "dev"])
def test_tool_outputs(split: str) -> None:
    outputs = rows(f"tool_outputs.{split}.jsonl")
    scored = scoring.score_calls(outputs, replay.extracted_status(outputs))
    hits = scored.is_error
    assert hits.right / hits.emitted >= 0.95
    assert hits.found / hits.labelled >= 0.95
    assert scored.n_status_right / scored.n_status >= 0.95
