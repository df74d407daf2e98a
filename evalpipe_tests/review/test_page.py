"""The page that labels a sample: hostile texts stay texts, keys label, what it saves can be imported."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalpipe import review
from evalpipe.console import review as review_verbs
from evalpipe.console.entry import known_error
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.signals import SIGNALS, Family
from evalpipe_tests.report import browser

HOSTILE = "no & <!-- </script><script>alert(1)</script> @DATA@"


def items() -> list[dict[str, object]]:
    blank = {"previous_request": "Please fix it", "agent_tail": "Done.", "labels": [], "note": ""}
    return [
        blank | {"item_id": "ab.0001", "kind": "turn", "lang": "en", "shown": HOSTILE},
        blank | {"item_id": "ab.0002", "kind": "call", "lang": "any", "shown": "Bash\nls"},
        blank | {"item_id": "ab.0003", "kind": "turn", "lang": "pt", "shown": "obrigado", "labels": ["praise"]},
    ]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    source = tmp_path / "s.jsonl"
    source.write_text(review.write_items(items(), ".jsonl"), "utf-8")
    out = tmp_path / "s.html"
    out.write_text(review.page(source, review.guide()), "utf-8")
    return out


def test_texts_are_data_and_nothing_may_be_loaded(made: Path) -> None:
    text = made.read_text("utf-8")
    assert text.count("</script>") == 2, "the block of data, and the page's own script"
    assert "default-src 'none'" in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")
    block = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert block is not None
    data = json.loads(block[1])
    assert data["items"][0]["shown"] == HOSTILE
    assert data["items"][2]["labels"] == ["praise"]


def test_keys_of_a_kind_are_different_letters() -> None:
    guide = review.guide()
    for kind in ("turn", "call"):
        keys = [label.key for label in guide.of(kind)]
        assert len(set(keys)) == len(keys)
        assert all(re.fullmatch("[a-z]", key) for key in keys)
        assert guide.signals(kind)


def test_what_is_no_sample_is_refused(tmp_path: Path) -> None:
    for text in ("", '{"item_id": "x"}\n', "{broken\n"):
        path = tmp_path / "bad.jsonl"
        path.write_text(text)
        with pytest.raises(EvalpipeError, match="REVIEW_INVALID"):
            review.page(path, review.guide())


@pytest.fixture
def chromium() -> Iterator[browser.Browser]:
    path = browser.find()
    if path is None:
        pytest.skip("no Chromium to look with")
    opened = browser.Browser(path)
    yield opened
    opened.close()


def test_a_sample_is_labelled_by_keys(made: Path, chromium: browser.Browser) -> None:
    def press(key: str, *, shift: bool = False) -> None:
        for kind in ("keyDown", "keyUp"):
            chromium.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=8 if shift else 0)

    chromium.open(made)
    assert chromium.run("document.getElementById('shown').textContent") == HOSTILE
    press("X", shift=True)
    press("F", shift=True)
    press("Enter")
    press("x")  # no label of a call
    press("e")
    saved = made.with_name("saved.jsonl")
    saved.write_text(chromium.run("window.evalpipeReview.text()"))
    found = {one.item_id: one.labels for one in review.read_labels([saved], review.guide())}
    assert found == {
        "ab.0001": ("correction", "complaint.failure_report"),
        "ab.0002": ("command_error",),
        "ab.0003": ("praise",),
    }
    assert chromium.messages() == []
    assert chromium.requests() == [made.as_uri()]


def test_two_reviewers_in_one_browser_keep_their_own_labels(made: Path, chromium: browser.Browser) -> None:
    def labelled() -> dict[str, str]:
        rows = [json.loads(line) for line in chromium.run("window.evalpipeReview.text()").splitlines()]
        return {row["item_id"]: f"{row['reviewer']} {row['labels'][0]}" for row in rows}

    def press(key: str, code: str) -> None:
        for kind in ("keyDown", "keyUp"):
            chromium.call("Input.dispatchKeyEvent", type=kind, key=key, code=code)

    chromium.open(made)
    chromium.run("window.evalpipeReview.enter('Ann')")
    press("\u0447", "KeyX")  # x on a Cyrillic keyboard
    assert labelled() == {"ab.0001": "ann correction", "ab.0003": "ann praise"}
    chromium.run("document.getElementById('who').value = 'ann'; document.getElementById('save').click()")
    chromium.open(made)
    assert "ab.0001" not in labelled()
    chromium.run("window.evalpipeReview.enter('bea')")
    assert labelled() == {"ab.0003": "bea praise"}
    chromium.run("window.evalpipeReview.enter('ann')")
    assert labelled()["ab.0001"] == "ann correction"
    assert "Restored 1 labels of ann" in chromium.run("document.getElementById('said').textContent")
    chromium.run("document.getElementById('discard').click()")
    assert labelled() == {"ab.0003": "ann praise"}
    assert chromium.messages() == []


def test_every_signal_that_one_item_can_show_has_a_label() -> None:
    guide = review.guide()
    known = {label.name for label in guide.labels}
    # Told from several steps, or stated by the log and no matter of judgement.
    elsewhere = {"loop.retry", "self_fix", "call.approved", "explicit_feedback.positive", "explicit_feedback.negative"}
    elsewhere |= {"objective.success", "objective.failure"}
    signals = {s.name for s in SIGNALS if s.family is not Family.DERIVED}
    assert signals - known == elsewhere
    assert known - signals == {"iteration", "neutral", "ok", "unsure"}


def test_who_writes_a_page_is_told_what_the_browser_saves_and_what_comes_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "my sample.jsonl"
    source.write_text(review.write_items(items(), ".jsonl"), "utf-8")
    review_verbs.page(source, tmp_path / "s.html", force=False)
    said = capsys.readouterr().err
    assert "saves my sample.HANDLE.labelled.jsonl" in said
    assert "evalpipe review import 'my sample.HANDLE.labelled.jsonl' --reviewer HANDLE" in said


def test_a_file_that_is_not_there_is_not_told_to_make_room_on_the_disk(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file") as caught:
        review.read_files([tmp_path / "review.labelled.jsonl"], review.guide())
    told = known_error(caught.value)
    assert told.code == "FILE_FAILED"
    assert "review.labelled.jsonl" in told.where
    assert told.fix == "Nothing is there under that name: check its spelling, and that its folder exists."
