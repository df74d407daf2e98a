"""The headline metric over all traffic, as arrays: what every table of evidence is made from.

Belongs here: the sessions, their codes and the estimate, and rows that carry the stamp. Does not
belong here: anything computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
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
from evalpipe.inference.compare import BLOCKING
from evalpipe.inference.design import STICKY_LIMIT, stickiness

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


#: Reason of a number of the sessions that were drawn, which does not stand for all traffic.
UNWEIGHTED = "unweighted"

#: Statuses of a number that exists, from best to worst.
_ORDER = ("ok", "inconclusive", "suspect")


@dataclass(frozen=True, slots=True)
class Standing:
    """The best status that a number of a version may have, and why it is not ``ok``."""

    status: str
    reasons: tuple[str, ...]


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
        failed: Design checks that failed, which make every comparison suspect.
        noted: Those that did not pass in a design that claims nothing: reasons, no more.
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
    failed: tuple[str, ...]
    noted: tuple[str, ...]

    @property
    def versions(self) -> list[str]:
        """Labels of the K versions."""
        return self.population.versions

    @property
    def compared(self) -> Ints:
        """Codes of the versions that have an estimate."""
        return np.flatnonzero(np.isfinite(self.found.estimate))

    @property
    def is_drawn(self) -> bool:
        """Whether sessions were drawn from all traffic with chances that criteria declare."""
        return self.sample.weight is not None

    @property
    def weight(self) -> Floats:
        """(N,) sessions that each one of the sample stands for."""
        return np.ones(len(self.sample.y)) if self.sample.weight is None else self.sample.weight

    @property
    def target(self) -> Ints:
        """(S,) stratum that each stratum was estimated in, itself unless it was merged."""
        own = np.arange(self.sample.n_strata)
        return np.where(self.found.merged_into >= 0, self.found.merged_into, own)

    @property
    def is_comparable(self) -> bool:
        """Whether any two versions could be compared."""
        return len(self.compared) >= 2

    @property
    def is_by_user(self) -> bool:
        """Whether users keep a version: declared, logged or seen, whatever became of the design since.

        Sessions of a user are then no draws of their own, and what takes them for such is left out.
        """
        units = set(self.population.sessions["assignment_unit"].drop_nulls())
        if "randomized_user" in (self.design, self.criteria.estimand.design) or "user" in units:
            return True
        observed, expected = stickiness(self.sample)
        return observed - expected > STICKY_LIMIT

    def standing(self) -> dict[str, Standing]:
        """What the design and the common support allow to be said of each version, by its label."""
        found = {}
        for name, why in zip(self.versions, self.found.reasons, strict=True):
            blocking = tuple(code for code in why if code in BLOCKING)
            status = "suspect" if self.failed else "inconclusive" if blocking else "ok"
            found[name] = Standing(status, (*blocking, *(self.failed or self.noted)))
        return found

    def days(self) -> Ints:
        """(N,) day of each session of the sample, counted from the window's first."""
        start = pl.lit(self.stamp.window_start)
        offset = self.population.sessions.select((pl.col("day") - start).dt.total_days().alias("at"))["at"]
        return offset.to_numpy()[self.use].astype(np.int64)


def stamped(
    table: Table, stamp: Stamp, rows: Iterable[Mapping[str, object]], standing: Mapping[str, Standing] | None = None
) -> pl.DataFrame:
    """Rows of a table with the stamp on each, numbers that do not exist as null, sorted.

    Args:
        table: Contract of the table. stamp: what leads every row. rows: its rows.
        standing: What the design allows to be said of each version. A row's own status is never
            made better by it, and a number that does not exist has no worse one.
    """
    lead = asdict(stamp)
    full = [{**lead, **{name: _null(value) for name, value in _judged(row, standing or {}).items()}} for row in rows]
    return render.conform(table, render.frame(table, full)).sort(table.sort)


def unweighted(rows: Iterable[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    """Rows of the sessions that were drawn, where they do not stand for all traffic in equal measure."""
    for row in rows:
        told = row["reasons"]
        reasons = [*(told if isinstance(told, list | tuple) else ()), UNWEIGHTED]
        yield {**row, "status": "unavailable" if row["status"] == "unavailable" else "suspect", "reasons": reasons}


def _judged(row: Mapping[str, object], standing: Mapping[str, Standing]) -> Mapping[str, object]:
    status, known = str(row["status"]), standing.get(str(row.get("version")))
    if known is None or status == "unavailable":
        return row
    told = row["reasons"]
    reasons = [*(told if isinstance(told, list | tuple) else ()), *known.reasons]
    return {**row, "status": max(status, known.status, key=_ORDER.index), "reasons": list(dict.fromkeys(reasons))}


def _null(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
