"""Showing things: the two consoles, tables, errors.

Belongs here: rich. Does not belong here: what a verb shows (``summary.py``), query results as data
(``frames.py``).

Labels, column names and values come from logs and queries. They are never read as markup, and
control characters in them are spelt out, so that no log steers a terminal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalpipe.contracts.errors import EvalpipeError

out = Console(highlight=False, markup=False, emoji=False)
err = Console(stderr=True, highlight=False, markup=False, emoji=False)

#: Where a pipe is read, a cell is cut after so many characters; no text of the warehouse is longer.
CELL_CHARACTERS = 160

#: C0 and C1 controls, and the marks that turn the direction of writing.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def plain(value: object) -> str:
    """A value as text for a person, on one line and without control characters."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), str(value))


def line(text: str = "") -> None:
    """A line of the answer, never folded, so that a path or a command in it can be copied."""
    out.print(Text(plain(text)), soft_wrap=True)


def note(text: str) -> None:
    """A line for the person who waits; on standard error, so that output stays clean."""
    err.print(Text(plain(text)), soft_wrap=True)


def show_error(error: EvalpipeError, *, as_json: bool = False) -> None:
    """One line with what and where, and one with the fix."""
    if as_json:
        print(json.dumps({"error": error.code, "what": error.what, "where": error.where, "fix": error.fix}))
        return
    place = f" [{error.where}]" if error.where else ""
    err.print(Text.assemble((error.code, "bold red"), plain(f"{place}: {error.what}")), soft_wrap=True)
    note(f"Fix: {error.fix}")


def table(rows: Sequence[Mapping[str, object]], *, title: str | None = None, numeric: Sequence[str] = ()) -> None:
    """Rows as a table that fits the terminal; in a pipe, a row is one line.

    Args:
        rows: Rows with the same names.
        title: Line above the table.
        numeric: Columns to set flush right beside those whose first value is a number.
    """
    if not rows:
        line(f"{title or 'result'}: no rows")
        return
    if title:
        out.print(Text(plain(title), style="italic"), soft_wrap=True)
    names = list(rows[0])
    cells = [[plain(row[name]) for name in names] for row in rows]
    heads = [plain(name) for name in names]
    if not out.is_terminal:
        cells = [[_cut(cell) for cell in row] for row in cells]
    widths = [max(cell_len(text) for text in column) for column in zip(heads, *cells, strict=True)]
    # Words can be folded; a column of 30 characters reads well enough.
    if out.is_terminal and sum(min(width, 30) + 1 for width in widths) > out.width:
        _records(heads, cells)
        return
    drawn = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name, head in zip(names, heads, strict=True):
        is_number = name in numeric or isinstance(rows[0][name], (int, float))
        # A number that is broken over two lines is read as two numbers.
        drawn.add_column(Text(head), justify="right" if is_number else "left", overflow="fold", no_wrap=is_number)
    for row in cells:
        drawn.add_row(*map(Text, row))
    if out.is_terminal:
        out.print(drawn)
    else:
        # A pipe has no width: nothing is folded, so that lines can be cut and searched.
        wide = Console(file=out.file, width=sum(widths) + len(widths), highlight=False, markup=False, emoji=False)
        wide.print(drawn)


def _records(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """Rows one below the other: what is too wide for a table is still to be read."""
    width = max(map(cell_len, heads))
    for index, row in enumerate(cells):
        out.rule(str(index + 1), align="left", style="dim")
        for name, value in zip(heads, row, strict=True):
            out.print(Text(f"{name}{' ' * (width - cell_len(name))}  {value}"))


def _cut(text: str) -> str:
    return text if len(text) <= CELL_CHARACTERS else f"{text[: CELL_CHARACTERS - 1]}…"
