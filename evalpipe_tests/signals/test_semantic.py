"""What people say in small sessions, and where it stands in the masked text."""

from __future__ import annotations

import polars as pl
import pytest

from evalpipe.signals import SignalsPart, extract_part
from evalpipe_tests.signals.build import EXTRACTION, Talk, frames


def extract(*talks: Talk) -> SignalsPart:
    return extract_part(*frames(*talks), EXTRACTION)


def said(part: SignalsPart) -> list[tuple[int, str]]:
    return list(part.semantic.select("seq", "signal").iter_rows())


@pytest.mark.parametrize(
    ("agent", "user", "signals"),
    [
        ("I fixed it.", "It works now, thanks", ["confirm.explicit"]),
        ("I fixed it.", "still broken", ["complaint.failure_report"]),
        ("I put it in src.", "No, it belongs in lib", ["correction"]),
        ("Shall I push it?", "no", []),
        ("Shall I use Redis for this?", "No, the cache can wait", []),
        ("Shall I go ahead?", "looks good", []),
        ("Fertig.", "funktioniert nicht", []),
        ("已修复。", "還是沒有反應", ["complaint.failure_report"]),
        ("已完成。", "可以了，谢谢", ["confirm.explicit"]),
        ("Pronto.", "Não era isso, volte como estava", ["correction"]),
        ("Pronto.", "ficou ótimo!", ["praise"]),
        ("Done.", "```\nerror: it does not work\n```", []),
    ],
)
def test_what_a_turn_says(agent: str, user: str, signals: list[str]) -> None:
    talk = Talk().user("42").agent(agent).user(user)
    assert [signal for _, signal in said(extract(talk))] == signals


def test_what_opens_a_session_is_no_feedback() -> None:
    assert said(extract(Talk().user("It still does not work, I get an error"))) == []


@pytest.mark.parametrize(
    "origin", ["command", "meta", "injected", "notification", "compaction", "interrupt", "local_command"]
)
def test_only_people_speak(origin: str) -> None:
    talk = Talk().user("go").agent("done").user("It still does not work", origin=origin)
    assert said(extract(talk)) == []


def test_a_sub_agents_prompt_is_no_turn() -> None:
    talk = Talk().user("go").agent("done").user("It still does not work", parent_id="1")
    assert said(extract(talk)) == []


def test_queued_words_count() -> None:
    talk = Talk().user("go").agent("done").user("It still does not work", origin="queued")
    assert said(extract(talk)) == [(2, "complaint.failure_report")]


def test_an_answered_question_is_no_context_for_the_next_message() -> None:
    talk = Talk().user("go").agent("Shall I push it?").user("wait").user("No, it belongs in lib")
    assert said(extract(talk)) == [(3, "correction")]


def test_one_row_a_turn_and_signal_and_spans_behind_blanked_text() -> None:
    text = "See `x.py`:\n```\nfoo fails\n```\nIt still fails, still broken for <PERSON:a:qkzv>."
    part = extract(Talk().user("go").agent("done").user(text))
    row = part.semantic.row(0, named=True)
    assert part.semantic.height == 1
    assert text[row["span_start"] : row["span_end"]] == row["snippet"]
    assert "still fails" in row["snippet"]
    assert (row["turn"], row["seq"], row["prev_turn_seq"], row["lang"]) == (2, 2, 0, "en")
    assert row["target"].startswith("t:"), "a token, not the name"


def test_low_confidence_rows_are_candidates() -> None:
    sessions, steps = frames(Talk().user("go").agent("done").user("It works now"))
    strict = EXTRACTION.__class__(("en",), 0.99, 160, 10, 3)
    part = extract_part(sessions, steps, strict)
    assert part.semantic.is_empty()
    assert part.candidates["signal"].to_list() == ["confirm.explicit"]
    assert part.session_features["n_confirmations"].item() == 0


def test_languages_of_the_criteria_gate_patterns() -> None:
    sessions, steps = frames(Talk().user("go").agent("done").user("It works now"))
    assert extract_part(sessions, steps, EXTRACTION.__class__(("zh",), 0.75, 160, 10, 3)).semantic.is_empty()


def test_a_repeated_complaint_is_rework_and_a_repeated_routine_is_not() -> None:
    nag = (
        Talk("nag").user("make the header blue please").agent("Done.").user("the header is still broken").agent("Done.")
    )
    nag.user("The header is still BROKEN!").agent("Done.")
    routine = (
        Talk("routine").user("run all tests and commit").agent("Done.").user("run all tests and commit").agent("Done.")
    )
    part = extract(nag, routine)
    assert part.semantic.filter(pl.col("signal") == "rework.repeat")["session_id"].to_list() == ["nag"]
    assert part.candidates.filter(pl.col("signal") == "rework.repeat")["session_id"].to_list() == ["routine"]


def test_a_second_correction_of_one_target_is_rework() -> None:
    talk = (
        Talk()
        .user("sort the rows please")
        .agent("Sorted.")
        .user("No, the order in table.sql should be kept")
        .agent("Kept.")
    )
    talk.user("No, I said keep table.sql, revert it").agent("Reverted.").user("No, use view.sql for this").agent(
        "Used."
    )
    found = extract(talk).semantic.filter(pl.col("signal") == "rework.repeat")
    assert found["seq"].to_list() == [4]


def test_an_agent_that_greets_first_has_done_nothing_yet() -> None:
    talk = Talk().agent("Hello, how can I help?").user("My phone still does not work").agent("Fixed.")
    assert said(extract(talk.user("It still does not work"))) == [(3, "complaint.failure_report")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hurry up please", {"urging"}),
        ("are you done yet?", {"urging"}),
        ("come on, hurry up", {"urging"}),
        ("快点吧", {"urging"}),
        ("já terminou?", {"urging"}),
        ("it still does not work, hurry up", {"urging", "complaint.failure_report"}),
        ("this is ridiculous", {"complaint.sentiment"}),
        ("make the page load faster", set()),
    ],
)
def test_urging_is_no_complaint(text: str, expected: set[str]) -> None:
    opening = {"快": "帮我把登录页面修好，谢谢你了", "j": "por favor faça a página de login para mim"}.get(
        text[0], "fix the login page for me"
    )
    talk = Talk().user(opening).agent("I am working on the page.").user(text)
    rows = extract_part(*frames(talk), EXTRACTION)
    assert set(rows.semantic["signal"]) == expected
    if expected == {"urging"}:
        assert rows.semantic["polarity"].to_list() == [0]
        assert not rows.session_features["n_complaints"].item()
