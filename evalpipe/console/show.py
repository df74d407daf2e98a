"""Showing things: one console, progress bars, tables, errors.

Belongs here: rich. Progress is a bar on a terminal and plain lines elsewhere.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from evalpipe.contracts.errors import EvalpipeError

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

_MB = 1_000_000


class Bars:
    """A progress sink: bars on a terminal, one line a finished step elsewhere."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._tasks: dict[str, tuple[TaskID, int]] = {}
        self._begun: dict[str, tuple[float, int, str]] = {}
        if err.is_terminal:
            self._progress = Progress(
                TextColumn("{task.description:<10}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[unit]}"),
                TimeElapsedColumn(),
                console=err,
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
            shown = f"{total / _MB:,.1f} MB" if unit == "bytes" else f"{total:,} {unit}"
            note(f"{step}: {shown} in {time.monotonic() - begun:.1f} s")


def note(text: str) -> None:
    """A line for the person who waits; on standard error, so that output stays clean."""
    err.print(text)


def show_error(error: EvalpipeError, *, as_json: bool = False) -> None:
    """One line with what, where and the fix."""
    if as_json:
        print(json.dumps({"error": error.code, "what": error.what, "where": error.where, "fix": error.fix}))
        return
    place = f" [{error.where}]" if error.where else ""
    err.print(f"[bold red]{error.code}[/]", end="")
    err.print(f"{place}: {error.what}", markup=False)
    err.print(f"Fix: {error.fix}", markup=False)


def table(rows: Sequence[Mapping[str, object]], *, title: str | None = None, numeric: Sequence[str] = ()) -> None:
    """Rows as a table that fits the terminal."""
    if not rows:
        out.print(f"{title or 'result'}: no rows", markup=False)
        return
    if not out.is_terminal:
        # A pipe has no width: nothing is folded, so that lines can be cut and searched.
        out.width = 10_000
    elif _natural_width(rows) > out.width:
        _records(rows, title)
        return
    drawn = Table(
        title=title, title_justify="left", header_style="bold", box=None, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for name in rows[0]:
        is_number = name in numeric or isinstance(rows[0][name], (int, float))
        # A number that is broken over two lines is read as two numbers.
        drawn.add_column(name, justify="right" if is_number else "left", overflow="fold", no_wrap=is_number)
    for row in rows:
        drawn.add_row(*(_text(row[name]) for name in rows[0]))
    out.print(drawn)


def _natural_width(rows: Sequence[Mapping[str, object]]) -> int:
    widths = [max(len(name), *(len(_text(row[name])) for row in rows)) for name in rows[0]]
    # Words can be folded; a column of 30 characters reads well enough.
    return sum(min(width, 30) + 1 for width in widths)


def _records(rows: Sequence[Mapping[str, object]], title: str | None) -> None:
    """Rows one below the other: what is too wide for a table is still to be read."""
    if title:
        out.print(title, style="italic")
    width = max(len(name) for name in rows[0])
    for index, row in enumerate(rows):
        out.rule(str(index + 1), align="left", style="dim")
        for name, value in row.items():
            out.print(f"{name:<{width}}  {_text(value)}")


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return escape(str(value))


def frame(data: pl.DataFrame, style: str) -> None:
    """A query result in one of the output styles: table, csv or json."""
    if style == "csv":
        print(_flat(data).write_csv(), end="")
    elif style == "json":
        for row in data.iter_rows(named=True):
            print(json.dumps(row, default=_plain, ensure_ascii=False))
    else:
        rows = data.head(200).to_dicts()
        table(rows, numeric=[name for name, dtype in data.schema.items() if dtype.is_numeric()])
        if data.height > len(rows):
            note(f"{data.height - len(rows):,} more rows; use --format csv or --out FILE")


def _flat(data: pl.DataFrame) -> pl.DataFrame:
    nested = [name for name, dtype in data.schema.items() if dtype.is_nested()]
    return data.with_columns(pl.col(name).map_elements(_dump, return_dtype=pl.String) for name in nested)


def _dump(value: Any) -> str:
    return json.dumps(value.to_list() if isinstance(value, pl.Series) else value, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    return str(value)
