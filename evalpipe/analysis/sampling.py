"""How sessions were drawn from all traffic, as criteria declare it, and what weights follow.

Belongs here: the rule that takes a session, its weight, and checks that say so in words. Does not
belong here: estimates with these weights (``inference``), their rows (``evidence/drawn.py``).

A weight is the number of sessions that one stands for, 1 / the share that was kept. A kind of which
nothing was kept is outside the population: no weight could speak for it, so sessions of it that are
there all the same are left out and counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evalpipe.criteria.model import Sampling
from evalpipe.inference import Check
from evalpipe.inference.agreement.detector import kish_ess
from evalpipe.inference.survey import inclusion_weights

#: A value that is not there, as slices call it too.
NO_VALUE = "(none)"
CHECK, ESS_CHECK = "sampling", "effective_sessions"
#: Name of the sessions that no rule takes.
OTHER_KINDS = "other kinds"
#: No rule took the session.
CERTAIN = -1

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def taken_by(sessions: pl.DataFrame, rules: Sequence[Sampling]) -> Ints:
    """(N,) place of the rule that takes each session, the first that holds, or :data:`CERTAIN`."""
    found = pl.lit(CERTAIN)
    for place in reversed(range(len(rules))):
        holds = pl.lit(value=True)
        if rules[place].column:
            holds = pl.col(rules[place].column).cast(pl.String).fill_null(NO_VALUE) == rules[place].value
        found = pl.when(holds).then(pl.lit(place)).otherwise(found)
    # A column, not a selection: a rule that takes everything is one value.
    return sessions.with_columns(found.cast(pl.Int64).alias("rule"))["rule"].to_numpy()


def inside_population(sessions: pl.DataFrame, rules: Sequence[Sampling]) -> pl.DataFrame:
    """Sessions that a weight can speak for: all but those of a kind of which nothing was kept."""
    if not any(rule.kept == 0 for rule in rules):
        return sessions
    return sessions.filter(pl.Series(_kept(sessions, rules) > 0))


def sampling_weights(sessions: pl.DataFrame, rules: Sequence[Sampling]) -> Floats | None:
    """(N,) sessions that each of these stands for; ``None`` where no sampling is declared.

    Args:
        sessions: Sessions inside the population. rules: as declared.

    Raises:
        ValueError: A session is of a kind of which nothing was kept.
    """
    return inclusion_weights(_kept(sessions, rules)) if rules else None


def sampling_checks(
    settled: pl.DataFrame,
    rules: Sequence[Sampling],
    version: NDArray[np.int32],
    names: Sequence[str],
    weight: Floats | None,
) -> list[Check]:
    """What was drawn of each kind, and what the drawn sessions of each version are worth.

    Args:
        settled: Outcome rows of the window. rules: as declared; nothing is said where there are none.
        version: (N,) version codes of the sessions inside the population. names: labels of the versions.
        weight: (N,) their weights.
    """
    if weight is None:
        return []
    n = np.bincount(taken_by(settled, rules) + 1, minlength=len(rules) + 1)
    checks = [_kind(rule, int(n[place + 1])) for place, rule in enumerate(rules)]
    if rules[-1].column:
        checks.append(Check(CHECK, OTHER_KINDS, 1.0, np.nan, "ok", f"All were kept: {n[0]} sessions."))
    for k, name in enumerate(names):
        mine = weight[version == k]
        ess = kish_ess(mine)
        told = f"{len(mine)} sessions stand for {mine.sum():.0f} and weigh as much as {ess:.0f} drawn alike (Kish)."
        checks.append(Check(ESS_CHECK, name, ess, np.nan, "ok" if len(mine) else "unavailable", told))
    return checks


def _kept(sessions: pl.DataFrame, rules: Sequence[Sampling]) -> Floats:
    share = np.array([*(rule.kept for rule in rules), 1.0])
    return share[taken_by(sessions, rules)]


def _kind(rule: Sampling, n: int) -> Check:
    if rule.kept == 0:
        told = "Nothing of this kind was kept: it is outside the population, and no number of this window speaks of it."
        told += f" {n} sessions of it are there all the same and were left out." if n else ""
        return Check(CHECK, rule.name, 0.0, np.nan, "suspect" if n else "ok", told)
    told = f"{rule.kept:.4g} of them were kept: {n} sessions stand for {n / rule.kept:.0f}."
    return Check(CHECK, rule.name, rule.kept, np.nan, "ok", told)
