"""The hand-written corpus: its layout, its counts, and that what measures is not what trains."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from evalpipe.locations import data_dir
from evalpipe.signals.dialogues import read_dialogues, session_of
from evalpipe.signals.labelled import TURN_LABELS, BadRowError, LabelledTurn

FOLDER = data_dir() / "corpus"
LANGUAGES = {"en", "zh", "pt", "es", "fr", "de", "ja", "ko", "ru", "hi", "ar"}


@cache
def parts() -> dict[str, list[LabelledTurn]]:
    files = sorted((FOLDER / "turns").glob("*.txt"))
    return {path.name.removesuffix(".txt"): [turn for _, turn in read_dialogues(path)] for path in files}


def test_it_is_large_and_in_eleven_languages_and_has_every_label_in_each() -> None:
    turns = [turn for name, part in parts().items() if not name.startswith("paraphrases") for turn in part]
    assert len(turns) >= 8_000
    by_language = Counter((turn.lang, turn.label) for turn in turns)
    assert {lang for lang, _ in by_language} == LANGUAGES
    assert all(by_language[lang, label] >= 40 for lang in LANGUAGES for label in TURN_LABELS)
    with_context = sum(not turn.is_opener for turn in turns)
    assert with_context >= 8_000
    assert all(turn.prev_user and turn.prev_agent_tail for turn in turns if not turn.is_opener)


def test_complaints_tell_their_kind() -> None:
    turns = [turn for part in parts().values() for turn in part]
    assert all((turn.subtype is not None) == (turn.label == "complaint") for turn in turns)


def test_no_dialogue_is_in_two_parts_and_the_rule_of_the_split_holds() -> None:
    sessions = {name: {turn.session for turn in part} for name, part in parts().items()}
    seen: Counter[str] = Counter(session for found in sessions.values() for session in found)
    assert max(seen.values()) == 1
    for name, found in sessions.items():
        if not name.startswith("paraphrases"):
            # One dialogue in five measures; its id decides, so no turn of it can be in both parts.
            assert {int(session[:6], 16) % 5 == 0 for session in found} == {name.endswith("held")}, name
    held = sum(len(part) for name, part in parts().items() if name.endswith("held"))
    trained = sum(len(part) for name, part in parts().items() if name.endswith("train"))
    assert 0.15 < held / (held + trained) < 0.25


def test_no_turn_that_measures_stands_word_for_word_in_training_but_for_very_short_ones() -> None:
    trained = {turn.text.casefold() for name, part in parts().items() if name.endswith("train") for turn in part}
    same = [
        turn.text
        for name, part in parts().items()
        if not name.endswith("train")
        for turn in part
        if not turn.is_opener and len(turn.text) > 24 and turn.text.casefold() in trained
    ]
    assert same == []


def test_hosts_and_addresses_are_examples() -> None:
    text = "\n".join(path.read_text("utf-8") for path in sorted((FOLDER / "turns").glob("*.txt")))
    mails = re.findall(r"[\w.+-]+@([\w.-]+\.[a-z]{2,})", text)
    assert all(re.fullmatch(r"(?:.*\.)?example\.(?:org|com|net)", host) for host in mails), mails
    links = re.findall(r"https?://([\w.-]+\w)", text)
    assert all(re.search(r"(?:^|\.)example\.(?:org|com|net)$|^localhost$|^www$", host) for host in links), links
    assert not re.search(r"\b(?:sk|ghp|xoxb|glpat)[-_][A-Za-z0-9]{12,}|\bAKIA[A-Z0-9]{12,}", text)


def test_the_card_has_the_counts_of_the_files() -> None:
    card = (FOLDER / "README.md").read_text("utf-8")
    for name, part in parts().items():
        shown = [turn for turn in part if not (name.startswith("paraphrases") and turn.is_opener)]
        n_openings = sum(turn.is_opener for turn in shown)
        labels = Counter(turn.label for turn in shown)
        order = ("confirm", "praise", "complaint", "correction", "requirement_iteration", "neutral")
        cells = [str(len(shown)), str(n_openings), *(str(labels[label]) for label in order)]
        assert f"| `{name}` | {' | '.join(cells)} |" in card, name


def written(folder: Path, text: str, name: str = "en.train.txt") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_a_dialogue_gives_each_turn_what_came_before_it(tmp_path: Path) -> None:
    text = (
        "@ domain=coding register=terse\n"
        "u|neutral|write a parser\n"
        "a|Done: parser.py.\\nIt reads both.\n"
        "u|complaint.failure_report,confirm|works, but\\nthe tests fail\n"
        "u|praise|wow\n"
        "\n"
        "@ domain=x register=y weight=3\n"
        "a|Hello.\n"
        "u|neutral|a|b\n"
    )
    rows = list(read_dialogues(written(tmp_path, text)))
    assert [number for number, _ in rows] == [2, 4, 5, 9]
    first, second, third, other = (turn for _, turn in rows)
    assert first.is_opener
    assert first.prev_user is None
    assert first.session == session_of("en", "write a parser", None)
    assert second.id == f"en-{first.session}-1"
    assert (second.text, second.prev_user) == ("works, but\nthe tests fail", "write a parser")
    assert second.prev_agent_tail == "Done: parser.py.\nIt reads both."
    assert (second.label, second.subtype, second.labels) == ("complaint", "failure_report", {"complaint", "confirm"})
    assert (third.prev_user, third.prev_agent_tail, third.is_opener) == (second.text, None, False)
    assert (first.weight, other.weight) == (1, 3)
    assert (other.text, other.prev_agent_tail, other.is_opener) == ("a|b", "Hello.", False)
    assert other.session != first.session
    paraphrase = next(iter(read_dialogues(written(tmp_path, text, "paraphrases.zh.txt"))))
    assert paraphrase[1].lang == "zh"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("u|neutral|before any dialogue\n", "line 1"),
        ("@ domain=x\nx|neutral|what\n", "line 2"),
        ("@ domain=x\nu|happy|what\n", "line 2"),
        ("@ domain=x\nu|complaint|no kind\n", "line 2"),
        ("@ domain=x\nu|complaint.loud|no such kind\n", "line 2"),
        ("@ domain=x\nu|praise.failure_report|kind of another label\n", "line 2"),
        ("@ domain=x\n\nplain text\n", "line 3"),
        ("@ domain=x weight=lots\nu|neutral|what\n", "line 1"),
        ("@ domain=x weight=0\nu|neutral|what\n", "line 1"),
    ],
)
def test_a_line_that_breaks_the_layout_is_named(tmp_path: Path, text: str, where: str) -> None:
    with pytest.raises(BadRowError) as caught:
        list(read_dialogues(written(tmp_path, text)))
    assert caught.value.code == "BAD_FIELD"
    assert caught.value.field.startswith(where)


def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "en.train.txt"
    path.write_bytes(b"@ domain=x\nu|neutral|caf\xe9\n")
    with pytest.raises(BadRowError, match="BAD_ENCODING"):
        list(read_dialogues(path))
