"""Frames and plans that the masking tests share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl

from evalpipe.contracts import render
from evalpipe.contracts.tables import raw
from evalpipe.masking import MaskingKey, MaskPlan

KEY = MaskingKey.from_bytes(bytes(range(32)))
OTHER_KEY = MaskingKey.from_bytes(bytes(range(1, 33)))
PLAN = MaskPlan(KEY)
FALLBACK = MaskPlan(KEY, locator="fallback")
DAY = date(2026, 1, 5)
SHARED = Path(__file__).resolve().parents[2].parent / "shared"
_AT = datetime(2026, 1, 5, 10, tzinfo=UTC)

Row = Mapping[str, object]


def session(session_id: str = "s1", **values: object) -> dict[str, object]:
    base: dict[str, object] = {
        "session_id": session_id,
        "source": "evalpipe_jsonl",
        "reader_version": "1",
        "file_id": "f1",
        "agent": "acme",
        "model": "m-a",
        "n_models": 1,
        "started_at": _AT,
        "ended_at": _AT,
        "is_dated": True,
        "is_clock_repaired": False,
        "n_turns": 1,
        "n_steps": 1,
        "n_tool_calls": 0,
        "n_messages": 1,
        "content_digest": "c",
    }
    return base | values


def frames(sessions: Sequence[Row], steps: Sequence[tuple[str, Row]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    rows = []
    for seq, (session_id, values) in enumerate(steps):
        is_tool = "text" not in values
        base = {"session_id": session_id, "seq": seq, "step_id": f"m{seq}", "turn": 1}
        kind = {"kind": "tool", "origin": "tool"} if is_tool else {"kind": "user", "origin": "human"}
        rows.append(base | kind | dict(values))
    return render.frame(raw.SESSIONS, [dict(s) for s in sessions]), render.frame(raw.STEPS, rows)


def one(**values: object) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One session with one step."""
    return frames([session()], [("s1", values)])
