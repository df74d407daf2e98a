"""Outcomes: scores under criteria, how sessions end, every metric's pair."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.metrics import METRICS
from evalpipe.signals import extract_part, session_outcomes
from evalpipe.signals.ledger import empty_ledger
from evalpipe_tests.signals.build import EXTRACTION, PRICES, START, Talk, criteria, frames, later

DAY = date(2026, 1, 5)


def outcomes(*talks: Talk, starts: pl.DataFrame | None = None, is_settled: bool = True, **rules: Any) -> pl.DataFrame:
    sessions, steps = frames(*talks)
    part = extract_part(sessions, steps, EXTRACTION)
    around = later() if starts is None else starts
    return session_outcomes(
        DAY, sessions, part.session_features, part.hard, part.semantic, around, criteria(**rules),
        is_settled=is_settled, usage=part.session_usage, prices=PRICES, ledger=empty_ledger(),
    )  # fmt: skip


def one(talk: Talk, **more: Any) -> dict[str, Any]:
    return outcomes(talk, **more).row(0, named=True)


def happy(**session: Any) -> Talk:
    return Talk(**session).user("fix the login bug").bash("ls").agent("Fixed.").user("It works now, thank you so much")


def angry(**session: Any) -> Talk:
    return Talk(**session).user("fix the login bug").agent("Fixed.").user("it still does not work")


def test_a_positive_outcome_needs_a_score_and_a_positive_word() -> None:
    row = one(happy())
    assert row["signal_score"] == pytest.approx(1.5)
    assert (row["positive_outcome_num"], row["positive_outcome_den"]) == (1.0, 1.0)
    silent = Talk().user("fix the login bug").bash("git commit -m x").agent("Fixed.")
    scored = one(silent, weights={"artifact.accepted": 1.0})
    assert scored["signal_score"] == 1.0
    assert scored["positive_outcome_num"] == 0.0, "a commit is no word of the user"


def test_signals_that_cancel_meet_the_threshold_exactly() -> None:
    weights = {"confirm.explicit": 0.1, "praise": 0.2, "complaint.failure_report": 0.3}
    talk = (
        Talk()
        .user("fix it please")
        .agent("Fixed.")
        .user("It still does not work")
        .agent("Fixed.")
        .user("It works now, thank you so much")
    )
    row = one(talk, weights=weights)
    assert row["signal_score"] == 0.0
    assert row["positive_outcome_num"] == 0.0


def test_counts_are_capped_and_signs_come_from_polarity() -> None:
    talk = Talk().user("fix the login bug")
    for i in range(5):
        talk.agent("Fixed.").user(f"it still does not work, attempt {i}")
    assert one(talk, count_cap=2)["signal_score"] == pytest.approx(-1.2)


@pytest.mark.parametrize(("decides", "expected"), [(True, 1.0), (False, 0.0)])
def test_the_log_decides_where_it_states_an_outcome(decides: bool, expected: float) -> None:
    row = one(angry(is_objective_success=True), objective_decides=decides)
    assert row["positive_outcome_num"] == expected
    assert (row["objective_success_num"], row["objective_success_den"]) == (1.0, 1.0)
    unknown = one(angry())
    assert (unknown["objective_success_num"], unknown["objective_success_den"]) == (None, None)


def test_every_metric() -> None:
    talk = (
        Talk()
        .user("fix the login bug")
        .bash("foo", "bash: foo: command not found", 127)
        .bash("foo")
        .bash("bar", "x", 3)
    )
    talk.agent("Fixed.").user("No, that is wrong, use the other file").agent("Changed.").user("It works now")
    row = one(talk)
    pairs = {metric.name: (row[f"{metric.name}_num"], row[f"{metric.name}_den"]) for metric in METRICS}
    assert pairs == {
        "positive_outcome": (1.0, 1.0),
        "confirmation": (1.0, 1.0),
        "correction": (1.0, 1.0),
        "complaint": (0.0, 1.0),
        "abandonment": (0.0, 1.0),
        "right_first_time": (0.0, 1.0),
        "unrecovered_correction": (0.0, 1.0),
        "execution_errors": (2.0, 1.0),
        "execution_success": (1.0, 3.0),
        "first_try_success": (0.0, 2.0),
        "self_repair": (1.0, 2.0),
        "steerability": (1.0, 1.0),
        "convergence": (pytest.approx(1 - 1 / 30), 1.0),
        "objective_success": (None, None),
    }


def test_nothing_to_count_is_zero_of_zero() -> None:
    row = one(Talk().user("hello there"))
    for name in ("execution_success", "first_try_success", "self_repair", "steerability"):
        assert (row[f"{name}_num"], row[f"{name}_den"]) == (0.0, 0.0)
    assert row["convergence_num"] == 0.0


SPOKEN = ("confirmation", "correction", "complaint", "right_first_time", "unrecovered_correction", "convergence")


def test_where_nobody_spoke_nothing_is_known_but_what_the_log_states() -> None:
    for solved, expected in ((True, (1.0, 1.0)), (False, (0.0, 1.0)), (None, (None, None))):
        row = one(Talk(is_objective_success=solved))
        assert (row["positive_outcome_num"], row["positive_outcome_den"]) == expected
        for name in (*SPOKEN, "execution_errors"):
            assert (row[f"{name}_num"], row[f"{name}_den"]) == (None, None), name


def test_a_run_of_a_benchmark_that_broke_is_no_failure_of_the_agent() -> None:
    def broken(**session: Any) -> dict[str, Any]:
        return one(Talk(end_status_logged="error", **session).user("fix the login bug").agent("Let me see."))

    row = broken(task_id="t1")
    assert row["end_status"] == "error"
    for name in ("positive_outcome", *SPOKEN):
        assert (row[f"{name}_num"], row[f"{name}_den"]) == (None, None), name
    assert broken(task_id="t1", is_objective_success=False)["positive_outcome_den"] == 1.0
    assert broken()["positive_outcome_den"] == 1.0, "a session of a user that ended in an error"


def test_right_first_time_and_convergence() -> None:
    row = one(happy())
    assert row["right_first_time_num"] == 1.0
    assert row["convergence_num"] == 1.0, "one request, then a confirmation"


def at(hours: float) -> Any:
    return START + timedelta(hours=hours)


def test_abandoned_unless_the_user_goes_on_in_the_same_place() -> None:
    assert one(angry())["end_status"] == "abandoned"
    assert one(angry())["abandonment_num"] == 1.0
    for user, place, hours, expected in [
        ("u1", "w1", 2.0, "interrupted"), ("u1", "w1", 25.1, "abandoned"), ("u1", "w2", 2.0, "abandoned"),
        ("u2", "w1", 2.0, "abandoned"), ("u1", "w1", 0.5, "abandoned"), ("u1", "w1", 25.0, "interrupted"),
    ]:  # fmt: skip
        row = one(angry(), starts=later(("u1", "w1", "s1", START), (user, place, "s2", at(hours))))
        assert row["end_status"] == expected, (user, place, hours)
        assert (row["abandonment_num"], row["abandonment_den"]) == (float(expected == "abandoned"), 1.0)


def test_a_session_is_no_continuation_of_itself() -> None:
    instant = angry(ended_at=START)
    assert one(instant, starts=later(("u1", "w1", "s1", START)))["end_status"] == "abandoned"


def test_censored_sessions_have_no_abandonment() -> None:
    for row in (one(angry(), is_settled=False), one(angry(user_id=None))):
        assert row["end_status"] == "open"
        assert (row["abandonment_num"], row["abandonment_den"]) == (None, None)
    early = one(happy(), is_settled=False)
    assert early["end_status"] == "completed"
    assert early["abandonment_den"] is None, "or early days would look better than they are"


@pytest.mark.parametrize("logged", ["completed", "error", "timeout"])
def test_the_log_says_how_a_session_ended(logged: str) -> None:
    assert one(angry(end_status_logged=logged))["end_status"] == logged


def test_other_ends() -> None:
    assert one(happy())["end_status"] == "completed"
    assert one(happy(end_status_logged="interrupted"))["end_status"] == "interrupted"
    stop = Talk().user("go").agent("thinking").user("[Request interrupted by user]", origin="interrupt")
    assert one(stop)["end_status"] == "interrupted"
    assert one(Talk().user("go").agent("x").user("API Error: overloaded", origin="system"))["end_status"] == "error"


def test_columns_of_the_session() -> None:
    row = one(happy(input_tokens=5, output_tokens=2, logged_cost_usd=0.5, n_tool_calls=99))
    assert (row["total_tokens"], row["cost_usd"], row["duration_ms"]) == (7, 0.5, 3_600_000)
    assert (row["routing_epoch"], row["day"], row["n_tool_calls"]) == ("all", DAY, 1)
    assert row["measurement"] == criteria().measurement
    bare = one(happy())
    assert (bare["total_tokens"], bare["cost_usd"]) == (None, None)


def test_signals_below_the_least_confidence_do_not_score() -> None:
    sessions, steps = frames(happy())
    part = extract_part(sessions, steps, EXTRACTION)
    unsure = part.semantic.with_columns(confidence=pl.lit(0.5))
    out = session_outcomes(
        DAY,
        sessions,
        part.session_features,
        part.hard,
        unsure,
        later(),
        criteria(),
        is_settled=True,
        usage=part.session_usage,
        prices=PRICES,
        ledger=empty_ledger(),
    )
    assert out["signal_score"].item() == 0.0


def test_sessions_without_features_are_refused() -> None:
    sessions, steps = frames(happy())
    part = extract_part(sessions, steps, EXTRACTION)
    with pytest.raises(EvalpipeError, match="INVALID_OUTCOMES"):
        session_outcomes(
            DAY,
            sessions,
            part.session_features.clear(),
            part.hard,
            part.semantic,
            later(),
            criteria(),
            is_settled=True,
            usage=part.session_usage,
            prices=PRICES,
            ledger=empty_ledger(),
        )


def test_a_run_of_a_sub_agent_that_was_exported_apart_is_no_session_but_a_fork_is() -> None:
    started = Talk("child", parent_session_id="s1").user("look for the tests", "meta").bash("ls").agent("Found them.")
    fork = happy(session_id="fork", parent_session_id="s1", n_turns=2)
    rows = outcomes(happy(n_turns=2), started, fork)
    assert rows["session_id"].to_list() == ["fork", "s1"]
    # No text was logged, but no other session is named either: a session of which little is known.
    assert outcomes(Talk("mute").bash("ls"))["session_id"].to_list() == ["mute"]
