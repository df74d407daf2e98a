"""What is typed is read as it was meant, or refused in one line."""

from __future__ import annotations

from datetime import date

import pytest

from evalpipe.console import arguments
from evalpipe.contracts.errors import EvalpipeError

KNOWN = ["claude-code · lyra-1", "claude-code · lyra-2", "claude-code · lyra-20", "Codex · vega-1", "acme · org/m:1", "acme · [/]"]  # fmt: skip


@pytest.mark.parametrize("text", ["²d", "0d", "-1d", "99999d", "d", "28", "28 d", "٣d", "1.5d", "", "ALL"])
def test_odd_windows_are_refused(text: str) -> None:
    with pytest.raises(EvalpipeError, match="BAD_ARGUMENT"):
        arguments.window(text)


@pytest.mark.parametrize("text", ["all", "1d", "28d", "9999d"])
def test_windows(text: str) -> None:
    assert arguments.window(text) == text


@pytest.mark.parametrize("text", ["yesterday", "0001-01-01", "9999-12-31", "2026-02-30", "²026-01-01", ""])
def test_odd_days_are_refused(text: str) -> None:
    for call in (arguments.day, arguments.days):
        with pytest.raises(EvalpipeError, match="BAD_ARGUMENT"):
            call(text)


def test_ranges() -> None:
    assert arguments.days("2026-01-05..2026-01-07") == (date(2026, 1, 5), date(2026, 1, 7))
    assert arguments.days("2026-01-05") == (date(2026, 1, 5), date(2026, 1, 5))
    with pytest.raises(EvalpipeError, match="before it begins"):
        arguments.days("2026-01-07..2026-01-05")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("claude-code · lyra-1", "claude-code · lyra-1"),
        ("claude-code/lyra-2", "claude-code · lyra-2"),
        ("Claude-Code : LYRA-2", "claude-code · lyra-2"),
        ("codex", "Codex · vega-1"),
        ("acme/org/m:1", "acme · org/m:1"),
        ("acme:[", "acme · [/]"),
    ],
)
def test_a_version_can_be_typed_on_any_keyboard(text: str, label: str) -> None:
    assert arguments.version(text, KNOWN) == label


@pytest.mark.parametrize("text", ["claude-code", "claude-code/lyra-", "acme"])
def test_a_beginning_that_several_have_is_refused_by_name(text: str) -> None:
    with pytest.raises(EvalpipeError, match="BAD_ARGUMENT") as caught:
        arguments.version(text, KNOWN)
    assert "2 versions" in str(caught.value) or "3 versions" in str(caught.value)


@pytest.mark.parametrize("text", ["claude-code/vega-1", "", "claude-code/lyra-3", " "])
def test_an_unknown_version_names_one_that_is_there(text: str) -> None:
    with pytest.raises(EvalpipeError, match="UNKNOWN_VERSION") as caught:
        arguments.version(text, KNOWN)
    assert "\n" not in str(caught.value)
    assert any(f"'{label}'" in caught.value.fix for label in KNOWN)


def test_a_number_is_never_completed() -> None:
    """A gate on lyra-2 must not be decided for lyra-20 because lyra-2 had no session this month."""
    with pytest.raises(EvalpipeError, match="UNKNOWN_VERSION"):
        arguments.version("claude-code/lyra-2", ["claude-code · lyra-20", "claude-code · lyra-2.5"])


def test_labels_that_differ_in_case_only_are_told_apart() -> None:
    assert arguments.version("A · M", ["A · M", "a · m"]) == "A · M"
    with pytest.raises(EvalpipeError, match="BAD_ARGUMENT"):
        arguments.version("a/M", ["A · M", "a · m"])


@pytest.mark.parametrize("text", ["", "two words", "../x", ".x", "a|b"])
def test_a_name_that_would_need_quotes_is_refused(text: str) -> None:
    with pytest.raises(EvalpipeError) as error:
        arguments.plain_name(text)
    assert error.value.code == "BAD_ARGUMENT"
    assert arguments.plain_name("2026-q1") == "2026-q1"
