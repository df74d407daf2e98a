"""Planted personal data and secrets are nowhere under the home outside ``lake/raw``, and are counted."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from evalpipe_tests.end_to_end.conftest import Cli, World


def _outside_raw(home: Path) -> list[Path]:
    raw = home / "lake" / "raw"
    return [p for p in sorted(home.rglob("*")) if p.is_file() and raw not in p.parents]


def test_no_planted_value_is_found_in_file_bytes(home: Path, world: World) -> None:
    values = [c["value"] for c in world.truth.canaries]
    assert len(values) > 40
    for path in _outside_raw(home):
        content = path.read_bytes()
        for value in values:
            assert value.encode() not in content, path.name


def test_no_planted_value_is_found_in_decoded_columns(home: Path, world: World) -> None:
    values = sorted({c["value"] for c in world.truth.canaries})
    for path in _outside_raw(home):
        if path.suffix != ".parquet":
            continue
        frame = pl.read_parquet(path)
        for name, dtype in frame.schema.items():
            if dtype != pl.String:
                continue
            found = frame[name].drop_nulls().str.contains_any(values, ascii_case_insensitive=True).sum()
            assert found == 0, f"{path.parent.parent.name}.{name}"


def test_the_same_search_finds_them_in_raw(home: Path, world: World) -> None:
    values = sorted({c["value"] for c in world.truth.canaries if "\n" not in c["value"]})
    hits = 0
    for path in (home / "lake" / "raw").rglob("*.parquet"):
        frame = pl.read_parquet(path)
        for name in ("text", "arguments", "output"):
            if name in frame.columns:
                hits += int(frame[name].drop_nulls().str.contains_any(values).sum())
    assert hits >= len(world.truth.canaries) // 2, "the search itself must be able to find"


def test_every_kind_is_in_the_audit_counts(cli: Cli, home: Path) -> None:
    rows = cli.rows(home, "SELECT entity, sum(n_hits)::BIGINT AS n FROM masked.redactions GROUP BY entity")
    counted = {row["entity"]: row["n"] for row in rows}
    for entity in ("EMAIL_ADDRESS", "PHONE_NUMBER", "CREDIT_CARD", "IBAN_CODE", "SECRET", "USERNAME"):
        assert counted.get(entity, 0) > 0, counted


def test_the_key_is_not_in_the_home_when_the_environment_gives_it(home: Path) -> None:
    assert not (home / "masking.key").exists()
    assert (home / "lake" / "raw").stat().st_mode & 0o077 == 0
