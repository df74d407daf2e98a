"""The sensor of new files: one landing for what came, once it is still."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from evalpipe.definitions import build_defs
from evalpipe.orchestration.resources import HomeResource
from evalpipe.orchestration.sensors import new_files
from evalpipe_tests.orchestration.small import settings_of, write_sessions


def aged(path: Path, seconds: float) -> Path:
    at = time.time() - seconds
    os.utime(path, (at, at))
    return path


def look(home: HomeResource, cursor: str | None) -> dg.SensorResult | dg.SkipReason:
    found = new_files(dg.build_sensor_context(cursor=cursor), home=home)
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
    assert "not there" in why(look(home, None))
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
