"""Recall and harm on the team's own corpus: invented values in the places where sessions carry them."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalpipe.masking import corpus
from evalpipe.masking.evaluate import Evaluation, Found, evaluate
from evalpipe_tests.masking.support import PLAN

OWN = Path(__file__).parent / "corpus"


@pytest.fixture(scope="module")
def result() -> Evaluation:
    return evaluate(PLAN, corpus.load(OWN))


def _missed(result: Evaluation, part: str) -> list[Found]:
    return [place for place in result.places if place.part == part and place.tier == "rule" and not place.is_found]


def test_every_place_of_the_rule_tier_is_hidden(result: Evaluation) -> None:
    assert result.count(lambda place: place.part == "positives")[1] > 300
    assert _missed(result, "positives") == []


def test_texts_with_nothing_to_hide_are_left_alone(result: Evaluation) -> None:
    assert result.n_negatives > 300
    assert result.touched == []
    assert result.n_outside / result.n_inside < 0.02


def test_sessions_hide_who_was_named_once_and_give_one_token(result: Evaluation) -> None:
    assert result.count(lambda place: place.part == "sessions")[1] > 90
    assert _missed(result, "sessions") == []
    assert result.tokens
    assert all(len(tokens) == 1 for tokens in result.tokens.values())
