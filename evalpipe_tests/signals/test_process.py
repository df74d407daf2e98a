"""Process metrics of sessions and tasks, and promises that did not hold."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from evalpipe.contracts.tables.process import process_columns
from evalpipe.signals import SignalsPart, extract_part, rulefiles
from evalpipe.signals.context import promises
from evalpipe_tests.signals.build import EXTRACTION, START, Talk, frames

NAMES = [column.name for column in process_columns()]


def extract(*talks: Talk) -> SignalsPart:
    return extract_part(*frames(*talks), EXTRACTION)


def measured(talk: Talk) -> dict[str, Any]:
    return extract(talk).process.row(0, named=True)


def test_a_log_without_steps_counts_nothing() -> None:
    part = extract(Talk())
    assert set(part.process.select(NAMES).row(0)) == {None}
    assert set(part.tasks.select(NAMES).row(0)) == {None}


def test_rates_without_a_denominator_are_unknown_and_counts_are_not() -> None:
    row = measured(Talk().user("what is a mutex?").agent("A lock."))
    assert (row["n_tool_calls"], row["n_command_errors"], row["n_retries"]) == (0, 0, 0)
    assert row["error_rate"] is row["self_fixed_share"] is row["hallucinated_per_1000_calls"] is None
    assert (
        row["reasoning_tokens"] is row["total_tokens"] is row["first_response_ms"] is row["turns_to_acceptance"] is None
    )


def failing(talk: Talk) -> Talk:
    return talk.bash("make it", "bash: make: command not found", 127)


def test_trying_again_is_a_retry_and_testing_a_change_a_fix_cycle() -> None:
    talk = failing(failing(failing(Talk().user("go"))))
    assert (measured(talk)["n_retries"], measured(talk)["n_loops"], measured(talk)["n_fix_cycles"]) == (2, 1, 0)
    talk = failing(Talk().user("go")).tool("Edit", "ok", arguments='{"file_path": "a.py"}')
    talk = failing(talk).tool("Edit", "ok", arguments='{"file_path": "a.py"}').bash("make it")
    row = measured(talk)
    assert (row["n_retries"], row["n_loops"], row["n_fix_cycles"]) == (0, 0, 2)
    assert (row["n_command_errors"], row["n_self_fixed"], row["self_fixed_share"]) == (2, 2, 1.0)
    assert row["error_rate"] == pytest.approx(2 / 3), "an edit gives no status"


def test_changing_signatures_are_progress() -> None:
    talk = Talk().user("go")
    for module in ("numpy", "scipy", "pandas"):
        talk.bash(
            "jupyter go", f"Traceback (most recent call last):\n  x\nModuleNotFoundError: No module named '{module}'", 1
        )
    assert measured(talk)["n_loops"] == 0


def test_checks_that_fail_at_the_end() -> None:
    talk = Talk().user("go").bash("pytest -q", "1 failed, 2 passed", 1).bash("ruff check .", "Found 3 errors.", 1)
    row = measured(talk.bash("pytest -q", "3 passed"))
    assert (row["n_check_failures"], row["n_checks_failing_at_end"]) == (2, 1)


def test_tokens_of_tasks_are_of_steps_and_of_sessions_as_stated() -> None:
    talk = Talk(output_tokens=90, reasoning_tokens=40).user("Fix the login bug").agent("Fixed, done.", output_tokens=5)
    talk.user("It works, thanks. Now write the release notes for version two").agent("Done.")
    part = extract(talk)
    assert part.process.select("output_tokens", "reasoning_tokens", "total_tokens").rows() == [(90, 40, 90)]
    assert part.tasks.select("output_tokens", "reasoning_tokens").rows() == [(5, None), (None, None)]
    assert part.tasks["turns_to_acceptance"].to_list() == [1, None]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"started_at": START + timedelta(seconds=3), "ended_at": START + timedelta(seconds=9)}, 9_000),
        ({"started_at": START + timedelta(seconds=3), "first_token_ms": 250}, 3_250),
        ({"started_at": START - timedelta(seconds=3)}, None),
        ({}, None),
    ],
)
def test_first_response(answer: dict[str, Any], expected: int | None) -> None:
    assert measured(Talk().user("go", started_at=START).agent("hello", **answer))["first_response_ms"] == expected


def test_tasks_add_up_to_their_session() -> None:
    talk = failing(Talk().user("Fix the login bug")).agent("Fixed the login bug, done.")
    talk = failing(talk.user("It works, thanks. Now write the release notes for version two")).agent("Done.")
    part = extract(talk.user("still missing").bash("git revert HEAD"))
    for name in ("n_steps", "n_turns", "n_responses", "n_tool_calls", "n_command_errors", "n_rollbacks"):
        assert part.tasks[name].sum() == part.process[name].item() > 0, name


def test_tasks_name_the_row_that_closed_them() -> None:
    talk = Talk().user("Fix the login bug").agent("Fixed the login bug, done.")
    talk.user("It works, thanks. Now write the release notes for version two").agent("Done.").user("still missing")
    part = extract(talk)
    by_id = dict(part.semantic.select("signal_id", "signal").rows())
    assert [by_id[name] for name in part.tasks["closing_signal_id"]] == ["confirm.explicit", "complaint.failure_report"]
    silent = extract(Talk().user("Fix the login bug").agent("Hm."))
    assert silent.tasks.select("closed_by", "closing_signal_id").rows() == [("session_end", None)]


def repeats(talk: Talk) -> list[tuple[int, int]]:
    found = extract(talk).derived.filter(pl.col("signal") == "apology_repeat")
    return [(turn, len(ids)) for turn, ids in found.select("turn", "inputs").rows()]


def test_the_same_failure_after_a_promise() -> None:
    talk = failing(Talk().user("go")).agent("I apologize for that, let me use the other tool.")
    assert repeats(failing(talk)) == [(1, 2)]
    assert repeats(failing(failing(Talk().user("go")).agent("Let me try again."))) == []
    other = failing(Talk().user("go")).agent("Sorry about that.").bash("make it", "ls: cannot access 'x'", 2)
    assert repeats(other) == [], "another failure is no repeat"


def test_the_same_objection_after_a_promise() -> None:
    talk = Talk().user("fix the login bug").agent("I changed a file.").user("still broken")
    assert repeats(talk.agent("Sorry about that, I fixed it.").user("it still does not work")) == [(3, 2)]
    talk = Talk().user("fix the login bug").agent("I changed a file.").user("still broken")
    assert repeats(talk.agent("Which browser is it?").user("it still does not work")) == []


def test_examples_of_apologies() -> None:
    examples = rulefiles.load("context.toml")["examples"]
    assert promises(pl.Series(examples["apology"])).all()
    assert not promises(pl.Series([t for t in examples["no_apology"] if t != "已修复。"])).any()


def test_first_time_success_needs_checks_that_hold() -> None:
    def value(talk: Talk) -> float:
        return extract(talk).derived.filter(pl.col("signal") == "first_time_success")["value"].item()

    talk = Talk().user("fix it").bash("pytest -q", "3 passed").agent("Fixed, done.").user("run them again please")
    assert value(talk.bash("pytest -q", "1 failed, 2 passed", 1)) == 0.0
    talk = Talk().user("fix it").agent("Fixed, done.").user("run the linter please")
    assert value(talk.bash("ruff check .", "Found 3 errors.", 1)) == 1.0, "a check that had not run before"


def test_an_interrupt_that_the_user_goes_on_from_is_steering() -> None:
    talk = Talk().user("fix the login bug").bash("sleep 9", "", None, error="interrupted")
    talk.user("[Request interrupted by user]", origin="interrupt").user("use the other file").bash("ls").agent(
        "Fixed, done."
    )
    part = extract(talk.user("it works now"))
    assert part.process["n_interrupts"].item() == 1
    assert not part.session_features["is_last_task_unresolved"].item()
