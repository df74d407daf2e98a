"""The check ``feedback_loop``: does routing follow the numbers that were seen before?

Belongs here: changes of routing, and what could be known before each. Does not belong here: the
correlation (``inference/feedback.py``). What could be known is estimated from the sessions of the window
that began before the change, whoever published it where: an analysis that read older analyses would
depend on when it was run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evalpipe.analysis.evidence.headline import Bools, Headline, Ints
from evalpipe.inference import Check
from evalpipe.inference.feedback import followed
from evalpipe.inference.model import Floats
from evalpipe.inference.shift import net_estimate

CHECK = "feedback_loop"
#: Correlation and p-value at which the check is told.
LIMIT, LEVEL = 0.5, 0.05
#: Pairs of a version and a change below which there is no correlation to speak of.
MIN_PAIRS = 5
#: Changes that are looked at, the latest: each takes an estimate over all sessions before it, so that all
#: of a window that changes by the hour would cost its square. The latest have the most behind them.
MAX_CHANGES = 50
#: Epoch of sessions for which none is logged.
_UNLOGGED = "all"
#: Share of an epoch's sessions that may begin after the next epoch did; more run side by side.
_OVERLAP = 0.05
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Followed:
    """Pairs of a version and a change of routing, (P,) each.

    Attributes:
        change: Change of the version's share. earlier: its net improvement before, positive for better.
        block: Which change.
    """

    change: Floats
    earlier: Floats
    block: Ints


def feedback_checks(headline: Headline) -> list[Check]:
    """The one row of the check."""
    if headline.population.epochs == [_UNLOGGED]:
        return [_none("unavailable", "No routing epoch is logged, so it is not known when routing changed.")]
    every = _changes(headline)
    changes = every[-MAX_CHANGES:]
    if not changes:
        return [_none("ok", "Routing did not change within this window: no epoch comes after another.")]
    pairs = _pairs(headline, changes)
    n, n_changes = len(pairs.change), len(np.unique(pairs.block))
    if n < MIN_PAIRS:
        return [_none("unavailable", f"{len(changes)} changes of routing and too few estimates before them.")]
    seed = headline.stamp.seed(headline.metric.name, "all", CHECK)
    rho, p = followed(pairs.change, pairs.earlier, pairs.block, seed)
    if np.isnan(rho):
        return [_none("unavailable", "Shares or earlier estimates do not differ.")]
    is_over = abs(rho) > LIMIT and p < LEVEL
    detail = (
        f"Shares of {n} pairs of version and change ({n_changes} changes of routing) against the net improvement of "
        f"the sessions before: Spearman {rho:+.2f}, p = {p:.3g} with estimates dealt anew within each change."
    )
    if len(changes) < len(every):
        detail += f" Only the latest {len(changes)} of {len(every)} changes are looked at."
    if is_over:
        side = "the better" if rho > 0 else "the worse"
        detail += f" Traffic went to {side} numbers, so versions differ in when and to whom they were shown: only "
        detail += "comparisons inside an epoch stand."
    return [Check(CHECK, "routing", rho, LIMIT, "inconclusive" if is_over else "ok", detail)]


def _changes(headline: Headline) -> list[tuple[Bools, Bools, int]]:
    """Sessions of an epoch, those of the next one, both (P,), and when the latter began."""
    population = headline.population
    started = _started(headline)
    inside = [population.epoch == code for code in range(len(population.epochs))]
    order = sorted(inside, key=lambda use: int(started[use].min()))
    pairs = [(one, other, int(started[other].min())) for one, other in itertools.pairwise(order)]
    weight = _weight(headline)
    return [(one, other, at) for one, other, at in pairs if _share(weight[one], started[one] >= at) <= _OVERLAP]


def _pairs(headline: Headline, changes: list[tuple[Bools, Bools, int]]) -> Followed:
    found = list(_followed(headline, changes))
    change, earlier, block = (np.array([row[at] for row in found]) for at in range(3))
    return Followed(change.astype(np.float64), earlier.astype(np.float64), block.astype(np.int64))


def _followed(headline: Headline, changes: list[tuple[Bools, Bools, int]]) -> Iterator[tuple[float, float, int]]:
    population, k = headline.population, len(headline.versions)
    started, weight = _started(headline)[headline.use], _weight(headline)
    sign = 1.0 if headline.metric.is_higher_better else -1.0
    for at, (one, other, start) in enumerate(changes):
        known = _before(headline, started < start)
        if known is None:
            continue
        served = [np.bincount(population.version[use], weight[use], k) for use in (one, other)]
        shares = [n / n.sum() for n in served]
        seen = (shares[0] > 0) | (shares[1] > 0)
        for version in np.flatnonzero(np.isfinite(known) & seen):
            # Equal changes are ties, whatever is left in their last digits.
            change = round(float(shares[1][version] - shares[0][version]), _DIGITS)
            yield change, sign * float(known[version]), at


def _before(headline: Headline, use: Bools) -> Floats | None:
    """(K,) net improvement by the sessions of the sample in ``use``; ``None`` without any."""
    if not use.any():
        return None
    return net_estimate(headline.sample.take(use), headline.options)


def _weight(headline: Headline) -> Floats:
    """(P,) sessions of all traffic that each one stands for."""
    weight = headline.population.weight
    return np.ones(headline.population.n) if weight is None else weight


def _share(weight: Floats, inside: Bools) -> float:
    return float(weight[inside].sum() / weight.sum())


def _started(headline: Headline) -> Ints:
    """(P,) start of each session in microseconds."""
    return headline.population.sessions["started_at"].to_physical().to_numpy()


def _none(status: str, detail: str) -> Check:
    return Check(CHECK, "routing", np.nan, LIMIT, status, detail)
