"""Each way to end has its exit code, and ``--debug`` changes none."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest
import typer

from evalpipe.console import entry
from evalpipe.console.decided import after_gate
from evalpipe.contracts.errors import ERROR_CODES, EXIT_MEANINGS, Exit
from evalpipe.settings import load, open_home
from evalpipe_tests.end_to_end.conftest import Cli
from evalpipe_tests.orchestration.small import write_sessions


@pytest.mark.parametrize("debug", [False, True])
def test_a_crash_is_no_failed_gate(debug: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught, entry.handled(as_json=False, debug=debug):
        raise ZeroDivisionError("words of a log")
    said = capsys.readouterr().err
    assert caught.value.exit_code == Exit.FAILED
    assert "INTERNAL_ERROR" in said
    assert "Fix:" in said
    assert ("Traceback" in said) == debug
    assert ("words of a log" in said) == debug, "a message may quote a log, and is shown only where it was asked for"


def test_a_file_in_the_way_is_named(cli: Cli, tmp_path: Path) -> None:
    home = open_home(load(folder=tmp_path, environ={}, home=tmp_path / "home")).home
    (home / "lake").write_text("in the way", "utf-8")
    assert "FILE_FAILED" in cli("doctor", "--home", home, expect=Exit.USAGE).stderr


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_an_error_of_a_step_ends_with_its_own_code(
    cli: Cli, tmp_path: Path, debug: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = write_sessions(tmp_path / "a.jsonl", "2026-01-05", "a")
    home = tmp_path / "home"
    home.mkdir()
    (home / "masking.key").write_text("5e" * 32, "ascii")
    (home / "masking.key").chmod(0o644)
    monkeypatch.setattr(Cli, "environ", lambda _: {k: v for k, v in os.environ.items() if k != "EVALPIPE_KEY"})
    done = cli("run", logs, "--home", home, *debug, expect=Exit.REFUSED)
    assert "KEY_PERMISSIONS" in done.stderr
    assert "masking.key" in done.stderr.replace("\n", "")
    assert "chmod 600" in done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("run", "{logs}", "--undated-as", "2001-01-01"),
        ("run", "{logs}", "--undated-as", "2099-01-01", "--debug"),
        ("backfill", "2001-01-01..2001-01-02"),
        ("backfill", "2026-01-01..2099-01-01"),
    ],
)
def test_days_outside_the_home_are_a_usage_error(cli: Cli, tmp_path: Path, args: tuple[str, ...]) -> None:
    logs = write_sessions(tmp_path / "a.jsonl", "2026-01-05", "a")
    open_home(load(folder=tmp_path, environ={}, home=tmp_path / "home"))
    done = cli(*(arg.format(logs=logs) for arg in args), "--home", tmp_path / "home", expect=Exit.USAGE)
    assert "BAD_ARGUMENT" in done.stderr
    assert "Name days from 2023-01-01" in done.stderr


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["pass", "pass"], Exit.OK),
        (["pass", "fail"], Exit.GATE_FAILED),
        (["pass", "inconclusive"], Exit.INCONCLUSIVE),
        (["fail", "inconclusive"], Exit.GATE_FAILED),
        ([], Exit.INCONCLUSIVE),
    ],
)
def test_every_verdict_of_a_gate_has_its_exit_code(verdicts: list[str], code: Exit) -> None:
    names = ["criterion", "metric", "kind", "margin", "estimate", "lower", "upper", "df", "reasons", "measurement"]
    row = {"metric": "positive_outcome", "kind": "no_worse", "margin": 0.01, "reasons": [], "criterion": "c"}
    rows = [dict.fromkeys(names) | row | {"verdict": v, "window_start": None, "window_end": None} for v in verdicts]
    schema = {**dict.fromkeys(names, pl.String), "verdict": pl.String, "window_start": pl.Date, "window_end": pl.Date}
    frame = pl.DataFrame(rows) if rows else pl.DataFrame(schema=schema)
    assert after_gate(frame, "a", "b", as_json=True, counts={}, needed=20) == code


@pytest.mark.parametrize(("raised", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141)])
def test_a_command_that_was_stopped_is_no_failed_gate(
    raised: type[BaseException], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    monkeypatch.setattr(entry.os, "dup2", lambda *_: closed.append(True))
    monkeypatch.setattr(entry.sys.stdout, "fileno", lambda: 1, raising=False)
    with pytest.raises(typer.Exit) as caught, entry.handled(as_json=False, debug=False):
        raise raised
    assert caught.value.exit_code == code


def test_every_exit_code_is_explained_and_can_be_reached() -> None:
    assert set(EXIT_MEANINGS) == set(Exit)
    by_error = {code.exit for code in ERROR_CODES.values()}
    assert by_error == set(Exit) - {Exit.OK, Exit.GATE_FAILED, Exit.INCONCLUSIVE}
