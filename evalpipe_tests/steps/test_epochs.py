"""The key of a home: an unrelated one is refused until somebody says that it is meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalpipe.cli import app
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.masking import load_or_create
from evalpipe.settings import Settings, load
from evalpipe.steps import epochs
from evalpipe.steps.context import open_context
from evalpipe.steps.land import land
from evalpipe_tests.steps.world import AS_OF, DAY, make, session, write

ONE, OTHER = "5e" * 32, "6f" * 32


def _home(tmp_path: Path) -> Settings:
    settings = load(folder=tmp_path, environ={}, home=tmp_path / "home", workers=1)
    with open_context(settings, as_of=AS_OF, environ={"EVALPIPE_KEY": ONE}) as context:
        land(context, [write(tmp_path / "a.jsonl", *session("s1", DAY))])
        make(context)
    return settings


@pytest.mark.parametrize("looking", [False, True])
def test_an_unrelated_key_is_refused_and_says_which_is_which(tmp_path: Path, *, looking: bool) -> None:
    settings = _home(tmp_path)
    load_or_create(settings.key_file, {})  # a file lies beside the variable, and the variable is lost
    mine = epochs.state(settings, {"EVALPIPE_KEY": ONE}).fingerprint
    with (
        pytest.raises(EvalpipeError, match=f"masking.key holds the key .*, 1 under {mine}") as caught,
        open_context(settings, as_of=AS_OF, environ={}, looking=looking),
    ):
        pass
    assert caught.value.code == "KEY_CHANGED"
    with (
        pytest.raises(EvalpipeError, match="EVALPIPE_KEY gives"),
        open_context(settings, as_of=AS_OF, environ={"EVALPIPE_KEY": OTHER}),
    ):
        pass


def test_a_key_that_is_adopted_goes_on_and_the_lost_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _home(tmp_path)
    monkeypatch.setenv("EVALPIPE_KEY", OTHER)
    done = CliRunner().invoke(app, ["keys", "adopt", "--home", str(settings.home), "--json"])
    assert json.loads(done.stdout) == {"stale_slices": 3}
    with open_context(settings, as_of=AS_OF, environ={"EVALPIPE_KEY": OTHER}) as context:
        assert [DAY in result.made for result in make(context).values()] == [False, True, True, True]
    with (
        pytest.raises(EvalpipeError, match="masked days"),
        open_context(settings, as_of=AS_OF, environ={"EVALPIPE_KEY": ONE}),
    ):
        pass


def test_a_home_whose_key_only_went_on_is_not_refused(tmp_path: Path) -> None:
    settings = _home(tmp_path)
    with (
        pytest.raises(EvalpipeError, match="MIXED_KEYS"),  # which says how to go on
        open_context(settings, as_of=AS_OF, environ={"EVALPIPE_KEY": f"{ONE},{OTHER}"}),
    ):
        pass
