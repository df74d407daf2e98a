"""Small homes that tests of steps work on: a few sessions that each test writes itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe.settings import load
from evalpipe.steps.context import Context, open_context
from evalpipe.steps.masked import make_masked
from evalpipe.steps.raw import make_raw
from evalpipe.steps.signals import make_outcomes, make_signals
from evalpipe.steps.slices import StepResult

DAY = date(2026, 1, 5)
AS_OF = date(2026, 2, 1)


def session(session_id: str, day: date = DAY, turns: int = 1, **more: Any) -> list[dict[str, Any]]:
    """Records of one session in evalpipe's own format: a question and an answer a turn."""
    at = f"{day}T10:00:00Z"
    rows: list[dict[str, Any]] = [
        {"evalpipe": 1, "type": "session", "session_id": session_id, "agent": "acme", "model": "m-1",
         "user_id": "u-1", "started_at": at, **more}
    ]  # fmt: skip
    for turn in range(turns):
        for kind, text in (("user", "Please fix the bug"), ("agent", "Done.")):
            rows.append(
                {"type": "step", "session_id": session_id, "step_id": f"{turn}{kind}", "kind": kind, "text": text,
                 "model": "m-1" if kind == "agent" else None, "at": at}
            )  # fmt: skip
    return rows


def write(path: Path, *rows: dict[str, Any], tail: str = "") -> Path:
    """Write records as JSON lines, with ``tail`` after them as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + tail, "utf-8")
    return path


@contextmanager
def opened(home: Path, *, key: str = "5e" * 32) -> Iterator[Context]:
    """An open home whose kernels run in this process."""
    settings = load(folder=home.parent, environ={}, home=home, workers=1)
    with open_context(settings, as_of=AS_OF, environ={"EVALPIPE_KEY": key}) as context:
        yield context


def make(context: Context, *steps: str, days: list[date] | None = None) -> dict[str, StepResult]:
    """Make landed days, all of them by default, through the named steps, or through all of them."""
    inputs = context.landing.day_inputs()
    every = {"raw": make_raw, "masked": make_masked, "signals": make_signals, "outcomes": make_outcomes}
    return {name: every[name](context, days or list(inputs), inputs) for name in (steps or every)}


def rows(context: Context, table: str) -> pl.DataFrame:
    """All committed rows of a table of a day step, under the versions in force."""
    step = {"masked": "masked", "raw": "raw"}.get(table.split(".")[0], "signals")
    days = context.lake.days(step, context.versions.variants[step])
    found = [m for day in days if (m := context.lookup(step, day)) is not None]
    return context.lake.read(table, found)
