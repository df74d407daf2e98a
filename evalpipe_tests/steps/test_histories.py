"""Sessions that were taken up again under another id: what they copied counts once, whichever comes first."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from evalpipe.steps.land import land
from evalpipe_tests.steps.world import make, opened, rows, write

START = datetime(2026, 1, 5, 10)
FIRST, SECOND = "3f0c5a1e-94b7-4d26-8a0b-6c1de27f9a35", "1a2b3c4d-94b7-4d26-8a0b-6c1de27f9a36"
Line = dict[str, Any]


def _turn(turn: int, session_id: str, name: str = "") -> list[Line]:
    """A question, a call, and its result, under the ids and times that a copy of them keeps."""
    head = {"sessionId": session_id, "version": "2.0.1", "cwd": "/home/ada/app", "isSidechain": False}
    call = {"type": "tool_use", "id": f"call{name}{turn}", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": f"call{name}{turn}", "content": "no", "is_error": True}
    messages: list[Line] = [
        {"role": "user", "content": f"Question {turn}"},
        {"id": f"msg{name}{turn}", "role": "assistant", "model": f"m{name}", "content": [call],
         "usage": {"input_tokens": 10, "output_tokens": 100}},
        {"role": "user", "content": [result]},
    ]  # fmt: skip
    return [
        {**head, "type": message["role"], "uuid": f"{name}{turn}-{n}", "message": message,
         "timestamp": (START + timedelta(minutes=turn, seconds=n)).isoformat(timespec="milliseconds") + "Z"}
        for n, message in enumerate(messages)
    ]  # fmt: skip


def _log(session_id: str, n_shared: int, *own: int) -> list[Line]:
    shared = [line for turn in range(n_shared) for line in _turn(turn, session_id)]
    return shared + [line for turn in own for line in _turn(turn, session_id, "own")]


@pytest.mark.parametrize("order", ["parent first", "parent later", "at once"])
def test_a_resumed_session_counts_what_it_added(tmp_path: Path, order: str) -> None:
    parent = write(tmp_path / "logs" / "parent.jsonl", *_log(FIRST, 2))
    resumed = write(tmp_path / "logs" / "resumed.jsonl", *_log(SECOND, 2, 5))
    nights = {"parent first": [[parent], [resumed]], "parent later": [[resumed], [parent]]}
    with opened(tmp_path / "home") as context:
        for night in nights.get(order, [[parent, resumed]]):
            land(context, night)
            make(context)
        sessions = rows(context, "raw.sessions").sort("started_at")
        assert sessions.select("session_id", "n_turns", "n_tool_calls", "output_tokens", "model").rows() == [
            (f"claude_code:{FIRST}", 2, 2, 200, "m"), (f"claude_code:{SECOND}", 1, 1, 100, "mown"),
        ]  # fmt: skip
        assert sessions["parent_session_id"].to_list() == [None, f"claude_code:{FIRST}"]
        assert sessions["started_at"][1].minute == 5
        steps = rows(context, "raw.steps").filter(session_id=f"claude_code:{SECOND}")
        assert steps.select("seq", "turn", "step_id").rows() == [
            (0, 1, "own5-0"),
            (1, 1, "msgown5"),
            (2, 1, "callown5"),
        ]
        copies = rows(context, "raw.copies")
        assert copies.select("session_id", "rule", "n_messages", "counted_session_id").rows() == [
            (f"claude_code:{SECOND}", "same_history", 2, f"claude_code:{FIRST}")
        ]
        signals = rows(context, "signals.hard").filter(signal="command_error")
        assert sorted(signals.group_by("session_id").len()["len"]) == [1, 2]


def test_a_session_that_added_nothing_is_a_copy(tmp_path: Path) -> None:
    write(tmp_path / "logs" / "parent.jsonl", *_log(FIRST, 2))
    write(tmp_path / "logs" / "again.jsonl", *_log(SECOND, 2))
    with opened(tmp_path / "home") as context:
        land(context, [tmp_path / "logs"])
        make(context, "raw", "masked")
        (session,) = rows(context, "raw.sessions")["session_id"]
        (copy,) = rows(context, "raw.copies").iter_rows(named=True)
        assert {session, copy["session_id"]} == {f"claude_code:{FIRST}", f"claude_code:{SECOND}"}
        assert (copy["rule"], copy["counted_session_id"]) == ("same_history", session)


def test_what_goes_on_from_a_session_in_parts_counts_what_it_added(tmp_path: Path) -> None:
    lines = _log(FIRST, 3)
    write(tmp_path / "logs" / "a.jsonl", *lines[:4])
    write(tmp_path / "logs" / "b.jsonl", *lines[4:])
    write(tmp_path / "logs" / "c.jsonl", *_log(SECOND, 1, 6, 7))
    with opened(tmp_path / "home") as context:
        land(context, [tmp_path / "logs"])
        make(context, "raw", "masked")
        sessions = rows(context, "raw.sessions").sort("started_at")
        assert sessions.select("session_id", "n_turns").rows() == [
            (f"claude_code:{FIRST}", 3), (f"claude_code:{SECOND}", 2),
        ]  # fmt: skip
