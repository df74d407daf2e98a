"""One measurement, or a refusal: numbers made under different rules are never compared.

Belongs here: that check. Does not belong here: what a measurement is (``criteria/model.py``).
"""

from __future__ import annotations

import polars as pl

from evalpipe.contracts.errors import EvalpipeError

_DAYS = ("day", "as_of")


def require_one_measurement(frame: pl.DataFrame) -> str:
    """The one measurement that all rows were made under.

    Args:
        frame: Rows with ``measurement`` and, for a better message, ``day`` or ``as_of``.

    Returns:
        The measurement, or an empty string for a frame without rows.

    Raises:
        EvalpipeError: ``MIXED_MEASUREMENTS``, listing each measurement with its days, and naming
            the days to compute anew.
    """
    found = frame["measurement"].unique().sort().to_list()
    if len(found) < 2:
        return str(found[0]) if found else ""
    day = next((name for name in _DAYS if name in frame.columns), None)
    if day is None:
        raise EvalpipeError("MIXED_MEASUREMENTS", f"The rows hold measurements {', '.join(found)}.")
    spans = (
        frame.group_by("measurement")
        .agg(pl.col(day).min().alias("first"), pl.col(day).max().alias("last"))
        .sort("last", "measurement")
        .rows()
    )
    listed = ", ".join(f"{name} ({first} to {last})" for name, first, last in spans)
    older = spans[:-1]
    first, last = min(row[1] for row in older), max(row[2] for row in older)
    fix = f"Name one with --measurement, or compute the older days anew: evalpipe backfill {first}..{last}"
    raise EvalpipeError("MIXED_MEASUREMENTS", f"The rows hold measurements {listed}.", fix=fix)
