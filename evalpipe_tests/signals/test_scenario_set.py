"""The labelled openings: what they hold, how well the rules do, and that the docs say so."""

from __future__ import annotations

from collections import Counter

import pytest

from evalpipe.locations import data_dir
from evalpipe_tests.signals.scenario_quality import SCENARIOS, SPLITS, measure, openings, tables, told

LANGUAGES = {"en", "zh", "pt", "es", "fr", "de", "ja", "ko", "ru", "hi", "ar"}
#: Least accuracy and least accuracy in any language: what was measured, less one or two openings.
FLOORS = {"dev": (0.99, 0.95), "test": (0.97, 0.88), "fresh": (0.74, 0.60)}


def test_the_set_is_wide_enough() -> None:
    rows = openings()
    assert {row["language"] for row in rows} == LANGUAGES
    assert len({row["id"] for row in rows}) == len(rows)
    sizes = Counter(row["split"] for row in rows)
    assert sizes["dev"] + sizes["test"] >= 400
    assert abs(sizes["dev"] - sizes["test"]) <= 5
    cells = Counter((row["split"], row["language"], row["scenario"]) for row in rows)
    assert set(cells) == {(s, lang, name) for s in SPLITS for lang in LANGUAGES for name in SCENARIOS}
    assert min(cells.values()) >= 5


def test_no_opening_is_both_tuned_on_and_held_out() -> None:
    # Greetings and empty messages are told by the tools offered, so these belong to the opening.
    seen = {(row["text"].strip().lower(), tuple(row["tools"])) for row in openings() if row["split"] == "dev"}
    held = {(row["text"].strip().lower(), tuple(row["tools"])) for row in openings() if row["split"] != "dev"}
    assert not seen & held


@pytest.mark.parametrize("split", SPLITS)
def test_accuracy(split: str) -> None:
    found, (least, least_in_a_language) = measure(split), FLOORS[split]
    assert found.accuracy >= least
    assert min(found.by_language().values()) >= least_in_a_language
    # No scenario may be bought with another.
    confusion = found.confusion()
    for name in SCENARIOS:
        assert confusion[name, name] >= 0.45 * found.labels.count(name)


def test_a_wrong_rule_would_be_seen() -> None:
    """Labels turned around give an accuracy that no floor allows."""
    rows = [row for row in openings() if row["split"] == "dev"]
    turned = {"coding": "work", "work": "chat", "chat": "coding"}
    right = sum(turned[row["scenario"]] == got for row, got in zip(rows, told(rows), strict=True))
    assert right / len(rows) < 0.1


def test_the_docs_show_what_is_measured() -> None:
    docs = data_dir().parent / "docs" / "scenarios.md"
    assert tables() in docs.read_text(encoding="utf-8")
