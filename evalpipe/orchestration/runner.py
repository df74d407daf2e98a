"""Running jobs in this process, without a daemon: what the command line calls.

Belongs here: the Dagster instance of a home, run configuration, and the outcome of a run. The same
jobs and assets run from the UI; only the caller differs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg

from evalpipe.definitions import build_defs, home_config
from evalpipe.orchestration.partitions import RELEASES, nightly_range, range_tags
from evalpipe.settings import Settings, open_home
from evalpipe.store.files import write_atomically
from evalpipe.store.plan import LOOK_AHEAD_DAYS, LOOK_BACK_DAYS

#: A range run holds at most so many days: a failed check stops what follows for its whole range.
DAYS_A_RUN = 31

_INSTANCE_FILE = """\
telemetry: {enabled: false}
nux: {enabled: false}
concurrency:
  runs: {max_concurrent_runs: 1}
"""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended.

    Attributes:
        is_success: Whether every step and blocking check passed.
        failed_checks: Names of checks that failed.
        errors: One line a failed step; class and code, never text of a log.
    """

    is_success: bool
    failed_checks: tuple[str, ...]
    errors: tuple[str, ...]


def prepare_dagster_home(settings: Settings) -> Path:
    """Make Dagster's home in the home of evalpipe, with telemetry off."""
    folder = settings.dagster_home
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "dagster.yaml").exists():
        write_atomically(folder / "dagster.yaml", _INSTANCE_FILE)
    return folder


class Runner:
    """Runs jobs of one home in this process.

    Args:
        settings: Settings of the home.
        instance: Dagster instance that keeps the history.
        verbosity: Log level of Dagster's own messages.
    """

    def __init__(self, settings: Settings, instance: dg.DagsterInstance, *, verbosity: str = "CRITICAL") -> None:
        self._settings = settings
        self._instance = instance
        self._definitions = build_defs(settings)
        self._verbosity = verbosity

    def land(self, paths: Sequence[Path], undated_as: date | None) -> RunOutcome:
        """Parse new files."""
        return self._execute("landing", ops=_landing_config(paths, undated_as))

    def slices(self, start: date, end: date, as_of: date) -> RunOutcome:
        """Make the slices of a range of days."""
        return self._execute("slices", tags=range_tags(start, end), as_of=as_of)

    def score(self, as_of_day: date, window: str, as_of: date) -> RunOutcome:
        """Score one as-of day, publish and report."""
        config = {"analysis_slices": {"config": {"window": window}}}
        return self._execute("score", tags=range_tags(as_of_day, as_of_day), ops=config, as_of=as_of)

    def publish(self, as_of: date) -> RunOutcome:
        """Rebuild the warehouse and the report."""
        return self._execute("publish", as_of=as_of)

    def nightly(self, day: date, paths: Sequence[Path]) -> RunOutcome:
        """What the schedule runs in the night after ``day``."""
        start, end = nightly_range(day, self._settings.first_day, LOOK_AHEAD_DAYS)
        return self._execute("nightly", tags=range_tags(start, end), ops=_landing_config(paths, None), as_of=day)

    def release(self, version: str) -> RunOutcome:
        """Make the scorecard of a version, registering it first."""
        self._instance.add_dynamic_partitions(RELEASES.name or "", [version])
        return self._execute("release_scorecard", partition_key=version)

    def _execute(
        self,
        job: str,
        *,
        tags: dict[str, str] | None = None,
        ops: dict[str, Any] | None = None,
        partition_key: str | None = None,
        as_of: date | None = None,
    ) -> RunOutcome:
        config: dict[str, Any] = {"loggers": {"console": {"config": {"log_level": self._verbosity}}}}
        if ops:
            config["ops"] = ops
        if as_of:
            # Configuration given to a run replaces the resource's own whole.
            config["resources"] = {"home": {"config": home_config(self._settings, as_of.isoformat())}}
        result = self._definitions.resolve_job_def(job).execute_in_process(
            run_config=config,
            instance=self._instance,
            tags=tags,
            partition_key=partition_key,
            raise_on_error=False,
        )
        failed = tuple(
            f"{e.asset_key.to_user_string()}: {e.check_name}"
            for e in result.get_asset_check_evaluations()
            if not e.passed and e.severity is dg.AssetCheckSeverity.ERROR
        )
        errors = tuple(_error_line(event) for event in result.get_step_failure_events())
        return RunOutcome(result.success, failed, errors)


def _error_line(event: dg.DagsterEvent) -> str:
    """The innermost cause of a failed step, in one line."""
    error = event.step_failure_data.error
    while error is not None and error.cause is not None:
        error = error.cause
    text = error.message.strip().splitlines()[0] if error and error.message.strip() else "no message"
    return f"{event.step_key}: {text}"


def _landing_config(paths: Sequence[Path], undated_as: date | None) -> dict[str, Any]:
    config = {"paths": [str(path) for path in paths], "undated_as": undated_as.isoformat() if undated_as else ""}
    return {"raw__landing": {"config": config}}


def ranges(days: Sequence[date]) -> Iterator[tuple[date, date]]:
    """Ranges of at most :data:`DAYS_A_RUN` days that cover the days.

    Days whose outcomes read each other share a range, so that none is scored before its neighbour is
    there: a gap that outcomes look over does not end a range. Days in a gap hold nothing to make.
    """
    begin: date | None = None
    last: date | None = None
    for day in sorted(days):
        if begin is None or last is None:
            begin = day
        elif (day - last).days > LOOK_AHEAD_DAYS + LOOK_BACK_DAYS or (day - begin).days >= DAYS_A_RUN:
            yield begin, last
            begin = day
        last = day
    if begin is not None and last is not None:
        yield begin, last


@contextmanager
def open_runner(settings: Settings, *, verbosity: str = "CRITICAL") -> Iterator[Runner]:
    """A runner with the home's Dagster instance.

    Args:
        settings: Settings as loaded.
        verbosity: Log level of Dagster's own messages.
    """
    settings = open_home(settings)
    folder = prepare_dagster_home(settings)
    os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        yield Runner(settings, instance, verbosity=verbosity)


def serve(settings: Settings, port: int) -> int:
    """Run Dagster's UI and daemon on a home until interrupted; returns its exit code.

    Args:
        settings: Settings of the home.
        port: Port on the loopback interface.
    """
    settings = open_home(settings)
    environ = dict(os.environ)
    environ |= {"DAGSTER_HOME": str(prepare_dagster_home(settings)), "EVALPIPE_HOME": str(settings.home)}
    command = [sys.executable, "-m", "dagster", "dev", "-m", "evalpipe.definitions", "-h", "127.0.0.1", "-p", str(port)]
    return subprocess.run(command, env=environ, check=False).returncode
