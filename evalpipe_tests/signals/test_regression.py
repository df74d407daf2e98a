"""The golden set against the last version: what changed shows, and what got worse is named."""

from __future__ import annotations

import pytest

from evalpipe.signals import regression, rulefiles
from evalpipe.signals.labelled import LabelledTurn


def test_extraction_reads_the_golden_set_as_it_was_recorded() -> None:
    found = regression.changes(regression.recorded(), regression.reading())
    assert not found, "look at them, then: python -m evalpipe.signals.regression --write"


def test_the_golden_set_has_every_language_and_the_error_table() -> None:
    recorded = regression.recorded()
    assert {turn.lang for turn in regression.turns()} == set(rulefiles.languages())
    assert {turn.id for turn in regression.turns()} <= recorded.keys()
    assert sum(name.startswith("call:") for name in recorded) > 100


def test_rows_that_came_went_or_are_read_otherwise_are_changes() -> None:
    found = regression.changes({"a": "praise", "b": "", "c": "confirm"}, {"a": "praise", "b": "confirm", "d": ""})
    assert found == [
        regression.Change("b", "", "confirm"),
        regression.Change("c", "confirm", None),
        regression.Change("d", None, ""),
    ]


def turn(number: int, label: str) -> LabelledTurn:
    return LabelledTurn(f"en-{number}", "en", "x", "y", "z", False, label, frozenset({label}))


@pytest.mark.parametrize(
    ("missed", "wrong", "shares"),
    [(0, 0, set()), (1, 0, set()), (4, 0, {"recall"}), (0, 4, {"precision"})],
)
def test_a_class_that_lost_more_than_two_points_is_named(missed: int, wrong: int, shares: set[str]) -> None:
    labelled = [turn(i, "praise" if i < 100 else "neutral") for i in range(120)]
    was = {t.id: "praise" if t.label == "praise" else "" for t in labelled}
    now = dict(was)
    for t in labelled[:missed]:
        now[t.id] = ""
    for t in labelled[100 : 100 + wrong]:
        now[t.id] = "praise"
    lost = regression.losses(was, now, labelled)
    assert {loss.share for loss in lost if (loss.lang, loss.name) == ("en", "praise")} == shares
    assert {loss.name for loss in lost} <= {"praise", "positive_joined"}
