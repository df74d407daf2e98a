"""Rows of ``analysis.durations``: how long sessions take, each kind of end by itself.

Belongs here: which sessions are of which kind, and the horizon. Does not belong here: curves. A
median over successes only is labelled so; medians of parts are never averaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from evalpipe.analysis.evidence.attempts import classified
from evalpipe.analysis.evidence.headline import Bools, Headline, Ints
from evalpipe.inference.durations.competing import cumulative_incidence, logrank
from evalpipe.inference.durations.kaplan_meier import (
    kaplan_meier,
    pseudo_restricted_means,
    quantile,
    restricted_mean,
)
from evalpipe.inference.durations.resampled import resampled_quantiles
from evalpipe.inference.model import Floats
from evalpipe.inference.shift import Shift, net_shift

ALL_ATTEMPTS = "all_attempts"
_KINDS = {
    "autonomous_success": ("autonomous_success",),
    "assisted_success": ("assisted_success",),
    "terminal_failure": ("failure", "timeout"),
}
_SUCCESSES = ("autonomous_success", "assisted_success")


def duration_rows(headline: Headline) -> Iterator[Mapping[str, object]]:
    """One row a population and version that has sessions in it."""
    population = headline.population
    seconds = population.sessions["duration_ms"].to_numpy().astype(np.float64) / 1000.0
    is_ended = (population.sessions["end_status"] != "open").to_numpy()
    outcome = np.array(classified(headline), dtype=object)
    # A failure ends a session that can then no longer succeed: it competes, and censors nothing. So
    # does an end of which nobody knows what it was, which is no failure.
    kind = np.where(np.isin(outcome, _SUCCESSES), 1, np.where(outcome == "invalid", 3, 2))
    cause = np.where(is_ended, kind, 0)
    for name in (ALL_ATTEMPTS, *_KINDS):
        inside = np.ones(population.n, dtype=bool) if name == ALL_ATTEMPTS else np.isin(outcome, _KINDS[name])
        yield from _population_rows(headline, name, inside, seconds, cause)


def _population_rows(
    headline: Headline, name: str, inside: Bools, seconds: Floats, cause: Ints
) -> Iterator[Mapping[str, object]]:
    version, alpha, is_ended = headline.population.version.astype(np.int64), headline.options.alpha, cause > 0
    present = [k for k in range(len(headline.versions)) if (inside & (version == k)).any()]
    enough = [
        k for k in present if (inside & (version == k)).sum() >= headline.options.min_sessions_per_version
    ]  # fmt: skip
    horizon = min((float(seconds[inside & (version == k)].max()) for k in enough), default=float("nan"))
    # It takes sessions for independent, which those of a user are not who keeps a version; limits of
    # quantiles are then those of users drawn again.
    by_user = headline.is_by_user
    p = float("nan") if by_user else logrank(seconds[inside], is_ended[inside], version[inside])[2]
    shift = _shift(headline, seconds, is_ended, horizon) if name == ALL_ATTEMPTS else None
    for k in present:
        mine = inside & (version == k)
        curve = kaplan_meier(seconds[mine], is_ended[mine], alpha)
        median, late = quantile(curve, 0.5), quantile(curve, 0.9)
        lower, upper = np.array([median.lo, late.lo]), np.array([median.hi, late.hi])
        if by_user:
            user = headline.population.cluster[mine].astype(np.int64)
            seed = headline.stamp.seed("duration", name, f"users drawn again {headline.versions[k]}")
            shares = np.array([0.5, 0.9])
            lower, upper = resampled_quantiles(seconds[mine], is_ended[mine], user, shares, seed, alpha=alpha)
        mean = restricted_mean(curve, horizon)
        reasons = [f"median_{median.reason}"] if median.reason else []
        if by_user:
            reasons.append("not_clustered")
        if mean.reason or not horizon > 0:
            reasons.append(mean.reason or "no_horizon")
        row = {
            "population": name,
            "version": headline.versions[k],
            "n_sessions": int(mine.sum()),
            "n_ended": int((mine & is_ended).sum()),
            "median_s": median.value,
            "median_lo_s": lower[0],
            "median_hi_s": upper[0],
            "p90_s": late.value,
            "p90_lo_s": lower[1],
            "p90_hi_s": upper[1],
            "horizon_s": horizon,
            "mean_s": mean.mean if horizon > 0 else float("nan"),
            "mean_se_s": mean.se if horizon > 0 else float("nan"),
            "equal_times_p": p,
            "status": "unavailable" if mean.status != "ok" and median.status != "ok" else "ok",
            "reasons": reasons,
        }
        if name == ALL_ATTEMPTS and horizon > 0:
            ends = cumulative_incidence(seconds[mine], cause[mine], np.array([horizon]), 3)[:, 0]
            row |= {"succeeded": ends[0], "failed": ends[1], "unresolved": ends[2]}
            if ends[2] > 0:
                reasons.append("unknown_outcomes")
        if shift is not None:
            row |= {"shift_s": shift.estimate[k], "shift_lo_s": shift.lo[k], "shift_hi_s": shift.hi[k]}
        yield row


def _shift(headline: Headline, seconds: Floats, is_ended: Bools, horizon: float) -> Shift | None:
    """Net change of the mean time to the horizon: pseudo-observations through the same comparison."""
    population = headline.population
    if not horizon > 0:
        return None
    pseudo = np.full(population.n, np.nan)
    for k in range(len(headline.versions)):
        mine = population.version == k
        if mine.any() and seconds[mine].max() >= horizon:
            pseudo[mine] = pseudo_restricted_means(seconds[mine], is_ended[mine], horizon)
    use = np.isfinite(pseudo)
    if not use.any():
        return None
    return net_shift(population.sample(pseudo, np.ones(population.n), use), headline.options)
