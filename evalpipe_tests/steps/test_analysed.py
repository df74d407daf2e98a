"""A home that was analysed under other criteria, or another window, says so."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalpipe.cli import app
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.settings import load
from evalpipe.steps.analysed import require_latest
from evalpipe.steps.analysis import make_analysis, require_current
from evalpipe.steps.context import open_context
from evalpipe.steps.land import land
from evalpipe_tests.steps.world import AS_OF, DAY, make, session, write

KEY = {"EVALPIPE_KEY": "5e" * 32}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("analysed")
    logs = write(folder / "s.jsonl", *session("s-1"))
    settings = load(folder=folder, environ={}, home=folder / "home", criteria="demo", workers=1)
    with open_context(settings, as_of=AS_OF, environ=KEY) as context:
        land(context, [logs])
        make(context)
        assert make_analysis(context, [AS_OF], "all").made
    return folder / "home"


def _refusal(home: Path, criteria: str, window: str | None) -> EvalpipeError:
    settings = load(folder=home.parent, environ={}, home=home, criteria=criteria, workers=1)
    with (
        open_context(settings, as_of=AS_OF, environ=KEY) as context,
        pytest.raises(EvalpipeError) as caught,
    ):
        require_latest(context, window)
    return caught.value


def test_other_criteria_are_named_with_the_option_for_them(home: Path) -> None:
    error = _refusal(home, "default", None)
    assert error.code == "NO_RESULT"
    assert error.what.startswith("analysed under criteria demo ")
    assert error.fix == "Add --criteria demo."


def test_other_windows_are_named(home: Path) -> None:
    error = _refusal(home, "demo", "28d")
    assert (error.what, "--window all" in error.fix) == ("no analysis of the window 28d; there are: all", True)


@pytest.mark.parametrize(
    "verb", [["report"], ["release", "acme · m-1"], ["gate", "--candidate", "a", "--baseline", "b"]]
)
def test_verbs_of_a_home_of_other_criteria_say_so(home: Path, verb: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALPIPE_KEY", KEY["EVALPIPE_KEY"])
    result = CliRunner().invoke(app, [*verb, "--home", str(home)])
    assert result.exit_code == 2
    assert "Fix: Add --criteria demo." in result.output


def test_doctor_names_other_criteria_before_it_offers_work(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALPIPE_KEY", KEY["EVALPIPE_KEY"])
    told = CliRunner().invoke(app, ["doctor", "--home", str(home)]).output
    assert "add --criteria demo" in told
    assert "Stale days: run" not in told, "that would extract the whole home once more"
    state = json.loads(CliRunner().invoke(app, ["doctor", "--home", str(home), "--json"]).output)
    assert [item.split(":")[0].split()[0] for item in state["analysed_otherwise"]] == ["demo"]
    same = CliRunner().invoke(app, ["doctor", "--home", str(home), "--criteria", "demo"]).output
    assert "add --criteria" not in same


def test_release_of_a_window_keeps_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALPIPE_KEY", KEY["EVALPIPE_KEY"])
    options = ["--home", str(home), "--criteria", "demo", "--window", "all", "--json"]
    result = CliRunner().invoke(app, ["release", "acme · m-1", *options])
    assert result.exit_code == 0, result.output
    assert {row["window_name"] for row in json.loads(result.output)} == {"all"}
    assert not list((home / "lake").rglob("*scorecard*"))


def test_commands_that_are_named_carry_the_criteria(home: Path) -> None:
    settings = load(folder=home.parent, environ={}, home=home, criteria="demo", workers=1)
    with open_context(settings, as_of=date(2030, 1, 1), environ=KEY) as context:
        manifest = replace(require_latest(context), code_version="0")
        with pytest.raises(EvalpipeError) as caught:
            require_current(context, manifest)
    end = DAY + timedelta(days=context.criteria.estimand.settle_days)
    assert load(folder=home.parent, environ={}, home=home).criteria_option == ""
    # Days after those have the same sessions in their window, or fewer.
    assert caught.value.fix == f"Run: evalpipe backfill {AS_OF}..{max(AS_OF, end)} --window all --criteria demo"
