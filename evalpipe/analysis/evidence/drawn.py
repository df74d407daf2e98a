"""Rows of ``analysis.drawn_rates``: what sessions that were drawn say of all traffic, kind by kind.

Belongs here: which sessions a row is of. Does not belong here: means and totals of a drawn sample
(``inference/survey.py``), comparisons of versions, which carry the same weights. Each row is of a
version's own work, so none of them ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from scipy import stats

from evalpipe.analysis.evidence.headline import Bools, Headline
from evalpipe.analysis.population import ALL
from evalpipe.analysis.sampling import CERTAIN, OTHER_KINDS, taken_by
from evalpipe.inference.intervals import known_error, mean_interval
from evalpipe.inference.survey import Weighted, hajek_ratio, horvitz_thompson_total


def drawn_rows(headline: Headline) -> Iterator[Mapping[str, object]]:
    """One row a version and kind of session that was drawn by itself; empty where all were kept."""
    rules = headline.criteria.estimand.sampling
    if not headline.is_drawn:
        return
    taken = taken_by(headline.population.sessions, rules)[headline.use]
    kinds = {place: (rule.name, rule.kept) for place, rule in enumerate(rules)} | {CERTAIN: (OTHER_KINDS, 1.0)}
    for k, version in enumerate(headline.versions):
        mine = (headline.sample.version == k) & (headline.sample.d > 0)
        if not mine.any():
            continue
        yield _row(headline, version, mine, ALL, np.nan, np.ones(int(mine.sum()), dtype=bool))
        for place, (name, kept) in kinds.items():
            if (inside := taken[mine] == place).any():
                yield _row(headline, version, mine, name, kept, inside)


def _row(headline: Headline, version: str, mine: Bools, kind: str, kept: float, inside: Bools) -> Mapping[str, object]:
    """Of a version's sessions those inside; users without one of them are clusters all the same."""
    sample = headline.sample
    y, d, user, v = sample.y[mine], sample.d[mine], sample.user[mine].astype(np.int64), headline.weight[mine]
    rate = hajek_ratio(y, v, user, d, inside)
    size, total = (horvitz_thompson_total(values * inside, v, user) for values in (np.ones(len(y)), y))
    g = len(np.unique(user))
    crit = float(stats.t.ppf(1.0 - headline.options.alpha / 2.0, g - 1)) if g > 1 else np.nan
    se = known_error(np.array([rate.se]), abs(rate.estimate))
    lo, hi = mean_interval(
        np.array([rate.estimate]),
        se,
        np.array([g - 1.0 if g > 1 else np.nan]),
        np.array([rate.ess]),
        np.array([g]),
        headline.options.alpha,
        is_rate=headline.metric.is_rate,
        is_binary=bool(np.isin(y, (0.0, 1.0)).all() and (d == 1.0).all()),
    )
    if g < 2:
        lo, hi = np.full(1, np.nan), np.full(1, np.nan)
    why = "one_user" if g < 2 else "no_variation" if np.isnan(se[0]) else ""
    return {
        "metric": headline.metric.name,
        "version": version,
        "kind": kind,
        "kept": kept,
        "n_sessions": int(inside.sum()),
        "n_users": len(np.unique(user[inside])),
        "ess": rate.ess,
        **_limits("sessions", size, crit),
        **_limits("total", total, crit),
        "rate": rate.estimate,
        "rate_lo": lo[0],
        "rate_hi": hi[0],
        "status": "inconclusive" if why else "ok",
        "reasons": ["descriptive", why] if why else ["descriptive"],
    }


def _limits(name: str, found: Weighted, crit: float) -> dict[str, object]:
    # A total cannot be below what was seen of it.
    half = crit * found.se
    return {name: found.estimate, f"{name}_lo": max(found.estimate - half, 0.0), f"{name}_hi": found.estimate + half}
