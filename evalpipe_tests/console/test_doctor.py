"""What the doctor prints, in words."""

from __future__ import annotations

import pytest

from evalpipe.console.doctor import _brief


@pytest.mark.parametrize(
    ("value", "told"),
    [(False, "no"), (True, "yes"), (None, "none"), ([], "none"), ({}, "none"), (0, "0"), (["a", "b"], "a, b")],
)
def test_a_state_is_told_in_words(value: object, told: str) -> None:
    assert _brief(value) == told
