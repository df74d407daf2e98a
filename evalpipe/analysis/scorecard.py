"""The scorecard of one agent version: its numbers, and whom it beats, loses to or ties with.

Belongs here: rows picked and counted from an analysis. Does not belong here: new numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from evalpipe.contracts import render
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.tables.analysis import SCORECARD

_CELL = ["as_of", "window_name", "measurement", "metric", "slice"]


def scorecard(tables: Mapping[str, pl.DataFrame], version: str) -> pl.DataFrame:
    """Every number of one version with its standing among the others.

    Args:
        tables: ``analysis.net_improvement`` and ``analysis.pairs`` by full name.
        version: Label of the version.

    Returns:
        ``analysis.scorecard``, one row a metric and slice.

    Raises:
        EvalpipeError: ``UNKNOWN_VERSION``, listing the versions that there are.
    """
    numbers, pairs = tables["analysis.net_improvement"], tables["analysis.pairs"]
    require_versions(numbers, version)
    won = pairs.filter(pl.col("version") == version).group_by(_CELL).agg(
        pl.col("is_better").sum().cast(pl.Int32).alias("n_better_than"),
        pl.col("is_indistinguishable").sum().cast(pl.Int32).alias("n_tied_with"),
    )  # fmt: skip
    lost = pairs.filter(pl.col("other") == version).group_by(_CELL).agg(
        pl.col("is_better").sum().cast(pl.Int32).alias("n_worse_than")
    )  # fmt: skip
    card = (
        numbers.filter(pl.col("version") == version)
        .join(won, on=_CELL, how="left")
        .join(lost, on=_CELL, how="left")
        .with_columns(pl.col("n_better_than", "n_worse_than", "n_tied_with").fill_null(0))
    )
    return render.conform(SCORECARD, card).sort(SCORECARD.sort)


def require_versions(numbers: pl.DataFrame, *versions: str) -> None:
    """Check that an analysis speaks of these versions.

    Args:
        numbers: Rows of ``analysis.net_improvement``.
        versions: Labels.

    Raises:
        EvalpipeError: ``UNKNOWN_VERSION``, listing the versions that there are.
    """
    known = numbers["version"].unique().sort().to_list()
    for version in versions:
        if version not in known:
            listed = ", ".join(f"'{name}'" for name in known) or "none"
            what = f"No session of '{version}' in the window. Versions: {listed}."
            raise EvalpipeError("UNKNOWN_VERSION", what, fix="Take one of these versions, written alike.")
