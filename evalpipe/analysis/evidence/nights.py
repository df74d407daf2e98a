"""Rows of ``analysis.nights``: the window night by night, and an alarm.

Belongs here: which sessions make a night, its baseline and tolerance. Does not belong here: the
sequence, the detector, the rate that is watched (``own_rate``). Nights share no session. Where users
keep a version a night is not a draw of its own, so weeks take the place of nights. Everything begins
with the window: what it says of all nights it says of those of one window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from evalpipe.analysis.evidence.headline import Bools, Headline
from evalpipe.analysis.evidence.own_rate import own_rate
from evalpipe.inference import sessions_vs_mean
from evalpipe.inference.model import Floats
from evalpipe.inference.monitor.confidence_sequence import MIN_USERS, sequence_half_width
from evalpipe.inference.monitor.edetector import THRESHOLD, edetector
from evalpipe.inference.shift import Shift, net_shift

#: Days that the baseline is made of, and the most days that are shown: more would be compared anew
#: each night to show what does not change.
BASELINE_DAYS = 14
MAX_DAYS = 56
MIN_USERS_A_NIGHT = 10
#: Loss below which nobody need be woken, and the effect that the sequence is narrowest for.
TOLERANCE = 0.01
PLANNED_EFFECT = 0.02


@dataclass(frozen=True, slots=True)
class _Watch:
    """Numbers of every period, (T, K) but for the last."""

    n: Floats
    estimate: Floats
    se: Floats
    so_far: Floats
    half: Floats
    #: (T,) whether the versions compared in a period are those of the window.
    is_same: Bools


def night_rows(headline: Headline) -> Iterator[Mapping[str, object]]:
    """One row a period and version; empty where nothing can be compared, or for one period."""
    if not headline.is_comparable:
        return
    step = 7 if headline.is_by_user else 1
    days = headline.days()
    first = max(0, int(days.max()) + 1 - MAX_DAYS)
    period = (days - first) // step
    n_periods = int(period.max()) + 1
    if n_periods < 2:
        return
    watch = _watch(headline, period, n_periods)
    n_base = -(-BASELINE_DAYS // step)
    own = own_rate(headline, period, n_periods, n_base) if n_periods > n_base else None
    sign = 1.0 if headline.metric.is_higher_better else -1.0
    for k in headline.compared:
        delta = np.full(n_periods, np.nan)
        error = np.full(n_periods, np.nan)
        if own is not None:
            delta = sign * own.change[:, k] + np.maximum(TOLERANCE, 2.0 * own.base_se[:, k])
            error = own.se[:, k]
        alarm = edetector(delta, error)
        is_told = np.isfinite(delta)
        is_watched = np.arange(n_periods) >= (n_base if is_told.any() else n_periods)
        for t in range(n_periods):
            is_known = bool(np.isfinite(watch.estimate[t, k]))
            reasons = [] if is_known and (is_told[t] or not is_watched[t]) else ["thin_night"]
            if not is_told.any():
                reasons.append("short_baseline")
            if not watch.is_same[t]:
                reasons.append("version_set_changed")
            if np.isfinite(watch.so_far[t, k]) and not np.isfinite(watch.half[t, k]):
                reasons.append("sequence_not_started")
            yield {
                "metric": headline.metric.name,
                "version": headline.versions[k],
                "night": headline.stamp.window_start + timedelta(days=first + t * step),
                "n_sessions": int(watch.n[t, k]),
                "estimate": watch.estimate[t, k],
                "se": watch.se[t, k],
                "so_far": watch.so_far[t, k],
                "so_far_lo": watch.so_far[t, k] - watch.half[t, k],
                "so_far_hi": watch.so_far[t, k] + watch.half[t, k],
                "change": own.change[t, k] if own is not None else np.nan,
                "change_se": error[t],
                "delta": delta[t],
                "evidence": alarm.evidence[t] if is_watched[t] else np.nan,
                "is_alarm": bool(alarm.evidence[t] >= THRESHOLD),
                "status": "ok" if is_known else "unavailable",
                "reasons": reasons,
            }


def _watch(headline: Headline, period: np.ndarray, n_periods: int) -> _Watch:
    k = headline.sample.n_versions
    n, estimate, se, so_far, half = (np.full((n_periods, k), np.nan) for _ in range(5))
    planned, is_same = _planned(headline), np.zeros(n_periods, dtype=bool)
    for t in range(n_periods):
        mine = _compare(headline, period == t)
        n[t] = np.bincount(headline.sample.version[period == t], minlength=k)
        if mine is not None:
            is_same[t] = _is_same(headline, mine)
            enough = mine.n_users >= MIN_USERS_A_NIGHT
            estimate[t], se[t] = (np.where(enough, values, np.nan) for values in (mine.estimate, mine.se))
        whole = _compare(headline, (period >= 0) & (period <= t))
        if whole is not None:
            # A net improvement among other versions is another number, and no look at this one.
            enough = (whole.n_users >= MIN_USERS) & _is_same(headline, whole)
            so_far[t] = whole.estimate
            width = sequence_half_width(whole.se, whole.n_sessions.astype(np.float64), planned, headline.options.alpha)
            half[t] = np.where(enough, width, np.nan)
    return _Watch(n, estimate, se, so_far, half, is_same)


def _is_same(headline: Headline, found: Shift) -> bool:
    return np.array_equal(np.flatnonzero(np.isfinite(found.estimate)), headline.compared)


def _compare(headline: Headline, inside: Bools) -> Shift | None:
    """The comparison of a part of the window, among its compared versions; ``None`` without sessions."""
    sample = headline.sample
    inside = inside & np.isin(sample.version, headline.compared)
    if not inside.any():
        return None
    return net_shift(sample.take(inside), replace(headline.options, min_sessions_per_version=1))


def _planned(headline: Headline) -> float:
    """Sessions of a version at which the sequence is to be narrowest."""
    y, d = headline.sample.y, headline.sample.d
    has = d > 0
    variance = float(np.var(y[has] / d[has]))
    n = sessions_vs_mean(PLANNED_EFFECT, len(headline.compared), variance, alpha=headline.options.alpha)
    return max(n, 1.0)
