"""Running jobs in this process, without a daemon: what the command line calls.

Belongs here: the Dagster instance of a home, run configuration, and the outcome of a run. The same
jobs and assets run from the UI; only the caller differs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.definitions import build_defs, home_config
from evalpipe.engines import collector
from evalpipe.orchestration.assets.publication import REFUSED
from evalpipe.orchestration.carry import carried, keep_sources
from evalpipe.orchestration.history import open_instance
from evalpipe.orchestration.partitions import RELEASES, nightly_range, range_tags, ranges
from evalpipe.settings import Settings, open_home
from evalpipe.store.files import locked, write_atomically
from evalpipe.store.plan import LOOK_AHEAD_DAYS

__all__ = ["RunOutcome", "Runner", "make_dagster_home", "open_runner", "ranges"]

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
        causes: The same as errors, with the code, place, fix and exit code that they were raised with.
        is_refusal: Whether refused days are all that is wrong: the other days are done.
    """

    is_success: bool
    failed_checks: tuple[str, ...]
    errors: tuple[str, ...]
    causes: tuple[EvalpipeError, ...] = ()
    is_refusal: bool = False

    def require(self) -> None:
        """Go on only after success.

        Raises:
            EvalpipeError: What the first failed step raised; ``RUN_FAILED`` naming the checks where a
                check failed and no step did.
        """
        if self.is_success:
            return
        if self.causes:
            raise self.causes[0]
        raise EvalpipeError("RUN_FAILED", "; ".join(self.failed_checks) or "the run did not succeed")


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

    def land(self, sources: Sequence[str | Path], undated_as: date | None) -> RunOutcome:
        """Parse new files."""
        return self._execute("landing", ops=self._landing_config(sources, undated_as))

    def slices(self, start: date, end: date, as_of: date) -> RunOutcome:
        """Make the slices of a range of days."""
        return self._execute("slices", tags=range_tags(start, end), as_of=as_of)

    def score(self, as_of_day: date, window: str, as_of: date, *, until: date | None = None) -> RunOutcome:
        """Score one as-of day, or all from it to ``until``; publish and report."""
        config = {"analysis_slices": {"config": {"window": window}}}
        return self._execute("score", tags=range_tags(as_of_day, until or as_of_day), ops=config, as_of=as_of)

    def publish(self, as_of: date) -> RunOutcome:
        """Rebuild the warehouse and the report."""
        return self._execute("publish", as_of=as_of)

    def retention(self) -> RunOutcome:
        """Take away what has expired."""
        return self._execute("retention")

    def nightly(self, day: date, sources: Sequence[str | Path]) -> RunOutcome:
        """What the schedule runs in the night after ``day``."""
        start, end = nightly_range(day, self._settings.first_day, LOOK_AHEAD_DAYS)
        return self._execute("nightly", tags=range_tags(start, end), ops=self._landing_config(sources, None), as_of=day)

    def validate(self, replications: int, seed: int) -> RunOutcome:
        """Validate the estimates and publish what was found."""
        config = {"validate_estimates": {"config": {"replications": replications, "seed": seed}}}
        return self._execute("validate", ops=config)

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
        events = list(result.get_step_failure_events())
        causes = tuple(carried(event) for event in events)
        is_refusal = bool(events) and {event.step_key for event in events} == {REFUSED.to_python_identifier()}
        errors = tuple(f"{error.where}: {error.code}: {error.what}" for error in causes)
        return RunOutcome(result.success, failed, errors, causes, is_refusal)

    def _landing_config(self, sources: Sequence[str | Path], undated_as: date | None) -> dict[str, Any]:
        # Configuration stays in the history, and a path names people: the run gets a label.
        label = keep_sources(sources) if sources else ""
        config = {"sources": label, "undated_as": undated_as.isoformat() if undated_as else ""}
        return {"raw__landing": {"config": config}}


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
    with collector.rarely(), _open_instance(folder) as instance:
        yield Runner(settings, instance, verbosity=verbosity)


def make_dagster_home(settings: Settings) -> Path:
    """Dagster's home with its databases, for processes that open them without this module."""
    folder = prepare_dagster_home(settings)
    _open_instance(folder).dispose()
    return folder


def _open_instance(folder: Path) -> dg.DagsterInstance:
    """Dagster's instance of a home, its databases made by one process at a time.

    Two processes that make them at once both stamp a schema version, and every later start refuses a
    database with two. Dagster does not lock this; once they are there, SQLite's own locks do.
    """
    with locked(folder / "instance.lock"):
        instance = open_instance(folder)
        # Storages open on first use; each makes its database when it does.
        for storage in (instance.run_storage, instance.event_log_storage, instance.schedule_storage):
            assert storage is not None
    return instance
