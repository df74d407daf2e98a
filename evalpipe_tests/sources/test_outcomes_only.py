"""Benchmarks of which the log holds outcomes without conversations: terminal-bench and MCPMark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalpipe.sources.readers.failures import blame
from evalpipe_tests.sources.bench_logs import mcp, read, read_document, tb
from evalpipe_tests.sources.helpers import Read


def test_a_trial_is_a_session_without_steps(tmp_path: Path) -> None:
    s = read_document(tmp_path, tb(), "20260105_mini-agent_big-model/fix-it/results.json").session
    assert (s["agent"], s["model"], s["task_id"], s["trial"]) == ("mini-agent", "big-model", "fix-it", 2)
    assert (s["n_steps"], s["is_objective_success"], s["end_status_logged"]) == (0, True, "completed")
    assert (s["input_tokens"], s["output_tokens"]) == (12, 3)
    assert (s["ended_at"] - s["started_at"]).total_seconds() == 540


def test_the_runs_file_repeats_the_trials_files(tmp_path: Path) -> None:
    """Older trials have no id at all, and one run lies in folders of two spellings."""
    old = tb(id=None, task_id="other")
    run = {"id": "run", "results": [tb(), old], "n_resolved": 2, "accuracy": 1.0}
    for spelling in ("core@0.1.1", "core:0.1.1"):
        read_document(tmp_path, tb(), f"{spelling}/fix-it/results.json")
        read_document(tmp_path, old, f"{spelling}/other/results.json")
        read_document(tmp_path, {**run, "note": spelling}, f"{spelling}/results.json")
    found = Read(tmp_path)
    assert found.files["n_sessions"].sum() > 2
    assert found.sessions["session_id"].n_unique() == 2
    assert found.codes == []


@pytest.mark.parametrize(
    ("mode", "solved", "expected"),
    [
        ("none", False, (False, "completed")),
        ("unset", True, (True, "completed")),
        ("agent_timeout", False, (False, "timeout")),
        ("agent_timeout", True, (True, "timeout")),
        ("test_timeout", False, (False, "completed")),
        ("context_length_exceeded", False, (False, "error")),
        ("unknown_agent_error", False, (False, "error")),
        ("agent_installation_failed", False, (None, "error")),
        ("agent_installation_failed", None, (None, "error")),
        (None, None, (None, None)),
    ],
)
def test_failures_at_install_are_the_infrastructures(
    tmp_path: Path, mode: str | None, solved: bool | None, expected: tuple[Any, ...]
) -> None:
    s = read(tmp_path, tb(failure_mode=mode, is_resolved=solved)).session
    assert (s["is_objective_success"], s["end_status_logged"]) == expected


def test_tokens_of_zero_were_not_counted(tmp_path: Path) -> None:
    s = read(tmp_path, tb(total_input_tokens=0, total_output_tokens=0)).session
    assert (s["input_tokens"], s["output_tokens"]) == (None, None)


def test_agent_and_model_of_the_row_go_before_those_of_the_folder(tmp_path: Path) -> None:
    s = read_document(tmp_path, tb(agent_name="own", model_name="mine"), "20260105_a_m/results.json").session
    assert (s["agent"], s["model"]) == ("own", "mine")
    bare = read_document(tmp_path, tb(), "results.json").session
    assert (bare["agent"], bare["model"]) == ("terminal_bench", None)


def test_a_run_of_mcpmark(tmp_path: Path) -> None:
    s = read(tmp_path, mcp(success=True)).session
    assert (s["model"], s["scenario_declared"], s["task_id"], s["trial"]) == ("m", "github", "github/find", 3)
    assert (s["is_objective_success"], s["end_status_logged"], s["n_steps"]) == (True, "completed", 0)
    assert (s["input_tokens"], s["output_tokens"], s["reasoning_tokens"]) == (9, 2, None)
    assert not s["is_dated"]


@pytest.mark.parametrize(
    ("message", "success", "expected"),
    [
        (None, False, (False, "completed")),
        ("RateLimitError: try again later", False, (None, "error")),
        ("RateLimitError: try again later", True, (True, "error")),
        ("prompt is too long: 215448 tokens > 200000", False, (False, "error")),
        ("Max turns (100) exceeded", False, (False, "timeout")),
        ("Execution timed out after 3600 seconds", False, (False, "timeout")),
        ("Connection timed out", False, (None, "error")),
    ],
)
def test_errors_of_mcpmark(tmp_path: Path, message: str | None, success: bool, expected: tuple[Any, ...]) -> None:
    s = read(tmp_path, mcp(error_message=message, success=success)).session
    assert (s["is_objective_success"], s["end_status_logged"]) == expected


def test_runs_are_told_apart_and_copies_are_not(tmp_path: Path) -> None:
    found = read(tmp_path, mcp(), mcp(), mcp(run="run-4"), mcp(model="other"))
    assert found.sessions.height == 3
    assert found.file()["rows_kept"] == 4


@pytest.mark.parametrize(
    ("message", "who"),
    [
        ("ContextWindowExceededError: maximum context length is 128000", "agent"),
        ("Expecting value: line 1 column 2 (char 1)", "agent"),
        ("Too many consecutive failures (3)", "agent"),
        ("maximum steps reached", "timeout"),
        ("Notion Connection refused", "infrastructure"),
        ("504 Gateway Timeout", "infrastructure"),
        ("Incorrect model ID", "infrastructure"),
        ("", "infrastructure"),
    ],
)
def test_who_is_to_blame(message: str, who: str) -> None:
    assert blame(message) == who
