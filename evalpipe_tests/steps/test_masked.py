"""Masked slices: every table goes through the leak check, and what it found is on record."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from evalpipe import masking
from evalpipe.steps import report as report_step
from evalpipe.steps.context import Context
from evalpipe.steps.land import land
from evalpipe.store.manifest import Manifest
from evalpipe_tests.steps.world import DAY, make, opened, rows, session, write

BAD = '{"type": "step"\n'


def _masked(context: Context) -> Manifest:
    manifest = context.lookup("masked", DAY)
    assert manifest is not None
    return manifest


@pytest.mark.parametrize("table", ["files", "quarantine"])
@pytest.mark.parametrize("log", [[*session("a")], []], ids=["with sessions", "files only"])
def test_a_path_left_in_files_or_quarantine_refuses_the_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, log: list[dict[str, object]]
) -> None:
    real = getattr(masking, f"mask_{table}")

    def leaky(frame: pl.DataFrame, plan: masking.MaskPlan) -> pl.DataFrame:
        found: pl.DataFrame = real(frame, plan)
        return found.with_columns(member=frame["source_file"])

    with opened(tmp_path / "home") as context:
        land(context, [write(tmp_path / "home.ana" / "a.jsonl", *log, tail=BAD)], undated_as=DAY)
        with monkeypatch.context() as patched:
            patched.setattr(masking, f"mask_{table}", leaky)
            red = make(context, "raw", "masked")["masked"].red
        assert {day: error.code for day, error in red.items()} == {DAY: "LEAK_FOUND"}
        assert f"{table}.member" in red[DAY].what
        assert context.lookup("masked", DAY) is None
        assert "home.ana" not in red[DAY].what
        assert make(context, "masked")["masked"].red == {}


def test_one_disputed_line_costs_its_field_and_not_the_day(tmp_path: Path) -> None:
    """The rules take it for an example, the detector for a key."""
    log = session("a")
    log[1]["text"] = "use gh" + "p_" + "A" * 34 + "12 here"
    with opened(tmp_path / "home") as context:
        land(context, [write(tmp_path / "a.jsonl", *log)])
        assert make(context, "raw", "masked")["masked"].red == {}
        assert sorted(rows(context, "masked.steps")["text"]) == ["<WITHHELD:leak>", "Done."]
        counted = rows(context, "masked.redactions").filter(pl.col("entity") == "WITHHELD")
        assert counted.select("subtype", "n_rows").rows() == [("leak", 1)]
        leak = _masked(context).stats["leak"]
        assert leak["n_contained"] == 1
        assert ("steps.text", "withheld: vendor_token") in {(one["field"], one["test"]) for one in leak["findings"]}


def test_no_canary_is_published(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as context:
        land(context, [write(tmp_path / "a.jsonl", *session("a"), tail=BAD)])
        make(context)
        for name in ("sessions", "files", "quarantine", "redactions"):
            data = rows(context, f"masked.{name}")
            assert masking.CANARY_SOURCE not in data["source"]
            assert data.height == (1 if name != "redactions" else data.height)


def test_what_the_check_found_is_on_record_and_is_what_the_report_says(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as context:
        land(context, [write(tmp_path / "a.jsonl", *session("a"), tail=BAD)])
        make(context)
        made = _masked(context)
        leak = made.stats["leak"]
        assert leak["passed"] is True
        assert leak["canaries_planted"] == leak["canaries_counted"] > 100
        assert leak["counts"]["files"] == leak["counts"]["quarantine"] == 2, "one of the log, one canary"
        assert report_step.leak_of([made]) == {
            "passed": True, "findings": 0,
            "canaries_planted": leak["canaries_planted"], "canaries_counted": leak["canaries_counted"],
        }  # fmt: skip


def _with_leak(made: Manifest, leak: dict[str, object] | None) -> Manifest:
    stats = {"leak": leak} if leak else {}
    return Manifest(made.key, made.inputs, made.code_version, made.parts, stats)


def test_the_report_does_not_say_passed_of_what_is_not_on_record(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as context:
        land(context, [write(tmp_path / "a.jsonl", *session("a"))])
        make(context)
        made = _masked(context)
    leak = made.stats["leak"]
    red = _with_leak(made, {**leak, "passed": False, "findings": [{"field": "steps.text", "test": "email", "n": 3}]})
    found = report_step.leak_of([made, red])
    assert found is not None
    assert (found["passed"], found["findings"]) == (False, 3)
    assert report_step.leak_of([made, _with_leak(made, None)]) is None
    assert report_step.leak_of([]) is None
