"""A board from a file, under a view by name or from a file.

Belongs here: opening both. Does not belong here: what a view makes of a board (``analysis/board.py``).
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from evalpipe.analysis.board import Board, board
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria.views import View, load_view

__all__ = ["Board", "View", "read_board"]


def read_board(path: Path, view: str) -> tuple[Board, View]:
    """Read a CSV of published rows and look at it under a view.

    Args:
        path: CSV with a header, one row a model.
        view: Name of a shipped view, or a ``.toml`` file.

    Raises:
        EvalpipeError: ``BOARD_INVALID``, ``VIEW_INVALID``.
    """
    declared = load_view(view)
    try:
        # Every cell is text: a guess of types would read a cell in two ways.
        table = pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise EvalpipeError("BOARD_INVALID", "it cannot be read as CSV in UTF-8", where=path.name) from error
    return board(table, declared), declared
