"""Published numbers that changed when a day was computed again.

Belongs here: the comparison of two results of one slice. Does not belong here: when a result is
computed anew (``store/plan.py``).
"""

from __future__ import annotations

import polars as pl

from evalpipe.contracts import render
from evalpipe.contracts.tables.analysis import CORRECTIONS

_KEY = ["as_of", "window_name", "measurement", "metric", "slice", "version"]
_VALUES = ("estimate", "n_sessions")


def corrections(
    old: pl.DataFrame, new: pl.DataFrame, old_receipt: str, new_receipt: str, reason: str = "recomputed"
) -> pl.DataFrame:
    """Rows of ``analysis.net_improvement`` whose estimate or number of sessions changed.

    A row that appears or disappears is a change from or to null.

    Args:
        old: What was published.
        new: What replaces it.
        old_receipt: Digest of what ``old`` was made from.
        new_receipt: Digest of what ``new`` was made from.
        reason: One of ``CORRECTION_REASONS``.

    Returns:
        ``analysis.corrections``, sorted; empty if nothing changed.
    """
    before, after = (
        frame.select(*_KEY, *(pl.col(name).alias(f"{prefix}_{name}") for name in _VALUES))
        for frame, prefix in ((old, "old"), (new, "new"))
    )
    joined = before.join(after, on=_KEY, how="full", coalesce=True)
    changed = joined.filter(
        pl.any_horizontal(pl.col(f"old_{name}").ne_missing(pl.col(f"new_{name}")) for name in _VALUES)
    ).with_columns(old_receipt=pl.lit(old_receipt), new_receipt=pl.lit(new_receipt), reason=pl.lit(reason))
    return render.conform(CORRECTIONS, changed).sort(CORRECTIONS.sort)
