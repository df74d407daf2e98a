"""Masked sessions as ATIF and as three levels: what goes out, and that it can be read back."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from evalpipe.interchange import FORMS, to_atif, to_levels
from evalpipe_tests.signals.build import START, Talk, frames
from evalpipe_tests.sources.helpers import Read


def talk(**session: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    one = Talk(model="m-a", agent_release="2.1", is_objective_success=True, **session)
    one.user("fix the bug")
    one.agent("I will look.", model="m-a", input_tokens=10, cache_read_tokens=5, output_tokens=3, first_token_ms=40)
    one.bash("ls", "a.py", exit_code=0, started_at=START, ended_at=START + timedelta(seconds=2))
    one.tool("Bash", "no such file", command="cat b", exit_code=1, is_error=True)
    one.tool("Edit", None, error="refused", text="not that one", arguments="not json")
    one.tool("Task", "done", arguments='{"prompt": "search"}')
    one.agent("found it", parent_id="5", model="m-b")
    one.tool("Grep", "x", parent_id="5")
    one.agent("Fixed.", model="m-b")
    one.user(None, origin="interrupt")
    sessions, steps = frames(one)
    return sessions.row(0, named=True), steps.to_dicts()


def test_atif_keeps_messages_calls_results_and_tokens() -> None:
    document = to_atif(*talk())
    assert [step["step_id"] for step in document["steps"]] == list(range(1, len(document["steps"]) + 1))
    assert [step["source"] for step in document["steps"]] == ["user", "agent", "agent", "agent", "user"]
    first = document["steps"][1]
    assert first["metrics"] == {"prompt_tokens": 15, "completion_tokens": 3, "cached_tokens": 5}
    assert [call["function_name"] for call in first["tool_calls"]] == ["Bash", "Bash", "Edit", "Task"]
    assert first["tool_calls"][0]["arguments"] == {"command": "ls"}
    assert first["tool_calls"][2]["arguments"] == {"input": "not json"}
    results = first["observation"]["results"]
    assert [result.get("content") for result in results] == ["a.py", "no such file", "not that one", "done"]
    assert results[1]["extra"] == {"exit_code": 1, "is_error": True}
    assert results[2]["extra"] == {"error": "refused"}
    inner = document["steps"][2]
    assert (inner["message"], inner["extra"]["parent_step_id"], inner["model_name"]) == ("found it", "5", "m-b")
    assert document["steps"][4]["extra"]["origin"] == "interrupt"
    assert document["agent"] == {"name": "acme", "version": "2.1", "model_name": "m-a"}
    assert document["extra"]["is_objective_success"] is True


def test_levels_hold_totals_on_each_level() -> None:
    document = to_levels(*talk(input_tokens=10, output_tokens=3, cache_read_tokens=5))
    root = document["root_step"]
    assert (root["input"], root["output"]) == ("fix the bug", "Fixed.")
    assert root["metrics_info"] == {
        "input_tokens": 10, "output_tokens": 3, "input_read_cached_tokens": 5, "total_tokens": 18, "tool_calls": 5,
        "tool_errors": 1, "tool_error_rate": 0.2, "latency_first_resp_ms": 40,
    }  # fmt: skip
    own, sub = document["agent_steps"]
    assert (own["id"], sub["id"], sub["parent_id"]) == (document["id"], "5", document["id"])
    assert [step["type"] for step in sub["steps"]] == ["model", "tool"]
    assert sub["metrics_info"]["tool_errors"] == 0
    assert own["steps"][2]["basic_info"] == {"started_at": "2026-01-05T10:00:00Z", "duration_ms": 2000}
    assert own["steps"][3]["basic_info"]["error"] == {"code": 1}
    assert "error" not in own["steps"][4]["basic_info"], "a call that the user refused did not fail"


def test_a_session_without_steps_has_a_document() -> None:
    sessions, steps = frames(Talk())
    for form in FORMS.values():
        assert json.dumps(form(sessions.row(0, named=True), steps.to_dicts()))


@pytest.mark.parametrize("form", list(FORMS))
def test_what_is_written_is_read_back(form: str, tmp_path: Path) -> None:
    source = {"atif": "atif", "levels": "coze_loop"}[form]
    session, steps = talk()
    (tmp_path / "x.json").write_text(json.dumps(FORMS[form](session, steps), indent=1))
    back = Read(tmp_path)
    assert back.files["source"].to_list() == [source]
    calls = back.steps.filter(back.steps["kind"] == "tool")
    assert sorted(calls["name"]) == ["Bash", "Bash", "Edit", "Grep", "Task"]
    assert back.sessions["n_turns"].to_list() == [1]
    assert {"fix the bug", "Fixed."} <= set(back.steps["text"])
