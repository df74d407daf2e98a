"""Query results of any type come out in any format, and files are whole or not there."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalpipe.console import frames
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.store.meta import Provenance
from evalpipe.store.warehouse import Warehouse

QUERY = """
SELECT 'infinity'::DATE AS day, '-infinity'::TIMESTAMPTZ AS at, '2026-01-05'::DATE AS plain_day, 'nan'::DOUBLE AS nan,
       '-inf'::DOUBLE AS inf, 'ab'::BLOB AS bytes, 1.25::DECIMAL(9, 2) AS price, sum(n) AS total, INTERVAL 1 DAY AS span,
       union_value(a := 1) AS one_of, {'a': [1, 2], 'b': 'x'::BLOB} AS nested, MAP {1: 'v'} AS mapped, ['l'] AS listed,
       {'u': union_value(a := 1)} AS inner_union, [INTERVAL 1 DAY] AS spans, '101'::BIT AS bits, TIME '10:00' AS clock,
       ['infinity'::DATE] AS days, 'infinity'::TIMESTAMP_S AS seconds, NULL AS nothing
FROM (VALUES (1), (2)) AS v (n)
"""
EXPECTED: dict[str, Any] = {
    "day": "infinity", "at": "-infinity", "plain_day": "2026-01-05", "nan": "NaN", "inf": "-Infinity", "bytes": "6162",
    "price": 1.25, "total": 3, "span": "1 day", "one_of": "1", "nested": {"a": [1, 2], "b": "78"}, "mapped": {"1": "v"},
    "listed": ["l"], "inner_union": "{'u': 1}", "spans": "[1 day]", "bits": "101", "clock": "10:00:00",
    "days": "[infinity]", "seconds": "infinity", "nothing": None,
}  # fmt: skip


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    house = Warehouse(tmp_path_factory.mktemp("house") / "warehouse.duckdb")
    house.publish({}, (), "f", Provenance("0"))
    return house.query(QUERY)


def test_json_has_every_type(result: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    frames.frame(result, "json")
    assert json.loads(capsys.readouterr().out, parse_constant=refuse) == EXPECTED


def test_csv_has_every_type(result: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    frames.frame(result, "csv")
    row = next(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert json.loads(row["nested"]) == EXPECTED["nested"]
    assert json.loads(row["listed"]) == ["l"]
    assert (row["day"], row["bytes"], row["span"], row["nothing"]) == ("infinity", "6162", "1 day", "")


def test_a_table_has_every_type(result: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    frames.frame(result, "table")
    shown = capsys.readouterr().out
    assert '{"a": [1, 2], "b": "78"}' in shown
    assert "infinity" in shown


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet"])
def test_a_file_is_written_whole(result: pl.DataFrame, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    frames.write(result, path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    if suffix == ".parquet":
        assert pl.read_parquet(path)["total"].to_list() == [3]
    else:
        assert "infinity" in path.read_text("utf-8")


@pytest.mark.parametrize("name", ["out.txt", "out", "missing/out.csv", "folder.csv"])
def test_a_place_that_cannot_be_written_is_refused_before_the_query(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(EvalpipeError, match="BAD_ARGUMENT"):
        frames.check_file(tmp_path / name)


def test_a_failed_write_leaves_the_old_file(
    result: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old")

    def fail(data: pl.DataFrame, draft: Path) -> None:
        draft.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(frames._WRITERS, ".csv", fail)
    with pytest.raises(OSError, match="No space"):
        frames.write(result, path)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("out.csv", "old")]
