"""A home of a few sessions, run in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path

from evalpipe.orchestration.runner import Runner, open_runner
from evalpipe.quality import Rule
from evalpipe.settings import Settings, load, open_home
from evalpipe.steps.context import Context, open_context

AS_OF = date(2026, 1, 20)


def write_sessions(path: Path, day: str, *names: str) -> Path:
    """Sessions of one day in evalpipe's own format, of two models in turn."""
    lines = []
    for index, name in enumerate(names):
        at = f"{day}T10:{index:02d}:00Z"
        model = f"m-{index % 2 + 1}"
        head = {"evalpipe": 1, "type": "session", "session_id": name, "agent": "acme", "model": model}
        lines.append(head | {"user_id": f"u-{name}", "started_at": at})
        step = {"type": "step", "session_id": name, "at": at}
        lines.append(step | {"step_id": "1", "kind": "user", "text": "Please fix the bug"})
        lines.append(step | {"step_id": "2", "kind": "agent", "text": "Done.", "model": model})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def settings_of(folder: Path) -> Settings:
    return open_home(replace(load(folder=folder, environ={}, home=folder / "home"), workers=1))


@contextmanager
def running(folder: Path) -> Iterator[tuple[Settings, Runner]]:
    settings = settings_of(folder)
    with open_runner(settings) as runner:
        yield settings, runner


@contextmanager
def opened(settings: Settings, as_of: date = AS_OF) -> Iterator[Context]:
    with open_context(settings, as_of=as_of) as context:
        yield context


#: Refuses a day with a single session.
TWO_SESSIONS = Rule("masked.sessions", "n_rows", "rows", "error", "A day needs two sessions.", low=2)
