"""Rows of ``analysis.recovery_curves``: share of corrections that are back on track within k answers.

Belongs here: what is an event and what is censored. Does not belong here: what an episode is
(``signals``), the curve (``inference/durations``). An episode whose last answer nobody judged leaves
when it was last seen; one that ended in an objection never recovered and stays to the horizon, for
leaving early would count it as one that might still have come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from evalpipe.analysis.evidence.headline import stamped, unweighted
from evalpipe.analysis.population import Population, encode
from evalpipe.analysis.stamp import Stamp
from evalpipe.contracts.tables.evidence import RECOVERY_CURVES
from evalpipe.criteria.model import Criteria
from evalpipe.inference.durations.recovery import recovery_curve

#: Correction episodes, one row each: answers whose reception was seen, and how the episode ended.
EPISODES = pl.Schema({"session_id": pl.String, "n_judged": pl.Int32, "ending": pl.String})
#: Episodes of a version below which its curve is shown and not to be decided on.
MIN_EPISODES = 30


def recovery_curves(
    outcomes: pl.DataFrame,
    episodes: pl.DataFrame,
    criteria: Criteria,
    stamp: Stamp,
) -> pl.DataFrame:
    """Rows of ``analysis.recovery_curves``.

    Args:
        outcomes: Rows of ``signals.session_outcomes``.
        episodes: Rows of :data:`EPISODES`.
        criteria: Versions and the level of the band.
        stamp: The window.

    Returns:
        One row a version and number of answers at which its curve has a step or an episode leaves.
    """
    inside = outcomes.filter(stamp.settled)
    population = encode(inside, criteria.outcomes.compare_by, criteria.estimand.strata, (), criteria.estimand.sampling)
    rows = _rows(population, episodes, criteria.estimand.alpha)
    return stamped(RECOVERY_CURVES, stamp, rows if population.weight is None else unweighted(rows))


def _rows(population: Population, episodes: pl.DataFrame, alpha: float) -> Iterator[Mapping[str, object]]:
    known = episodes.filter(pl.col("n_judged").is_not_null() & pl.col("ending").is_not_null())
    codes = population.sessions.select("session_id", version=pl.Series(population.version, dtype=pl.Int64))
    known = known.join(codes, on="session_id", how="inner").sort("session_id", "n_judged", "ending")
    if known.is_empty():
        return
    ended = known["ending"].to_numpy()
    seen = known["n_judged"].cast(pl.Float64).to_numpy()
    horizon = max(float(seen.max()), 1.0)
    answers = np.where(ended == "rejected", horizon, seen)
    is_back = np.isin(ended, ("strong", "weak"))
    for k, version in enumerate(population.versions):
        mine = known["version"].to_numpy() == k
        if not mine.any():
            continue
        curve = recovery_curve(answers[mine], is_back[mine], alpha)
        is_thin = int(mine.sum()) < MIN_EPISODES
        for at in np.flatnonzero(curve.time > 0):
            yield {
                "version": version,
                "k": int(curve.time[at]),
                "n_episodes": int(mine.sum()),
                "n_at_risk": int(curve.at_risk[at]),
                "n_recovered": int(curve.events[at]),
                "recovered": 1.0 - curve.survival[at],
                "recovered_lo": 1.0 - curve.hi[at],
                "recovered_hi": 1.0 - curve.lo[at],
                "status": "inconclusive" if is_thin else "ok",
                "reasons": ["few_episodes"] if is_thin else [],
            }
