"""The check ``carry_over``: does what a user met before act on the next session?

Belongs here: who came from another version, and the words. Does not belong here: the difference and its
error (``inference/carry_over.py``).
"""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy import special

from evalpipe.analysis.evidence.headline import Bools, Headline
from evalpipe.inference import Check
from evalpipe.inference.carry_over import carry_over

CHECK = "carry_over"
#: |z| of one contrast above which the difference is told. Where several versions are looked at, the
#: chance to exceed it in any of them stays what it is for one (Sidak, 1967).
LIMIT = 2.6
_WHY = {
    "few_sessions": "Too few sessions of two versions whose user came from another one, or had not.",
    "low_support": "Users who came from another version did too little of the same work as the others.",
}


def carry_over_checks(headline: Headline) -> list[Check]:
    """One row a version, or one that says why there is nothing to see."""
    if headline.population.sessions["user_id"].is_null().all():
        return [_none("unavailable", "No session names a user, so nobody knows who met what before.")]
    is_carried = came_from_another(headline)[headline.use]
    if not is_carried.any():
        detail = "No user went from one version to another in this window, so nothing can be carried over."
        return [_none("ok", detail)]
    found = carry_over(headline.sample, is_carried, headline.found.weights, headline.target, headline.options)
    shown = np.flatnonzero(np.isfinite(found.z))
    if found.reason or not len(shown):
        return [_none("unavailable", _WHY.get(found.reason, "Outcomes do not vary."))]
    limit = _limit(len(shown))
    return [
        Check(
            CHECK,
            headline.versions[k],
            abs(float(found.z[k])),
            limit,
            "inconclusive" if abs(found.z[k]) > limit else "ok",
            _detail(found.carried[k], found.whole[k], int(found.n_carried[k]), float(found.z[k]), limit),
        )
        for k in shown
    ]


def came_from_another(headline: Headline) -> Bools:
    """(P,) whether a user's session before, among those of the window, was served by another version."""
    sessions = headline.population.sessions.select("user_id", "started_at", "session_id", "version")
    before = (
        sessions.with_row_index("at")
        .sort("user_id", "started_at", "session_id")
        .with_columns(before=pl.col("version").shift(1).over("user_id"))
        .sort("at")
    )
    is_other = pl.col("user_id").is_not_null() & (pl.col("before") != pl.col("version"))
    return before.select(is_other.fill_null(value=False).alias("is_other"))["is_other"].to_numpy()


def _limit(n_versions: int) -> float:
    """The limit for several versions; of two, one contrast says what the other does."""
    if n_versions <= 2:
        return LIMIT
    level = 2.0 * special.ndtr(-LIMIT)
    return float(-special.ndtri((1.0 - (1.0 - level) ** (1.0 / (n_versions - 1))) / 2.0))


def _detail(carried: float, whole: float, n: int, z: float, limit: float) -> str:
    text = (
        f"Net improvement {carried:+.3f} over {n} sessions whose user came from another version, {whole:+.3f} over "
        f"all of the same strata: z = {z:+.2f}."
    )
    if abs(z) <= limit:
        return text
    return f"{text} What was met before acts on the session, or users who come back differ in what suits them."


def _none(status: str, detail: str) -> Check:
    return Check(CHECK, "users", np.nan, LIMIT, status, detail)
