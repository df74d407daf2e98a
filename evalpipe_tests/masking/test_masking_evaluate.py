"""What counts as found and harmed, and which corpora are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking import corpus
from evalpipe.masking.evaluate import evaluate
from evalpipe.masking.trace import Edit, characters, original
from evalpipe_tests.masking.support import PLAN

MAIL = "write to ana.m@example.org today"


def _write(folder: Path, name: str, *rows: object) -> None:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def _span(text: str, value: str, entity: str, **more: str) -> dict[str, object]:
    start = text.index(value)
    return {"start": start, "end": start + len(value), "type": entity, **more}


def test_a_missed_place_and_a_harmed_text_are_told_by_id_and_place(tmp_path: Path) -> None:
    unknown = "the colour is mauve, mail ana.m@example.org"
    _write(
        tmp_path,
        "positives.jsonl",
        {"id": "p1", "text": MAIL, "spans": [_span(MAIL, "ana.m@example.org", "EMAIL_ADDRESS")], "lang": "en"},
        {"id": "p2", "text": unknown, "spans": [_span(unknown, "mauve", "COLOUR")], "lang": "en", "tier": "hard"},
    )
    _write(
        tmp_path,
        "negatives.jsonl",
        {"id": "n1", "text": MAIL},
        {"id": "n2", "text": "nothing"},
        {"id": "n3", "text": MAIL, "tier": "soft"},
    )
    result = evaluate(PLAN, corpus.load(tmp_path))
    assert result.count_by("entity", lambda place: True) == {"COLOUR": (0, 1), "EMAIL_ADDRESS": (1, 1)}
    assert result.count(lambda place: place.tier == "rule") == (1, 1)
    assert (result.touched, result.touched_soft, result.n_negatives) == (["n1"], ["n3"], 2)
    assert [(h.id, MAIL[h.start : h.end] if h.id == "n1" else "") for h in result.harms] == [
        ("p2", ""),
        ("n1", "ana.m@example.org"),
    ]
    assert (result.n_inside, result.n_outside) == (len("ana.m@example.org") + len("mauve"), len("ana.m@example.org"))


def test_the_split_marker_is_gone_before_anything_counts(tmp_path: Path) -> None:
    joined = "key AK" + "IA2XNLKJJZJOSHZRNM end"
    row = {"id": "p", "text": joined.replace("IA2X", "IA<~>2X"), "len": len(joined)}
    _write(tmp_path, "positives.jsonl", row | {"spans": [{"start": 4, "end": 24, "type": "SECRET"}]})
    assert evaluate(PLAN, corpus.load(tmp_path)).count(lambda place: True) == (1, 1)


def test_one_value_in_two_spellings_is_one_token(tmp_path: Path) -> None:
    plain, escaped = "mail ana.m@example.org", r"mail ana.m\u0040example.org"
    rows = [
        {"id": str(n), "text": text, "spans": [_span(text, text[5:], "EMAIL_ADDRESS", canon="ana.m@example.org")]}
        for n, text in enumerate((plain, escaped))
    ]
    _write(tmp_path, "positives.jsonl", *rows)
    tokens = evaluate(PLAN, corpus.load(tmp_path)).tokens
    assert [len(found) for found in tokens.values()] == [1]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("{", "not JSON"),
        ("[]", "not an object"),
        ('{"id": "a"}', "text is missing"),
        ('{"text": "abc", "len": 4}', "len is not 3"),
        ('{"text": "abc", "spans": {}}', "spans is not a list"),
        ('{"text": "abc", "spans": [{"start": 2, "end": 9, "type": "X"}]}', "inside the text"),
        ("", "holds no row"),
    ],
)
def test_an_ill_formed_corpus_is_refused_by_line(tmp_path: Path, content: str, what: str) -> None:
    (tmp_path / "positives.jsonl").write_text(content, "utf-8")
    with pytest.raises(EvalpipeError, match=what) as caught:
        corpus.load(tmp_path)
    assert caught.value.code == "CORPUS_INVALID"
    assert not content or caught.value.where.endswith("positives.jsonl:1")


def test_one_bad_row_costs_no_other_and_is_named(tmp_path: Path) -> None:
    good = '{"id": "a", "text": "abc", "spans": [{"start": 0, "end": 2, "type": "X"}]}'
    empty_span = '{"id": "b", "text": "abc", "spans": [{"start": 2, "end": 2, "type": "X"}]}'
    (tmp_path / "positives.jsonl").write_text(f"{good}\n{empty_span}\nabc\n{good}\n", "utf-8")
    loaded = corpus.load(tmp_path)
    assert [sample.id for sample in loaded.positives] == ["a", "a"]
    assert [where.rpartition(":")[2] for where, _ in loaded.refused] == ["2", "3"]
    assert "abc" not in loaded.refused[1][1]


def test_sessions_need_turns_and_a_folder_needs_a_file(tmp_path: Path) -> None:
    with pytest.raises(EvalpipeError, match="holds none of"):
        corpus.load(tmp_path)
    _write(tmp_path, "sessions.jsonl", {"session_id": "s", "turns": "no"})
    with pytest.raises(EvalpipeError, match="turns is not a list"):
        corpus.load(tmp_path)
    with pytest.raises(EvalpipeError) as caught:
        corpus.load(tmp_path / "absent")
    assert caught.value.code == "SOURCE_NOT_FOUND"


def test_edits_of_later_rounds_lead_back_to_the_first_text() -> None:
    # "ab CD ef GH" -> "ab <T> ef GH" -> "ab <T> ef <U>" -> "ab <V>" over the first token and what follows it
    first = [Edit(3, 5, b"<T>", 1)]
    second = [Edit(10, 12, b"<U>", 2)]
    assert original([first, second]) == [Edit(3, 5, b"<T>", 1), Edit(9, 11, b"<U>", 2)]
    third = [Edit(4, 9, b"<V>", 3)]
    assert original([first, second, third]) == [Edit(3, 8, b"<V>", 3), Edit(9, 11, b"<U>", 2)]
    assert original([]) == []


def test_bytes_become_characters() -> None:
    raw = "aé密b".encode()
    assert characters(raw, [0, 1, 3, 6, 7]) == [0, 1, 2, 3, 4]


def test_a_bad_span_or_turn_costs_itself_and_nothing_beside_it(tmp_path: Path) -> None:
    good, bad = _span(MAIL, "ana.m@example.org", "email_address"), {"start": 3, "end": 3, "type": "X"}
    _write(
        tmp_path, "positives.jsonl",
        {"id": "p", "text": MAIL, "spans": [good, bad, {"start": 1, "end": 999, "type": "X"}], "tier": "RULE"},
    )  # fmt: skip
    turns = [{"turn": 0, "text": MAIL, "spans": [good]}, {"turn": 1}, {"turn": 2, "text": MAIL, "spans": [good]}]
    _write(tmp_path, "sessions.jsonl", {"session_id": "s", "turns": turns})
    loaded = corpus.load(tmp_path)
    assert [len(sample.labels) for sample in loaded.positives] == [1]
    assert [turn.id for turn in loaded.sessions[0].turns] == ["s/0", "s/2"]
    assert sorted(where.rpartition("/")[2] for where, _ in loaded.refused) == [
        "positives.jsonl:1 span 1", "positives.jsonl:1 span 2", "sessions.jsonl:1 turn 1"
    ]  # fmt: skip
    result = evaluate(PLAN, loaded)
    assert result.count(lambda place: place.tier == "rule" and place.entity == "EMAIL_ADDRESS") == (3, 3)


def test_a_row_of_bad_spans_only_is_left_out_whole(tmp_path: Path) -> None:
    bad = {"start": 3, "end": 3, "type": "X"}
    _write(tmp_path, "positives.jsonl", {"id": "p", "text": MAIL, "spans": [bad]}, {"id": "q", "text": MAIL})
    assert [sample.id for sample in corpus.load(tmp_path).positives] == ["q"]


def test_places_of_one_id_in_two_rows_show_each_its_own_text(tmp_path: Path) -> None:
    from evalpipe.console import mask_eval

    _write(
        tmp_path, "positives.jsonl",
        *({"id": "p", "text": text, "spans": [_span(text, text[5:], "COLOUR")]} for text in ("the  mauve", "the  ochre")),
    )  # fmt: skip
    loaded = corpus.load(tmp_path)
    told = mask_eval.summary(PLAN, evaluate(PLAN, loaded), mask_eval._texts(loaded))
    assert [place["value"] for place in told["missed"]] == ["mauve", "ochre"]
