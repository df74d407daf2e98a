"""The page of traps: every test that it names exists; and the traps that have no better place."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

from evalpipe.signals import extract_part
from evalpipe_tests.signals.build import EXTRACTION, Talk, frames
from evalpipe_tests.sources.helpers import Claude, Read, text, write

TESTS = Path(__file__).resolve().parents[1]
PAGE = (TESTS.parent / "docs" / "format-traps.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+) \| (.+?) \| (.+) \|$", PAGE, re.M)


@lru_cache(maxsize=128)
def functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_row_names_a_test_that_exists_or_a_reason() -> None:
    assert [int(number) for number, _, _ in ROWS] == list(range(1, len(ROWS) + 1))
    assert len(ROWS) == PAGE.count("\n| ") - 2 * PAGE.count("\n## ") + PAGE.count("\n|---|")
    wrong = []
    for number, _, by in ROWS:
        named = re.fullmatch(r"`(\w+/test_\w+\.py)::(test_\w+)`", by)
        if named:
            path = TESTS / named[1]
            held = path.is_file() and named[2] in functions(path)
        else:
            held = re.fullmatch(r"(?:not applicable|\*\*open\*\*): \S.{20,}", by) is not None
        if not held:
            wrong.append((number, by))
    assert wrong == []


def test_a_test_that_does_not_exist_is_seen() -> None:
    assert "test_a_test_that_does_not_exist_is_seen" in functions(Path(__file__))
    assert "test_of_nothing" not in functions(Path(__file__))


@pytest.mark.parametrize("reason", [None, "end_turn", "max_tokens", "stop_sequence"])
def test_the_stop_reason_of_a_response_is_no_end_of_a_session(tmp_path: Path, reason: str | None) -> None:
    log = Claude()
    answer = log.agent(text("Done."))
    answer["message"]["stop_reason"] = reason
    found = Read(write(tmp_path, log.user("Please fix it"), answer))
    assert found.session["end_status_logged"] is None


@pytest.mark.parametrize(
    ("name", "command", "output", "signal"),
    [
        ("Bash", "make deploy 2>&1 | tail -5", "bash: kubectl: command not found", "command_error"),
        ("Bash", "git push origin main", "fatal: unable to access the remote repository", "command_error"),
        ("Bash", "pytest -q | tail -3", "FAILED tests/test_a.py::test_b\n1 failed, 3 passed in 0.2s", "check_failure"),
        ("get_order", None, "Error: order not found", "command_error"),
    ],
)
def test_failures_that_no_flag_tells_are_signals(name: str, command: str | None, output: str, signal: str) -> None:
    talk = Talk().user("go on")
    talk = talk.bash(command, output, exit_code=0) if command else talk.tool(name, output)
    part = extract_part(*frames(talk.agent("Done.")), EXTRACTION)
    seen = set(part.hard["signal"]) | set(part.candidates["signal"])
    assert signal in seen


def test_a_failure_behind_a_command_that_hides_it_is_marked_hidden() -> None:
    talk = Talk().user("go on").bash("git fetch || true", "fatal: unable to access the remote repository")
    found = extract_part(*frames(talk.agent("Done.")), EXTRACTION).hard
    assert found.select("signal", "is_hidden", "exit_scope").rows() == [("command_error", True, "masked")]
    quiet = Talk().user("go on").bash("git fetch || true", "Already up to date.")
    assert extract_part(*frames(quiet.agent("Done.")), EXTRACTION).hard.is_empty()
