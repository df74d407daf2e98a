"""Files of reviewers: what is refused, what is kept, and whose items they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalpipe import review
from evalpipe.console import review as verbs
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.review import Labelled
from evalpipe.steps import reviews as steps
from evalpipe.steps.reviews import twin, was_drawn
from evalpipe.store.lake import Lake
from evalpipe_tests.review.test_estimates import reviews, said


@pytest.mark.parametrize(
    ("item_id", "expected"),
    [("s12345678-0001", True), ("s12345678-0200", True), ("12345678.0007", True), ("s12345678-0201", False),
     ("s12345678-0000", False), ("s12345678-7", False), ("s12345678-00007", False), ("12345678.0", False),
     ("s12345678-", False), ("s12345678", False), ("12345678", False), ("other-0001", False),
     ("s12345678-\u0661\u0661\u0661\u0661", False)],
)  # fmt: skip
def test_only_numbers_that_a_sample_held_can_have_gone(item_id: str, expected: bool) -> None:
    assert was_drawn(item_id, {"s12345678": 200, "12345678": None}) is expected


def test_a_file_that_may_hold_labels_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "review.jsonl"
    verbs.check_out(out, force=False)
    out.write_text("labels")
    with pytest.raises(EvalpipeError, match=r"BAD_ARGUMENT.*--force"):
        verbs.check_out(out, force=False)
    verbs.check_out(out, force=True)


HEAD = "item_id,kind,labels,note\n"
GUIDE = review.guide()


def read(folder: Path, data: str | bytes, name: str = "r.csv") -> dict[str, tuple[str, ...]]:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return {one.item_id: one.labels for one in review.read_labels([path], GUIDE)}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (HEAD + 's1a2b3c4d-0001,turn,praise,"never closed\ns1a2b3c4d-0002,turn,praise,\n', "quote"),
        (HEAD + 's1a2b3c4d-0001,turn,praise,"swallows\ns1a2b3c4d-0002,turn,praise,"\n', "quote"),
        (HEAD + "s1a2b3c4d-0001,turn,praise,\n" + HEAD, "there again"),
        ("item_id,labels,labels\ns1a2b3c4d-0001,praise,\n", "twice"),
        (HEAD + "s1a2b3c4d-0001,turn,praise,a,b\n", "5 cells"),
        (HEAD + "s1a2b3c4d-0001,turn,praise\n", "3 cells"),
        (HEAD + f"s1a2b3c4d-0001,turn,praise,{'x' * 200_000}\n", "too long"),
    ],
)
def test_rows_that_are_not_those_that_went_out_are_refused(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(EvalpipeError, match=f"REVIEW_INVALID.*{what}"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    "line",
    ['{"item_id": "s1-0001", "labels": ["praise"], "note": "\\ud800"}',
     '{"item_id": "s1-0001", "labels": ["praise"], "n": ' + "9" * 5_000 + "}",
     '{"item_id": "s1-0001", "labels": ' + "[" * 100_000 + "]" * 100_000 + "}"],
    ids=["surrogate", "number", "depth"],
)  # fmt: skip
def test_odd_json_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(EvalpipeError, match=r"REVIEW_INVALID \[r\.jsonl, (line|row) 1\]"):
        read(tmp_path, line, "r.jsonl")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_files_of_spreadsheets_in_other_languages(tmp_path: Path, delimiter: str, encoding: str) -> None:
    rows = [" Item_ID", " labels", "note"], ["s1-0001", '"Praise; Confirm.explicit"', "schön"]
    text = "".join(delimiter.join(row) + "\r\n" for row in rows)
    assert read(tmp_path, text.encode(encoding)) == {"s1-0001": ("praise", "confirm.explicit")}


def test_handles_differ_by_more_than_letter_case() -> None:
    assert review.check_reviewer("Ann") == "ann"
    both = reviews(said(3, ["praise"], []), said(3, ["neutral"], [], reviewer="Ann", revision=2))
    assert review.last_opinions(both)["labels"].to_list() == [["neutral"]] * 3


def test_who_says_all_that_another_said_is_named() -> None:
    opinions = review.last_opinions(reviews(said(10, ["praise"], []), said(10, ["neutral"], [], reviewer="bea")))
    mine = [Labelled(f"ab.{i:04d}", ("neutral",), "", "x") for i in range(10)]
    assert twin(opinions, mine) == "bea"
    assert twin(opinions, mine[:9]) == "", "few labels may be alike by chance"
    assert twin(opinions, [*mine[:9], Labelled("ab.0009", ("correction",), "", "x")]) == ""


def test_a_damaged_file_of_reviews_is_named(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    path = tmp_path / "signals" / "reviews" / "abc.parquet"
    path.parent.mkdir(parents=True)
    for content in (b"", b"PAR1 nothing PAR1"):
        path.write_bytes(content)
        with pytest.raises(EvalpipeError, match=r"HOME_DAMAGED \[.*abc\.parquet\]"):
            steps.demoted(lake)
