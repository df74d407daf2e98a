"""Dagster's own commands and sensors on a real home."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from evalpipe.definitions import build_defs
from evalpipe.orchestration.assets.analysis import versions_seen
from evalpipe.orchestration.partitions import RANGE_START
from evalpipe.orchestration.runner import prepare_dagster_home, ranges
from evalpipe.orchestration.sensors import late_days, new_versions
from evalpipe.settings import load, open_home
from evalpipe.steps.context import open_context
from evalpipe.steps.land import land
from evalpipe_tests.end_to_end.conftest import KEY, Cli, World, files_of

#: Tables whose slices follow from the sessions of their day alone.
ALONE = (
    "raw/sessions",
    "raw/steps",
    "masked/sessions",
    "masked/steps",
    "signals/hard",
    "signals/semantic",
    "signals/tasks",
)


def test_a_range_by_dagsters_own_command_makes_the_same_slices(
    cli: Cli, home: Path, days: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "home"
    settings = open_home(load(folder=tmp_path, environ={}, home=other))
    monkeypatch.setenv("EVALPIPE_KEY", KEY)
    with open_context(settings) as context:
        land(context, days[:2])
    environ = cli.environ() | {"DAGSTER_HOME": str(prepare_dagster_home(settings)), "EVALPIPE_HOME": str(other)}
    done = subprocess.run(
        [sys.executable, "-m", "dagster", "asset", "materialize", "-m", "evalpipe.definitions",
         "--select", "group:raw or group:masked or group:signals",
         "--partition-range", "2026-01-05...2026-01-06"],
        cwd=cli.folder, env=environ | {"EVALPIPE_SOURCES": ""}, text=True, capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    # What looks at later days, outcomes among it, cannot be the same yet.
    made = {k: v for k, v in files_of(other / "lake").items() if "day=2026-01-05" in k and k.startswith(ALONE)}
    theirs = {k: v for k, v in files_of(home / "lake").items() if "day=2026-01-05" in k and k.startswith(ALONE)}
    assert {k.split("/")[1] for k in made} >= {"sessions", "steps", "hard", "semantic"}
    assert made == theirs


def test_the_late_sensor_asks_for_the_days_that_the_command_line_would_make(
    cli: Cli, home: Path, world: World, days: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "home"
    settings = open_home(load(folder=tmp_path, environ={}, home=other))
    monkeypatch.setenv("EVALPIPE_KEY", KEY)
    with open_context(settings) as context:
        land(context, days)
        expected = list(ranges(context.plan().days))
    defs = build_defs(settings)
    result = late_days(home=defs.resources["home"])
    assert isinstance(result, dg.SensorResult)
    assert [request.tags[RANGE_START] for request in result.run_requests or []] == [str(a) for a, _ in expected]
    quiet = late_days(home=build_defs(load(folder=tmp_path, environ={}, home=home)).resources["home"])
    assert isinstance(quiet, dg.SkipReason)


def test_new_versions_register_once(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALPIPE_KEY", KEY)
    settings = load(folder=tmp_path, environ={}, home=home)
    with dg.DagsterInstance.ephemeral() as instance:
        resource = build_defs(settings).resources["home"]
        result = new_versions(dg.build_sensor_context(instance=instance), home=resource)
        assert isinstance(result, dg.SensorResult)
        with open_context(settings) as context:
            seen = versions_seen(context)
        assert [request.partition_key for request in result.run_requests or []] == seen
        instance.add_dynamic_partitions("releases", seen)
        again = new_versions(dg.build_sensor_context(instance=instance), home=resource)
        assert isinstance(again, dg.SkipReason)
