"""Numerators and denominators of a metric, checked: what is not legal stops the whole analysis.

Belongs here: reading one metric's pair from outcome rows, and the check of all of them. Does not
belong here: what an outcome means (``contracts/metrics.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.metrics import BY_NAME, Metric

_SHOWN = 3
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Pair:
    """One metric over the sessions of a population.

    Attributes:
        y, d: Numerators and denominators, (N,) float64; 0 where the outcome is not known.
        is_known: Whether the outcome is known, (N,) bool.
    """

    y: Floats
    d: Floats
    is_known: Bools


def read_pair(sessions: pl.DataFrame, metric: str) -> Pair:
    """The (numerator, denominator) pair of a metric.

    Args:
        sessions: Rows of ``signals.session_outcomes``.
        metric: Name of the metric.
    """
    y, d = sessions[f"{metric}_num"], sessions[f"{metric}_den"]
    known = y.is_not_null() & d.is_not_null()
    return Pair(
        y=y.fill_null(0.0).to_numpy() * known.to_numpy(),
        d=d.fill_null(0.0).to_numpy() * known.to_numpy(),
        is_known=known.to_numpy(),
    )


def check_outcomes(outcomes: pl.DataFrame, metrics: Iterable[str]) -> None:
    """Refuse outcomes that no honest computation can use.

    Args:
        outcomes: Rows of ``signals.session_outcomes``.
        metrics: Metrics that will be read.

    Raises:
        EvalpipeError: ``INVALID_OUTCOMES`` naming the column and the first sessions: a session
            twice, NaN or infinity, a numerator without its denominator or outside its range, or a
            share above 1. Nothing is published from such rows.
    """
    if outcomes.is_empty():
        return
    _refuse(outcomes, "session_id", "appear more than once", pl.col("session_id").is_duplicated())
    for name in metrics:
        for column, what, bad in _tests(BY_NAME[name]):
            _refuse(outcomes, column, what, bad)


def _tests(metric: Metric) -> list[tuple[str, str, pl.Expr]]:
    num, den = f"{metric.name}_num", f"{metric.name}_den"
    y, d = pl.col(num), pl.col(den)
    tests = [
        (num, "hold NaN or infinity", ~y.is_finite()),
        (den, "hold NaN or infinity", ~d.is_finite()),
        (den, "hold a negative denominator", d < 0),
        (num, f"lie below {metric.low:g}", y < metric.low),
        (num, "have a denominator and no numerator", y.is_null() & (d > 0)),
        (num, "have a numerator and a denominator of 0", (d == 0) & (y != 0)),
    ]
    if metric.is_rate:
        tests.append((num, "exceed their denominator", y > d))
    return tests


def _refuse(outcomes: pl.DataFrame, column: str, what: str, bad: pl.Expr) -> None:
    rows = outcomes.filter(bad)["session_id"].unique().sort()
    if rows.is_empty():
        return
    shown = ", ".join(rows.head(_SHOWN))
    more = f" and {rows.len() - _SHOWN} more" if rows.len() > _SHOWN else ""
    where = f"signals.session_outcomes.{column}"
    raise EvalpipeError("INVALID_OUTCOMES", f"Sessions {shown}{more} {what}.", where=where)
