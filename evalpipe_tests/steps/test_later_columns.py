"""Rows that were appended before a table had a column."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl

from evalpipe.contracts.render import conform, frame
from evalpipe.contracts.tables.analysis import GATES
from evalpipe.steps.publish import with_later_columns
from evalpipe_tests.steps.test_erase import alone

ROW = {
    "decision_id": "d1", "criterion": "c", "as_of": date(2026, 1, 9), "window_name": "all",
    "window_start": date(2026, 1, 1), "window_end": date(2026, 1, 5), "measurement": "m", "criteria_name": "default",
    "criteria_version": "1", "criteria_hash": "h", "decided_on": date(2026, 1, 9), "candidate": "b", "baseline": "a",
    "metric": "correction", "kind": "superiority", "margin": 0.0, "estimate": 0.1, "lower": 0.02, "upper": 0.2,
    "df": 30.0, "verdict": "pass", "reasons": [],
}  # fmt: skip


def test_an_older_decision_keeps_every_number_and_gets_what_is_new_as_null(tmp_path: Path) -> None:
    with alone(tmp_path / "home") as context:
        folder = context.lake.root / "analysis" / "gates"
        folder.mkdir(parents=True)
        whole = conform(GATES, frame(GATES, [ROW]))
        whole.drop("score_lower", "p_score").write_parquet(folder / "old.parquet")
        with_later_columns(context.lake)
        (path,) = context.lake.appended("analysis.gates")
        assert pl.read_parquet(path).equals(whole)
        with_later_columns(context.lake)
        assert context.lake.appended("analysis.gates") == [path]
