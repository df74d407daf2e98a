"""Folding, zones and spans agree between the two engines and lead back to the masked text."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.signals import ids, language, rulefiles, text

MESSY = st.lists(
    st.sampled_from(
        ["It still fails", "不对，", "não", "沒有", "`a_b`", "```py\nx = 1\n```", "```", "\n", "  ", "> quoted", "<EMAIL_ADDRESS:a:xyz>",
         "<SECRET:aws>", "<b>", "https://x.test/a", "/usr/lib/a.py", "C:\\x\\y", '"not found"', "“quoted”", "│ a │", "{", "};", "İ", "ſ",
         "Error: x", "at foo (a.js:1:2)", "[Image #1]", "2026-01-01 10:00 start", "$ ls", "\r\n", "\u00a0", "é", "ß", "😀", "\x00",
         "´", "'", ",", "(", "2026-01-02 it", "traceback ", "exception in ", "npm err", "npm warn", "#!", "diff --git", "index 0a1b2c3",
         "错误(", "at foo.bar (", "get ", "-", ".", "ps c", "error"]
    )
    | st.text(max_size=12),
    max_size=14,
).map("".join)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(MESSY)
def test_both_engines_read_the_same_prose(message: str) -> None:
    columns = text.prose_column(pl.Series([message]))
    prose, positions = text.prose_positions(message)
    assert columns["prose"].item() == prose
    assert len(positions) == len(prose) + 1
    assert positions == sorted(positions)
    assert positions[-1] == len(message)
    if columns["is_plain"].item():
        assert prose == text.fold(message)
        assert len(prose) == len(message)


ZONES = rulefiles.load("zones.toml")["zone"]


@pytest.mark.parametrize("zone", ZONES, ids=lambda zone: zone["id"])
def test_both_engines_see_every_zone_in_a_message_that_holds_nothing_else(zone: dict[str, Any]) -> None:
    for example in [*zone["match"], *zone["no_match"]]:
        assert text.prose_column(pl.Series([example]))["prose"].item() == text.prose_positions(example)[0], example


@pytest.mark.parametrize(
    "message",
    [
        "´不对，", "'no that is wrong,", "2026-01-02 started", "Traceback most recent", "Exception in thread main",
        "npm err code 1", "#!bin", "diff --git a b", "index 0a1b2c3", "at foo.bar (x", "错误(1", "报错 (1",
    ],
)  # fmt: skip
def test_both_engines_see_a_line_of_code_or_log_without_punctuation(message: str) -> None:
    prose, _ = text.prose_positions(message)
    assert prose == ""
    assert text.prose_column(pl.Series([message])).rows() == [("", False)]


def test_long_messages_are_read_at_both_ends() -> None:
    message = "Look at this.\n" + "x = 1;\n" * 4000 + "It still fails."
    prose, positions = text.prose_positions(message)
    assert text.prose_column(pl.Series([message]))["prose"].item() == prose
    assert prose.startswith("look at this.")
    assert prose.endswith("it still fails.")
    assert message[positions[prose.index("still")] :] == "still fails."


def test_mask_tokens_are_not_markup_and_do_not_break_zones() -> None:
    prose, _ = text.prose_positions("No, <EMAIL_ADDRESS:a:xyz> is wrong, use <SECRET:x> <b>now</b>")
    assert prose == "no, ¤ is wrong, use ¤ now "


def test_pasted_logs_and_code_leave_no_prose() -> None:
    pasted = 'Traceback (most recent call last):\n  File "a.py", line 1\nTypeError: it is not working\n```\nfails\n```\n$ make all'
    assert text.prose_positions(pasted)[0].strip() == ""


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=400), st.integers(0, 400), st.integers(0, 60), st.integers(1, 160))
def test_a_window_keeps_the_match_and_its_length(message: str, start: int, length: int, chars: int) -> None:
    start = min(start, len(message))
    end = min(start + length, len(message))
    low, high = ids.window(message, start, end, chars)
    assert 0 <= low <= high <= len(message)
    assert high - low <= chars
    if end - start < chars:
        assert low <= start
        assert end <= high


def test_a_window_never_cuts_a_mask_token() -> None:
    message = (
        "a" * 50 + " <EMAIL_ADDRESS:a:qkzvqkzvqkzvqkzv> " + "it fails" + " <PERSON:a:qkzvqkzvqkzvqkzv> " + "b" * 50
    )
    start = message.index("it fails")
    for chars in range(9, 90):
        low, high = ids.window(message, start, start + 8, chars)
        assert message[low:high].count("<") == message[low:high].count(">"), chars
        assert "it fails" in message[low:high]


def test_languages() -> None:
    turns = [
        ("a", "Please add a footer to the page", "en"),
        ("a", "works!", "en"),
        ("b", "Por favor, adicione um rodapé na página", "pt"),
        ("b", "ok", "pt"),
        ("c", "可以了", "zh"),
        ("c", "把 README 里的 install 部分改一下", "zh"),
        ("d", "この関数を直してください", "ja"),
        ("e", "이 버튼이 작동하지 않아요", "ko"),
        ("f", "Не работает кнопка", "ru"),
        ("g", "42", "und"),
        ("h", "Das ist nicht gut, bitte noch einmal", "de"),
        ("i", "sigue sin funcionar el botón de la página", "es"),
        ("j", "Il manque une colonne dans le fichier", "fr"),
        ("k", "बटन काम नहीं कर रहा है", "hi"),
        ("l", "button kaam nahi kar raha hai bhai", "hi"),
        ("l", "error", "hi"),
        ("m", "الزر لا يعمل", "ar"),
        ("n", "niño", "es"),
        ("o", "über", "de"),
        ("p", "não", "pt"),
        ("q", "日報の数字が違います", "ja"),
        ("r", "這個按鈕沒有反應", "zh"),
        ("s", "C'est l'erreur de port", "fr"),
    ]
    said = pl.Series([t for _, t, _ in turns])
    prose = text.prose_column(said)["prose"]
    found = language.turn_languages(prose, pl.Series([s for s, _, _ in turns]), said).to_list()
    assert found == [lang for *_, lang in turns]


def test_a_foreign_word_does_not_leave_the_sessions_language() -> None:
    turns = ["Adicione um rodapé na página de contato, por favor", "compile error", "não, em cima"]
    said = pl.Series(turns)
    prose = text.prose_column(said)["prose"]
    assert language.turn_languages(prose, pl.Series(["a"] * 3), said).to_list() == ["pt", "pt", "pt"]


def test_accents_are_read_where_folding_took_them_away() -> None:
    said = pl.Series(["mañana", "mãos", "mas"])
    prose = text.prose_column(said)["prose"]
    assert language.turn_languages(prose, pl.Series(["a", "b", "c"]), said).to_list() == ["es", "pt", "und"]
