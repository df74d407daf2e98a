"""Labelled rows: their layouts, what extraction says of them, and what counts as right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalpipe.signals import labelled, replay, scoring
from evalpipe.signals.labelled import BadRowError, LabelledCall, LabelledTurn
from evalpipe.signals.replay import Judged
from evalpipe_tests.signals.build import EXTRACTION

TURN = {"id": "a", "text": "no, use the other table", "label": "correction", "lang": "en"}
CALL = {"id": "b", "tool": "Bash", "command": "ls x", "output": "ls: x: No such file or directory", "exit_code": 2,
        "status": "error", "category": "path_not_found", "layer": "execution"}  # fmt: skip


def read(row: object) -> LabelledTurn | LabelledCall:
    return labelled.read_row(json.dumps(row).encode(), 7)


def turn(**more: Any) -> LabelledTurn:
    row = read(TURN | more)
    assert isinstance(row, LabelledTurn)
    return row


def call(**more: Any) -> LabelledCall:
    row = read(CALL | more)
    assert isinstance(row, LabelledCall)
    return row


def test_layouts_are_told_apart_by_their_fields() -> None:
    assert turn().labels == {"correction"}
    assert turn(labels=["complaint"]).labels == {"correction", "complaint"}
    assert turn(id=None).id == "line 7"
    assert call(command=None).command == ""
    assert call(status=None, is_command_error=True).is_error
    assert turn(turn=0).is_opener
    assert not turn(turn=0, prev_user="x").is_opener
    assert not turn().is_opener


@pytest.mark.parametrize(
    ("row", "code", "field"),
    [
        ([1], "NOT_A_RECORD", ""),
        ({"id": "x"}, "BAD_FIELD", "text or output"),
        (TURN | {"label": "happy"}, "BAD_FIELD", "label"),
        (TURN | {"label": None}, "BAD_FIELD", "label"),
        (TURN | {"labels": ["happy"]}, "BAD_FIELD", "labels"),
        (TURN | {"labels": "correction"}, "BAD_FIELD", "labels"),
        (TURN | {"prev_user": 3}, "BAD_FIELD", "prev_user"),
        (CALL | {"status": None}, "BAD_FIELD", "status"),
        (CALL | {"is_command_error": False}, "BAD_FIELD", "is_command_error"),
        (CALL | {"exit_code": "1"}, "BAD_FIELD", "exit_code"),
        (CALL | {"exit_code": True}, "BAD_FIELD", "exit_code"),
        (CALL | {"exit_code": 2**40}, "BAD_FIELD", "exit_code"),
        (CALL | {"tool": None}, "BAD_FIELD", "tool"),
        (CALL | {"tools": ["a", 1]}, "BAD_FIELD", "tools"),
    ],
)
def test_a_row_of_another_form_has_a_code_and_a_field(row: object, code: str, field: str) -> None:
    with pytest.raises(BadRowError) as caught:
        read(row)
    assert (caught.value.code, caught.value.field) == (code, field)


@pytest.mark.parametrize(
    ("line", "code"), [(b"{", "BAD_JSON"), (b'{"text": "\xff"}', "BAD_ENCODING"), (b"[" * 100_000, "TOO_DEEP")]
)
def test_a_line_that_is_no_json_has_a_code(line: bytes, code: str) -> None:
    with pytest.raises(BadRowError) as caught:
        labelled.read_row(line, 1)
    assert caught.value.code == code


def test_a_final_label_replaces_the_one_it_overrules() -> None:
    row = turn(label="complaint", labels=["complaint", "confirm"])
    done = labelled.adjudicated(row, {"a": "correction"})
    assert isinstance(done, LabelledTurn)
    assert (done.label, done.labels) == ("correction", frozenset({"correction", "confirm"}))
    assert labelled.adjudicated(row, {"a": "error", "z": "praise"}) == row
    other = labelled.adjudicated(call(), {"b": "check_failure"})
    assert isinstance(other, LabelledCall)
    assert (other.status, other.is_error, other.category, other.layer) == ("check_failure", False, None, None)
    assert labelled.adjudicated(call(), {"b": "error"}) == call()
    with pytest.raises(BadRowError):
        labelled.read_final(b'{"id": "a", "final": "happy"}')


def test_turns_are_read_with_what_came_before() -> None:
    asked = "Should I use the first table?"
    rows = [
        turn(text="Works now, thanks!", prev_user="fix the login", prev_agent_tail="Done, I fixed it."),
        turn(text="It still fails with the same error.", prev_user="fix the login", prev_agent_tail="I fixed it."),
        turn(text="It still fails with the same error.", turn=0),
        turn(text="no", prev_user="fix the login", prev_agent_tail=asked),
        turn(text="It still fails with the same error."),
    ]
    got = replay.extracted_classes(rows, EXTRACTION)
    assert [sorted(classes) for classes in got] == [["confirm"], ["complaint"], [], [], ["complaint"]]


def test_calls_are_judged_by_tool_exit_code_mark_and_registry() -> None:
    rows = [
        call(),
        call(command="foo | tail", exit_code=0, output="bash: foo: command not found"),
        call(tool="Read", command="a.py", output="Traceback (most recent call last)", exit_code=None),
        call(tool="Fly", output="failed", exit_code=None, is_error=True, tools=["Bash"]),
        call(tool="Bash", output="The user doesn't want to run this.", exit_code=None, is_error=True),
        call(tool="Bash", command="grep x a", output="", exit_code=1),
    ]
    got = replay.extracted_status(rows)
    assert [(j.status, j.category) for j in got] == [
        ("error", "path_not_found"), ("error", "command_not_found"), ("ok", None), ("error", "nonexistent_tool"),
        ("interaction", "refused"), ("benign_nonzero", None),
    ]  # fmt: skip


def test_a_hit_is_right_by_any_label_and_sought_by_the_primary_one() -> None:
    rows = [
        turn(label="correction", labels=["correction", "complaint"]),
        turn(label="complaint", lang="de"),
        turn(label="neutral"),
        turn(label="praise", labels=["confirm"]),
    ]
    got = [frozenset({"complaint"}), frozenset[str](), frozenset({"correction"}), frozenset({"confirm", "praise"})]
    scored = scoring.score_turns(rows, got)
    hits = {key: (h.emitted, h.right, h.labelled, h.found) for key, h in scored.hits.items()}
    assert hits["all", "complaint"] == (1, 1, 1, 0)
    assert hits["all", "correction"] == (1, 0, 1, 0)
    assert hits["all", "confirm"] == (1, 1, 0, 0)
    assert hits["all", "negative_joined"] == (2, 1, 2, 1)
    assert hits["all", "positive_joined"] == (1, 1, 1, 1)
    assert hits["de", "complaint"] == (0, 0, 1, 0)
    assert scored.n_rows == {"all": 4, "en": 3, "de": 1}
    assert scored.confusion == {
        ("correction", "complaint"): 1, ("complaint", "nothing"): 1, ("neutral", "correction"): 1, ("praise", "confirm"): 1
    }  # fmt: skip
    assert [row["label"] for row in scored.wrong] == ["correction", "complaint", "neutral"]


def test_category_and_layer_are_judged_on_right_hits() -> None:
    rows = [call(), call(), call(status="ok"), call(status=None, is_command_error=True, category=None), call()]
    got = [
        Judged("error", "path_not_found", "execution", "r"),
        Judged("error", "auth", "environment", "r"),
        Judged("error", "auth", "environment", "r"),
        Judged("error", "auth", "environment", "r"),
        Judged("ok", None, None, None),
    ]
    scored = scoring.score_calls(rows, got)
    hits = scored.is_error
    assert (hits.emitted, hits.right, hits.labelled, hits.found) == (4, 3, 4, 3)
    assert (scored.category, scored.layer) == ((1, 2), (1, 3))
    assert (scored.n_status_right, scored.n_status) == (2, 4)
    assert scored.status["ok"].emitted == 1
    assert [row["judged"] for row in scored.wrong] == ["error", "error", "error", "ok"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (json.dumps(TURN | {"text": "\ud800 half"}), "BAD_ENCODING"),
        (json.dumps(TURN)[:-1] + ', "n": ' + "9" * 5_000 + "}", "BAD_JSON"),
        ("[" * 100_000, "TOO_DEEP"),
    ],
    ids=["surrogate", "number", "depth"],
)
def test_odd_json_is_refused_and_not_raised(line: str, code: str) -> None:
    with pytest.raises(BadRowError, match=code):
        labelled.read_row(line.encode(), 1)


def test_marks_and_whole_pairs_are_read() -> None:
    row = labelled.read_row(b"\xef\xbb\xbf" + json.dumps(TURN | {"text": "\U0001f44d"}).encode(), 1)
    assert isinstance(row, LabelledTurn)
    assert row.text == "\U0001f44d"
