"""Masked trajectories in the forms that other tools read.

Belongs here: one session's rows to one document. Pure: rows in, plain values out. Does not belong
here: reading slices or writing files (``steps/export.py``).
"""

from collections.abc import Callable, Mapping
from typing import Any

from evalpipe.interchange.atif import to_atif
from evalpipe.interchange.levels import to_levels

Row = Mapping[str, Any]

#: Forms by name: each takes a row of masked.sessions and its rows of masked.steps in order.
FORMS: Mapping[str, Callable[[Row, list[Row]], dict[str, Any]]] = {"atif": to_atif, "levels": to_levels}

__all__ = ["FORMS", "to_atif", "to_levels"]
