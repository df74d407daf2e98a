"""Weights frozen from the sessions of a home: the mix of work of a baseline, as criteria take it.

Belongs here: choosing the sessions. Does not belong here: shares (``analysis/standard.py``), words of
the verb (``console/freeze.py``). Nothing is stored here: a home that kept weights of its own would give
two homes with the same criteria different numbers.
"""

from __future__ import annotations

from datetime import date

import polars as pl

from evalpipe import analysis
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.steps.analysis import outcome_days_available
from evalpipe.steps.context import Context


def frozen(context: Context, days: tuple[date, date] | None) -> tuple[date, date, dict[str, float]]:
    """The mix of work of a baseline.

    Args:
        context: The open home.
        days: First and last day of the baseline; all days with outcomes by default.

    Returns:
        First and last day that have settled sessions, and the weight of each kind of work by the strata
        of the criteria in force.

    Raises:
        EvalpipeError: ``NO_RESULT`` without a settled session that has a version, or without a stratum
            but the routing epoch.
    """
    chosen = [day for day in outcome_days_available(context) if days is None or days[0] <= day <= days[1]]
    made = [m for day in chosen if (m := context.lookup("outcomes", day)) is not None]
    rows = context.lake.read("signals.session_outcomes", made).filter(pl.col("is_settled"))
    criteria = context.criteria
    weights = analysis.frozen_weights(rows, criteria) if rows.height else {}
    if not weights:
        what = "no settled session of these days has a version and a kind of work to weigh."
        fix = "Name days that were run, under criteria with a stratum besides routing_epoch."
        raise EvalpipeError("NO_RESULT", what, where=criteria.name, fix=fix)
    first, last = rows.select(first=pl.col("day").min(), last=pl.col("day").max()).row(0)
    return first, last, weights
