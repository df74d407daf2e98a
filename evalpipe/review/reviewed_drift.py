"""Whether a detector is still as precise as when it was calibrated, by what reviewers say of it.

Belongs here: which reviews are the calibration and which are now. Does not belong here: how often a
detector fires (``drift``), whether it is precise enough to count (``evidence``).

A detector that fires as often as ever may have become wrong: people say other things, or an agent has
learnt to write what a pattern takes. Only reviews show it. The calibration is the first weeks that reviews
of the version in force speak of, by the day of the session.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import polars as pl

from evalpipe.inference import Share, newcombe
from evalpipe.review.evidence import ALL, Key, Versions, evidence_of
from evalpipe.review.rules import Limits

#: Measures, and the field of the evidence that each compares.
REVIEWED = ("precision", "recall")


def reviewed_drift(opinions: pl.DataFrame, limits: Limits, versions: Versions) -> Iterator[dict[str, Any]]:
    """Rows of ``signals.drift`` of every signal and language that was reviewed in both periods.

    Args:
        opinions: Rows of ``signals.reviews``.
        limits: Length of the two periods, fewest reviews of each, and the change that is reported.
        versions: Detector version in force of a signal and language.

    Returns:
        Change of precision and recall with Newcombe's interval on effective counts. It fails where the
        interval excludes 0 and the change exceeds the limit, and warns where only the first holds.
    """
    length = timedelta(days=int(limits.drift["review_days"]))
    for (first, last), keys in _spans(opinions, limits, versions).items():
        before = pl.col("day") < first + length
        # Days of both would be compared with themselves.
        now = (pl.col("day") > last - length) & ~before
        here, there = (evidence_of(opinions.filter(side), limits) for side in (now, before))
        for key in sorted(keys & here.keys() & there.keys()):
            base = {"subject": key[0], "lang": key[1], "period": last - timedelta(days=last.weekday())}
            for measure in REVIEWED:
                share, before_share = (getattr(side[key][ALL], measure) for side in (here, there))
                yield {"measure": measure, **base, **_changed(share, before_share, limits)}


def _spans(opinions: pl.DataFrame, limits: Limits, versions: Versions) -> dict[tuple[date, date], set[Key]]:
    """Detectors in force by the first and last day of the items that they were reviewed on."""
    told = opinions.select("lang", "day", pl.col("versions").alias("detector")).explode("detector").drop_nulls()
    days = (pl.col("day").min().alias("first"), pl.col("day").max().alias("last"))
    out: dict[tuple[date, date], set[Key]] = {}
    for lang, detector, first, last in told.group_by("lang", "detector").agg(*days).iter_rows():
        signal, _, version = detector.partition("=")
        if signal not in limits.joined and versions(signal, lang) == version:
            out.setdefault((first, last), set()).add((signal, lang, version))
    return out


def _changed(now: Share, was: Share, limits: Limits) -> dict[str, Any]:
    row = {
        "n_turns": now.n,
        "n_turns_before": was.n,
        "rate": None if math.isnan(now.value) else now.value,
        "rate_before": None if math.isnan(was.value) else was.value,
        "value": None,
        "lo": None,
        "hi": None,
        "status": "unavailable",
    }
    if min(now.n, was.n) < limits.min_reviewed:
        return row
    change = now.value - was.value
    counts = (now.value * now.n_effective, now.n_effective, was.value * was.n_effective, was.n_effective)
    lo, hi = newcombe(*counts)
    is_beyond = lo > 0 or hi < 0
    is_large = abs(change) > limits.drift["review_change"]
    status = "fail" if is_beyond and is_large else "warn" if is_beyond else "ok"
    return row | {"value": change, "lo": lo, "hi": hi, "status": status}
