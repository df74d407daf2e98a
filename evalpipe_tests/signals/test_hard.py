"""Hard events of small sessions: errors, checks, repairs, refusals, version control, outcomes."""

from __future__ import annotations

import json

import polars as pl

from evalpipe.signals import SignalsPart, extract_part
from evalpipe_tests.signals.build import EXTRACTION, Talk, frames


def extract(*talks: Talk) -> SignalsPart:
    return extract_part(*frames(*talks), EXTRACTION)


def hard(part: SignalsPart) -> list[tuple[int, str]]:
    return list(part.hard.select("seq", "signal").iter_rows())


def features(part: SignalsPart) -> dict[str, object]:
    return part.session_features.row(0, named=True)


def edit(talk: Talk, output: str, *, is_error: bool, new: str = "x", path: str = "a.py") -> Talk:
    return talk.tool("Edit", output, arguments=json.dumps({"file_path": path, "new": new}), is_error=is_error)


def test_errors_checks_repairs_and_commits() -> None:
    talk = Talk().user("fix the tests in a.py please")
    talk.bash("pytest -q", "FAILED t.py::a\n1 failed", 1)
    talk.bash("foo", "bash: foo: command not found", 127).bash("foo", "ok")
    edit(talk, "String to replace not found in file.", is_error=True)
    edit(talk, "done", is_error=False, new="y")
    talk.bash("git add -A && git commit -m 'fix'", "[main] fix").bash("git checkout -- b.py")
    part = extract(talk)
    assert hard(part) == [
        (1, "check_failure"),
        (2, "command_error"),
        (3, "self_fix"),
        (4, "command_error"),
        (5, "self_fix"),
        (6, "artifact.accepted"),
        (7, "rollback"),
    ]
    rows = {row["seq"]: row for row in part.hard.iter_rows(named=True)}
    assert (rows[2]["category"], rows[2]["layer"], rows[2]["exit_scope"]) == (
        "command_not_found",
        "environment",
        "program",
    )
    assert rows[2]["strength"] == 0.05, "a repaired error weighs less"
    assert rows[1]["polarity"] == 0
    assert rows[7]["snippet"] == json.dumps({"command": "git checkout -- b.py"})
    row = features(part)
    assert (row["n_command_errors"], row["n_check_failures"], row["n_self_repairs"]) == (2, 1, 2)
    counts = ("n_command_calls", "n_logical_commands", "n_first_try_successes", "n_retries")
    assert [row[name] for name in counts] == [7, 6, 4, 1]


def test_a_repair_needs_the_same_turn_and_few_steps() -> None:
    late = Talk("late").user("go").bash("foo", "x", 2)
    for i in range(EXTRACTION.self_fix_steps):
        late.bash(f"ls {i}")
    late.bash("foo", "ok")
    other = Talk("other").user("go").bash("foo", "x", 2).user("try again with sudo").bash("foo", "ok")
    assert extract(late, other).hard.filter(pl.col("signal") == "self_fix").is_empty()


def test_a_failed_commit_is_no_artifact_and_a_failed_revert_no_rollback() -> None:
    talk = Talk().user("go").bash("git commit -m x", "fatal: not a git repository", 128)
    talk.bash("git revert HEAD", "fatal: bad", 128)
    assert [signal for _, signal in hard(extract(talk))] == ["command_error", "command_error"]


def test_a_loop_is_the_same_failure_three_times_without_a_change() -> None:
    loop = Talk("loop").user("go")
    for i in range(4):
        loop.bash("make all", f"make: *** [{i}] something broke {i}", 2)
    worked = Talk("worked").user("go")
    for _ in range(4):
        edit(worked.bash("make all", "make: *** broke", 2), "ok", is_error=False)
    progress = Talk("progress").user("go")
    for module in ("yaml", "numpy", "pandas", "flask"):
        progress.bash("python a.py", f"ModuleNotFoundError: No module named '{module}'", 1)
    found = extract(loop, worked, progress).hard.filter(pl.col("signal") == "loop.retry")
    assert list(found.select("session_id", "seq").iter_rows()) == [("loop", 3)]


def test_a_refusal_hides_the_interrupt_that_comes_with_it() -> None:
    talk = Talk().user("go").bash("rm -rf x", "refused", None, error="refused", text="not that folder", is_error=True)
    talk.user("[Request interrupted by user for tool use]", origin="interrupt")
    talk.user("go on please").agent("working").user("[Request interrupted by user]", origin="interrupt")
    part = extract(talk)
    assert hard(part) == [(1, "call.rejected"), (5, "interrupt")]
    assert part.hard["snippet"].to_list() == ["not that folder", "[Request interrupted by user]"]
    row = features(part)
    assert (row["n_refused_calls"], row["n_interrupts"], row["is_last_turn_interrupted"]) == (1, 2, True)
    assert row["n_command_calls"] == 0, "a refused call gave no status"


def test_an_interrupted_call_counts_once_where_the_log_has_no_message() -> None:
    talk = (
        Talk().user("go").bash("sleep 9", "", None, error="interrupted").bash("sleep 8", "", None, error="interrupted")
    )
    assert hard(extract(talk)) == [(1, "interrupt")]


def test_a_cascade_is_not_counted() -> None:
    talk = Talk().user("go").bash("foo", "x", 2)
    talk.tool("Read", "<tool_use_error>Sibling tool call errored</tool_use_error>", is_error=True)
    assert hard(extract(talk)) == [(1, "command_error")]


def test_tools_that_do_not_exist() -> None:
    known = Talk("known", tools=["Bash", "Read"]).user("go")
    known.tool("Teleport", "boom", is_error=True).tool("Fly", "flew", is_error=False)
    unknown = Talk("unknown").user("go").tool("Teleport", "boom", is_error=True).tool("Fly", "Unknown tool: Fly")
    found = extract(known, unknown).hard.filter(pl.col("signal") == "tool_hallucination")
    assert list(found.select("session_id", "seq", "category", "layer").iter_rows()) == [
        ("known", 1, "nonexistent_tool", "planning"),
        ("unknown", 2, "nonexistent_tool", "planning"),
    ]


def test_read_tools_may_show_any_words() -> None:
    talk = Talk().user("go").tool("Grep", "a.py:1: raise Error('command not found')")
    talk.tool("Read", "FAIL\nTraceback (most recent call last)")
    assert hard(extract(talk)) == []


def test_objectives_stand_at_the_last_step() -> None:
    won = Talk("won", is_objective_success=True).user("go").agent("done")
    lost = Talk("lost", is_objective_success=False).user("go")
    empty = Talk("empty", is_objective_success=True)
    part = extract(won, lost, empty)
    assert list(part.hard.select("session_id", "signal", "seq").iter_rows()) == [
        ("empty", "objective.success", 0),
        ("lost", "objective.failure", 0),
        ("won", "objective.success", 1),
    ]


def test_a_rollback_by_the_user_counts() -> None:
    talk = Talk().user("go").agent("done")
    talk.user("<bash-input>git reset --hard HEAD~1</bash-input>", origin="local_command")
    assert hard(extract(talk)) == [(2, "rollback")]


def test_unsure_hard_rows_are_shown_and_not_counted() -> None:
    sessions, steps = frames(Talk().user("go").bash("foo", "bash: foo: command not found", 127))
    strict = EXTRACTION.__class__(("en",), 0.99, 160, 10, 3)
    part = extract_part(sessions, steps, strict)
    assert hard(part) == [(1, "command_error")]
    assert features(part)["n_command_errors"] == 0


def test_an_interrupt_hides_only_behind_the_refusal_that_caused_it() -> None:
    apart = Talk("apart").user("go").bash("rm -rf x", "refused", None, error="refused").agent("ok, thinking")
    apart.user("[Request interrupted by user]", origin="interrupt")
    alone = Talk("alone").user("go").user("[Request interrupted by user for tool use]", origin="interrupt")
    found = extract(apart, alone).hard.filter(pl.col("signal") == "interrupt")
    assert found["session_id"].to_list() == ["alone", "apart"]
