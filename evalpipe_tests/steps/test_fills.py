"""What only the copy knows that does not count: who the user was, what came of it, and what they thought of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalpipe.steps.land import land
from evalpipe_tests.steps.world import make, opened, rows, write

UUID = "3f0c5a1e-94b7-4d26-8a0b-6c1de27f9a35"


def _claude(path: Path) -> Path:
    head = {"sessionId": UUID, "version": "2.0.1"}
    return write(
        path,
        {**head, "type": "user", "uuid": "u1", "timestamp": "2026-01-05T10:00:00.000Z",
         "message": {"role": "user", "content": "Please fix the bug"}},
        {**head, "type": "assistant", "uuid": "a1", "timestamp": "2026-01-05T10:00:05.000Z",
         "message": {"id": "msg1", "role": "assistant", "model": "m-1", "content": [{"type": "text", "text": "Done."}]}},
    )  # fmt: skip


def _trace(path: Path) -> Path:
    at: dict[str, Any] = {"startTime": "2026-01-05T10:00:00Z", "endTime": "2026-01-05T10:00:05Z"}
    generation = {"id": "o1", "traceId": "t1", "type": "GENERATION", "model": "m-1", "totalCost": 0.5, **at,
                  "input": [{"role": "user", "content": "Please fix the bug"}],
                  "output": {"role": "assistant", "content": "Done."}, "usageDetails": {"input": 5, "output": 5}}  # fmt: skip
    scores = [
        {"id": "s1", "traceId": "t1", "name": "task_success", "value": 0, "dataType": "BOOLEAN", "source": "API"},
        {"id": "s2", "traceId": "t1", "name": "thumbs", "value": 0, "dataType": "BOOLEAN", "source": "API",
         "comment": "No, that is wrong", "timestamp": "2026-01-05T10:00:09Z"},
    ]  # fmt: skip
    trace = {"id": "t1", "sessionId": UUID, "userId": "ann", "timestamp": "2026-01-05T10:00:00Z", "scores": scores}
    return write(path, {"trace": trace, "observations": [generation]})


@pytest.mark.parametrize("order", ["log first", "trace first"])
def test_what_the_copy_knows_goes_to_the_session_that_counts(tmp_path: Path, order: str) -> None:
    nights = [_claude(tmp_path / "log.jsonl"), _trace(tmp_path / "trace.jsonl")]
    with opened(tmp_path / "home") as context:
        for night in nights if order == "log first" else nights[::-1]:
            land(context, [night])
            make(context)
        (s,) = rows(context, "raw.sessions").iter_rows(named=True)
        assert s["session_id"] == f"claude_code:{UUID}"
        assert (s["user_id"], s["logged_cost_usd"], s["is_objective_success"]) == ("ann", 0.5, False)
        steps = rows(context, "raw.steps")
        assert steps["origin"].to_list() == ["human", "agent", "feedback"]
        assert steps["seq"].to_list() == [0, 1, 2]
        assert s["n_steps"] == 3
        assert rows(context, "raw.copies")["rule"].to_list() == ["same_id"]


def test_a_part_that_was_landed_before_a_column_was_there_is_asked_too(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as context:
        land(context, [_trace(tmp_path / "trace.jsonl")])
        for path in context.settings.landing.glob("day=*/*.sessions.parquet"):
            pl.read_parquet(path).drop("routing_epoch", "copy").write_parquet(path)
        land(context, [_claude(tmp_path / "log.jsonl")])
        make(context, "raw")
        assert rows(context, "raw.sessions")["user_id"].to_list() == ["ann"]


def test_what_the_session_says_itself_stands(tmp_path: Path) -> None:
    own = _claude(tmp_path / "logs" / "log.jsonl")
    own.write_text(own.read_text().replace('"version"', '"cwd": "/home/bob/app", "version"'))
    _trace(tmp_path / "logs" / "trace.jsonl")
    with opened(tmp_path / "home") as context:
        land(context, [tmp_path / "logs"])
        make(context, "raw", "masked")
        assert rows(context, "raw.sessions")["user_id"].to_list() == ["bob"]
