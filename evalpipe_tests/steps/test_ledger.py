"""Ledger files: three formats, every row checked, ids replaced by the tokens of masked tables."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalpipe.console.doctor import unmatched_assignments
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.locations import data_dir
from evalpipe.masking import MaskPlan
from evalpipe.masking.keys import MaskingKey
from evalpipe.steps.land import land
from evalpipe.steps.ledger import load_assignments, load_consent, unmatched
from evalpipe_tests.steps.world import make, opened, session, write

ROW = {"policy": "ab", "unit": "user", "unit_id": "ann", "model": "m-a", "probability": 0.5, "starts_at": "2026-01-02"}


@pytest.fixture(scope="module")
def plan() -> MaskPlan:
    return MaskPlan(
        key=MaskingKey("abcd", b"k" * 32), ruleset=data_dir() / "masking" / "default", withhold_over_bytes=1_000_000
    )


def lines(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_the_three_formats_say_the_same(tmp_path: Path, plan: MaskPlan) -> None:
    names = [lines(tmp_path / "a.jsonl", ROW), str(tmp_path / "a.parquet"), str(tmp_path / "a.csv")]
    pl.DataFrame([ROW]).write_parquet(names[1])
    pl.DataFrame([ROW]).write_csv(names[2])
    first, *others = [load_assignments(name, plan) for name in names]
    assert all(first.equals(other) for other in others)
    row = first.row(0, named=True)
    assert row["unit_id"] == plan.rekey("u", "ann")
    assert (row["starts_at"], row["ends_at"]) == (datetime(2026, 1, 2, tzinfo=UTC), None)
    assert row["epoch"] == "ab from 2026-01-02T00:00"


def test_ids_become_the_tokens_of_masked_tables(tmp_path: Path, plan: MaskPlan) -> None:
    session = ROW | {"unit": "session", "unit_id": "s1", "source": "codex"}
    whole = ROW | {"unit": "session", "unit_id": "codex:s1"}
    both = session | {"unit_id": "codex:s1"}
    tenant = ROW | {"tenant": "t"}
    number = ROW | {"unit_id": 7}
    assert load_assignments(lines(tmp_path / "n.jsonl", number), plan)["unit_id"].to_list() == [plan.rekey("u", "7")]
    got = load_assignments(lines(tmp_path / "a.jsonl", session, whole, both, tenant), plan)["unit_id"].to_list()
    assert got == [plan.rekey("s", "codex:s1")] * 3 + [plan.rekey("u", "ann", "t")]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"policy": ""}, "policy is missing"),
        ({"unit": "team"}, "unit must be"),
        ({"starts_at": "soon"}, "starts_at"),
        ({"starts_at": None}, "starts_at"),
        ({"ends_at": "2026-01-01"}, "ends_at"),
        ({"starts_at": "1770011592359"}, "starts_at"),
        ({"probability": 1.5}, "probability"),
        ({"probability": "half"}, "probability"),
        ({"unit_id": None, "model": None}, "an arm"),
        ({"unit": "session", "unit_id": "bare"}, "needs its source"),
        ({"unit": "session", "unit_id": "s1", "source": "codecs"}, "no reader"),
        ({"unit": "session", "unit_id": "urn:s1"}, "no reader"),
        ({"unit_id": "ann "}, "outer blanks"),
        ({"starts_at": "0001-01-01T00:00:00+05:00"}, "starts_at"),
        ({"colour": "red"}, "colour is unknown"),
    ],
)
def test_a_wrong_row_refuses_the_ledger(tmp_path: Path, plan: MaskPlan, change: dict[str, Any], what: str) -> None:
    path = lines(tmp_path / "a.jsonl", ROW, ROW | change)
    with pytest.raises(EvalpipeError, match=what) as error:
        load_assignments(path, plan)
    assert error.value.code == "LEDGER_INVALID"
    assert "colour" in change or error.value.where.endswith("row 2")


@pytest.mark.parametrize("name", ["none.csv", "a.txt", "broken.parquet", "broken.jsonl"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, plan: MaskPlan, name: str) -> None:
    (tmp_path / "a.txt").write_text("policy")
    (tmp_path / "broken.parquet").write_text("secret words")
    (tmp_path / "broken.jsonl").write_text("{secret words")
    with pytest.raises(EvalpipeError, match="LEDGER_INVALID") as error:
        load_assignments(str(tmp_path / name), plan)
    assert "secret" not in str(error.value)


def test_a_consent_row_names_a_user_or_a_source(tmp_path: Path) -> None:
    good = lines(tmp_path / "a.jsonl", {"user_id": "ann", "status": "withdrawn"})
    assert load_consent(good).rows() == [("ann", None, None, "withdrawn", None)]
    for row in (
        {"status": "withdrawn"},
        {"user_id": "a", "source": "b", "status": "granted"},
        {"user_id": "a", "status": "no"},
        {"user_id": " a", "status": "granted"},
        {"source": "codecs", "status": "withdrawn"},
    ):
        with pytest.raises(EvalpipeError, match="LEDGER_INVALID"):
            load_consent(lines(tmp_path / "b.jsonl", row))


def test_no_ledger_is_an_empty_one(plan: MaskPlan) -> None:
    assert load_assignments("", plan).is_empty()
    assert load_consent("").is_empty()


def test_rows_of_units_without_a_session_are_counted(tmp_path: Path, plan: MaskPlan) -> None:
    rows = [
        ROW,  # the log names a tenant, the row does not
        ROW | {"tenant": "acme"},
        ROW | {"unit_id": "bob"},
        ROW | {"unit_id": "Eve@X.io"},  # found by one of the tokens of its spellings
        ROW | {"unit": "session", "unit_id": "codex:s1"},
        ROW | {"unit": "session", "unit_id": "codex:s2"},
        {**ROW, "unit_id": None},  # an arm is of whoever has its version
    ]
    ledger = lines(tmp_path / "a.jsonl", *rows)
    eve = plan.users("Eve@X.io", "")
    assert len(eve) == 2
    tokens = [
        (plan.rekey("s", "codex:s1"), plan.rekey("u", "ann", "acme")), (plan.rekey("s", "codex:s3"), None),
        (plan.rekey("s", "codex:s4"), eve[0]),
    ]  # fmt: skip
    sessions = pl.DataFrame(tokens, schema=["session_id", "user_id"], orient="row")
    assert unmatched(ledger, plan, sessions) == {"user": 2, "session": 1}


def test_the_doctor_counts_them(tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", *session("s1"))
    ledger = lines(tmp_path / "ledger.jsonl", ROW | {"unit_id": "u-1"}, ROW | {"unit_id": "u-2"})
    with opened(tmp_path / "home") as opened_home:
        assert unmatched_assignments(opened_home) == {}
        context = replace(opened_home, settings=replace(opened_home.settings, assignments=ledger))
        land(context, [tmp_path / "log.jsonl"])
        make(context, "raw", "masked")
        assert unmatched_assignments(context) == {"user": 1}
