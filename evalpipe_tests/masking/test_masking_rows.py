"""Rows of a JSON lines file: what they keep, what they lose, what is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from evalpipe.console.masking import mask_rows
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking import rows as rows_module
from evalpipe.masking.rows import RowForm, RowMasker, RowRefusedError, lines
from evalpipe_tests.masking.support import PLAN

MAIL = "ana.m@example.org"
TEXT = RowForm(("text",))


def _masked(form: RowForm, *inputs: dict[str, Any]) -> list[dict[str, Any]]:
    masker = RowMasker(PLAN, form)
    raw = [json.dumps(row).encode() for row in inputs]
    for line in raw:
        masker.learn(line)
    return [json.loads(masker.mask(line)) for line in raw]


def test_the_field_goes_and_the_others_are_masked_unless_they_are_kept() -> None:
    row = {"id": "r1", "n": 4, "text": f"mail {MAIL}", "author": MAIL, "to": [{"mail": MAIL}], MAIL: 1}
    (out,) = _masked(TEXT, row)
    assert MAIL not in json.dumps(out)
    assert (out["id"], out["n"]) == ("r1", 4)
    assert out["masked"].startswith("mail <EMAIL_ADDRESS:")
    assert "text" not in out
    assert "spans" not in out
    (kept,) = _masked(RowForm(("text",), keep=("author",)), row)
    assert kept["author"] == MAIL
    assert json.dumps(kept).count(MAIL) == 1


def test_other_fields_are_read_with_their_keys_and_numbers() -> None:
    (out,) = _masked(TEXT, {"text": "x", "password": "tiger77Z", "phone": 13900001234})
    assert out["password"] == "<SECRET:password>"
    assert out["phone"].startswith("<PHONE_NUMBER:")


def test_spans_are_characters_of_the_text_as_given() -> None:
    text = f"我的邮箱是{MAIL} 😀 {MAIL}"
    (out,) = _masked(RowForm(("text",), with_spans=True), {"text": text})
    assert [text[s["start"] : s["end"]] for s in out["spans"]] == [MAIL, MAIL]
    assert {(s["entity"], s["subtype"], s["rule"]) for s in out["spans"]} == {("EMAIL_ADDRESS", "", "email")}


def test_spans_of_a_withheld_text_cover_all_of_it() -> None:
    text = "password=" * 20_000
    (out,) = _masked(RowForm(("text",), with_spans=True), {"text": text})
    assert out["masked"] == "<WITHHELD:budget>"
    assert [(s["start"], s["end"], s["entity"]) for s in out["spans"]] == [(0, len(text), "WITHHELD")]


def test_rows_of_a_session_share_what_one_of_them_teaches() -> None:
    said = "Friederike Großmann was here"
    first = {"session": "a", "text": said}
    second = {"session": "a", "text": "Author: Friederike Großmann <fg@example.org>"}
    other = {"session": "b", "text": said}
    one, two, three = _masked(TEXT, first, second, other)
    assert "Großmann" not in one["masked"]
    assert one["masked"].split(" was")[0] in two["masked"]
    assert three["masked"] == said
    assert one["session"] == two["session"] != three["session"]
    assert one["session"].startswith("s_")


def test_a_nested_field_and_several_fields() -> None:
    row = {"m": {"body": f"to {MAIL}", "n": 1}, "title": "plain"}
    (out,) = _masked(RowForm(("m.body", "title"), with_spans=True), row)
    assert out["m"] == {"n": 1}
    assert out["masked"]["title"] == "plain"
    assert out["masked"]["m.body"].startswith("to <EMAIL_ADDRESS:")
    assert (len(out["spans"]["m.body"]), out["spans"]["title"]) == (1, [])


def test_a_null_text_stays_null_and_old_results_make_room() -> None:
    (out,) = _masked(RowForm(("text",), with_spans=True), {"text": None, "spans": [1], "masked": MAIL})
    assert out == {"masked": None, "spans": []}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", "BAD_JSON"),
        (b'{"text": "\xff"}', "BAD_ENCODING"),
        (b"[1]", "NOT_A_RECORD"),
        (b'{"a": 1}', "BAD_FIELD"),
        (b'{"text": 7}', "BAD_FIELD"),
        (b'{"text": "' + b"x" * 200 + b'"}', "RECORD_TOO_LARGE"),
    ],
)
def test_a_bad_row_is_refused_with_a_code(line: bytes, code: str) -> None:
    masker = RowMasker(PLAN, RowForm(("text",), max_bytes=100))
    masker.learn(line)
    with pytest.raises(RowRefusedError) as caught:
        masker.mask(line)
    assert caught.value.code == code


def test_lines_are_read_in_bounded_pieces() -> None:
    file = io.BytesIO(b"ab\n\n" + b"x" * 5_000 + b"\nlast")
    got = list(lines(file, 100))
    assert [(number, len(line)) for number, line, _ in got] == [(1, 3), (3, 101), (4, 4)]
    assert sum(size for _, _, size in got) == 3 + 5_001 + 4


def test_a_byte_order_mark_costs_no_row() -> None:
    file = io.BytesIO(b'\xef\xbb\xbf{"text": "a"}\r\n{"text": "b"}')
    masker = RowMasker(PLAN, TEXT)
    assert [json.loads(masker.mask(line))["masked"] for _, line, _ in lines(file, 100)] == ["a", "b"]


def test_the_input_is_not_overwritten_by_what_could_be_masked_of_it(tmp_path: Path) -> None:
    source = tmp_path / "raw.jsonl"
    source.write_bytes(b'{"text": "a"}\n{"other": "b"}\n')
    link = tmp_path / "link.jsonl"
    link.symlink_to(source)
    for out in (source, link, tmp_path / "." / "raw.jsonl"):
        with pytest.raises(EvalpipeError, match="BAD_ARGUMENT"):
            mask_rows(PLAN, str(source), out, TEXT)
    assert source.read_bytes() == b'{"text": "a"}\n{"other": "b"}\n'
    assert link.is_symlink()


def test_names_of_a_file_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "MAX_TERMS", 1)
    masker = RowMasker(PLAN, TEXT)
    rows = [
        json.dumps({"session": n, "text": f"Author: Friederike Blum <fr.blum{n}@example.org>"}).encode()
        for n in range(2)
    ]
    with pytest.raises(EvalpipeError, match="more than 1 people"):
        list(map(masker.learn, rows))


def test_a_row_that_only_a_lenient_writer_makes_is_masked_and_not_lost() -> None:
    line = (r'{"text":"a \ud83d ' + MAIL + r'","n":NaN,"note\ud83d":"\ude00 x","ok":"\ud83d\ude00"}').encode()
    masker = RowMasker(PLAN, RowForm(("text",), with_spans=True))
    masker.learn(line)
    out = json.loads(masker.mask(line))
    assert out["masked"].startswith("a \ufffd <EMAIL_ADDRESS:")
    assert [(s["start"], s["end"]) for s in out["spans"]] == [(4, 4 + len(MAIL))]
    assert (out["n"], out["note\ufffd"], out["ok"]) == (None, "\ufffd x", "\U0001f600")
    with pytest.raises(RowRefusedError) as caught:
        masker.mask(rb'{"text":"a","k\ud83d":1,"k\ud83e":2}')
    assert caught.value.code == "BAD_FIELD", "two keys would be one, and a value lost"


@pytest.mark.parametrize("depth", [300, 700])
def test_a_deep_row_is_masked(depth: int) -> None:
    line = f'{{"text":"hi","x":{"[" * depth}"{MAIL}"{"]" * depth}}}'.encode()
    masker = RowMasker(PLAN, TEXT)
    masker.learn(line)
    out = masker.mask(line)
    assert MAIL.encode() not in out
    assert out.count(b"[") == depth


def test_a_row_that_is_too_deep_to_be_written_is_refused_and_ends_nothing() -> None:
    masker = RowMasker(PLAN, TEXT)
    for depth in (1_020, 5_000):
        line = f'{{"text":"hi","x":{"[" * depth}1{"]" * depth}}}'.encode()
        masker.learn(line)
        with pytest.raises(RowRefusedError) as caught:
            masker.mask(line)
        assert caught.value.code == "BAD_JSON"


def test_users_of_a_row_are_hidden_in_it_and_in_its_session() -> None:
    first = {"session_id": "s1", "user_id": "lhofmann", "user": "Lena Hofmann", "text": "lhofmann and Lena Hofmann did"}
    later = {"session_id": "s1", "text": "ask lhofmann"}
    out, other = _masked(TEXT, first, later)
    assert "hofmann" not in json.dumps([out, other]).lower()
    assert out["user_id"] == PLAN.rekey("u", "lhofmann")
    (alone,) = _masked(TEXT, {"username": "lhofmann", "text": "lhofmann did", "n": 1})
    assert "lhofmann" not in json.dumps(alone)
    (kept,) = _masked(RowForm(("text",), keep=("user_id",)), {"user_id": "lhofmann", "text": "lhofmann did"})
    assert kept["user_id"] == "lhofmann"
    assert "lhofmann" not in kept["masked"]


def test_words_under_a_user_key_that_are_no_names_are_not_hidden_elsewhere() -> None:
    for user in ("root", "Thanks", "fix the bug"):
        text = f"root and admin: {user}, the user said"
        (out,) = _masked(TEXT, {"user": user, "username": "admin", "text": text})
        assert out["masked"] == text


def test_a_kept_field_goes_back_where_it_stood_and_a_session_keeps_its_own_token() -> None:
    (out,) = _masked(RowForm(("text",), keep=("a.b",)), {"a.b": 1, "a": f"mail {MAIL}", "text": "x"})
    assert out["a.b"] == 1
    assert out["a"].startswith("mail <EMAIL_ADDRESS:")
    (out,) = _masked(RowForm(("text",), keep=("session",)), {"session": "one", "session_id": "two", "text": "x"})
    assert (out["session"], out["session_id"]) == ("one", PLAN.rekey("s", "two"))


def test_untouched_numbers_stay_as_they_were_and_no_key_takes_the_place_of_another() -> None:
    line = b'{"text":"hi","v":1.10,"id":123456789012345678901234567890,"n":[1e5,-0.0],"session_id":1234567890123456789}'
    masked = RowMasker(PLAN, TEXT).mask(line)
    assert b'"v":1.10,"id":123456789012345678901234567890,"n":[1e5,-0.0]' in masked
    assert b"1234567890123456789," not in masked.replace(b"123456789012345678901234567890", b"")
