"""``evalpipe validate``: what it prints, its exit codes, and that it makes no home."""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalpipe.cli import app
from evalpipe.console import validate
from evalpipe.contracts.errors import Exit
from evalpipe.steps import validation as step
from evalpipe.validation import Finding, finding_rows
from evalpipe.validation.scenarios import SCENARIOS

MET = Finding("grid", "world", "coverage", "?", 0.95, 0.94, 0.96, (0.935, 0.965), 100, 400)
MISSED = replace(MET, quantity="type_1_error", estimate=0.2, lo=0.15, hi=0.25)
OPEN = replace(MET, quantity="false_fail", estimate=0.934, lo=0.92, hi=0.95)
KNOWN = replace(MET, quantity="any_false_order", estimate=0.9, lo=0.89, hi=0.91, limit=(0.88, 1.0))
NO_DATA = Finding("replay", "halves", "false_fail", "?", math.nan, math.nan, math.nan, (0.0, 0.02), 0, 0, "no session")


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVALPIPE_HOME", raising=False)


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ([MET], Exit.OK),
        ([MET, KNOWN], Exit.OK),
        ([MET, NO_DATA], Exit.OK),
        ([MET, OPEN], Exit.INCONCLUSIVE),
        ([MET, OPEN, MISSED], Exit.GATE_FAILED),
    ],
)
def test_exit_codes(found: list[Finding], code: Exit) -> None:
    assert validate.exit_code(finding_rows(found, seed=1, code_version="v")) is code


def test_one_object_for_a_script_and_a_table_for_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [MET, MISSED, OPEN, KNOWN]
    rows = finding_rows(found, seed=1, code_version="v")
    monkeypatch.setattr(step, "simulate", lambda replications, seed: rows)
    done = CliRunner().invoke(app, ["validate", "--json"])
    out = json.loads(done.stdout)
    assert {name: out[f"n_{name}"] for name in ("met", "missed", "open", "known")} == dict.fromkeys(
        ("met", "missed", "open", "known"), 1
    )
    assert [row["quantity"] for row in out["rows"]] == sorted(one.quantity for one in found)
    shown = CliRunner().invoke(app, ["validate"])
    assert shown.exit_code == Exit.GATE_FAILED
    for words in ("world: world", "93.5% to 96.5%", "MISSED", "open", "known limit", "1 targets met, 1 missed, 1 open"):
        assert words in shown.stdout


def test_without_a_home_the_worlds_are_run_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = importlib.import_module("evalpipe.validation.run")
    few = tuple(one for one in SCENARIOS if one.name.startswith("gate, equal"))
    monkeypatch.setattr(module, "SCENARIOS", few)
    done = CliRunner().invoke(app, ["validate", "--replications", "20", "--json"])
    assert done.exit_code in (Exit.OK, Exit.INCONCLUSIVE)
    assert {row["part"] for row in json.loads(done.stdout)["rows"]} == {"grid", "guard"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["--replications", "3"], ["--home", "nowhere"], ["--seed", "-1"]])
def test_what_cannot_be_done_is_said(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, ["validate", *arguments]).exit_code == Exit.USAGE


def test_the_default_is_that_of_the_step() -> None:
    assert validate.REPLICATIONS == step.REPLICATIONS
