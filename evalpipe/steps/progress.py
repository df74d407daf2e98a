"""Where steps say how far they are, without knowing who shows it.

Belongs here: the hook. The command line installs a progress bar; a Dagster run writes log lines;
with nothing installed, steps are silent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class ProgressSink(Protocol):
    """Something that shows progress."""

    def start(self, step: str, total: int, unit: str) -> None:
        """A step begins; ``total`` units lie ahead."""

    def advance(self, step: str, by: int) -> None:
        """Units of a step are done."""

    def finish(self, step: str) -> None:
        """A step is done."""


class _Silent:
    def start(self, step: str, total: int, unit: str) -> None: ...

    def advance(self, step: str, by: int) -> None: ...

    def finish(self, step: str) -> None: ...


# One sink a process: a step may run in a thread or context of an orchestrator's own making.
_INSTALLED: list[ProgressSink] = []
_SILENT = _Silent()


def sink() -> ProgressSink:
    """The installed sink, or one that shows nothing."""
    return _INSTALLED[-1] if _INSTALLED else _SILENT


@contextmanager
def showing(target: ProgressSink) -> Iterator[None]:
    """Install a sink for the enclosed calls."""
    _INSTALLED.append(target)
    try:
        yield
    finally:
        _INSTALLED.remove(target)
