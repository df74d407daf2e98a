"""A model of names: what it is shown, how its answers are used, and that it fails closed."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking import mask_part, ner, texts
from evalpipe.masking.corpus import Corpus, Label, Sample
from evalpipe.masking.evaluate import evaluate
from evalpipe.masking.ner import CHUNK_CHARACTERS, NerPass
from evalpipe.steps.context import load_criteria
from evalpipe.steps.versions import code_versions
from evalpipe_tests.masking.support import PLAN, frames, session

NAMED = replace(PLAN, ner="list")
Places = list[list[tuple[int, int, str]]]


class ListFinder:
    """Finds the names of a list: deterministic, and needs no network."""

    version = "1"

    def __init__(self, **names: str) -> None:
        self.names = names or {"Wolfram": "PERSON", "Trondheim": "LOCATION", "Kafka": "PRODUCT"}
        self.seen: list[str] = []

    def detect(self, texts: Sequence[str], lang: str) -> Places:
        self.seen += texts
        return [
            [(at, at + len(name), entity) for name, entity in self.names.items() for at in _all(text, name)]
            for text in texts
        ]


def _all(text: str, name: str) -> list[int]:
    return [at for at in range(len(text)) if text.startswith(name, at)]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ListFinder:
    made = ListFinder()
    monkeypatch.setattr(ner, "finder", lambda _: made)
    return made


def test_names_and_places_are_hidden_and_other_findings_are_not(model: ListFinder) -> None:
    masked = texts.mask(NAMED, "é Wolfram moved to Trondheim with Kafka")
    assert [(s.start, s.end, s.entity, s.rule) for s in masked.spans] == [
        (2, 9, "PERSON", "ner.model"),
        (19, 28, "LOCATION", "ner.model"),
    ]
    assert masked.text.startswith("é <PERSON:")
    assert masked.text.endswith(" moved to <LOCATION> with Kafka")
    assert texts.mask(PLAN, "Wolfram").spans == ()


def test_the_model_sees_prose_only(model: ListFinder) -> None:
    text = "Wolfram ```Wolfram``` `Wolfram` /home/Wolfram/x https://x.example/Wolfram mail Wolfram@example.org"
    assert [s.start for s in texts.mask(NAMED, text).spans if s.rule == "ner.model"] == [0]
    assert model.seen[0].count("Wolfram") == 1
    assert len(model.seen[0]) == len(text)


def test_a_name_on_a_seam_of_two_pieces_is_found(model: ListFinder) -> None:
    for shift in range(-9, 10):
        text = "a " * ((CHUNK_CHARACTERS + shift) // 2) + "Wolfram" + " b" * 600
        (span,) = texts.mask(NAMED, text).spans
        assert text[span.start : span.end] == "Wolfram"
    assert max(map(len, model.seen)) == CHUNK_CHARACTERS


def test_a_piece_is_read_once_and_what_is_over_budget_is_counted(model: ListFinder) -> None:
    asked = NerPass("list", budget=30)
    rows = [(0, b"Wolfram is here", []), (1, b"Wolfram is here", []), (2, b"Wolfram and a longer text", [])]
    found = asked.find(rows)
    assert sorted(found) == [0, 1]
    assert model.seen == ["Wolfram is here"]
    assert asked.n_unread == len(b"Wolfram and a longer text")


def test_a_slice_uses_the_model_on_what_people_say_and_counts_it(model: ListFinder) -> None:
    steps = [("s1", {"text": "ask Wolfram"}), ("s1", {"output": "Wolfram in a log"})]
    part = mask_part(*frames([session()], steps), NAMED)
    rows = part.steps.sort("seq")
    assert rows["text"][0].startswith("ask <PERSON:")
    assert rows["output"][1] == "Wolfram in a log"
    counted = part.redactions.filter(pl.col("rule_id") == "ner.model")
    assert counted.select("field", "entity", "n_hits").rows() == [("steps.text", "PERSON", 1)]


def test_a_slice_counts_what_the_model_did_not_read(model: ListFinder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalpipe.masking.kernel.NerPass", lambda name: NerPass(name, budget=3))
    part = mask_part(*frames([session()], [("s1", {"text": "ask Wolfram"})]), NAMED)
    assert part.redactions.select("entity", "subtype", "n_bytes").rows() == [("UNREAD", "ner-budget", 11)]


def test_evaluation_goes_through_the_model(model: ListFinder) -> None:
    sample = Sample("a", "ask Wolfram", (Label(4, 11, "PERSON", "", ""),), "en", "prose", "ner")
    corpus = Corpus((sample,), (), ())
    assert evaluate(NAMED, corpus).count(lambda place: True) == (1, 1)
    assert evaluate(PLAN, corpus).count(lambda place: True) == (0, 1)


class _Broken(ListFinder):
    def __init__(self, answer: object) -> None:
        super().__init__()
        self.answer = answer

    def detect(self, texts: Sequence[str], lang: str) -> Places:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (ValueError("Wolfram said"), "raised ValueError"),
        ([], "another number of texts"),
        ([[(0, 99, "PERSON")]], "outside of its text"),
    ],
)
def test_a_model_that_fails_masks_nothing_and_quotes_nothing(
    monkeypatch: pytest.MonkeyPatch, answer: object, what: str
) -> None:
    monkeypatch.setattr(ner, "finder", lambda _: _Broken(answer))
    with pytest.raises(EvalpipeError, match=what) as caught:
        texts.mask(NAMED, "ask Wolfram")
    assert caught.value.code == "NER_FAILED"
    assert "Wolfram" not in str(caught.value)


def test_a_model_that_does_not_come_back_stops_the_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    class Stuck(ListFinder):
        def detect(self, texts: Sequence[str], lang: str) -> Places:
            gate.wait()
            return [[] for _ in texts]

    monkeypatch.setattr(ner, "finder", lambda _: Stuck())
    asked = NerPass("list", timeout=0.01)
    with pytest.raises(EvalpipeError, match="did not answer"):
        asked.find([(0, b"ask Wolfram", [])])
    gate.set()


def test_an_unknown_model_is_named_with_those_that_are_installed() -> None:
    with pytest.raises(EvalpipeError, match="no model is called so") as caught:
        ner.finder("nobody:x")
    assert caught.value.code == "NER_UNUSABLE"


@pytest.mark.skipif(find_spec("spacy") is not None, reason="spaCy is installed")
def test_spacy_that_is_not_installed_is_told_in_one_line() -> None:
    with pytest.raises(EvalpipeError, match="cannot be loaded: ModuleNotFoundError") as caught:
        ner.finder("spacy:en_core_web_sm")
    assert caught.value.where == "spacy:en_core_web_sm"


@pytest.mark.skipif(find_spec("spacy") is None, reason="spaCy is not installed (extra ner)")
def test_spacy_finds_what_its_pipeline_knows(tmp_path: Path) -> None:
    spacy = importlib.import_module("spacy")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Wolfram"}])
    pipeline.to_disk(tmp_path / "p")
    made = ner.finder(f"spacy:{tmp_path / 'p'}")
    assert made.detect(["ask Wolfram"], "") == [[(4, 11, "PERSON")]]
    assert made.version.startswith("en_")


def test_the_model_is_in_the_code_version_of_masked_slices_only(model: ListFinder) -> None:
    criteria = load_criteria("default")
    without, with_model = code_versions(criteria, "p"), code_versions(criteria, "p", "list")
    assert with_model["masked"] == without["masked"] + "+list@1"
    assert {k: v for k, v in with_model.items() if k != "masked"} == {k: v for k, v in without.items() if k != "masked"}
