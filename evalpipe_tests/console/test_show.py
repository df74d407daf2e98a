"""What is shown is shown verbatim, on one line, without steering a terminal."""

from __future__ import annotations

import pytest
from rich.console import Console

from evalpipe.console import show
from evalpipe.contracts.errors import EvalpipeError

LABELS = ["[red]x[/]", "[/]", "[bold]", "a · b", ":smile:", "[link=file:///etc]y[/link]"]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("is_terminal", [False, True])
def test_labels_titles_and_names_are_no_markup(
    label: str, is_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(highlight=False, markup=False, emoji=False, force_terminal=is_terminal, no_color=True, width=200)
    monkeypatch.setattr(show, "out", console)
    show.table([{label: label}], title=f"title {label}")
    show.line(f"line {label}")
    lines = [part.strip() for part in _bare(capsys.readouterr().out).splitlines()]
    assert lines == [f"title {label}", label, label, f"line {label}"]


@pytest.mark.parametrize("label", LABELS)
def test_wide_rows_stand_one_below_the_other_verbatim(
    label: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(highlight=False, markup=False, emoji=False, force_terminal=True, no_color=True, width=40)
    monkeypatch.setattr(show, "out", console)
    show.table([{f"{label}{number}": label for number in range(20)}], title=label)
    text = _bare(capsys.readouterr().out)
    assert text.count(label) == 41


def _bare(text: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_an_error_is_two_unbroken_lines(capsys: pytest.CaptureFixture[str]) -> None:
    labels = ", ".join(f"'agent [/] · model-{number}'" for number in range(20))
    show.show_error(EvalpipeError("UNKNOWN_VERSION", f"versions: {labels}", where="[red]", fix="Take [one]."))
    assert capsys.readouterr().err == f"UNKNOWN_VERSION [[red]]: versions: {labels}\nFix: Take [one].\n"


def test_control_characters_are_spelt_out(capsys: pytest.CaptureFixture[str]) -> None:
    show.table([{"a": "x\x1b[31m\ny\u202e"}])
    assert capsys.readouterr().out.splitlines()[1].strip() == r"x\x1b[31m\ny\u202e"


def test_a_piped_row_is_one_line_and_a_cell_has_an_end(capsys: pytest.CaptureFixture[str]) -> None:
    show.table([{"long": "y" * 5_000, "also": "word " * 30, "n": 1}])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert len(lines[1]) < 2 * (show.CELL_CHARACTERS + 2) + 10
    assert "…" in lines[1]
    assert ("word " * 30).strip() in lines[1]
