"""Input that nobody wishes for: each has its code, its place and its fix, and stops nothing else."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalpipe_tests.end_to_end.conftest import Cli, times_of

SECRET = "AKIA" + "Q3EGRV7LMZN2XWTB"


def _session(session_id: str, start: str | None, **more: Any) -> list[dict[str, Any]]:
    head = {
        "evalpipe": 1,
        "type": "session",
        "session_id": session_id,
        "agent": "acme",
        "model": "m-1",
        "user_id": "u-1",
    }
    head |= {"started_at": start} if start else {}
    head |= more
    at = {"at": start} if start else {}
    ask = {"type": "step", "session_id": session_id, "step_id": "1", "kind": "user", "text": "Please fix the bug", **at}
    say = {
        "type": "step",
        "session_id": session_id,
        "step_id": "2",
        "kind": "agent",
        "text": "Done.",
        "model": "m-1",
        **at,
    }
    return [head, ask, say]


def _write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def _deep() -> list[dict[str, Any]]:
    """A session with an argument that no JSON writer takes back."""
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    call = {"type": "step", "session_id": "deep", "step_id": "3", "kind": "tool", "name": "x", "arguments": deep}
    return [*_session("deep", "2026-01-05T15:00:00Z"), call]


def _with_secret() -> list[dict[str, Any]]:
    """A session with a secret beside an underscore in every field."""
    rows = _session("s", "2026-01-05T16:00:00Z")
    rows[1]["text"] = f"see backup_{SECRET}.tar"
    call = {"type": "step", "session_id": "s", "step_id": "3", "kind": "tool", "name": f"mcp__{SECRET}",
            "arguments": {f"k_{SECRET}": f"v_{SECRET}"}, "output": f"{SECRET}_old", "is_error": True}  # fmt: skip
    return [*rows, call]


@pytest.fixture(scope="module")
def ugly(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("ugly")
    logs = folder / "logs"
    logs.mkdir()
    _write(logs / "good.jsonl", *_session("good", "2026-01-05T10:00:00Z"))
    (logs / "empty.jsonl").write_bytes(b"")
    (logs / "broken.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00 this is no gzip stream")
    future = (datetime.now(UTC) + timedelta(days=40)).isoformat()
    _write(logs / "future.jsonl", *_session("future", future))
    _write(logs / "old.jsonl", *_session("old", "1999-01-01T10:00:00Z"))
    _write(logs / "undated.jsonl", *_session("undated", None))
    _write(logs / "nobody.jsonl", *_session("nobody", "2026-01-05T11:00:00Z", user_id=None))
    midnight = _session("midnight", "2026-01-05T23:58:00Z")
    midnight[2]["at"] = "2026-01-06T00:10:00Z"
    _write(logs / "midnight.jsonl", *midnight)
    switched = _session("switched", "2026-01-05T12:00:00Z")
    switched += [
        {"type": "step", "session_id": "switched", "step_id": "3", "kind": "user", "text": "And the tests", "at": "2026-01-05T12:05:00Z"},
        {"type": "step", "session_id": "switched", "step_id": "4", "kind": "agent", "text": "Done.", "model": "m-2", "at": "2026-01-05T12:06:00Z"},
    ]  # fmt: skip
    _write(logs / "switched.jsonl", *switched)
    (logs / "half.jsonl").write_text(
        "\n".join(json.dumps(row) for row in _session("half", "2026-01-05T13:00:00Z"))
        + '\n{"type":"step","session_id":"ha',
        "utf-8",
    )
    with (logs / "long.jsonl").open("w", encoding="utf-8") as file:
        for row in _session("long", "2026-01-05T14:00:00Z"):
            file.write(json.dumps(row) + "\n")
        file.write('{"type":"step","session_id":"long","step_id":"9","kind":"user","text":"')
        for _ in range(70):
            file.write("x" * 1_000_000)
        file.write('"}\n')
    (logs / "notes.txt").write_text("not a log at all\n", "utf-8")
    _write(logs / "deep.jsonl", *_deep())
    _write(logs / "secret.jsonl", *_with_secret())
    home = folder / "home"
    summary = cli.json("run", logs, "--home", home, "--undated-as", "2026-01-07")
    return logs, home, summary


@pytest.mark.parametrize(
    "code",
    [
        "EMPTY_FILE",
        "UNREADABLE_FILE",
        "FUTURE_DATE",
        "DATE_OUT_OF_RANGE",
        "BAD_JSON",
        "RECORD_TOO_LARGE",
        "UNKNOWN_FORMAT",
    ],
)
def test_each_has_its_code_and_its_fix(ugly: tuple[Path, Path, dict[str, Any]], code: str) -> None:
    rows = [row for row in ugly[2]["quarantine"] if row["code"] == code]
    assert rows, ugly[2]["quarantine"]
    assert all(row["fix"] for row in rows)


def test_the_place_of_a_bad_record_is_kept(cli: Cli, ugly: tuple[Path, Path, dict[str, Any]]) -> None:
    rows = cli.rows(ugly[1], "SELECT line, byte_offset, n_bytes FROM masked.quarantine WHERE code = 'RECORD_TOO_LARGE'")
    assert rows[0]["line"] == 4
    assert rows[0]["n_bytes"] > 64_000_000
    assert rows[0]["byte_offset"] > 0


def test_the_good_sessions_are_all_there(cli: Cli, ugly: tuple[Path, Path, dict[str, Any]]) -> None:
    rows = cli.rows(
        ugly[1], "SELECT day, n_models, user_id IS NULL AS nobody FROM signals.session_outcomes ORDER BY day"
    )
    days = [row["day"] for row in rows]
    # All start on the 5th (the deeply nested argument stops nothing); the undated one was given the 7th.
    assert days == ["2026-01-05"] * 8 + ["2026-01-07"]
    assert sum(row["nobody"] for row in rows) == 1
    assert sorted(row["n_models"] for row in rows)[-1] == 2
    undated = cli.rows(ugly[1], "SELECT is_dated FROM masked.sessions WHERE NOT is_dated")
    assert len(undated) == 1


def test_nothing_is_unaccounted_for(cli: Cli, ugly: tuple[Path, Path, dict[str, Any]]) -> None:
    rows = cli.rows(
        ugly[1],
        "SELECT count(*) AS files, count(*) FILTER (rows_read = rows_kept + rows_noise + rows_quarantined) AS balanced "
        "FROM masked.files",
    )
    assert rows[0]["files"] == rows[0]["balanced"] == len(list(ugly[0].iterdir()))


def test_a_session_that_switches_model_is_left_out_and_counted(
    cli: Cli, ugly: tuple[Path, Path, dict[str, Any]]
) -> None:
    rows = cli.rows(ugly[1], "SELECT value FROM analysis.diagnostics WHERE check_name = 'mixed_models'")
    assert rows[0]["value"] > 0


def test_a_late_file_reaches_a_day_long_computed(
    cli: Cli, ugly: tuple[Path, Path, dict[str, Any]], tmp_path: Path
) -> None:
    logs, home, _ = ugly
    before = times_of(home / "lake")
    late = _write(tmp_path / "late.jsonl", *_session("late", "2026-01-05T09:00:00Z"))
    summary = cli.json("run", late, "--home", home)
    assert "2026-01-05" in summary["days_made"]
    assert cli.rows(home, "SELECT count(*) AS n FROM masked.sessions") == [{"n": 10}]
    again = cli.json("run", late, logs, "--home", home, "--undated-as", "2026-01-07")
    assert again["days_made"] == []
    assert set(before) - set(times_of(home / "lake")) == set()


def test_a_secret_beside_an_underscore_is_masked_in_every_field(ugly: tuple[Path, Path, dict[str, Any]]) -> None:
    home = ugly[1]
    for path in home.rglob("*"):
        if path.is_file() and home / "lake" / "raw" not in path.parents:
            assert SECRET.encode() not in path.read_bytes(), path.name
            if path.suffix == ".parquet":
                assert SECRET not in str(pl.read_parquet(path).to_dicts()), path.parent.name


def test_some_days_of_a_landed_range_can_be_made_alone(cli: Cli, tmp_path: Path) -> None:
    rows = [row for d in (5, 9) for row in _session(f"s{d}", f"2026-01-{d:02d}T10:00:00Z")]
    home = tmp_path / "home"
    log = _write(tmp_path / "a.jsonl", *rows)
    first = cli.json("run", log, "--home", home, "--days", "2026-01-05")
    assert "2026-01-05" in first["days_made"]
    assert "2026-01-09" not in first["days_made"]
    rest = cli.json("run", log, "--home", home)
    assert "2026-01-09" in rest["days_made"]


def test_the_home_is_closed_to_others(ugly: tuple[Path, Path, dict[str, Any]]) -> None:
    assert ugly[1].stat().st_mode & 0o077 == 0
