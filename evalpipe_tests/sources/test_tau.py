"""tau-bench and tau2-bench, in all their layouts."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalpipe.sources.readers.tau_bench import named_by_file
from evalpipe_tests.sources.helpers import Read, write

ID1, ID2 = "11111111-2222-3333-4444-555555555555", "11111111-2222-3333-4444-666666666666"


def v1(
    task: int = 0, reward: float | None = 1.0, trial: int = 0, policy: str = "# Retail agent policy"
) -> dict[str, Any]:
    return {
        "task_id": task,
        "reward": reward,
        "info": {"task": {"user_id": "simulated"}},
        "traj": [
            {"role": "system", "content": policy},
            {"role": "user", "content": f"order {task}"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "k1", "type": "function", "function": {"name": "find", "arguments": '{"a":1}'}}],
            },
            {"role": "tool", "tool_call_id": "k1", "name": "find", "content": "Error: no"},
            {"role": "assistant", "content": "sorry"},
            {"role": "user", "content": "###STOP###"},
        ],
        "trial": trial,
    }


def sim(session_id: str = ID1, **fields: Any) -> dict[str, Any]:
    def at(second: int) -> str:
        return f"2026-01-05T10:00:{second:02d}.123456"

    return {
        "id": session_id,
        "task_id": "7",
        "trial": 1,
        "start_time": at(0),
        "end_time": at(9),
        "termination_reason": "user_stop",
        "agent_cost": 0.5,
        "user_cost": 9.0,
        "reward_info": {"reward": 1.0},
        "messages": [
            {"role": "assistant", "content": "Hi!", "timestamp": at(0), "usage": None},
            {"role": "user", "content": "no signal ###TRANSFER###", "timestamp": at(1)},
            {
                "role": "assistant",
                "content": None,
                "timestamp": at(2),
                "usage": {"prompt_tokens": 11, "completion_tokens": 5},
                "tool_calls": [{"id": "k1", "name": "lookup", "arguments": {"n": 1}, "requestor": "assistant"}],
            },
            {"role": "tool", "id": "k1", "content": "bad", "error": True, "requestor": "assistant", "timestamp": at(3)},
            {
                "role": "user",
                "content": None,
                "timestamp": at(4),
                "tool_calls": [{"id": "k2", "name": "toggle", "arguments": {}, "requestor": "user"}],
            },
            {"role": "tool", "id": "k2", "content": "on", "error": False, "requestor": "user", "timestamp": at(5)},
        ],
        **fields,
    }


INFO = {"agent_info": {"implementation": "llm_agent", "llm": "gpt-x"}, "environment_info": {"domain_name": "telecom"}}


def dump(folder: Path, value: Any, name: str) -> Path:
    path = folder / name
    path.write_text(json.dumps(value, indent=1))
    return path


def test_v1_sessions_are_undated_and_rewarded(tmp_path: Path) -> None:
    read = Read(dump(tmp_path, [v1(0, 1.0), v1(1, 0.0), v1(2, None), v1(3, 0.9999999)], "gpt-4o-airline.json"))
    s = read.sessions.sort("task_id")
    assert s["is_dated"].any() is False
    assert s["started_at"].unique().to_list() == [datetime(2026, 11, 1, tzinfo=UTC)]
    assert s["day"].unique().to_list() == [date(2026, 11, 1)]
    assert s["is_objective_success"].to_list() == [True, False, None, True]
    assert s["objective_reward"].to_list() == [1.0, 0.0, None, 0.9999999]
    assert s["model"].unique().to_list() == ["gpt-4o"]
    assert s["scenario_declared"].unique().to_list() == ["retail"]  # what the log holds goes before the name
    assert read.rows("started_at") == [None] * read.steps.height


def test_v1_messages_become_steps(tmp_path: Path) -> None:
    read = Read(dump(tmp_path, [v1()], "run.json"))
    assert read.rows("kind", "origin", "name", "text", "arguments", "output", "turn") == [
        ("user", "human", None, "order 0", None, None, 1),
        ("tool", "tool", "find", None, '{"a":1}', "Error: no", 1),
        ("agent", "agent", None, "sorry", None, None, 1),
        ("user", "meta", None, "###STOP###", None, None, 1),
    ]
    s = read.session
    assert (s["n_turns"], s["n_tool_calls"], s["model"], s["agent"]) == (1, 1, None, "tau_bench")
    assert s["prompt_version"] is not None
    assert s["user_id"] is None


def test_v1_sessions_are_told_apart_by_task_trial_and_content(tmp_path: Path) -> None:
    runs = [v1(0), v1(0, trial=1), v1(1)]
    dump(tmp_path, runs, "a.json")
    (tmp_path / "same.json.gz").write_bytes(gzip.compress(json.dumps(runs).encode()))
    dump(tmp_path, [v1(0, policy="# Retail agent policy, second run")], "b.json")
    assert Read(tmp_path).sessions.height == 4


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("gpt-4o-airline", ("tau_bench", "gpt-4o", "airline")),
        ("gpt-4o-airline.trial0", ("tau_bench", "gpt-4o", "airline")),
        ("sonnet-35-new-retail", ("tau_bench", "sonnet-35-new", "retail")),
        ("tool-calling-gpt-4o-0.0_range_0--1_user-gpt-4o-llm_0101", ("tool-calling", "gpt-4o", None)),
        ("results", ("tau_bench", None, None)),
        ("airline", ("tau_bench", None, "airline")),
    ],
)
def test_v1_names_of_files(stem: str, expected: tuple[str, str | None, str | None]) -> None:
    assert named_by_file(stem) == expected


def test_tau2_results_file(tmp_path: Path) -> None:
    read = Read(
        dump(
            tmp_path,
            {"timestamp": "x", "info": INFO, "tasks": [{"id": "7"}], "simulations": [sim(), sim(ID2)]},
            "r.json",
        )
    )
    s = read.sessions.row(0, named=True)
    assert (s["session_id"], s["agent"], s["model"], s["scenario_declared"]) == (
        f"tau2_bench:{ID1}",
        "llm_agent",
        "gpt-x",
        "telecom",
    )
    assert (s["task_id"], s["trial"], s["objective_reward"], s["is_objective_success"]) == ("7", 1, 1.0, True)
    assert (s["end_status_logged"], s["logged_cost_usd"], s["n_models"]) == ("completed", 0.5, 1)
    assert s["started_at"] == datetime(2026, 1, 5, 10, 0, 0, 123_456, tzinfo=UTC)
    assert s["ended_at"] == datetime(2026, 1, 5, 10, 0, 9, 123_456, tzinfo=UTC)
    assert not s["is_clock_repaired"]
    f = read.file()
    assert (f["rows_read"], f["rows_kept"], f["n_sessions"]) == (2, 2, 2)


def test_tau2_calls_of_the_user_are_not_the_agents(tmp_path: Path) -> None:
    read = Read(dump(tmp_path, {"info": INFO, "simulations": [sim()]}, "r.json"))
    assert read.rows("kind", "origin", "name", "text", "output", "is_error", "input_tokens") == [
        ("agent", "agent", None, "Hi!", None, None, None),
        ("user", "human", None, "no signal", None, None, None),
        ("agent", "agent", None, None, None, None, 11),
        ("tool", "tool", "lookup", None, "bad", True, None),
        ("user", "local_command", "toggle", None, "on", False, None),
    ]
    s = read.session
    assert (s["n_tool_calls"], s["n_turns"], s["input_tokens"], s["output_tokens"]) == (1, 1, 11, 5)


def test_tau2_header_after_the_simulations_still_counts(tmp_path: Path) -> None:
    read = Read(dump(tmp_path, {"simulations": [sim()], "info": INFO}, "r.json"))
    assert read.session["model"] == "gpt-x"


def test_tau2_bare_list_takes_the_domain_from_the_name(tmp_path: Path) -> None:
    s = Read(dump(tmp_path, [sim()], "my_airline_run.json")).session
    assert (s["agent"], s["model"], s["scenario_declared"]) == ("tau2_bench", None, "airline")


def test_tau2_one_simulation_a_line(tmp_path: Path) -> None:
    configs = [
        {"domain": "airline", "agent_impl": "experimental", "agent_model": "opus"},
        {"domain": "retail", "agent_impl": "llm_agent", "agent_model": "opus"},
    ]
    read = Read(write(tmp_path, *[{"_config": c, **sim(i)} for c, i in zip(configs, (ID1, ID2), strict=True)]))
    assert read.sessions.sort("session_id").select("agent", "model", "scenario_declared").rows() == [
        ("experimental", "opus", "airline"),
        ("llm_agent", "opus", "retail"),
    ]


def test_tau2_without_ids_and_times_is_undated_and_still_unique(tmp_path: Path) -> None:
    bare = [sim("0", messages=[{"role": "user", "content": str(i)}]) for i in range(3)]
    for one in bare:
        del one["task_id"], one["start_time"], one["end_time"], one["termination_reason"], one["trial"]
    read = Read(dump(tmp_path, {"info": INFO, "simulations": bare}, "r.json"))
    assert read.sessions.height == 3
    assert read.sessions["is_dated"].any() is False
    assert read.sessions["task_id"].null_count() == 3


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("user_stop", "completed"),
        ("agent_stop", "completed"),
        ("max_steps", "timeout"),
        ("too_many_errors", "error"),
        ("?", None),
    ],
)
def test_tau2_end_status(tmp_path: Path, reason: str, status: str | None) -> None:
    read = Read(dump(tmp_path, {"info": INFO, "simulations": [sim(termination_reason=reason)]}, "r.json"))
    assert read.session["end_status_logged"] == status


def test_tau2_reward_missing_is_unknown(tmp_path: Path) -> None:
    read = Read(dump(tmp_path, {"info": INFO, "simulations": [sim(reward_info=None)]}, "r.json"))
    assert read.session["is_objective_success"] is None
    assert read.session["objective_reward"] is None


def test_bad_elements_do_not_stop_the_others(tmp_path: Path) -> None:
    good = json.dumps(sim())
    path = tmp_path / "r.json"
    path.write_text(
        f'{{"info": {json.dumps(INFO)}, "simulations": [1, {{"x": nope}}, {{"id": "q"}}, '
        f'{{"reward_info": 1, "messages": [{{}}]}}, {good}, "\\ud800"]}}'
    )
    read = Read(path)
    assert read.sessions.height == 1
    assert read.codes == ["BAD_FIELD", "BAD_JSON", "NOT_A_RECORD", "NOT_A_RECORD", "NOT_A_RECORD"]
    rows = read.quarantine.sort("line")
    assert rows["line"].to_list() == [1, 2, 3, 4, 6]
    raw = path.read_bytes()
    for offset, n_bytes in rows.filter(pl.col("line") == 2).select("byte_offset", "n_bytes").rows():
        assert raw[offset : offset + n_bytes] == b'{"x": nope}'


def test_a_cut_document_keeps_what_is_whole(tmp_path: Path) -> None:
    whole = json.dumps({"info": INFO, "simulations": [sim(), sim(ID2)]})
    path = tmp_path / "r.json"
    path.write_text(whole[:-40])
    read = Read(path)
    assert read.sessions.height == 1
    assert read.codes == ["BAD_JSON"]


def test_an_empty_run_holds_no_session(tmp_path: Path) -> None:
    read = Read(dump(tmp_path, {"info": INFO, "simulations": []}, "r.json"))
    assert read.codes == ["NO_SESSION"]
