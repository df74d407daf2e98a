"""A published board under a declared view: is the headline what it says, and which rows can be told apart?

Belongs here: reading rows of aggregates, the view's number, pairs and rank sets. Does not belong here:
sessions, which a board no longer has. Of rows alone nobody can tell how they vary together, so models
are taken for independent of each other; a shared reference or shared users make that wrong by a little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import special

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria.views import View
from evalpipe.inference.letters import compact_letters
from evalpipe.inference.model import Floats
from evalpipe.inference.simultaneous import gaussian_draws, rank_sets

MODEL = "model"
#: Largest gap between a published headline and the view, in units of the board, that rounding explains.
TOLERANCE = 0.01
_DRAWS = 10_000
_ALPHA = 0.05
_Z = float(special.ndtri(1.0 - _ALPHA / 2.0))


@dataclass(frozen=True, slots=True)
class Board:
    """What a view makes of a board.

    Attributes:
        rows: ``place, model, published, view, gap, lo, hi, is_below`` (whether the interval lies below
            the row above it, one pair by itself), ``rank_lo, rank_hi, letters``; sorted by the number
            that is ranked. Null where there is none.
        largest_gap: Largest distance of published and view; NaN without both.
        is_reproduced: Whether it is within :data:`TOLERANCE`; None without a published number.
        n_adjacent: Pairs of neighbours that have intervals.
        n_told_alone: Those that differ, each judged by itself.
        n_told_together: Those whose order holds when all pairs of the board are judged at once.
        interval_of: ``published``, ``signals`` (from those of the signals, taken for independent), or
            empty where the board has none.
    """

    rows: pl.DataFrame
    largest_gap: float
    is_reproduced: bool | None
    n_adjacent: int
    n_told_alone: int
    n_told_together: int
    interval_of: str


def board(table: pl.DataFrame, view: View) -> Board:
    """Add up the signals of a board, hold the headline against it, and rank the rows.

    Args:
        table: One row a model, all columns as text: ``model``, the view's columns, and where the board
            has them the headline and intervals: ``X_ci`` (half of one of 95 %), or ``X_lo`` and ``X_hi``.
        view: The view.

    Returns:
        The board. Where the view reproduces the headline, rows are ranked by the headline with its own
        interval; else by the view, with an interval from those of the signals.

    Raises:
        EvalpipeError: ``BOARD_INVALID`` naming column and row.
    """
    names = _models(table)
    signals = {name: _numbers(table, name) for name in view.weights}
    total = np.sum([view.weights[name] * values for name, values in signals.items()], axis=0)
    has_headline = view.headline in table.columns
    published = _numbers(table, view.headline) if has_headline else np.full(len(names), np.nan)
    gap = published - total
    largest = float(np.nanmax(np.abs(gap))) if np.isfinite(gap).any() else math.nan
    # Printed numbers have two digits, and sums of them more than a binary fraction holds.
    is_reproduced = None if math.isnan(largest) else largest <= TOLERANCE + 1e-9
    own = _half(table, view.headline) if is_reproduced and has_headline else None
    score, half, source = (published, own, "published") if own is not None else (total, None, "")
    if half is None:
        parts = {name: _half(table, name) for name in view.weights}
        if all(part is not None for part in parts.values()):
            squares = [(view.weights[name] * part) ** 2 for name, part in parts.items() if part is not None]
            half, source = np.sqrt(np.sum(squares, axis=0)), "signals"
    half = np.full(len(names), np.nan) if half is None else half
    order = np.argsort(np.where(np.isfinite(score), -score, np.inf), kind="stable")
    score, half = score[order], half[order]
    ranked = _ranked(score, half / _Z)
    rows = pl.DataFrame(
        {
            "place": list(range(1, len(names) + 1)),
            "model": [names[i] for i in order],
            "published": published[order],
            "view": total[order],
            "gap": gap[order],
            "lo": score - half,
            "hi": score + half,
            **ranked,
        }
    ).with_columns(pl.col(pl.Float64).fill_nan(None))
    n_adjacent = int(np.isfinite(half[1:] + half[:-1] + score[1:] + score[:-1]).sum())
    return Board(
        rows,
        largest,
        is_reproduced,
        n_adjacent,
        sum(value is True for value in ranked["is_below"]),
        sum(value is True for value in ranked["is_below_all"]),
        source,
    )


def _ranked(score: Floats, se: Floats) -> dict[str, list[object]]:
    """Columns of the order: neighbours, rank sets and letters; null for rows without an interval."""
    n = len(score)
    blank: dict[str, list[object]] = {
        name: [None] * n for name in ("is_below", "is_below_all", "rank_lo", "rank_hi", "letters")
    }
    at = np.flatnonzero(np.isfinite(score) & (se > 0))
    if len(at) < 2:
        return blank
    theta, variance = score[at], se[at] ** 2
    draws = gaussian_draws(np.diag(variance), _DRAWS, np.random.SeedSequence(0))
    found = rank_sets(theta, np.diag(variance), np.full((len(at),) * 2, np.inf), draws, _ALPHA)
    letters = compact_letters(theta, found.better | found.better.T)
    for i, row in enumerate(at):
        blank["rank_lo"][row], blank["rank_hi"][row] = int(found.rank_lo[i]), int(found.rank_hi[i])
        blank["letters"][row] = letters[i]
        if i and at[i - 1] == row - 1:
            z = (theta[i - 1] - theta[i]) / math.sqrt(variance[i - 1] + variance[i])
            blank["is_below"][row] = bool(z > _Z)
            blank["is_below_all"][row] = bool(found.better[i - 1, i])
    return blank


def _models(table: pl.DataFrame) -> list[str]:
    if MODEL not in table.columns:
        raise EvalpipeError("BOARD_INVALID", "the column is missing", where=MODEL)
    names = [(name or "").strip() for name in table[MODEL].to_list()]
    if not names:
        raise EvalpipeError("BOARD_INVALID", "there is no row", where=MODEL)
    for row, name in enumerate(names, 1):
        if not name or name in names[: row - 1]:
            what = "a model stands there twice" if name else "a model has no name"
            raise EvalpipeError("BOARD_INVALID", what, where=f"{MODEL}, row {row}")
    return names


def _half(table: pl.DataFrame, name: str) -> Floats | None:
    """Half widths of 95 % intervals of a column; None where the board has none."""
    if f"{name}_ci" in table.columns:
        half = _numbers(table, f"{name}_ci")
    elif {f"{name}_lo", f"{name}_hi"} <= set(table.columns):
        half = (_numbers(table, f"{name}_hi") - _numbers(table, f"{name}_lo")) / 2.0
    else:
        return None
    if (half < 0).any():
        row = int(np.flatnonzero(half < 0)[0]) + 1
        raise EvalpipeError("BOARD_INVALID", "the interval ends before it begins", where=f"{name}, row {row}")
    return half


def _numbers(table: pl.DataFrame, name: str) -> Floats:
    """Numbers of a column, with signs and per cent as boards print them; NaN where a cell is empty."""
    if name not in table.columns:
        raise EvalpipeError("BOARD_INVALID", "the column is missing", where=name)
    out = np.full(table.height, np.nan)
    for row, cell in enumerate(table[name].to_list()):
        text = (cell or "").strip().removeprefix("±").removesuffix("%").strip().replace("\N{MINUS SIGN}", "-")
        if not text:
            continue
        try:
            out[row] = float(text)
        except ValueError:
            out[row] = math.inf
        if not math.isfinite(out[row]):
            raise EvalpipeError("BOARD_INVALID", "that is no number", where=f"{name}, row {row + 1}")
    return out
