"""A trial whose outcome and whose steps lie in two files is one session with both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalpipe.steps.land import land
from evalpipe_tests.steps.world import DAY, make, opened, rows

TRIAL = "fix-parser__aB3dE9x"


def _result(job: Path, trial: str = TRIAL, hour: int = 10) -> Path:
    """What Harbor says came of a trial."""
    told = {
        "id": f"6f1c2d3e-0000-4a4b-8c8d-{trial}", "task_name": "fix-parser", "trial_name": trial,
        "agent_info": {"name": "acme", "version": "1", "model_info": {"name": "m-1", "provider": "p"}},
        "agent_result": {"n_input_tokens": 9, "n_output_tokens": 3, "cost_usd": 0.5},
        "verifier_result": {"rewards": {"reward": 1.0}}, "started_at": f"{DAY}T{hour}:00:00Z",
        "finished_at": f"{DAY}T{hour}:20:00Z",
    }  # fmt: skip
    path = job / trial / "result.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told), "utf-8")
    return path


def _trajectory(job: Path, trial: str = TRIAL, name: str = "trajectory.json", session_id: str = "run-1") -> Path:
    """What the agent did in it."""
    at = f"{DAY}T10:05:00Z"
    steps = [
        {"step_id": 1, "source": "user", "message": "Fix the parser", "timestamp": at},
        {"step_id": 2, "source": "agent", "message": "Done.", "timestamp": at},
    ]
    agent = {"name": "acme", "version": "1", "model_name": "p/m-1"}
    path = job / trial / "agent" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"schema_version": "ATIF-v1.5", "session_id": session_id, "agent": agent, "steps": steps}
    path.write_text(json.dumps(document), "utf-8")
    return path


@pytest.mark.parametrize("is_result_first", [False, True])
def test_the_result_gives_the_outcome_and_the_trajectory_the_turns(tmp_path: Path, *, is_result_first: bool) -> None:
    files = [_trajectory(tmp_path / "job"), _result(tmp_path / "job")]
    for file in reversed(files) if is_result_first else files:
        with opened(tmp_path / "home") as context:
            land(context, [file])
            assert context.plan().days == [DAY]
            assert {name: done.red for name, done in make(context).items() if done.red} == {}
    with opened(tmp_path / "home") as context:
        assert context.plan().days == []
        session = rows(context, "raw.sessions").row(0, named=True)
        told = ("session_id", "n_turns", "task_id", "objective_reward", "is_objective_success", "logged_cost_usd")
        assert tuple(session[name] for name in told) == ("atif:run-1", 1, "fix-parser", 1.0, True, 0.5)
        assert (session["input_tokens"], session["output_tokens"]) == (9, 3)
        (copy,) = rows(context, "raw.copies").rows(named=True)
        assert (copy["source"], copy["rule"], copy["counted_session_id"]) == (
            "harbor_trials",
            "same_trial",
            "atif:run-1",
        )


def test_what_cannot_be_told_to_be_one_trial_stays_apart(tmp_path: Path) -> None:
    job = tmp_path / "job"
    files = [
        # A name that a person gave, a trial of another time, and a trajectory of a summary.
        _result(job, "by-hand"), _trajectory(job, "by-hand", session_id="a"),
        _result(job, "late__aB3dE9y", hour=20), _trajectory(job, "late__aB3dE9y", session_id="b"),
        _result(job, "part__aB3dE9z"), _trajectory(job, "part__aB3dE9z", "trajectory.summary-1.json", session_id="c"),
    ]  # fmt: skip
    with opened(tmp_path / "home") as context:
        land(context, files)
        make(context, "raw")
        assert rows(context, "raw.copies").is_empty()
        assert rows(context, "raw.sessions").height == 6
        assert rows(context, "raw.sessions").filter(source="atif")["objective_reward"].null_count() == 3
