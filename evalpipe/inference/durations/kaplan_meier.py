"""Kaplan-Meier curves: the share still waiting at each time, with censored times used, not dropped.

Belongs here: the curve, its band, quantiles, restricted means and their pseudo-observations. Does
not belong here: several causes of an end (``competing``), comparisons of groups (``logrank``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from evalpipe.inference.cells import Ints, tally
from evalpipe.inference.model import Bools, Floats

#: Sessions above which leaving each one out is replaced by its limit, at a cost linear in them.
_LARGEST_JACKKNIFE = 500


@dataclass(frozen=True, slots=True)
class Curve:
    """A Kaplan-Meier curve at its distinct times, (T,) ascending.

    Attributes:
        time: Distinct times, events and censorings. at_risk, events: counts at each.
        survival: S(t) just after each time. se: Greenwood standard error of S(t).
        lo, hi: Log-log band; NaN where S is 1 or 0, which carry no information on its width.
    """

    time: Floats
    at_risk: Floats
    events: Floats
    survival: Floats
    se: Floats
    lo: Floats
    hi: Floats

    def at(self, times: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """S, se, lo and hi at given times (each as ``times``); S is 1 with se 0 before the first time."""
        place = np.searchsorted(self.time, np.asarray(times, dtype=np.float64), side="right") - 1
        before = place < 0
        place = np.maximum(place, 0)
        return (
            np.where(before, 1.0, self.survival[place]),
            np.where(before, 0.0, self.se[place]),
            np.where(before, np.nan, self.lo[place]),
            np.where(before, np.nan, self.hi[place]),
        )


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of a time, or why there is none.

    Attributes:
        value, lo, hi: First time with S(t) <= 1 - q, and its interval; NaN where not reached.
        status: ``ok`` or ``unavailable``. reason: ``not_reached`` or ``no_observations``.
    """

    value: float
    lo: float
    hi: float
    status: str = "ok"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RestrictedMean:
    """Mean time up to a horizon.

    Attributes:
        mean: Area under S up to ``tau``; NaN where unavailable. se: its standard error.
        tau: The horizon. status: ``ok`` or ``unavailable``.
        reason: ``no_observations``, or ``horizon_not_observed`` if nobody was watched so long.
    """

    mean: float
    se: float
    tau: float
    status: str = "ok"
    reason: str = ""


def kaplan_meier(time: Floats, is_event: Bools, alpha: float = 0.05) -> Curve:
    """Kaplan-Meier curve (Kaplan and Meier, 1958).

    Args:
        time: (N,) times, non-negative, to the event or to the last look.
        is_event: (N,) whether the event happened; otherwise the time is censored.
        alpha: Error rate of the log-log band.

    Returns:
        The curve; empty without observations. A censoring at the time of an event counts as at risk.

    Raises:
        ValueError: Lengths differ, or a time is NaN, infinite or negative.
    """
    time, is_event = checked(time, is_event)
    distinct, code = np.unique(time, return_inverse=True)
    events = tally(code, is_event.astype(np.float64), len(distinct))
    leaving = np.bincount(code, minlength=len(distinct)).astype(np.float64)
    at_risk = len(time) - np.concatenate(([0.0], np.cumsum(leaving)[:-1])) if len(distinct) else leaving
    survival = np.cumprod(1.0 - events / np.maximum(at_risk, 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        hazard = np.cumsum(events / (at_risk * (at_risk - events)))
        se = np.where(survival > 0, survival * np.sqrt(hazard), 0.0)
        log = np.log(survival)
        width = special.ndtri(1.0 - alpha / 2.0) * np.sqrt(hazard) / np.abs(log)
        lo, hi = survival ** np.exp(width), survival ** np.exp(-width)
    inside = (survival > 0) & (survival < 1)
    return Curve(distinct, at_risk, events, survival, se, np.where(inside, lo, np.nan), np.where(inside, hi, np.nan))


def quantile(curve: Curve, q: float) -> Quantile:
    """Time by which a share q has had the event.

    Args:
        curve: A curve.
        q: Share in (0, 1); 0.5 is the median.

    Returns:
        First time with S(t) <= 1 - q; limits are the first times at which the band's lower and
        upper curve are (Brookmeyer and Crowley, 1982). NaN limits are not reached.
    """
    if len(curve.time) == 0:
        return Quantile(math.nan, math.nan, math.nan, "unavailable", "no_observations")
    level = 1.0 - q + 1e-12
    value, lo, hi = (_first(curve.time, line <= level) for line in (curve.survival, curve.lo, curve.hi))
    if math.isnan(value):
        return Quantile(value, lo, hi, "unavailable", "not_reached")
    return Quantile(value, lo, hi)


def restricted_mean(curve: Curve, tau: float) -> RestrictedMean:
    """Restricted mean time: area under the curve up to tau.

    Args:
        curve: A curve.
        tau: Horizon, positive.

    Returns:
        The mean with Greenwood's standard error. ``unavailable`` beyond the longest time that was
        watched, unless the curve is 0 by then: the area is not known where nobody was looked at.
    """
    if len(curve.time) == 0:
        return RestrictedMean(math.nan, math.nan, tau, "unavailable", "no_observations")
    if tau > curve.time[-1] and curve.survival[-1] > 0:
        return RestrictedMean(math.nan, math.nan, tau, "unavailable", "horizon_not_observed")
    inside = curve.time <= tau
    edges = np.concatenate(([0.0], curve.time[inside], [tau]))
    area = np.concatenate(([1.0], curve.survival[inside])) * np.diff(edges)
    # left[i]: area that remains from the i-th time to the horizon.
    left = np.cumsum(area[::-1])[::-1][1:]
    risk, events = curve.at_risk[inside], curve.events[inside]
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(events > 0, left**2 * events / (risk * (risk - events)), 0.0)
    # The last one at risk leaves no area behind: 0 x infinity.
    variance = float(np.where(risk > events, part, 0.0).sum())
    return RestrictedMean(float(area.sum()), math.sqrt(variance), tau)


def pseudo_restricted_means(time: Floats, is_event: Bools, tau: float) -> Floats:
    """Jackknife pseudo-observations of the restricted mean (Andersen, Klein and Rosthoj, 2003).

    They stand in for each session's own time up to tau, censored ones included, so that times can
    go through the same comparison as any other outcome.

    Args:
        time, is_event: As :func:`kaplan_meier`, of one version: censoring differs between versions.
        tau: Horizon.

    Returns:
        (N,) n theta - (n - 1) theta without the session; all NaN where the mean is unavailable, as
        it is with fewer than two sessions.
    """
    time, is_event = checked(time, is_event)
    n = len(time)
    curve = kaplan_meier(time, is_event)
    whole = restricted_mean(curve, tau)
    if n < 2 or whole.status != "ok":
        return np.full(n, np.nan)
    if is_event.all():
        return np.minimum(time, tau)
    place = np.searchsorted(curve.time, time)
    if n > _LARGEST_JACKKNIFE:
        return _influence(curve, place, is_event, tau) * n + whole.mean
    out = np.empty(n)
    # One session removed: sessions with the same time and fate are interchangeable.
    for at in np.unique(place):
        for fate in (False, True):
            same = (place == at) & (is_event == fate)
            if same.any():
                out[same] = n * whole.mean - (n - 1) * _area_without(curve, int(at), fate, tau)
    return out


def _influence(curve: Curve, place: Ints, is_event: Bools, tau: float) -> Floats:
    """(N,) infinitesimal jackknife of the restricted mean: -(integral of the area left) dM/Y."""
    edges = np.minimum(np.append(curve.time, tau), tau)
    left = np.append(np.cumsum((curve.survival * np.diff(edges))[::-1])[::-1], 0.0)[:-1]
    compensator = np.cumsum(left * curve.events / curve.at_risk**2)
    return np.asarray(compensator[place] - left[place] * is_event / curve.at_risk[place])


def _area_without(curve: Curve, at: int, fate: bool, tau: float) -> float:  # noqa: FBT001
    risk = curve.at_risk.copy()
    risk[: at + 1] -= 1.0
    events = curve.events.copy()
    events[at] -= float(fate)
    survival = np.cumprod(1.0 - np.divide(events, risk, out=np.zeros_like(events), where=risk > 0))
    inside = curve.time <= tau
    edges = np.concatenate(([0.0], curve.time[inside], [tau]))
    return float((np.concatenate(([1.0], survival[inside])) * np.diff(edges)).sum())


def checked(time: Floats, is_event: Bools) -> tuple[Floats, Bools]:
    """Times and fates as arrays.

    Raises:
        ValueError: Lengths differ, or a time is NaN, infinite or negative.
    """
    time, is_event = np.asarray(time, dtype=np.float64), np.asarray(is_event, dtype=bool)
    if time.shape != is_event.shape or time.ndim != 1:
        raise ValueError(f"time has shape {time.shape}, is_event {is_event.shape}")
    if not np.isfinite(time).all() or (time < 0).any():
        raise ValueError("time must be finite and not negative")
    return time, is_event


def _first(time: Floats, is_below: Bools) -> float:
    where = np.flatnonzero(is_below)
    return float(time[where[0]]) if len(where) else math.nan
