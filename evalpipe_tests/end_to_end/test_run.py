"""The main job: counts agree with the truth, running again changes nothing, late files move only theirs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from evalpipe_tests.end_to_end.conftest import Cli, World, files_of, times_of

DEFAULT = Path(__file__).resolve().parents[2] / "data" / "criteria" / "default.toml"


def test_every_session_is_there_once_and_rows_balance(cli: Cli, home: Path, days: list[Path], world: World) -> None:
    rows = cli.rows(home, "SELECT count(*) AS n, count(DISTINCT session_id) AS ids FROM masked.sessions")[0]
    assert rows["n"] == rows["ids"]
    assert rows["n"] <= 400
    assert rows["n"] >= 400 * 0.8
    unbalanced = cli.rows(
        home, "SELECT count(*) AS n FROM masked.files WHERE rows_read <> rows_kept + rows_noise + rows_quarantined"
    )
    assert unbalanced == [{"n": 0}]


def test_a_second_run_changes_no_file_of_the_lake(cli: Cli, home: Path, days: list[Path]) -> None:
    before = times_of(home / "lake")
    warehouse = (home / "warehouse.duckdb").stat().st_mtime_ns
    summary = cli.json("run", *days, "--home", home)
    assert summary["days_made"] == []
    assert times_of(home / "lake") == before
    assert (home / "warehouse.duckdb").stat().st_mtime_ns == warehouse


def test_the_same_input_gives_the_same_bytes_in_another_home_and_another_order(
    cli: Cli, home: Path, days: list[Path], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    cli("run", *reversed(days), "--home", other)
    assert files_of(other / "lake") == files_of(home / "lake")


def test_a_late_file_moves_its_days_and_leaves_a_correction(cli: Cli, home: Path, world: World, tmp_path: Path) -> None:
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    before = times_of(copy / "lake")
    started = cli.rows(copy, "SELECT started_at::DATE AS day, count(*) AS n FROM masked.sessions GROUP BY day")
    late = world.logs / "late"
    assert any(late.rglob("*.jsonl"))
    summary = cli.json("run", late, "--home", copy)
    after = times_of(copy / "lake")
    grown = cli.rows(copy, "SELECT started_at::DATE AS day, count(*) AS n FROM masked.sessions GROUP BY day")
    was = {row["day"]: row["n"] for row in started}
    moved = {row["day"] for row in grown if row["n"] != was.get(row["day"])}
    assert moved
    assert moved <= set(summary["days_made"])
    # Raw and masked slices of the other days are the same files, and were not written again.
    for name, time in before.items():
        day = next((part[4:14] for part in Path(name).parts if part.startswith("day=")), None)
        if day and day not in moved and name.startswith(("raw/_slices", "raw/s", "masked/")):
            assert after[name] == time, name
    for day in moved:
        assert after[f"raw/_slices/raw/day={day}.json"] != before.get(f"raw/_slices/raw/day={day}.json")
    changed = cli.rows(copy, "SELECT count(*) AS n FROM analysis.corrections")
    assert changed[0]["n"] > 0


def test_the_report_opens_offline_and_names_no_person(cli: Cli, home: Path, world: World) -> None:
    page = Path(cli("report", "--home", home).stdout.strip())
    text = page.read_text("utf-8")
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text
    assert "default-src 'none'" in text
    for canary in world.truth.canaries:
        assert canary["value"] not in text
    data = json.loads(cli("report", "--home", home, "--format", "json").stdout)
    assert data["schema"] == "evalpipe.report/1"


def test_the_gate_has_three_verdicts_and_three_exit_codes(cli: Cli, home: Path, tmp_path: Path) -> None:
    best, worst = "claude-code · orion-2", "claude-code · lyra-1"
    args = ("gate", "--candidate", best, "--baseline", worst, "--home", home)
    # Margins that no interval of a share can miss, and the shipped ones, which few sessions cannot decide.
    lenient = DEFAULT.read_text("utf-8").replace("margin = 0.05", "margin = 0.9")
    asked = {
        "pass": lenient,
        "fail": lenient.replace('kind = "non_inferiority"', 'kind = "superiority"'),
        "inconclusive": DEFAULT.read_text("utf-8"),
    }
    for (verdict, text), code in zip(asked.items(), (0, 1, 3), strict=True):
        criteria = tmp_path / f"{verdict}.toml"
        criteria.write_text(text.replace('name = "default"', f'name = "{verdict}"'), "utf-8")
        decided = cli.json(*args, "--criteria", criteria, expect=code)
        assert decided["verdict"] == verdict
        assert {row["criterion"] for row in decided["criteria"]} == {"outcome_no_worse", "corrections_no_worse"}
    unknown = cli("gate", "--candidate", "nobody", "--baseline", worst, "--home", home, expect=2)
    assert "UNKNOWN_VERSION" in unknown.stderr


def test_a_scorecard_of_one_version(cli: Cli, home: Path, tmp_path: Path) -> None:
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    card = cli.json("release", "claude-code · orion-2", "--home", copy)
    assert {row["version"] for row in card} == {"claude-code · orion-2"}
    assert any(row["metric"] == "positive_outcome" and row["estimate"] is not None for row in card)


def test_rows_of_two_measurements_are_never_in_one_number(cli: Cli, home: Path, tmp_path: Path) -> None:
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    other = tmp_path / "stricter.toml"
    text = DEFAULT.read_text("utf-8").replace('name = "default"', 'name = "stricter"')
    other.write_text(text.replace('"correction" = 0.8', '"correction" = 1.0'), "utf-8")
    changes = cli.json("criteria", "diff", "default", other)
    assert {row["effect"] for row in changes if "weights" in row["key"]} == {"breaks_series"}
    # Nothing is scored under the new criteria yet: the gate does not fall back on the old numbers.
    args = ("gate", "--candidate", "claude-code · orion-2", "--baseline", "claude-code · lyra-1", "--home", copy)
    refused = cli(*args, "--criteria", other, expect=2)
    assert "NO_RESULT" in refused.stderr
    assert "Fix:" in refused.stderr
    cli("backfill", "2026-01-05..2026-01-08", "--window", "all", "--home", copy, "--criteria", other)
    both = cli.rows(copy, "SELECT count(DISTINCT measurement) AS n FROM analysis.net_improvement")
    assert both == [{"n": 2}]
    per_session = cli.rows(
        copy,
        "SELECT max(n) AS n FROM (SELECT count(*) AS n FROM signals.session_outcomes GROUP BY session_id, measurement)",
    )
    assert per_session == [{"n": 1}]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("DELETE FROM masked.sessions", "SQL_REFUSED"),
        ("SELECT 1; SELECT 2", "SQL_REFUSED"),
        ("SELECT * FROM nowhere", "SQL_FAILED"),
        ("SELECT text FROM masked.steps", "SQL_FAILED"),
        ("SELECT * FROM raw.sessions", "SQL_FAILED"),
    ],
)
def test_queries_only_read_and_only_what_is_published(cli: Cli, home: Path, query: str, code: str) -> None:
    done = cli("sql", query, "--home", home, expect=None)
    assert done.returncode != 0
    assert code in done.stderr
    assert "Traceback" not in done.stderr


def test_errors_are_one_line_with_a_fix(cli: Cli, tmp_path: Path) -> None:
    missing = cli("run", tmp_path / "nowhere", "--home", tmp_path / "h", expect=2)
    assert "SOURCE_NOT_FOUND" in missing.stderr
    empty = cli("sql", "SELECT 1", "--home", tmp_path / "none", expect=2)
    assert "NO_HOME" in empty.stderr
    for done in (missing, empty):
        assert "Fix:" in done.stderr
        assert "Traceback" not in done.stderr
