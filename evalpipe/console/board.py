"""The verb ``board``: somebody's published rows under a declared view.

Belongs here: its options and words. Does not belong here: numbers (``analysis/board.py``).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evalpipe.console import show
from evalpipe.console.entry import handled

if TYPE_CHECKING:
    from evalpipe.steps.board import Board, View

_ASSUMED = {
    "published": "Intervals are the published ones; models are taken for independent of each other.",
    "signals": "Intervals are made of those of the signals, which are taken for independent: they are a little "
    "too narrow where signals go together.",
    "": "No intervals are published, so nothing can be said of the order.",
}


def board(
    file: Annotated[Path, typer.Argument(help="CSV with one row a model (docs/criteria.md, Boards).")],
    view: Annotated[str, typer.Option("--view", help="Name of a view, or a .toml file with your own weights.")] = (
        "mean_of_five"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a script.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """Hold a published board against a declared view.

    Does the view give the headline of its signals, and which rows differ?"""
    from evalpipe.steps.board import read_board

    with handled(as_json=as_json, debug=debug):
        found, declared = read_board(file, view)
        if as_json:
            print(json.dumps(_as_data(found, declared)))
            return
        shown = ["place", "model", "published", "view", "lo", "hi", "rank_lo", "rank_hi", "letters"]
        rows = found.rows.select(shown).to_dicts()
        rounded = [{k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()} for row in rows]
        show.table(rounded, title=f"{declared.name} {declared.version}: {declared.description}")
        for text in sentences(found, declared):
            show.line(text)


def sentences(found: Board, declared: View) -> list[str]:
    """What a board and a view say together, in words."""
    out = []
    if found.is_reproduced is None:
        out.append(f"The board has no column {declared.headline}, so there is no headline to hold the view against.")
    elif found.is_reproduced:
        out.append(f"The view gives the published headline of every row, to {found.largest_gap:.3f} points or less.")
    else:
        out.append(f"The view is not the published headline: it is up to {found.largest_gap:.2f} points away.")
    if found.n_adjacent:
        out.append(
            f"Of {found.n_adjacent} pairs of neighbours {found.n_told_alone} can be told apart, each by itself; "
            f"{found.n_told_together} when all pairs of the board are judged together, as ranks and letters are."
        )
    return [*out, _ASSUMED[found.interval_of]]


def _as_data(found: Board, declared: View) -> dict[str, object]:
    return {
        "view": declared.name,
        "version": declared.version,
        "weights": dict(declared.weights),
        "largest_gap": None if math.isnan(found.largest_gap) else found.largest_gap,
        "is_reproduced": found.is_reproduced,
        "adjacent_pairs": found.n_adjacent,
        "told_apart_alone": found.n_told_alone,
        "told_apart_together": found.n_told_together,
        "interval_of": found.interval_of or None,
        "rows": found.rows.to_dicts(),
    }
