"""Sources of the command line: patterns, and a bucket."""

from __future__ import annotations

from pathlib import Path

from evalpipe.contracts.errors import Exit
from evalpipe.store.warehouse import Warehouse
from evalpipe_tests.bucket import BUCKET, ObjectStore
from evalpipe_tests.end_to_end.conftest import Cli
from evalpipe_tests.orchestration.small import write_sessions


def test_a_pattern_and_a_bucket_are_read_in_one_run(cli: Cli, tmp_path: Path, store: ObjectStore) -> None:
    write_sessions(tmp_path / "logs" / "day" / "a.jsonl", "2026-01-05", "a")
    write_sessions(tmp_path / "logs" / "day" / "left-out.txt", "2026-01-05", "x")
    store.put("agents/b 1.jsonl", write_sessions(tmp_path / "b", "2026-01-06", "b").read_bytes() + b"{broken\n")
    home = tmp_path / "home"
    pattern = tmp_path / "logs" / "**" / "*.jsonl"
    done = cli("run", pattern, f"s3://{BUCKET}/agents", "--home", home, expect=Exit.OK)
    assert "agents/b 1.jsonl" in done.stdout, "the place of the broken line"
    warehouse = Warehouse(home / "warehouse.duckdb", memory_limit="256MB")
    assert warehouse.query("select count(*) as n from masked.sessions").item() == 2
