"""Status, category and layer on labelled tool outputs of many programs, shells and harnesses.

The rows are own wording of what programs print. ``test`` was written before the table was extended by
``dev``, ``rare`` before it learnt families of messages; ``docs/tool-results.md`` tells what each measured at first.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from evalpipe.contracts.taxonomy import CATEGORY_LAYERS
from evalpipe.signals import labelled, replay, scoring

DATA = Path(__file__).parent / "data"


def rows(split: str) -> list[labelled.LabelledCall]:
    lines = (DATA / f"tool_outputs.{split}.jsonl").read_bytes().splitlines()
    read = [labelled.read_row(line, number) for number, line in enumerate(lines, 1)]
    return [row for row in read if isinstance(row, labelled.LabelledCall)]


@pytest.mark.parametrize(("split", "n"), [("test", 226), ("dev", 380), ("rare", 497)])
def test_status_category_and_layer(split: str, n: int) -> None:
    calls = rows(split)
    assert len(calls) == n
    scored = scoring.score_calls(calls, replay.extracted_status(calls))
    hits = scored.is_error
    assert hits.right / hits.emitted >= 0.97, scored.wrong
    assert hits.found / hits.labelled >= 0.95, scored.wrong
    for right, total in (scored.category, scored.layer):
        assert right / total >= 0.97, scored.wrong
    assert scored.n_status_right / scored.n_status >= 0.97, scored.wrong


@pytest.mark.parametrize("split", ["test", "dev", "rare"])
def test_labels_follow_the_taxonomy(split: str) -> None:
    calls = rows(split)
    assert len({call.id for call in calls}) == len(calls)
    for call in calls:
        if call.status == "error" and call.category is not None:
            assert call.layer == CATEGORY_LAYERS[call.category], call.id
        else:
            assert call.layer is None, call.id
