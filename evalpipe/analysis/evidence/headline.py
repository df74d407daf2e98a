"""The headline metric over all traffic, as arrays: what every table of evidence is made from.

Belongs here: the sessions, their codes and the estimate, and rows that carry the stamp. Does not
belong here: anything computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evalpipe.analysis.population import Population
from evalpipe.analysis.stamp import Stamp
from evalpipe.contracts import render
from evalpipe.contracts.metrics import Metric
from evalpipe.contracts.model import Table
from evalpipe.criteria.model import Criteria
from evalpipe.inference import Comparison, Options, Sample

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Headline:
    """The headline metric over all traffic.

    Attributes:
        metric: The metric. criteria, stamp: as of the whole window.
        population: Sessions that have a version, (P,).
        use: (P,) those whose outcome is known: the N sessions of ``sample``.
        sample, options: What was compared, and how.
        found: The comparison.
        design: Design that may be assumed.
    """

    metric: Metric
    criteria: Criteria
    stamp: Stamp
    population: Population
    use: Bools
    sample: Sample
    options: Options
    found: Comparison
    design: str

    @property
    def versions(self) -> list[str]:
        """Labels of the K versions."""
        return self.population.versions

    @property
    def compared(self) -> Ints:
        """Codes of the versions that have an estimate."""
        return np.flatnonzero(np.isfinite(self.found.estimate))

    @property
    def target(self) -> Ints:
        """(S,) stratum that each stratum was estimated in, itself unless it was merged."""
        own = np.arange(self.sample.n_strata)
        return np.where(self.found.merged_into >= 0, self.found.merged_into, own)

    @property
    def is_comparable(self) -> bool:
        """Whether any two versions could be compared."""
        return len(self.compared) >= 2

    def days(self) -> Ints:
        """(N,) day of each session of the sample, counted from the window's first."""
        start = pl.lit(self.stamp.window_start)
        offset = self.population.sessions.select((pl.col("day") - start).dt.total_days().alias("at"))["at"]
        return offset.to_numpy()[self.use].astype(np.int64)


def stamped(table: Table, stamp: Stamp, rows: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """Rows of a table with the stamp on each, numbers that do not exist as null, sorted."""
    lead = asdict(stamp)
    full = [{**lead, **{name: _null(value) for name, value in row.items()}} for row in rows]
    return render.conform(table, render.frame(table, full)).sort(table.sort)


def _null(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
