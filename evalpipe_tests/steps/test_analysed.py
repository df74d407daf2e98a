"""A home that was analysed under other criteria, or another window, says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalpipe.cli import app
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.settings import load
from evalpipe.steps.analysed import require_latest
from evalpipe.steps.analysis import make_analysis
from evalpipe.steps.context import open_context
from evalpipe.steps.land import land
from evalpipe_tests.steps.world import AS_OF, make, session, write

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


