"""What signals a window holds, and what reviewers said of them: the input of corrected rates and curves.

Belongs here: reading them from the lake. Does not belong here: corrections (``analysis/corrected.py``),
curves (``analysis/recovery.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import polars as pl

from evalpipe import review, signals
from evalpipe.analysis.corrected import COUNTS, REVIEWED
from evalpipe.analysis.recovery import EPISODES
from evalpipe.steps import reviews
from evalpipe.steps.context import Context
from evalpipe.store.manifest import Manifest, digest_of

#: Receipt of the reviews that an analysis was made with; absent without any.
REVIEWS = "reviews"


class Evidence:
    """Counts of signals and reviewed units of a home; each day is read once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._opinions = reviews.pooled(context.lake, past_damage=context.is_looking)
        self._days: dict[date, pl.DataFrame] = {}
        self._reviewed: pl.DataFrame | None = None

    def receipt(self, days: Iterable[date]) -> dict[str, str]:
        """Receipt of the reviews of some days: no key without any, so that homes without reviews have none."""
        mine = self._opinions.filter(pl.col("day").is_in(list(days)))
        told = ["item_id", "reviewer", "revision", "labels", "emitted", "versions", "inclusion_prob"]
        return {} if mine.is_empty() else {REVIEWS: digest_of(mine.select(told).sort(told[:3]).rows())}

    def counts(self, outcomes: Iterable[Manifest]) -> pl.DataFrame:
        """Signals by session of the days of some outcomes, rows of :data:`evalpipe.analysis.corrected.COUNTS`."""
        return pl.concat([pl.DataFrame(schema=COUNTS), *(self._day(m.key.day) for m in outcomes)])

    def episodes(self, outcomes: Iterable[Manifest]) -> pl.DataFrame:
        """Correction episodes of the days of some outcomes, rows of :data:`evalpipe.analysis.recovery.EPISODES`."""
        made = [m for one in outcomes if (m := self._context.lookup("signals", one.key.day)) is not None]
        rows = self._context.lake.read("signals.derived", made, ["signal", *EPISODES])
        return rows.filter(signal="recovery").select(list(EPISODES))

    def reviewed(self) -> pl.DataFrame:
        """Reviewed units under the detectors in force, rows of :data:`evalpipe.analysis.corrected.REVIEWED`."""
        if self._reviewed is None:
            found = review.labelled(self._opinions, review.guide(), review.limits(), signals.detector_version)
            self._reviewed = found.select(list(REVIEWED))
        return self._reviewed

    def _day(self, day: date) -> pl.DataFrame:
        if day not in self._days:
            self._days[day] = self._counted(day)
        return self._days[day]

    def _counted(self, day: date) -> pl.DataFrame:
        made = self._context.lookup("signals", day)
        if made is None:
            return pl.DataFrame(schema=COUNTS)
        lake, least = self._context.lake, self._context.criteria.extraction.min_confidence
        columns = ["session_id", "seq", "signal", "confidence"]
        rows = {
            "turn": lake.read("signals.semantic", [made], columns),
            "call": lake.read("signals.hard", [made], columns).filter(pl.col("confidence") >= least),
        }
        parts = [pl.DataFrame(schema=COUNTS)]
        for kind, found in rows.items():
            for name, members in review.named(review.guide(), review.limits(), kind).items():
                mine = found.filter(pl.col("signal").is_in(sorted(members)))
                counted = mine.group_by("session_id").agg(n=pl.col("seq").n_unique().cast(pl.Int64)).sort("session_id")
                parts.append(
                    counted.select("session_id", pl.lit(name).alias("signal"), pl.lit(kind).alias("unit"), "n")
                )
        return pl.concat(parts)
