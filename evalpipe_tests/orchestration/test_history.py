"""The history of runs: kept with one connection a database, and read by Dagster's own storage all the same."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from evalpipe.orchestration.history import Events, Runs, open_instance


@dg.op
def one() -> int:
    return 1


@dg.job
def small() -> None:
    one()


def _home(folder: Path, text: str = "telemetry: {enabled: false}\n") -> Path:
    folder.mkdir()
    (folder / "dagster.yaml").write_text(text, "utf-8")
    return folder


def _steps(instance: dg.DagsterInstance, run_id: str) -> int:
    return sum(record.event_log_entry.is_dagster_event for record in instance.get_records_for_run(run_id).records)


def test_what_is_written_here_dagster_itself_reads(tmp_path: Path) -> None:
    home = _home(tmp_path / "dagster")
    with open_instance(home) as instance:
        assert (type(instance.event_log_storage), type(instance.run_storage)) == (Events, Runs)
        first, second = (small.execute_in_process(instance=instance).run_id for _ in range(2))
        told = _steps(instance, first), _steps(instance, second)
    with dg.DagsterInstance.from_config(str(home)) as own:
        assert type(own.event_log_storage) not in (Events, Runs)
        assert (_steps(own, first), _steps(own, second)) == told
        assert min(told) > 5
        assert {run.run_id for run in own.get_runs()} == {first, second}


def test_a_run_that_was_deleted_leaves_the_others(tmp_path: Path) -> None:
    with open_instance(_home(tmp_path / "dagster")) as instance:
        first, second = (small.execute_in_process(instance=instance).run_id for _ in range(2))
        Path(instance.event_log_storage.path_for_shard(second)).unlink()
        assert _steps(instance, second) == 0
        assert _steps(instance, first) > 5


def test_a_storage_that_somebody_chose_holds(tmp_path: Path) -> None:
    base = tmp_path / "elsewhere"
    text = f"storage:\n  sqlite:\n    base_dir: {base}\n"
    with open_instance(_home(tmp_path / "dagster", text)) as instance:
        assert type(instance.event_log_storage) is not Events
        small.execute_in_process(instance=instance)
    assert list(base.rglob("*.db"))
