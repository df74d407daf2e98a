"""A run that is killed, and runs side by side."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from evalpipe_tests.end_to_end.conftest import Cli, files_of


def _rows(cli: Cli, home: Path) -> list[dict[str, object]]:
    return cli.rows(home, "SELECT * FROM analysis.net_improvement ORDER BY ALL")


#: What a run has committed at the moment of the kill, one moment after the other.
MARKS = (
    "lake/masked/_slices/masked/*.json",
    "lake/signals/_slices/outcomes/*/*.json",
)


def test_a_run_killed_twice_ends_with_the_same_lake(cli: Cli, home: Path, days: list[Path], tmp_path: Path) -> None:
    other = tmp_path / "home"
    for mark in MARKS:
        process = subprocess.Popen(
            [sys.executable, "-m", "evalpipe.cli", "run", *map(str, days), "--home", str(other)],
            cwd=cli.folder, env=cli.environ(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        while process.poll() is None and not list(other.glob(mark)):
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, f"the run ended before it could be killed at {mark}"
        assert not (other / "warehouse.duckdb").exists(), "nothing was left to do"
    cli("run", *days, "--home", other)
    assert files_of(other / "lake") == files_of(home / "lake")
    assert _rows(cli, other) == _rows(cli, home)


def test_two_runs_and_a_reader_at_once(cli: Cli, home: Path, days: list[Path], tmp_path: Path) -> None:
    # A home that is new to both, and a folder that both read.
    both = tmp_path / "home"
    first = cli.start("run", *days[:2], "--home", both)
    second = cli.start("run", *days[1:2], "--home", both)
    seen: list[int] = []
    while first.poll() is None or second.poll() is None:
        done = cli("sql", "SELECT count(*) AS n FROM masked.sessions", "--home", both, "--format", "json", expect=None)
        if done.returncode == 0:
            seen.append(int(done.stdout.split(":")[1].strip(" }\n")))
        else:
            assert "NO_WAREHOUSE" in done.stderr or "NO_HOME" in done.stderr
            assert not seen, "a published warehouse does not go away"
        time.sleep(0.5)
    for process in (first, second):
        out, err = process.communicate()
        assert process.returncode == 0, out + err
    assert seen == sorted(seen)
    cli("run", *days[:2], "--home", both)
    query = "SELECT * FROM masked.sessions WHERE started_at < '2026-01-07' ORDER BY session_id"
    found = cli.rows(both, query)
    assert found
    assert found == cli.rows(home, query)
