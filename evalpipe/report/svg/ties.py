"""Tie lines: one column a letter, a circle for each member, a line from the first to the last."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH = 18
#: More letters than this are written, not drawn: the column would crowd out the plot.
MOST_LETTERS = 10


def width(letters: Sequence[str]) -> int:
    """Width of the column in pixels; 0 where letters are written."""
    names = {letter for row in letters for letter in row}
    return WIDTH * len(names) if len(names) <= MOST_LETTERS else 0


def ties(letters: Sequence[str]) -> list[str]:
    """One drawing a row.

    Args:
        letters: Letters of each row, in the order of the rows; empty where there are none.

    Returns:
        SVG text a row; empty strings where there is nothing to draw or too many letters.
    """
    names = sorted({letter for row in letters for letter in row})
    if not names or len(names) > MOST_LETTERS:
        return ["" for _ in letters]
    spans = {name: [i for i, row in enumerate(letters) if name in row] for name in names}
    return [_row(i, names, spans) for i in range(len(letters))]


def _row(i: int, names: list[str], spans: dict[str, list[int]]) -> str:
    out: list[str] = []
    for column, name in enumerate(names):
        members = spans[name]
        x = column * WIDTH + WIDTH // 2
        if members[0] < members[-1] and members[0] <= i <= members[-1]:
            y1 = "50%" if i == members[0] else "0"
            y2 = "50%" if i == members[-1] else "100%"
            out.append(f'<line x1="{x}" x2="{x}" y1="{y1}" y2="{y2}"/>')
        if i in members:
            out.append(f'<circle cx="{x}" cy="50%" r="7"/>')
            out.append(f'<text x="{x}" y="50%" dy="3.5" text-anchor="middle">{escape(name)}</text>')
    return f'<svg class="ties" width="{WIDTH * len(names)}" aria-hidden="true">{"".join(out)}</svg>'
