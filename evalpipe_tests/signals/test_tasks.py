"""Tasks, correction episodes, first-time success and the features of whole sessions."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from evalpipe.contracts.render import conform
from evalpipe.contracts.tables import signals as tables
from evalpipe.signals import SignalsPart, extract_part, extraction_digest, rulefiles
from evalpipe_tests.signals.build import EXTRACTION, START, Talk, frames

ORACLE = Path(__file__).resolve().parents[2].parent / "shared" / "oracles" / "27_steerability" / "expected_py.json"


def extract(*talks: Talk) -> SignalsPart:
    return extract_part(*frames(*talks), EXTRACTION)


def features(part: SignalsPart) -> dict[str, object]:
    return part.session_features.row(0, named=True)


def test_a_confirmation_closes_the_task_before() -> None:
    talk = Talk().user("Fix the login bug").bash("foo", "x", 2).agent("Fixed the login bug, done.")
    talk.user("It works, thanks. Now write the release notes for version two").agent("Done, they are written.")
    talk.user("still missing")
    part = extract(talk)
    assert part.tasks["closed_by"].to_list() == ["confirm", "negative"]
    assert part.tasks.select("first_turn", "last_turn", "n_tool_calls", "n_errors").rows() == [
        (1, 1, 1, 1),
        (2, 3, 0, 0),
    ]
    confirm = part.semantic.filter(pl.col("signal") == "confirm.explicit")
    assert confirm["task_id"].item() == part.tasks["task_id"][0]


def test_silent_acceptance_is_a_candidate() -> None:
    talk = Talk().user("Fix the login bug").agent("Fixed, all tests pass.")
    talk.user("Now write the release notes for version two").agent("Done.")
    part = extract(talk)
    assert part.candidates["signal"].to_list() == ["accept.implicit"]
    assert part.semantic.is_empty()
    assert part.tasks["closed_by"].to_list() == ["accept.implicit", "session_end"]


def test_silent_acceptance_stays_a_candidate_however_low_the_least_confidence() -> None:
    talk = Talk().user("Fix the login bug").agent("Fixed, all tests pass.")
    talk.user("Now write the release notes for version two").agent("Done.")
    part = extract_part(*frames(talk), replace(EXTRACTION, min_confidence=0.0))
    assert part.candidates["signal"].to_list() == ["accept.implicit"]
    assert part.semantic.is_empty()


def test_approvals_and_answers_open_nothing() -> None:
    talk = Talk().user("Fix the login bug").agent("Fixed. Push it now?").user("yes, go ahead").agent("Pushed, done.")
    assert extract(talk).tasks.height == 1


def correcting(verdicts: list[str], *, answered: bool = True) -> Talk:
    words = {
        "x": "No, that is wrong, use the other file",
        "c": "it still does not work",
        "o": "add the second column",
        "+": "it works now",
    }
    talk = Talk().user("build the table for me please").agent("I built the table.")
    for verdict in verdicts:
        talk.user(words[verdict]).agent("I changed it.")
    if not answered:
        talk.steps.pop()
    return talk


@pytest.mark.parametrize(
    ("verdicts", "answered", "expected"),
    [
        (["x", "o"], True, [(1.0, 1, False)]),
        (["x", "c", "c", "+"], True, [(1 / 3, 3, False)]),
        (["c", "x", "o"], True, [(1.0, 1, False)]),
        (["x"], True, [(0.0, None, True)]),
        (["x"], False, [(0.0, None, False)]),
        (["x", "o", "x", "x", "o"], True, [(1.0, 1, False), (0.5, 2, False)]),
        (["c", "o"], True, []),
    ],
)
def test_recovery(verdicts: list[str], answered: bool, expected: list[tuple[float, int | None, bool]]) -> None:
    part = extract(correcting(verdicts, answered=answered))
    found = part.derived.filter(pl.col("signal") == "recovery").sort("turn")
    assert list(found.select("value", "k", "is_censored").iter_rows()) == expected
    row = features(part)
    assert row["n_episodes"] == len(expected)
    assert row["n_recovered_corrections"] == sum(k is not None for _, k, _ in expected)
    assert row["sum_steerability"] == pytest.approx(sum(value for value, _, _ in expected))
    ids = set(part.semantic["signal_id"])
    assert all(inputs and set(inputs) <= ids for inputs in found["inputs"].to_list())


@pytest.mark.skipif(not ORACLE.is_file(), reason="oracle cases do not lie beside the repository")
def test_recovery_against_the_oracle() -> None:
    check = json.loads(ORACLE.read_text(encoding="utf-8"))["checks"]["seed004_score"]
    for case in check["expected"]:
        verdicts = ["o" if good else "c" for good in case["turns"]]
        verdicts[case["correction_index"]] = "x"
        found = extract(correcting(verdicts)).derived.filter(pl.col("signal") == "recovery")
        assert found["value"].item() == pytest.approx(case["score"], abs=check["tolerance_abs"]), case


def test_words_without_an_answer_between_are_one_exchange() -> None:
    talk = Talk().user("build the table for me please").agent("I built the table.")
    talk.user("No, that is wrong, use the other file").user("the one in lib").agent("I changed it.")
    talk.user("it works now").agent("Good.")
    found = extract(talk).derived.filter(pl.col("signal") == "recovery")
    assert found["k"].to_list() == [1]


def test_first_time_success() -> None:
    good = Talk("good").user("fix the login bug").agent("Fixed, done.").user("it works now, thanks")
    bad = Talk("bad").user("fix the login bug").agent("Fixed, done.").user("still broken").agent("Fixed now, done.")
    bad.user("it works now")
    silent = Talk("silent").user("fix the login bug").agent("Fixed, done.")
    undone = (
        Talk("undone")
        .user("fix the login bug")
        .agent("Fixed, done.")
        .user("hm, let me see")
        .bash("git checkout -- a.py")
    )
    found = extract(good, bad, silent, undone).derived.filter(pl.col("signal") == "first_time_success")
    assert dict(found.select("session_id", "value").iter_rows()) == {"good": 1.0, "bad": 0.0, "undone": 0.0}


def test_confirmation_features() -> None:
    talk = (
        Talk().user("fix the login bug").bash("ls").agent("Fixed.").user("still broken").bash("ls -a").agent("Fixed.")
    )
    row = features(extract(talk.user("It works now")))
    assert (row["turns_to_confirmation"], row["calls_to_confirmation"]) == (2, 2)
    assert row["has_final_confirmation"]
    assert row["has_closing_signal"]
    assert not row["is_last_task_unresolved"]
    talk.agent("Good.").user("no, now it is broken again, it still fails")
    row = features(extract(talk))
    assert not row["has_final_confirmation"]
    assert row["is_last_task_unresolved"]


def test_warm_words_that_open_a_task_do_not_close_it() -> None:
    talk = (
        Talk()
        .user("Fix the login bug")
        .agent("Fixed, done.")
        .user("Perfect! Now write the release notes")
        .agent("Which format?")
    )
    row = features(extract(talk))
    assert row["n_praise"] == 1
    assert not row["has_closing_signal"]
    assert row["is_last_task_unresolved"]


@pytest.mark.parametrize(
    ("last", "unresolved"),
    [
        ("Which colour do you want?", True),
        ("Fixed, all tests pass. Want me to push it?", False),
        ("Here is the list.", False),
    ],
)
def test_an_agent_that_waits_leaves_a_task_open(last: str, unresolved: bool) -> None:
    assert features(extract(Talk().user("paint it").agent(last)))["is_last_task_unresolved"] is unresolved


def test_endings() -> None:
    stopped = Talk("a").user("go").bash("sleep 9", "", None, error="interrupted")
    broke = Talk("b").user("go").agent("x").user("API Error: 529 overloaded", origin="system")
    plain = Talk("c").user("go").agent("x").user("a hint", origin="meta")
    part = extract(stopped, broke, plain, Talk("d"))
    columns = ("is_last_task_unresolved", "is_last_step_error", "is_last_turn_interrupted")
    assert part.session_features.select(columns).rows() == [
        (True, False, False),
        (False, True, False),
        (False, False, False),
        (False, False, False),
    ]
    assert part.tasks.filter(pl.col("session_id") == "d").height == 1, "a session without steps has a task"


def test_tables_are_of_the_contract_and_signals_have_tasks() -> None:
    talks = [correcting(["x", "c", "+"]), Talk("s2").user("go").bash("foo", "x", 2)]
    one, two = extract(*talks), extract(*talks)
    for table in (
        tables.HARD,
        tables.SEMANTIC,
        tables.CANDIDATES,
        tables.DERIVED,
        tables.TASKS,
        tables.SESSION_FEATURES,
    ):
        frame = getattr(one, table.name)
        assert conform(table, frame).equals(getattr(two, table.name))
        assert frame.equals(frame.sort(table.sort))
        if "task_id" in table:
            assert frame["task_id"].is_in(one.tasks["task_id"].to_list()).all()


def test_an_empty_part_gives_empty_tables() -> None:
    part = extract_part(*frames(), EXTRACTION)
    assert part.session_features.is_empty()
    assert part.hard.is_empty()


def test_the_digest_follows_the_rule_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = extraction_digest()
    copy = tmp_path / "patterns"
    shutil.copytree(rulefiles.patterns_dir(), copy)
    monkeypatch.setattr(rulefiles, "patterns_dir", lambda: copy)
    assert extraction_digest() == before, "where the files lie does not matter"
    with (copy / "en" / "praise.toml").open("a", encoding="utf-8") as stream:
        stream.write("\n# changed\n")
    assert extraction_digest() != before


def test_when_a_session_took_place_does_not_matter() -> None:
    talk, moved = correcting(["x", "+"]), correcting(["x", "+"])
    moved.session["started_at"] = START + timedelta(days=40)
    assert extract(talk).semantic.equals(extract(moved).semantic)
