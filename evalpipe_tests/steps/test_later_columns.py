"""Rows that were appended before a table had a column."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl
import pytest

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.render import conform, frame
from evalpipe.contracts.tables.analysis import GATES
from evalpipe.steps.publish import with_later_columns
from evalpipe.store.lake import read_part
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


def test_an_appended_file_without_a_required_column_is_named_and_never_to_be_deleted(tmp_path: Path) -> None:
    path = tmp_path / "old.parquet"
    whole = conform(GATES, frame(GATES, [ROW]))
    whole.drop("verdict", "score_lower").write_parquet(path)
    with pytest.raises(EvalpipeError, match=r"analysis\.gates was written without verdict") as caught:
        read_part("analysis.gates", path)
    assert caught.value.code == "CONTRACT_BROKEN"
    path.write_bytes(b"PAR1")
    with pytest.raises(EvalpipeError, match="cannot be read") as caught:
        read_part("analysis.gates", path)
    assert "backfill" not in caught.value.fix
