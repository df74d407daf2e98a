"""The session dictionary: who was named once is hidden in every spelling, however many were named."""

from __future__ import annotations

import unicodedata

import pytest

from evalpipe.masking import dictionary, texts
from evalpipe_tests.masking.support import PLAN


def _terms(*said: str) -> dictionary.Terms:
    terms = dictionary.Terms()
    for text in said:
        texts.learn(PLAN, text, terms)
    return terms


def test_a_hundred_people_do_not_keep_another_from_being_learnt() -> None:
    many = " ".join(f"p{n}.person@example.org" for n in range(100))
    terms = _terms(many, "my name is Zebulon Quackenbush")
    assert len(terms) > 100
    masked = texts.mask(PLAN, "tell Zebulon Quackenbush and p77.person, not p777.person", terms).text
    assert "Quackenbush" not in masked
    assert "p77.person" not in masked
    assert "p777.person" in masked
    assert "Quackenbush" not in texts.mask(PLAN, r"{\"x\":\"a\nZebulon Quackenbush\"}", terms).text


@pytest.mark.parametrize(
    "said",
    [
        "tell Lena  Hofmann", "tell Lena\nHofmann", "tell Lena\u00a0Hofmann", r"tell Lena\u0020Hofmann",
        r"tell Lena\nHofmann", "tell Hofmann, Lena", "tell LENA HOFMANN",
    ],
)  # fmt: skip
def test_a_name_comes_again_with_other_blanks_or_turned_round(said: str) -> None:
    terms = _terms("my name is Lena Hofmann")
    masked = texts.mask(PLAN, said, terms).text
    assert "ofmann" not in masked.lower(), masked
    assert masked.startswith("tell <PERSON:")
    token = texts.mask(PLAN, "tell Lena Hofmann", terms).text
    assert masked == token, "one person, one token"


@pytest.mark.parametrize("change", [str.upper, lambda name: unicodedata.normalize("NFD", name)])
def test_a_name_with_other_letters_comes_again_in_capitals_or_decomposed(change: object) -> None:
    terms = _terms("my name is Jörg Müller")
    again = change("Jörg Müller")  # type: ignore[operator]
    assert again not in texts.mask(PLAN, f"tell {again}", terms).text


def test_part_of_a_name_and_a_longer_word_stay() -> None:
    terms = _terms("my name is Lena Hofmann")
    for text in ("tell Lena", "Lena Hofmannsthal", "Lena, Hofmann is a city"):
        assert texts.mask(PLAN, text, terms).text == text


@pytest.mark.parametrize("word", ["global", "remote", "reviewer", "staging"])
def test_the_local_part_of_a_mailbox_that_is_a_word_teaches_nothing(word: str) -> None:
    said = f"the {word} settings, GIT_CONFIG_{word.upper()}"
    assert texts.mask(PLAN, said, _terms(f"mail {word}@mail.example")).text == said


def test_many_terms_are_found_as_each_alone_is_and_few_are_looked_for() -> None:
    latin = [f"{first}{n}" for first in ("anna", "bo.", "c-", "_d", "é") for n in range(40)]
    spaced = [f"given{n} family{n}" for n in range(40)]
    asian = [f"{chr(0x4E00 + n)}{chr(0x5E00 + n)}" for n in range(40)]
    names = [*latin, *spaced, *asian]
    terms = dictionary.Terms({name.encode(): ("PERSON", name) for name in names})
    raw = (
        "x anna7, BO.9 and c-3; _d1 é4 given5\\u0020family5 \\nanna12 " + asian[3] + "說 manna3 given6 family7"
    ).encode()
    alone = [
        span
        for term, told in terms.items()
        for span in dictionary.find(raw, dictionary.Terms({term: told}), lambda entity: 1)
    ]
    assert {span.canonical for span in alone} >= {"anna7", "anna12", "given5 family5", asian[3], "é4", "_d1"}
    assert dictionary.find(raw, terms, lambda entity: 1) == alone
    assert len(terms.beginning([b"anna7", asian[3][0].encode()])) < len(terms) / 2
    terms[b"zoe"] = ("PERSON", "zoe")
    assert b"zoe" in terms.beginning([b"zoe"]), "what is learnt later is looked for too"
