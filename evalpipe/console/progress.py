"""Progress of long work: a bar on a terminal, a line for each step that took its time elsewhere.

Belongs here: the sink that steps report to. Does not belong here: results (``show.py``).
"""

from __future__ import annotations

import time

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from evalpipe.console import show

_MB = 1_000_000
#: A log of many nights is not to be read for steps that took no time.
_WORTH_A_LINE_SECONDS = 2.0


class Bars:
    """A progress sink."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._tasks: dict[str, tuple[TaskID, int]] = {}
        self._begun: dict[str, tuple[float, int, str]] = {}
        if show.err.is_terminal:
            self._progress = Progress(
                TextColumn("{task.description:<10}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[unit]}"),
                TimeElapsedColumn(),
                console=show.err,
                transient=True,
            )

    def __enter__(self) -> Bars:
        if self._progress:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress:
            self._progress.stop()

    def start(self, step: str, total: int, unit: str) -> None:
        """A step begins."""
        scale = _MB if unit == "bytes" else 1
        if total == 0:
            return
        self._begun[step] = (time.monotonic(), total, unit)
        if self._progress:
            shown = "MB" if unit == "bytes" else unit
            task = self._progress.add_task(step, total=max(1, total // scale), unit=shown)
            self._tasks[step] = (task, scale)

    def advance(self, step: str, by: int) -> None:
        """Units are done."""
        if self._progress and step in self._tasks:
            task, scale = self._tasks[step]
            self._progress.advance(task, by / scale)

    def finish(self, step: str) -> None:
        """A step is done."""
        if self._progress and step in self._tasks:
            task, _ = self._tasks.pop(step)
            self._progress.remove_task(task)
        if step in self._begun and not self._progress:
            begun, total, unit = self._begun.pop(step)
            seconds = time.monotonic() - begun
            if seconds >= _WORTH_A_LINE_SECONDS:
                amount = f"{total / _MB:,.1f} MB" if unit == "bytes" else f"{total:,} {_counted(unit, total)}"
                show.note(f"{step}: {amount} in {seconds:.1f} s")


def _counted(unit: str, n: int) -> str:
    return unit.removesuffix("s") if n == 1 else unit
