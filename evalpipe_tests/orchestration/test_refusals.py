"""A refused day: not committed, not published, not found fresh, and no other day stops for it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl
import pytest

from evalpipe.console import flow
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.steps import analysis as analysis_step
from evalpipe.steps import rejections, verdicts
from evalpipe.steps.analysis import latest, make_analysis
from evalpipe.store.plan import DAY_STEPS
from evalpipe.store.warehouse import Warehouse
from evalpipe_tests.orchestration.small import AS_OF, TWO_SESSIONS, opened, running, write_sessions

D5, D6, D7 = (date(2026, 1, d) for d in (5, 6, 7))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write_sessions(tmp_path / "logs" / "5.jsonl", "2026-01-05", "a", "b")
    write_sessions(tmp_path / "logs" / "6.jsonl", "2026-01-06", "c")
    write_sessions(tmp_path / "logs" / "7.jsonl", "2026-01-07", "d", "e")
    return tmp_path / "logs"


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A rule that the day with one session breaks."""
    monkeypatch.setattr(verdicts, "rules", lambda: (TWO_SESSIONS,))
    return monkeypatch


def published_days(settings: object) -> list[date]:
    query = "SELECT DISTINCT started_at::DATE AS day FROM masked.sessions ORDER BY 1"
    return Warehouse(settings.warehouse).query(query)["day"].to_list()  # type: ignore[attr-defined]


def test_a_broken_profile_keeps_a_slice_from_being_committed_published_or_fresh(
    tmp_path: Path, logs: Path, strict: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as (settings, runner):
        done = flow.run_sources(settings, runner, [logs], days=None, undated_as=None, window="all")
    assert {day: code for day, (code, _) in done.red.items()} == {D6: "PROFILE_OUT_OF_BOUNDS"}
    assert done.days == [D5, D7]
    assert published_days(settings) == [D5, D7]
    with opened(settings) as context:
        for step in DAY_STEPS[1:]:
            assert context.lake.days(step, context.versions.variants[step]) == [D5, D7], step
        assert D6 not in context.plan().days, "the same input and rules would be refused again"
    strict.undo()
    with opened(settings) as context:
        assert D6 in context.plan().days, "other rules are another verdict"


def test_a_refused_day_keeps_its_old_version(tmp_path: Path, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path) as (settings, runner):
        flow.run_sources(settings, runner, [logs], days=None, undated_as=None, window="all")
        with opened(settings) as context:
            before = {step: context.lookup(step, D6) for step in DAY_STEPS}
        more = write_sessions(tmp_path / "more.jsonl", "2026-01-06", "f", "g")
        at_most = TWO_SESSIONS.__class__("masked.sessions", "n_rows", "rows", "error", "why", high=2)
        monkeypatch.setattr(verdicts, "rules", lambda: (at_most,))
        done = flow.run_sources(settings, runner, [more], days=None, undated_as=None, window="all")
    assert list(done.red) == [D6]
    with opened(settings) as context:
        for step in DAY_STEPS[1:]:
            now, old = context.lookup(step, D6), before[step]
            assert now is not None
            assert old is not None
            assert now.content == old.content, step
    found = Warehouse(settings.warehouse).query("SELECT count(*) AS n FROM masked.sessions")
    assert found["n"].to_list() == [5]


def test_one_refused_day_does_not_stop_the_night(tmp_path: Path, logs: Path, strict: pytest.MonkeyPatch) -> None:
    with running(tmp_path) as (settings, runner):
        outcome = runner.nightly(date(2026, 1, 8), [logs])
    assert not outcome.is_success
    assert outcome.is_refusal
    assert [error.code for error in outcome.causes] == ["PROFILE_OUT_OF_BOUNDS"]
    assert published_days(settings) == [D5, D7]
    with opened(settings, date(2026, 1, 8)) as context:
        assert latest(context) is not None, "the other days were scored"
    assert list((settings.reports).rglob("report.html"))


def test_incoherent_estimates_are_not_committed_and_nothing_is_published(
    tmp_path: Path, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = analysis_step.analysis.score

    def wrong(*args: object, **kwargs: object) -> dict[str, pl.DataFrame]:
        tables = right(*args, **kwargs)  # type: ignore[arg-type]
        name = "analysis.net_improvement"
        outside = {"estimate": pl.lit(5.0), "lo": pl.lit(0.0), "hi": pl.lit(1.0)}
        return {**tables, name: tables[name].with_columns(**outside)}

    with running(tmp_path) as (settings, runner):
        runner.land([logs], None).require()
        runner.slices(D5, D7, AS_OF).require()
        monkeypatch.setattr(analysis_step.analysis, "score", wrong)
        outcome = runner.score(D7, "all", AS_OF)
        assert any("estimates_are_coherent" in name for name in outcome.failed_checks), outcome
        with pytest.raises(EvalpipeError) as caught:
            outcome.require()
        assert caught.value.code == "ESTIMATES_INCOHERENT"
        assert not settings.warehouse.exists()
        with opened(settings) as context:
            assert latest(context) is None
            assert list(make_analysis(context, [D5, D7], "all").red) == [D5, D7], "every day of a run is judged"


def test_a_later_step_does_not_mix_new_and_old_slices_of_a_refused_day(
    tmp_path: Path, logs: Path, strict: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as (settings, runner):
        runner.land([logs], None).require()
        runner.slices(D5, D7, AS_OF)
        with opened(settings) as context:
            assert rejections.rejected(context.lake)[D6]["step"] == "masked"
            assert context.lookup("raw", D6) is not None
            assert context.lookup("signals", D6) is None
