"""Whether estimates agree with each other: what any defect of an estimator would break first.

Belongs here: relations that must hold between published numbers. Does not belong here: whether the
data allow an estimate (``diagnostics``).
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

_SLACK = 1e-9
_LARGEST_SUM = 1e-6


@dataclass(frozen=True, slots=True)
class Coherence:
    """How many rows of ``analysis.net_improvement`` contradict another.

    Attributes:
        rows: Rows looked at.
        outside: Estimates outside their own interval.
        narrow: Simultaneous intervals that do not contain the pointwise one.
        largest_sum: Largest distance from zero of the summed estimates of one metric and slice against
            the uniform reference, in the unit of the metric.
    """

    rows: int
    outside: int
    narrow: int
    largest_sum: float

    @property
    def holds(self) -> bool:
        """Whether nothing contradicts."""
        return not self.outside and not self.narrow and self.largest_sum < _LARGEST_SUM


def coherence(rows: pl.DataFrame) -> Coherence:
    """Check the estimates of one analysis slice.

    Args:
        rows: ``analysis.net_improvement`` of one as-of day and window.
    """
    known = rows.filter(pl.col("lo").is_not_null())
    outside = (pl.col("estimate") < pl.col("lo") - _SLACK) | (pl.col("estimate") > pl.col("hi") + _SLACK)
    simultaneous = known.filter(pl.col("lo_sim").is_not_null())
    narrow = (pl.col("lo_sim") > pl.col("lo") + _SLACK) | (pl.col("hi_sim") < pl.col("hi") - _SLACK)
    sums = (
        rows.filter((pl.col("reference") == "uniform") & pl.col("estimate").is_not_null())
        .group_by("metric", "slice")
        .agg(pl.col("estimate").sum().abs().alias("total"))
    )
    largest = sums["total"].max()
    return Coherence(
        rows=rows.height,
        outside=known.filter(outside).height,
        narrow=simultaneous.filter(narrow).height,
        largest_sum=float(largest) if isinstance(largest, (int, float)) else 0.0,
    )
