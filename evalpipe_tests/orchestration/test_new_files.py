"""The sensor of new files: one landing for what came, once it is still."""

from __future__ import annotations

import json
import os
import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from evalpipe.definitions import build_defs
from evalpipe.orchestration.resources import HomeResource
from evalpipe.orchestration.sensors import Asked, asked, new_files
from evalpipe_tests.bucket import BUCKET, ObjectStore, error
from evalpipe_tests.orchestration.small import settings_of, write_sessions


def aged(path: Path, seconds: float) -> Path:
    at = time.time() - seconds
    os.utime(path, (at, at))
    return path


def look(
    home: HomeResource, cursor: str | None, instance: dg.DagsterInstance | None = None
) -> dg.SensorResult | dg.SkipReason:
    with dg.DagsterInstance.ephemeral() if instance is None else nullcontext(instance) as history:
        found = new_files(dg.build_sensor_context(cursor=cursor, instance=history), home=home)
    assert isinstance(found, dg.SensorResult | dg.SkipReason)
    return found


def why(found: dg.SensorResult | dg.SkipReason) -> str:
    assert isinstance(found, dg.SkipReason), found
    return str(found.skip_message)


def test_files_are_landed_once_they_are_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = tmp_path / "logs"
    monkeypatch.chdir(tmp_path)
    settings = replace(settings_of(tmp_path), sources=(str(logs),))
    defs = build_defs(settings)
    home = defs.resources["home"]
    assert isinstance(home, HomeResource)
    assert "no sources" in why(look(home, None))
    monkeypatch.setenv("EVALPIPE_SOURCES", str(logs))
    assert "SOURCE_NOT_FOUND" in why(look(home, None))
    assert str(logs) not in why(look(home, None))
    log = write_sessions(logs / "a.jsonl", "2026-01-05", "a")
    assert "none that is still" in why(look(home, None))
    aged(log, 120)
    first = look(home, None)
    assert isinstance(first, dg.SensorResult)
    (request,) = first.run_requests or []
    with dg.DagsterInstance.ephemeral() as instance:
        done = defs.resolve_job_def("landing").execute_in_process(instance=instance, run_config=request.run_config)
    assert done.success
    assert list((settings.lake / "raw" / "_landing").rglob("*.parquet"))
    busy = write_sessions(logs / "busy.jsonl", "2026-01-06", "z")
    assert "no new file" in why(look(home, first.cursor)), "a file that is being written holds up no other"
    busy.unlink()
    aged(write_sessions(logs / "a.jsonl", "2026-01-05", "a", "b"), 120)
    grown = look(home, first.cursor)
    assert isinstance(grown, dg.SensorResult)
    assert [r.run_key for r in grown.run_requests or []] != [request.run_key]


def home_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *sources: str) -> HomeResource:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALPIPE_SOURCES", os.pathsep.join(sources))
    return HomeResource(home=str(settings_of(tmp_path).home))


def ended(instance: dg.DagsterInstance, found: object, status: dg.DagsterRunStatus) -> Asked:
    """Record how the run ended that the sensor asked for; what its cursor says."""
    assert isinstance(found, dg.SensorResult), found
    (request,) = found.run_requests or []
    instance.add_run(dg.DagsterRun("landing", status=status, tags={"dagster/run_key": str(request.run_key)}))
    last = asked(found.cursor)
    assert last is not None
    assert last.run_key == request.run_key
    return last


def later(last: Asked, **delta: float) -> str:
    """The cursor as if it had been written some time ago."""
    at = datetime.fromisoformat(last.at) - timedelta(**delta)
    return json.dumps({"state": last.state, "attempt": last.attempt, "at": at.isoformat()})


def test_a_failed_landing_is_asked_for_again_ever_more_seldom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aged(write_sessions(tmp_path / "logs" / "a.jsonl", "2026-01-05", "a"), 120)
    home = home_of(tmp_path, monkeypatch, str(tmp_path / "logs"))
    with dg.DagsterInstance.ephemeral() as instance:
        first = ended(instance, look(home, None, instance), dg.DagsterRunStatus.FAILURE)
        assert "asked for again from" in why(look(home, later(first, minutes=4), instance))
        second = ended(instance, look(home, later(first, minutes=6), instance), dg.DagsterRunStatus.FAILURE)
        assert (second.state, second.attempt) == (first.state, 2)
        assert "asked for again from" in why(look(home, later(second, minutes=9), instance))
        third = ended(instance, look(home, later(second, minutes=11), instance), dg.DagsterRunStatus.SUCCESS)
        assert third.attempt == 3
        assert "no new file" in why(look(home, later(third, days=9), instance)), "it is done now"


@pytest.mark.parametrize("status", ["STARTING", "STARTED", "SUCCESS", "CANCELED"])
def test_a_landing_that_did_not_fail_is_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    aged(write_sessions(tmp_path / "logs" / "a.jsonl", "2026-01-05", "a"), 120)
    home = home_of(tmp_path, monkeypatch, str(tmp_path / "logs" / "*.jsonl"))
    with dg.DagsterInstance.ephemeral() as instance:
        first = ended(instance, look(home, None, instance), dg.DagsterRunStatus(status))
        assert "no new file" in why(look(home, later(first, days=9), instance))


def test_a_change_after_a_failure_is_asked_for_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aged(write_sessions(tmp_path / "logs" / "a.jsonl", "2026-01-05", "a"), 120)
    home = home_of(tmp_path, monkeypatch, str(tmp_path / "logs"))
    with dg.DagsterInstance.ephemeral() as instance:
        first = ended(instance, look(home, None, instance), dg.DagsterRunStatus.FAILURE)
        aged(write_sessions(tmp_path / "logs" / "b.jsonl", "2026-01-05", "b"), 120)
        second = ended(instance, look(home, later(first, minutes=0), instance), dg.DagsterRunStatus.FAILURE)
        assert second.attempt == 1
        assert second.state != first.state


def test_the_wait_has_a_longest() -> None:
    at = datetime(2026, 1, 5, tzinfo=UTC)
    waits = [Asked("s", n, at.isoformat()).again_from - at for n in (1, 2, 3, 50, 5_000)]
    assert waits == [timedelta(minutes=m) for m in (5, 10, 20, 120, 120)]


@pytest.mark.parametrize("cursor", ["9f" * 16, "{}", "[]", "3", '{"state": "s", "attempt": 1}'])
def test_a_cursor_of_another_version_is_none(cursor: str) -> None:
    assert asked(cursor) is None


def test_objects_are_seen_with_one_listing_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: ObjectStore
) -> None:
    log = write_sessions(tmp_path / "a.jsonl", "2026-01-05", "a").read_bytes()
    for number in range(20):
        store.put(f"logs/day={number}/a.jsonl", log)
    source = f"s3://{BUCKET}/logs/"
    home = home_of(tmp_path, monkeypatch, source)
    first = look(home, None)
    assert isinstance(first, dg.SensorResult)
    assert len(store.requests) == store.count("GET .*list-type=2.*") == 1
    assert "no new file" in why(look(home, first.cursor))
    store.put("logs/day=21/a.jsonl", log)
    assert isinstance(look(home, first.cursor), dg.SensorResult)
    store.answer = lambda method, path: error("403 Forbidden", "AccessDenied")
    told = why(look(home, first.cursor))
    assert "SOURCE_DENIED" in told
    assert BUCKET not in told
