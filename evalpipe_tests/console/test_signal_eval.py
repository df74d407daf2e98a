"""``evalpipe signals eval``: layouts, bad lines, exit codes, and that no text is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from evalpipe.cli import app
from evalpipe.contracts.errors import Exit

SECRET = "zebrafish"
ROWS = [
    {"id": "t1", "text": f"It still fails with the same error. {SECRET}", "label": "complaint", "lang": "en"},
    {"id": "t2", "text": f"add a {SECRET}", "label": "correction", "lang": "pt"},
    {"id": "c1", "tool": "Bash", "command": SECRET, "output": "bash: foo: command not found", "exit_code": 127,
     "status": "error", "category": "command_not_found", "layer": "environment"},
    {"id": "c2", "tool": "Bash", "command": "ls", "output": SECRET, "exit_code": 0, "status": "error"},
]  # fmt: skip


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVALPIPE_HOME", raising=False)


def _run(rows: list[object], *arguments: str) -> Result:
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return CliRunner().invoke(app, ["signals", "eval", "rows.jsonl", *arguments])


def test_one_object_for_a_script() -> None:
    Path("final.jsonl").write_text('{"id": "t2", "final": "neutral"}\n{"id": "gone", "final": "ok"}\n', "utf-8")
    done = _run([*ROWS], "--json", "--adjudicated", "final.jsonl")
    assert done.exit_code == 0
    out = json.loads(done.stdout)
    assert {"by_class", "by_language", "negative_joined", "positive_joined", "is_command_error", "status", "category",
            "layer"} <= out.keys()  # fmt: skip
    assert (out["n_rows"], out["n_adjudicated"], out["n_adjudications"]) == (4, 1, 2)
    complaint = out["by_class"]["complaint"]
    assert (complaint["precision"], complaint["recall"], complaint["f1"]) == (1.0, 1.0, 1.0)
    assert complaint["precision_interval"] == pytest.approx([0.206549, 1.0])
    assert out["by_class"]["correction"]["recall"] is None, "its only row was adjudicated"
    assert out["by_language"]["pt"]["negative_joined"]["recall"] is None
    assert out["is_command_error"]["recall"] == 0.5
    assert out["is_command_error"]["f1"] == pytest.approx(2 / 3)
    assert out["category"]["accuracy"] == 1.0
    assert [row["id"] for row in out["wrong_outputs"]] == ["c2"]
    assert SECRET not in done.output
    assert not Path(".evalpipe").exists(), "an evaluation makes no home"


def test_tables_for_a_person() -> None:
    done = _run([*ROWS])
    assert done.exit_code == 0
    for words in ("negative_joined", "turns by language", "is_command_error", "primary label", "t2", "c2"):
        assert words in done.stdout
    assert SECRET not in done.output


def test_bad_lines_are_named_and_counted_and_count_nowhere() -> None:
    done = _run([ROWS[0], {"text": SECRET, "label": "happy"}, 3], "--json")
    assert done.exit_code == Exit.SOME_SLICES_RED
    assert "BAD_FIELD [rows.jsonl:2]" in done.stderr
    assert "NOT_A_RECORD [rows.jsonl:3]" in done.stderr
    out = json.loads(done.stdout)
    assert (out["n_rows"], out["n_refused"], out["refused"]) == (1, 2, {"BAD_FIELD": 1, "NOT_A_RECORD": 1})
    assert "is_command_error" not in out
    assert SECRET not in done.output


def test_files_that_cannot_be_used_have_a_code() -> None:
    nothing = _run([3])
    assert (nothing.exit_code, "LABELS_INVALID" in nothing.stderr) == (Exit.USAGE, True)
    absent = _run([*ROWS], "--adjudicated", "absent.jsonl")
    assert (absent.exit_code, "SOURCE_NOT_FOUND" in absent.stderr) == (Exit.USAGE, True)
