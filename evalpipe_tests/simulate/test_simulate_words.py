"""Phrase data and planted values: what the truth rests on, checked as data."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evalpipe.simulate
from evalpipe.locations import data_dir
from evalpipe.simulate.canaries import make_canary
from evalpipe.simulate.text import FEEDBACK, Draw, load_filler, load_phrases
from evalpipe.simulate.world import load_world, read_toml

LANGUAGES = ("en", "zh", "pt")
#: Least number of variants of a class.
LEAST = {"confirm": 36, "praise": 8, "failure": 15, "sentiment": 6, "correction": 12}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_class_has_variants_and_none_twice(lang: str) -> None:
    phrases = load_phrases(lang)
    assert set(phrases.feedback) == set(FEEDBACK)
    for name, least in LEAST.items():
        assert len(phrases.feedback[name]) >= least, name
        assert len(set(phrases.feedback[name])) == len(phrases.feedback[name]), name
    for scenario in load_world().scenarios:
        assert len(set(phrases.request[scenario.name])) >= 10
        assert len(set(phrases.follow[scenario.name])) >= 12


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_phrase_of_one_class_is_part_of_one_of_another(lang: str) -> None:
    feedback = load_phrases(lang).feedback
    bare = {name: [re.sub(r"[.!。！]+$", "", text.casefold()) for text in feedback[name]] for name in FEEDBACK}
    for name in FEEDBACK:
        others = [(other, text) for other in FEEDBACK if other != name for text in bare[other]]
        for phrase in bare[name]:
            inside = [(other, text) for other, text in others if phrase in text]
            assert not inside, (name, phrase, inside)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_requests_and_follow_ups_hold_no_feedback(lang: str) -> None:
    phrases = load_phrases(lang)
    said = [t for kind in (phrases.request, phrases.follow) for name in kind if name != "topic" for t in kind[name]]
    said += [*phrases.agent["go_on"], *phrases.agent["reason"]]
    for name in ("confirm", "praise", "failure", "sentiment"):
        for phrase in phrases.feedback[name]:
            bare = re.sub(r"[.!。！]+$", "", phrase.casefold())
            assert not [t for t in said if bare in t.casefold()], phrase


@pytest.mark.parametrize("lang", LANGUAGES)
def test_only_an_agent_that_waits_asks(lang: str) -> None:
    phrases = load_phrases(lang)
    agent = phrases.agent
    statements = [*agent["start"], *agent["between"], *agent["done"], agent["used"], agent["switched"], agent["sorry"]]
    assert not [text for text in [*statements, *phrases.prose] if text.rstrip().endswith(("?", "？"))]
    assert all(text.endswith(("?", "？")) for text in agent["waiting"])


@pytest.mark.parametrize("lang", LANGUAGES)
def test_corrections_name_two_different_things(lang: str) -> None:
    phrases = load_phrases(lang)
    assert all("{right}" in text and "{wrong}" in text for text in phrases.feedback["correction"])
    assert not {right for right, _ in phrases.pairs} & {wrong for _, wrong in phrases.pairs}


def test_shares_of_the_world_add_up() -> None:
    world = load_world()
    assert sum(s.share for s in world.scenarios) == pytest.approx(1.0)
    assert sum(world.people.languages.values()) == pytest.approx(1.0)
    assert sum(v.positive for v in world.versions) == pytest.approx(0.0)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), lang=st.sampled_from(LANGUAGES))
def test_planted_values_have_the_shape_of_their_kind(seed: int, lang: str) -> None:
    canary = make_canary(np.random.default_rng(seed), lang)
    assert canary.value in canary.carrier + canary.command
    assert not re.search(r'["\\\n]', canary.value)
    assert len(canary.value) >= 12
    if canary.kind == "credit_card":
        doubled = [int(d) * (1 + i % 2) for i, d in enumerate(reversed(canary.value))]
        assert sum(d - 9 * (d > 9) for d in doubled) % 10 == 0
    if canary.kind == "iban":
        moved = canary.value[4:] + canary.value[:4]
        assert int("".join(str(int(c, 36)) for c in moved)) % 97 == 1
    if canary.kind == "jwt":
        assert canary.value.count(".") == 2


def test_no_live_looking_secret_stands_in_the_source() -> None:
    shapes = re.compile(
        r"AKIA[A-Z2-7]{16}|gh[pousr]_[A-Za-z0-9]{36}|-----BEGIN [A-Z ]*PRIVATE KEY-----|eyJ[\w-]{20,}\."
    )
    places = [*Path(evalpipe.simulate.__file__).parent.glob("*.py"), *(data_dir() / "simulate").glob("*.toml")]
    assert len(places) > 15
    assert not [p.name for p in places if shapes.search(p.read_text("utf-8"))]


def test_each_place_of_a_planted_value_is_complete() -> None:
    for place in read_toml("canaries")["canary"]:
        assert place["field"] in ("user", "output", "arguments")
        if place["field"] == "user":
            assert all("{value}" in place[lang] for lang in LANGUAGES)
        else:
            assert any(key in place["command"] + place["text"] for key in ("{value}", "{block}"))


@settings(max_examples=30, deadline=None)
@given(kind=st.sampled_from(sorted(load_filler())), n=st.integers(200, 20_000), seed=st.integers(0, 2**32))
def test_filler_is_cut_to_about_the_wanted_length(kind: str, n: int, seed: int) -> None:
    filler = load_filler()[kind]
    text = filler.text(Draw(np.random.default_rng(seed)), n)
    longest = max(len("\n".join(lines)) for lines in filler.documents)
    assert 0.4 * min(n, longest * 0.9) < len(text) < 1.6 * n
