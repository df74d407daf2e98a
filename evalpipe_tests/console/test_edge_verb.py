"""The verb ``edge``: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalpipe.cli import app
from evalpipe.contracts.errors import Exit
from evalpipe_tests.steps.world import session, write


def test_the_verb_counts_what_it_wrote_and_needs_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALPIPE_WORKERS", "1")
    monkeypatch.delenv("EVALPIPE_KEY", raising=False)
    log = write(tmp_path / "logs" / "a.jsonl", *session("a"), tail="{broken\n")
    out = tmp_path / "sent" / "edge.jsonl.zst"
    run = CliRunner()
    done = run.invoke(app, ["edge", str(log), "--out", str(out)])
    assert done.exit_code == Exit.REFUSED
    assert "KEY_NEEDED" in done.output
    assert sorted(item.name for item in tmp_path.iterdir()) == ["logs"], "neither a file nor a home with a new key"
    key = tmp_path / "key"
    key.write_text("5e" * 32)
    key.chmod(0o600)
    done = run.invoke(app, ["edge", str(log), "--out", str(out.parent.parent), "--key-file", str(key)])
    assert done.exit_code == Exit.USAGE
    done = run.invoke(app, ["edge", str(log), "--out", str(out), "--key-file", str(key), "--json"])
    assert done.exit_code == Exit.OK, done.output
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["sessions"], told["files"], told["quarantine"]) == (1, 1, {"BAD_JSON": 1})
    assert told["bytes"] == out.stat().st_size
    assert not (tmp_path / ".evalpipe").exists()
