"""What a run leaves behind: errors with their code, no path in the history, a published file that agrees."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from datetime import date, timedelta
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from evalpipe.console import flow, summary
from evalpipe.contracts.errors import EvalpipeError, Exit
from evalpipe.definitions import build_defs
from evalpipe.orchestration import runner as runner_module
from evalpipe.orchestration.sensors import late_days
from evalpipe.settings import Settings
from evalpipe.steps import versions as versions_module
from evalpipe.steps.analysis import latest, outdated
from evalpipe.steps.context import load_criteria, open_context, today, yesterday
from evalpipe.steps.decisions import make_gates, make_scorecard
from evalpipe.steps.land import land
from evalpipe.steps.publish import committed, compare
from evalpipe.steps.validation import newest_outcomes
from evalpipe.steps.versions import code_versions
from evalpipe_tests.orchestration.small import AS_OF, opened, running, settings_of, write_sessions

WORDS = " ".join(["the", "words", "of", "a", "person"])
D5, D6 = date(2026, 1, 5), date(2026, 1, 6)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home of two days, run whole once: a run takes seconds, a copy none."""
    folder = tmp_path_factory.mktemp("once")
    write_sessions(folder / "jane-doe-laptop" / "5.jsonl", "2026-01-05", "a", "b")
    write_sessions(folder / "jane-doe-laptop" / "6.jsonl", "2026-01-06", "c", "d")
    with running(folder) as (settings, runner):
        flow.run_sources(settings, runner, [folder / "jane-doe-laptop"], days=None, undated_as=None, window="all")
    return folder


@pytest.fixture
def made(once: Path, tmp_path: Path) -> Settings:
    """A home of its own with two days, run whole."""
    shutil.copytree(once / "home", tmp_path / "home")
    return settings_of(tmp_path)


def test_the_history_does_not_name_the_source(made: Settings) -> None:
    files = [path for path in made.dagster_home.rglob("*") if path.is_file()]
    assert any(b"raw__landing" in path.read_bytes() for path in files), "the search itself must be able to find"
    for path in files:
        assert b"jane-doe" not in path.read_bytes(), path.name


def test_what_is_replayed_are_the_outcomes_of_the_newest_analysis(made: Settings) -> None:
    with opened(made) as context:
        outcomes, digest = newest_outcomes(context)
        newest = latest(context)
    assert newest is not None
    assert (outcomes.height, newest.stats["n_sessions"]) == (4, 4)
    assert len(digest) == 32


def test_an_error_of_a_step_keeps_its_code_place_fix_and_exit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = write_sessions(tmp_path / "a.jsonl", "2026-01-05", "a")
    with running(tmp_path) as (_, runner):
        monkeypatch.setenv("EVALPIPE_KEY", "not a key")
        with pytest.raises(EvalpipeError) as caught:
            runner.land([logs], None).require()
        error = caught.value
        assert (error.code, error.where, error.exit) == ("KEY_INVALID", "EVALPIPE_KEY", Exit.REFUSED)
        assert "64 hexadecimal digits" in error.fix
        monkeypatch.delenv("EVALPIPE_KEY")
        outcome = runner.land([logs], date(2001, 1, 1))
        assert [cause.code for cause in outcome.causes] == ["BAD_ARGUMENT"]
        assert "2023-01-01" in outcome.causes[0].fix


def test_an_unforeseen_error_of_a_step_is_named_without_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError(WORDS)  # the traceback keeps the line, and would keep the words with it

    monkeypatch.setattr("evalpipe.orchestration.assets.layers.land", broken)
    with running(tmp_path) as (settings, runner):
        outcome = runner.land([tmp_path], None)
    assert [(cause.code, cause.exit) for cause in outcome.causes] == [("RUN_FAILED", Exit.FAILED)]
    assert "ValueError" in outcome.causes[0].what
    for path in settings.dagster_home.rglob("*"):
        assert not path.is_file() or WORDS.encode() not in path.read_bytes(), path.name


@pytest.mark.parametrize("day", [date(2001, 1, 1), date(2099, 1, 1)])
def test_days_that_the_home_cannot_hold_are_refused_before_anything_is_read(tmp_path: Path, day: date) -> None:
    logs = write_sessions(tmp_path / "a.jsonl", "2026-01-05", "a")
    with running(tmp_path) as (settings, runner):
        for days, undated in (((day, day), None), (None, day)):
            with pytest.raises(EvalpipeError) as caught:
                flow.run_sources(settings, runner, [logs], days=days, undated_as=undated, window="all")
            assert caught.value.code == "BAD_ARGUMENT"
            assert str(settings.first_day) in caught.value.fix
        with pytest.raises(EvalpipeError, match="BAD_ARGUMENT"):
            flow.make_days(settings, runner, days=(D5, date(2099, 1, 1)), window="28d")
        with opened(settings) as context:
            assert context.landing.day_inputs() == {}


def test_a_second_late_file_of_one_day_is_asked_for_and_scored_and_published(made: Settings, tmp_path: Path) -> None:
    defs = build_defs(made)
    keys = []
    for name in ("late-1", "late-2"):
        with open_context(made) as context:
            land(context, [write_sessions(tmp_path / f"{name}.jsonl", "2026-01-05", name)])
        result = late_days(home=defs.resources["home"])
        assert isinstance(result, dg.SensorResult)
        (request,) = result.run_requests or []
        keys.append(request.run_key)
    assert len(set(keys)) == 2
    again = late_days(home=defs.resources["home"])
    assert isinstance(again, dg.SensorResult)
    assert [request.run_key for request in again.run_requests or []] == keys[1:], "the same state is asked for once"
    job = defs.resolve_job_def("late")
    with dg.DagsterInstance.ephemeral() as instance:
        done = job.execute_in_process(instance=instance, tags=request.tags, run_config=request.run_config)
    assert done.success
    with duckdb.connect(str(made.warehouse), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM masked.sessions").fetchall() == [(6,)]
    assert isinstance(late_days(home=defs.resources["home"]), dg.SkipReason)


def test_a_late_day_moves_the_trailing_analyses_of_the_last_weeks(tmp_path: Path) -> None:
    day = yesterday() - timedelta(days=5)
    logs = write_sessions(tmp_path / "a.jsonl", str(day), "a", "b")
    with running(tmp_path) as (settings, runner):
        runner.land([logs], None).require()
        runner.slices(day, day, yesterday()).require()
        runner.score(yesterday(), "28d", yesterday()).require()
        with open_context(settings) as context:
            before = latest(context, "28d")
            land(context, [write_sessions(tmp_path / "b.jsonl", str(day), "c", "d")])
        flow.make_days(settings, runner, days=None, window="all")
        with open_context(settings) as context:
            after = latest(context, "28d")
    assert before is not None
    assert after is not None
    assert after.key == before.key
    assert after.stats["n_sessions"] == 4


def test_an_analysis_that_sessions_have_overtaken_is_not_decided_on(made: Settings, tmp_path: Path) -> None:
    with opened(made) as context:
        manifest = latest(context)
        assert manifest is not None
        assert outdated(context, manifest) is None
        make_gates(context, manifest, "acme · m-1", "acme · m-2")
        make_scorecard(context, "acme · m-1")
    with running(tmp_path) as (_, runner):
        runner.land([write_sessions(tmp_path / "b.jsonl", "2026-01-06", "e")], None).require()
        runner.slices(D5, D6, AS_OF).require()
    with opened(made) as context:
        for decide in (
            lambda: make_gates(context, manifest, "acme · m-1", "acme · m-2"),
            lambda: make_scorecard(context, "acme · m-1"),
        ):
            with pytest.raises(EvalpipeError) as caught:
                decide()
            assert (caught.value.code, caught.value.exit) == ("STALE_RESULT", Exit.REFUSED)
            assert "backfill" in caught.value.fix


def test_settled_days_after_its_window_outdate_an_analysis(made: Settings, tmp_path: Path) -> None:
    with running(tmp_path) as (_, runner):
        runner.land([write_sessions(tmp_path / "b.jsonl", "2026-01-12", "e")], None).require()
        runner.slices(date(2026, 1, 12), date(2026, 1, 12), AS_OF).require()
    with opened(made) as context:
        manifest = latest(context)
        assert manifest is not None
        assert "2026-01-12" in str(outdated(context, manifest))


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ("DELETE FROM masked.sessions WHERE session_id = (SELECT min(session_id) FROM masked.sessions)", "masked.sessions"),
        ("INSERT INTO signals.session_features SELECT * FROM signals.session_features", "signals.session_features"),
        ("DELETE FROM meta.manifests WHERE slice_name LIKE 'masked/%05'", "masked/day=2026-01-05"),
        ("UPDATE meta.manifests SET digest = 'x' WHERE slice_name LIKE 'masked/%06'", "masked/day=2026-01-06"),
    ],
)  # fmt: skip
def test_a_published_file_that_differs_from_the_lake_is_found(made: Settings, damage: str, named: str) -> None:
    with opened(made) as context:
        before = committed(context)
        with duckdb.connect(str(made.warehouse)) as connection:
            whole = compare(context, before, connection)
            assert (whole.differing, whole.moved_on) == ((), 0)
            assert whole.tables >= 15
            connection.execute(damage)
            assert named in compare(context, before, connection).differing


def test_a_slice_that_another_process_commits_meanwhile_is_not_held_against_the_file(
    made: Settings, tmp_path: Path
) -> None:
    with opened(made) as context:
        before = committed(context)
        land(context, [write_sessions(tmp_path / "b.jsonl", "2026-01-06", "e")])
        with running(tmp_path) as (_, runner):
            runner.slices(D5, D6, AS_OF).require()
        with duckdb.connect(str(made.warehouse), read_only=True) as connection:
            seen = compare(context, before, connection)
    assert seen.differing == ()
    assert seen.moved_on > 0


def test_the_databases_of_a_home_are_made_under_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = runner_module.open_instance
    held = []

    def watched(folder: Path) -> dg.DagsterInstance:
        handle = os.open(folder / "instance.lock", os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append(folder)
        finally:
            os.close(handle)
        return real(folder)

    monkeypatch.setattr(runner_module, "open_instance", watched)
    with running(tmp_path) as (settings, _):
        assert held == [settings.dagster_home]
        databases = sorted(settings.dagster_home.rglob("*.db"))
        assert {path.name for path in databases} >= {"runs.db", "index.db", "schedules.db"}
        for path in databases:
            with sqlite3.connect(path) as connection:
                assert len(connection.execute("SELECT * FROM alembic_version").fetchall()) == 1, path.name


def test_masking_is_stale_when_the_rule_set_in_force_or_a_validator_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    criteria = load_criteria("default")
    first = code_versions(criteria, "prices")
    folder = tmp_path / "rules"
    folder.mkdir()
    for path in versions_module.ruleset_folder(criteria).glob("*.toml"):
        (folder / path.name).write_text(path.read_text("utf-8"), "utf-8")
    words = folder / "words.toml"
    words.write_text(words.read_text("utf-8") + '\nof_the_house = ["x"]\n', "utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(versions_module, "ruleset_folder", lambda _: folder)
        assert code_versions(criteria, "prices")["masked"] != first["masked"]
    with monkeypatch.context() as patch:
        patch.setattr(versions_module.masking.validators, "__file__", str(folder / "__init__.py"))
        (folder / "base.py").write_text("", "utf-8")
        versions_module._validators_digest.cache_clear()
        other = code_versions(criteria, "prices")
    versions_module._validators_digest.cache_clear()
    assert other["masked"] != first["masked"]
    assert other["signals"] == first["signals"]


def test_a_session_of_tomorrow_waits_for_its_day(tmp_path: Path) -> None:
    tomorrow = date.fromordinal(today().toordinal() + 1)
    logs = write_sessions(tmp_path / "a.jsonl", str(tomorrow), "a")
    write_sessions(tmp_path / "b.jsonl", "2026-01-05", "b")
    with running(tmp_path) as (settings, runner):
        done = flow.run_sources(
            settings, runner, [logs, tmp_path / "b.jsonl"], days=None, undated_as=None, window="all"
        )
    assert done.days == [D5]
    with opened(settings) as context:
        assert tomorrow in context.plan().days


def test_a_range_shows_its_own_last_day_and_is_scored_in_one_job(
    made: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = []
    score = runner_module.Runner.score

    def spied(self: runner_module.Runner, first: date, window: str, as_of: date, **named: date) -> object:
        jobs.append((first, named))
        return score(self, first, window, as_of, **named)

    monkeypatch.setattr(runner_module.Runner, "score", spied)
    with running(tmp_path) as (settings, runner):
        # The window of the last day holds no session, and that of an early range none at all.
        full = flow.make_days(settings, runner, days=(date(2026, 1, 9), date(2026, 1, 11)), window="2d")
        done = flow.make_days(settings, runner, days=(date(2026, 1, 8), date(2026, 1, 9)), window="2d")
        early = flow.make_days(settings, runner, days=(D6, D6), window="28d")
    assert full.scored == [date(2026, 1, 9), date(2026, 1, 10)]
    assert (done.as_of, early.as_of, early.scored) == (date(2026, 1, 9), None, [])
    assert [(first, named["until"]) for first, named in jobs] == [
        (date(2026, 1, 9), date(2026, 1, 11)), (date(2026, 1, 8), date(2026, 1, 9)), (D6, D6)
    ]  # fmt: skip
    assert "Scoring 3 as-of days, 2026-01-09 to 2026-01-11" in capsys.readouterr().err
    summary.after_run(settings, done, sources=[], as_json=False)
    told = capsys.readouterr().out
    assert "Days made: 0, days scored: 2" in told
    assert "Next: a comparison needs 20 sessions of each of two versions" in told
    assert "w=2d/day=2026-01-09" in told, "and not the newest as-of day of the home"
    assert summary.after_run(settings, early, sources=[], as_json=False) == 0
    told = capsys.readouterr().out
    assert "no settled session in the 28 days up to 2026-01-03" in told
    assert "Sessions of 2026-01-06 count from 2026-01-09 on" in told
