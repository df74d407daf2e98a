"""What every row of an analysis carries: its window, measurement and criteria.

Belongs here: the stamp and the seed that follows from it. Does not belong here: any number.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import date

import polars as pl

from evalpipe.criteria.model import Criteria


@dataclass(frozen=True, slots=True)
class Stamp:
    """The columns that lead every table of the layer, in contract order."""

    as_of: date
    window_name: str
    window_start: date
    window_end: date
    measurement: str
    criteria_name: str
    criteria_version: str
    criteria_hash: str

    @classmethod
    def of(cls, criteria: Criteria, *, as_of: date, window: str, start: date, end: date) -> Stamp:
        """The stamp of one window under one criteria."""
        return cls(as_of, window, start, end, criteria.measurement, criteria.name, criteria.version, criteria.hash)

    @property
    def settled(self) -> pl.Expr:
        """Whether an outcome row is one that the window scores."""
        return pl.col("is_settled") & pl.col("day").is_between(self.window_start, self.window_end)

    @property
    def columns(self) -> list[pl.Expr]:
        """The stamp as constant columns."""
        return [pl.lit(value).alias(name) for name, value in asdict(self).items()]

    def seed(self, metric: str, slice_name: str, method: str) -> int:
        """A seed that is the same for the same question, whoever runs it and when.

        The as-of day is left out on purpose: two nights that score the same window share their
        random numbers, so a number moves only because the data moved.

        Returns:
            An integer from 0 to 2**63 - 1.
        """
        return int.from_bytes(digest(metric, slice_name, method, self.window_name, self.measurement)) >> 1


def digest(*parts: object) -> bytes:
    """Eight bytes that depend on every part and on nothing else."""
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).digest()
