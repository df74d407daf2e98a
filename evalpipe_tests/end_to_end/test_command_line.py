"""The command line as a person meets it: odd labels, empty folders, homes that are not there."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from evalpipe_tests.end_to_end.conftest import Cli
from evalpipe_tests.end_to_end.test_ugly import _session, _write

ODD = "[red]x[/]"


@pytest.fixture(scope="module")
def odd(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A home with one version whose name looks like markup, and files that cannot be read."""
    folder = tmp_path_factory.mktemp("odd")
    logs = folder / "logs"
    (logs / "deep").mkdir(parents=True)
    rows = [
        row
        for number in range(4)
        for row in _session(f"s{number}", f"2026-01-0{5 + number}T10:00:00Z", model=(ODD, "[/]")[number % 2])
    ]
    for row in rows:
        row.pop("model", None) if row["type"] == "step" else None
    _write(logs / "good.jsonl", *rows)
    (logs / "deep" / "bad.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in _session("half", "2026-01-05T13:00:00Z")) + '{"secret words\n',
        "utf-8",
    )
    (logs / "notes.txt").write_text("secret words\n", "utf-8")
    return folder / "home", cli("run", logs, "--home", folder / "home")


def test_what_could_not_be_read_is_named_by_file_and_line(
    odd: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    shown = odd[1].stdout
    lines = [line.split() for line in shown.splitlines()]
    assert ["deep/bad.jsonl", "4", "BAD_JSON", "1"] in [[row[0], row[1], *row[3:]] for row in lines if len(row) == 5]
    assert any(row[:3] == ["notes.txt", "whole", "file"] for row in lines)
    assert "secret words" not in shown + odd[1].stderr


def test_labels_are_shown_verbatim_by_every_verb(cli: Cli, odd: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    home = odd[0]
    gate = cli("gate", "--candidate", "acme/[/", "--baseline", f"ACME:{ODD}", "--home", home, expect=3)
    assert gate.stdout.splitlines()[0] == f"May acme · [/] replace acme · {ODD}?"
    card = cli("release", f"acme/{ODD}", "--home", home)
    assert card.stdout.startswith(f"acme · {ODD}: shift")
    assert len(card.stdout.splitlines()) < 30
    assert "--slices" in card.stdout
    everything = cli("release", f"acme/{ODD}", "--slices", "--home", home)
    assert len(everything.stdout.splitlines()) > len(card.stdout.splitlines())
    several = cli("gate", "--candidate", "acme", "--baseline", "acme/[/", "--home", home, expect=2)
    assert f"'acme · {ODD}'" in several.stderr
    assert len(several.stderr.splitlines()) == 2


def test_nothing_to_read_is_said_so(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    for name in ("a", "b"):  # of one content, so that the lake knows one of them only
        (tmp_path / "bad" / f"{name}.jsonl").touch()
    done = cli("run", tmp_path / "empty", "--home", tmp_path / "home", expect=2)
    assert "NOTHING_READ" in done.stderr
    assert "Days made: 0" in done.stdout
    shown = cli.json("run", tmp_path / "bad", "--home", tmp_path / "home", expect=2)
    assert (shown["error"], shown["days_made"]) == ("NOTHING_READ", [])


def test_verbs_that_read_make_no_home(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for verb in (
        ("sql", "SELECT 1"),
        ("report",),
        ("gate", "--candidate", "a", "--baseline", "b"),
        ("release", "a"),
        ("doctor",),
        ("backfill", "2026-01-05"),
    ):
        for name in ("none", "file"):
            done = cli(*verb, "--home", tmp_path / name, expect=2)
            assert done.stderr.startswith("NO_HOME"), verb
            assert len(done.stderr.splitlines()) == 2, verb
    assert os.listdir(tmp_path) == ["file"]


def test_a_late_session_makes_an_analysis_stale_and_doctor_says_so(cli: Cli, tmp_path: Path) -> None:
    home = tmp_path / "home"
    cli("run", _write(tmp_path / "a.jsonl", *_session("a", "2026-01-05T10:00:00Z")), "--home", home)
    cli("backfill", "2026-01-12", "--window", "28d", "--home", home)
    assert cli.json("doctor", "--home", home)["analyses_stale"] == []
    cli("run", _write(tmp_path / "b.jsonl", *_session("b", "2026-01-06T10:00:00Z")), "--home", home)
    assert cli.json("doctor", "--home", home)["analyses_stale"] == ["28d of 2026-01-12..2026-01-12"]
    fix = next(line for line in cli("doctor", "--home", home).stdout.splitlines() if line.startswith("Stale analyses"))
    cli(*fix.partition("evalpipe ")[2].split(), "--home", home)
    assert cli.json("doctor", "--home", home)["analyses_stale"] == []


@pytest.mark.parametrize("number", [signal.SIGTERM])
def test_the_ui_says_where_it_is_and_leaves_no_process(cli: Cli, tmp_path: Path, number: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = tmp_path / "home"
    with cli.start("ui", "--home", home, "--port", str(port)) as process:
        assert process.stderr is not None
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line.strip())
            if "http://" in line:
                break
        assert lines == ["Starting Dagster's UI...", f"Dagster's UI: http://127.0.0.1:{port}  (Ctrl-C ends it)"]
        assert _processes_of(home)
        process.send_signal(number)
        assert process.wait(120) == 0
    for _ in range(100):
        if not _processes_of(home):
            break
        time.sleep(0.1)
    assert _processes_of(home) == []


def _processes_of(home: Path) -> list[str]:
    """Command lines of processes that run with this home."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"EVALPIPE_HOME={home}\0".encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")[:80])
        except OSError:
            continue
    return found
