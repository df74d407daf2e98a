"""Drift of detectors: whether they fire as they did, by pattern and week, by confidence, by source.

Belongs here: the measures over signal rows, without text. Does not belong here: distances (``inference``)
and limits, which are data.

A pattern that fires more often is not always a better or a worse agent: a new harness, another language
or a changed template of messages looks the same. Such a week is shown before anybody believes its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import polars as pl

from evalpipe.contracts.render import conform, frame
from evalpipe.contracts.tables.reviews import DRIFT
from evalpipe.inference import jensen_shannon, stability_index
from evalpipe.review.evidence import Versions
from evalpipe.review.reviewed_drift import reviewed_drift
from evalpipe.review.rules import Limits

ALL = "all"
_UNREAD = ("without_prose", "unknown_language")
#: Edges of the histogram of confidence.
_EDGES = (0.75, 0.8, 0.85, 0.9, 0.95)


def drift(
    sessions: pl.DataFrame, rows: pl.DataFrame, opinions: pl.DataFrame, limits: Limits, versions: Versions
) -> pl.DataFrame:
    """Rows of ``signals.drift``.

    Args:
        sessions: ``language, source, day`` with how many: ``n_turns``, and of the turns whose reading is
            known ``n_covered``: ``n_without_prose, n_unknown_language``.
        rows: Semantic rows by ``lang, rule, confidence, source, day``, with how many: ``n``.
        opinions: Rows of ``signals.reviews``.
        limits: When a week or source is reported.
        versions: Detector version in force of a signal and language.
    """
    week = pl.col("day").dt.truncate("1w").alias("week")
    sessions = sessions.with_columns(week)
    at_least = [(pl.col("confidence") >= edge).cast(pl.Int32) for edge in _EDGES]
    rows = rows.with_columns(week, bin=pl.sum_horizontal(at_least))
    out = [
        *_weeks(sessions, rows, limits),
        *_sources(sessions, rows, limits),
        *_unread(sessions, limits),
        *reviewed_drift(opinions, limits, versions),
    ]
    return conform(DRIFT, frame(DRIFT, out)).sort(DRIFT.sort)


def _spans(sessions: pl.DataFrame, limits: Limits) -> Iterator[tuple[date, pl.Expr]]:
    """Every week with the weeks that it is held against."""
    for monday in sessions["week"].unique().sort().to_list():
        first = monday - timedelta(weeks=int(limits.drift["weeks_before"]))
        yield monday, (pl.col("week") >= first) & (pl.col("week") < monday)


def _weeks(sessions: pl.DataFrame, rows: pl.DataFrame, limits: Limits) -> Iterator[dict[str, Any]]:
    turns = sessions.group_by("language", "week").agg(n=pl.col("n_turns").sum())
    fired = rows.group_by("lang", "rule", "week").agg(n=pl.col("n").sum())
    binned = rows.group_by("lang", "bin", "week").agg(n=pl.col("n").sum())
    for monday, before in _spans(sessions, limits):
        for lang in sorted({*rows["lang"]}):
            mine = turns.filter(pl.col("language") == lang)
            n_now, n_before = _sum(mine.filter(week=monday)), _sum(mine.filter(before))
            enough = min(n_now, n_before) >= limits.drift["min_turns"]
            base = {"lang": lang, "period": monday, "n_turns": n_now, "n_turns_before": n_before}
            for rule in sorted({*fired.filter(lang=lang)["rule"]}):
                own = fired.filter(lang=lang, rule=rule)
                x, y = _sum(own.filter(week=monday)), _sum(own.filter(before))
                value = _psi([x, max(0, n_now - x)], [y, max(0, n_before - y)]) if enough else math.nan
                rates = {"rate": _ratio(x, n_now), "rate_before": _ratio(y, n_before)}
                yield _row("rate_psi", rule, value, limits, "psi", **base, **rates)
            own = binned.filter(lang=lang)
            sides = [
                [_sum(own.filter(side).filter(bin=b)) for b in range(len(_EDGES) + 1)]
                for side in (pl.col("week") == monday, before)
            ]
            value = _psi(*sides) if enough and min(map(sum, sides)) > 0 else math.nan
            yield _row("confidence_psi", ALL, value, limits, "psi", **base, rate=None, rate_before=None)


def _sources(sessions: pl.DataFrame, rows: pl.DataFrame, limits: Limits) -> Iterator[dict[str, Any]]:
    """Mix of patterns of each source against all others, silent turns included."""
    if sessions.is_empty():
        return
    last = sessions["week"].max()
    for (lang,), mine in sorted(sessions.group_by("language"), key=lambda pair: str(pair[0][0])):
        said = rows.filter(lang=lang)
        rules = sorted({*said["rule"]})
        for source in sorted({*mine["source"]}):
            counts, turns = [], []
            for side in (pl.col("source") == source, pl.col("source") != source):
                own = dict(said.filter(side).group_by("rule").agg(n=pl.col("n").sum()).iter_rows())
                n = int(mine.filter(side)["n_turns"].sum())
                turns.append(n)
                counts.append([*(own.get(rule, 0) for rule in rules), max(0, n - sum(own.values()))])
            enough = min(turns) >= limits.drift["min_turns"]
            value = jensen_shannon(*counts) if enough else math.nan
            base = {"lang": lang, "period": last, "n_turns": turns[0], "n_turns_before": turns[1]}
            yield _row("source_js", source, value, limits, "js", **base, rate=None, rate_before=None)


def _unread(sessions: pl.DataFrame, limits: Limits) -> Iterator[dict[str, Any]]:
    """Rise of the share of turns that no pattern can read: no prose in them, or in no language that is known."""
    for monday, before in _spans(sessions, limits):
        sides = [sessions.filter(side) for side in (pl.col("week") == monday, before)]
        now, was = (int(side["n_covered"].sum()) for side in sides)
        enough = min(now, was) >= limits.drift["min_turns"]
        for measure in _UNREAD:
            unread = (int(side[f"n_{measure}"].sum()) for side in sides)
            rates = [_ratio(x, n) for x, n in zip(unread, (now, was), strict=True)]
            value = rates[0] - rates[1] if enough and rates[0] is not None and rates[1] is not None else math.nan
            base = {"lang": ALL, "period": monday, "n_turns": now, "n_turns_before": was}
            yield _row(measure, ALL, value, limits, "unread_rise", **base, rate=rates[0], rate_before=rates[1])


def _row(measure: str, subject: str, value: float, limits: Limits, limit: str, **more: Any) -> dict[str, Any]:
    if math.isnan(value):
        status = "unavailable"
    elif value >= limits.drift[f"{limit}_fail"]:
        status = "fail"
    else:
        status = "warn" if value >= limits.drift[f"{limit}_warn"] else "ok"
    known = None if math.isnan(value) else value
    return {"measure": measure, "subject": subject, "value": known, "lo": None, "hi": None, "status": status, **more}


def _psi(now: list[int], before: list[int]) -> float:
    return stability_index(now, before)


def _sum(counts: pl.DataFrame) -> int:
    return int(counts["n"].sum())


def _ratio(x: int, n: int) -> float | None:
    return x / n if n else None
