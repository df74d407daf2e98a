"""A second demo shows the first; only a demo is ever deleted."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalpipe.cli import app
from evalpipe.console import demo
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.settings import Settings


class Calls(list[str]):
    """What a demo did, with the long work left out."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    made = Calls()

    def note(name: str) -> object:
        def call(*_: object, **__: object) -> int:
            made.append(name)
            return 0

        return call

    for name in ("write_logs", "_run_nights", "_compare"):
        monkeypatch.setattr(demo, name, note(name))
    return made


def _run(home: Path, *, sessions: int = 10, fresh: bool = False) -> int:
    return demo.run_demo(Settings(home=home), sessions=sessions, days=2, seed=1, fresh=fresh, debug=False)


ALL = ["write_logs", "_run_nights", "_compare"]


def test_a_second_demo_shows_the_first(calls: Calls, tmp_path: Path) -> None:
    _run(tmp_path / "demo")
    assert calls == ALL
    _run(tmp_path / "demo")
    assert calls == [*ALL, "_compare"]


def test_another_demo_needs_fresh(calls: Calls, tmp_path: Path) -> None:
    home = tmp_path / "demo"
    _run(home)
    with pytest.raises(EvalpipeError, match="--fresh"):
        _run(home, sessions=11)
    (home / "old").touch()
    _run(home, sessions=11, fresh=True)
    assert calls == [*ALL, *ALL]
    assert not (home / "old").exists()


def test_an_unfinished_demo_needs_fresh(calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(demo, "_run_nights", killed)
        with pytest.raises(KeyboardInterrupt):
            _run(tmp_path / "demo")
    with pytest.raises(EvalpipeError, match="unfinished"):
        _run(tmp_path / "demo")
    _run(tmp_path / "demo", fresh=True)
    assert calls[-3:] == ALL


@pytest.mark.parametrize("fresh", [False, True])
def test_what_is_no_demo_is_never_deleted(calls: Calls, tmp_path: Path, fresh: bool) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    for home in (tmp_path, tmp_path / "thesis.txt"):
        with pytest.raises(EvalpipeError, match="something else"):
            _run(home, fresh=fresh)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    assert calls == []


def test_the_demo_ends_with_commands_that_parse(tmp_path: Path) -> None:
    lines = demo.commands(tmp_path / "a demo", "acme · m-2", "acme · m-1")
    verbs = []
    for line in lines:
        name, verb, *options = shlex.split(line)
        assert name == "evalpipe"
        assert options[options.index("--home") + 1] == str(tmp_path / "a demo")
        assert verb == "sql" or options[options.index("--criteria") + 1] == demo.CRITERIA
        # The home is not there: a line that names an option the verb has not is a usage error of another kind.
        assert "NO_HOME" in CliRunner().invoke(app, [verb, *options]).output, line
        verbs.append(verb)
    assert verbs == ["report", "gate", "release", "doctor", "sql"]
