"""Text of user messages told apart: what a person wrote, and what a harness put around it."""

from __future__ import annotations

import pytest

from evalpipe.sources.readers.claude_text import origins

_R, _O = "<system-reminder>{}</system-reminder>", "<ide_selection>{}</ide_selection>"


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("fix it" + _R.format("a"), [("human", "fix it"), ("injected", _R.format("a"))]),
        (
            f"fix it\n\n{_R.format('a')}\n{_O.format('b')} \n",
            [("human", "fix it"), ("injected", f"{_R.format('a')}\n{_O.format('b')}")],
        ),
        (f"{_O.format('b')} fix it", [("injected", _O.format("b")), ("human", "fix it")]),
        # Words between two blocks are a person's.
        (
            f"see {_R.format('a')} and fix it {_R.format('b')}",
            [("human", f"see {_R.format('a')} and fix it"), ("injected", _R.format("b"))],
        ),
        # A block that names its own tag is one block.
        (f"fix it {_R.format('of <system-reminder> x')}", [("human", "fix it"), ("injected", _R.format("of <system-reminder> x"))]),
        ("fix </system-reminder>", [("human", "fix </system-reminder>")]),
        (f"fix {_R.format('a')} <b>it</b>", [("human", f"fix {_R.format('a')} <b>it</b>")]),
    ],
)  # fmt: skip
def test_context_around_words_is_injected(text: str, pieces: list[tuple[str, str]]) -> None:
    assert origins(text) == pieces
