"""Signals of what users do by hand."""

from __future__ import annotations

import polars as pl
import pytest

from evalpipe.signals import extract_part, rulefiles
from evalpipe_tests.signals.build import EXTRACTION, Talk, frames

UNDO = rulefiles.load("undo.toml")
EDITED = rulefiles.load("edited.toml")


def hard(talk: Talk) -> list[tuple[str, int, str]]:
    part = extract_part(*frames(talk), EXTRACTION)
    return part.hard.select("signal", "polarity", "snippet").rows()


def marked(rating: int, comment: str | None = None, name: str = "rating") -> Talk:
    talk = Talk().user("go").agent("done")
    return talk.user(comment, origin="feedback", name=name, arguments=f'{{"rating":{rating}}}')


def test_marks() -> None:
    assert hard(marked(1)) == [("explicit_feedback.positive", 1, '{"rating":1}')]
    assert hard(marked(-1, "too long")) == [("explicit_feedback.negative", -1, "too long")]
    assert hard(marked(0)) == []
    assert hard(marked(1, name="approval")) == [("call.approved", 1, '{"rating":1}')]


def test_a_mark_is_no_turn_and_does_not_end_a_session() -> None:
    part = extract_part(*frames(Talk().user("paint it").agent("Which colour?")), EXTRACTION)
    rated = (
        Talk()
        .user("paint it")
        .agent("Which colour?")
        .user("it still does not work", origin="feedback", arguments='{"rating":0}')
    )
    again = extract_part(*frames(rated), EXTRACTION)
    assert again.session_features.equals(part.session_features)
    assert again.semantic.is_empty()


@pytest.mark.parametrize("row", UNDO["command"], ids=lambda row: row["id"])
def test_commands_that_undo(row: dict[str, list[str]]) -> None:
    for text, expected in [*((t, 1) for t in row["match"]), *((t, 0) for t in row["no_match"])]:
        found = hard(Talk().user("go").agent("done").user(text, origin="command"))
        assert [name for name, _, _ in found] == ["rollback"] * expected, text


@pytest.mark.parametrize("row", UNDO["tool"], ids=lambda row: row["id"])
def test_tools_that_undo(row: dict[str, list[str]]) -> None:
    for text, expected in [*((t, 1) for t in row["match"]), *((t, 0) for t in row["no_match"])]:
        name, _, arguments = text.partition(" ")
        found = hard(Talk().user("go").tool(name, "ok", arguments=arguments))
        assert [signal for signal, _, _ in found] == ["rollback"] * expected, text


def test_words_that_ask_for_an_undo_count_once() -> None:
    part = extract_part(*frames(Talk().user("go").agent("done").user("please undo your last change")), EXTRACTION)
    assert part.semantic["signal"].to_list() == ["correction"]
    assert part.hard.filter(pl.col("signal") == "rollback").is_empty()


@pytest.mark.parametrize("row", EDITED["result"], ids=lambda row: row["id"])
def test_edits_that_the_user_changed(row: dict[str, list[str]]) -> None:
    for output, expected in [*((t, 1) for t in row["match"]), *((t, 0) for t in row["no_match"])]:
        edit = '{"file_path": "/w/a.py", "old_string": "x = 1", "new_string": "x = 3"}'
        found = hard(Talk().user("go").tool("Edit", output, arguments=edit).agent("done"))
        assert [name for name, _, _ in found] == ["edit.changed"] * expected, output


def test_a_command_that_prints_the_words_changed_no_edit() -> None:
    words = EDITED["result"][0]["match"][0]
    assert hard(Talk().user("go").bash("cat log", words).agent("done")) == []
