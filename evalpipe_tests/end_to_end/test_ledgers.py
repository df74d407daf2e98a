"""Ledgers beside the logs: an edit re-runs what it concerns, never the reading."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from evalpipe.steps.context import open_context
from evalpipe_tests.end_to_end.conftest import Cli, files_of, times_of
from evalpipe_tests.orchestration.small import write_sessions

ASSIGNED = (
    "policy,unit,unit_id,model,probability,starts_at\nab,user,u-a,m-1,0.5,2026-01-05\nab,user,u-b,m-1,0.5,2026-01-05\n"
)


def settle(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    (folder / "evalpipe.toml").write_text("".join(f'{name} = "{name}.csv"\n' for name in files))


def test_an_edited_ledger_remakes_outcomes_only_and_consent_empties_text(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    home = tmp_path / "home"
    logs = [write_sessions(tmp_path / "logs" / f"{day}.jsonl", day, *names) for day, names in
            (("2026-01-05", ("a", "b")), ("2026-01-09", ("c", "d")))]  # fmt: skip
    cli("run", tmp_path / "logs", "--home", home)
    first = times_of(home / "lake")
    query = "select * from signals.session_outcomes order by started_at"
    assert {row["assignment_source"] for row in cli.rows(home, query)} == {None}

    settle(tmp_path, assignments=ASSIGNED)
    cli("run", tmp_path / "logs", "--home", home)
    a, b, c, d = cli.rows(home, query)
    assert (a["assignment_source"], a["assignment_policy"], a["is_as_assigned"]) == ("ledger", "ab", True)
    assert (b["assignment_source"], b["is_as_assigned"]) == ("ledger", False)
    assert (c["assignment_source"], d["routing_epoch"]) == (None, "all")
    changed = {name for name, at in times_of(home / "lake").items() if first.get(name) != at}
    touched = {name.split("/")[0] for name in changed if not name.startswith("analysis")}
    assert touched == {"signals"}, changed
    own = ("analysis", "signals/_", "signals/session_outcomes", "signals/routing_arms")
    assert all(name.startswith(own) for name in changed), changed
    arms = cli.rows(home, "select distinct policy, routing_epoch, unit, arm, probability_low from signals.routing_arms")
    assert [tuple(row.values()) for row in arms] == [("ab", "ab from 2026-01-05T00:00", "user", "* · * · m-1", 0.5)]
    told = cli.rows(home, "select check_name, value from analysis.diagnostics where check_name = 'non_compliance'")
    assert [row["value"] for row in told] == [0.5], "b was assigned m-1 and met m-2"

    ids = {row["session_id"] for row in cli.rows(home, query)}
    settle(tmp_path, assignments=ASSIGNED, consent="user_id,status\nu-c,withdrawn\n")
    cli("run", tmp_path / "logs", "--home", home)
    assert len(cli.rows(home, query)) == 3
    gone = ids - {row["session_id"] for row in cli.rows(home, query)}
    sessions = {row["session_id"]: row["consent"] for row in cli.rows(home, "from masked.sessions")}
    assert {sessions[name] for name in gone} == {"withdrawn"}
    steps = pl.concat(pl.read_parquet(path) for path in _current(home, tmp_path))
    without = steps.filter(pl.col("session_id").is_in(list(gone)))
    assert without.height == 2
    assert without.select(pl.col("text", "arguments", "output").is_not_null().any()).row(0) == (False, False, False)
    assert steps.filter(~pl.col("session_id").is_in(list(gone)))["text"].null_count() == 0

    before = files_of(home / "lake")
    cli("run", *logs, "--home", home)
    assert files_of(home / "lake") == before


def test_a_wrong_ledger_stops_the_run_with_its_row(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    write_sessions(tmp_path / "logs" / "a.jsonl", "2026-01-05", "a")
    settle(tmp_path, assignments="policy,unit,starts_at\nab,team,2026-01-05\n")
    done = cli("run", tmp_path / "logs", "--home", tmp_path / "home", expect=2)
    assert "LEDGER_INVALID" in done.stderr
    assert "row 1" in done.stderr


def _current(home: Path, folder: Path) -> list[Path]:
    """Files of masked.steps that manifests name."""
    from evalpipe.settings import load

    environ = {"EVALPIPE_KEY": "5e" * 32}
    with open_context(load(folder=folder, environ=environ, home=home), environ=environ) as context:
        return context.lake.paths("masked.steps", context.lake.manifests("masked"))
