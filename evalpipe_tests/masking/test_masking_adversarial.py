"""Hostile texts: linear work, or withheld. Work is counted in calls, since times depend on the machine."""

from __future__ import annotations

import sys

import pytest

from evalpipe_tests.masking import adversarial
from evalpipe_tests.masking.support import PLAN

SMALL, LARGE = 20_000, 80_000


def _work(raw: bytes) -> tuple[int, bool]:
    """Calls that looking at a text takes, and whether it is given up."""
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    PLAN.find(b"compiled before it is counted")
    sys.setprofile(count)
    try:
        found = PLAN.find(raw)
    finally:
        sys.setprofile(None)
    return calls, found is None


@pytest.mark.parametrize("name", adversarial.UNITS)
def test_work_grows_no_faster_than_the_text_or_the_text_is_withheld(name: str) -> None:
    small, _ = _work(adversarial.text(name, SMALL))
    large, is_withheld = _work(adversarial.text(name, LARGE))
    assert is_withheld or large <= 1.5 * (LARGE / SMALL) * small + 1_000


def test_a_text_of_nothing_but_hits_is_withheld_before_they_are_judged() -> None:
    raw = adversarial.text("password=password=", 1_000_000)
    calls, is_withheld = _work(raw)
    assert is_withheld
    # A hit costs its callback up to the budget of one hit in 32 bytes; those beyond cost nothing.
    assert calls < 4 * (len(raw) / 32 + 2_000)
    assert PLAN.mask_text(raw.decode())[0] == "<WITHHELD:budget>"


def test_many_key_heads_do_not_read_the_text_again_and_again() -> None:
    ends = []
    for n in (100, 200):
        raw = b"-----BEGIN RSA PRIVATE KEY-----\n" * n
        ends.append(_work(raw)[0] / n)
    assert ends[1] <= 1.2 * ends[0]


@pytest.mark.parametrize("name", ["escapes", "double escapes", "zero width", "pseudonyms"])
def test_megabytes_of_what_is_dear_per_byte_are_withheld(name: str) -> None:
    assert PLAN.mask_text(adversarial.text(name, 1_500_000).decode())[0] == "<WITHHELD:budget>"


@pytest.mark.parametrize("name", ["escapes", "zero width", "pseudonyms"])
def test_as_much_of_it_as_a_tool_answers_is_read(name: str) -> None:
    raw = adversarial.text(name, 90_000) + rb" DB_PASSWORD=tiger\u0040512Zq"
    masked = PLAN.mask_text(raw.decode())[0]
    assert "512Zq" not in masked
    assert not masked.startswith("<WITHHELD")
