"""Rows of ``analysis.movement``: what moved between the earlier and the later half of a window.

Belongs here: the halves, and the cells that both are made of. Does not belong here: the
decomposition and its errors. The halves share no session, so neither is made from what the other is
compared with; they share users, whose influence in both adds up before it is squared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from evalpipe.analysis.evidence.headline import Bools, Headline, Ints
from evalpipe.inference import Check
from evalpipe.inference.cells import cell_sums, divide, group, tally
from evalpipe.inference.estimand import estimand
from evalpipe.inference.intervals import known_error, t_interval
from evalpipe.inference.model import Floats
from evalpipe.inference.movement import kitagawa, split_rate
from evalpipe.inference.support import standard_weights
from evalpipe.inference.variance import ClusterVariance


@dataclass(frozen=True, slots=True)
class _Errors:
    """Standard errors and limits: of each version's total (K',), and of its own part (K', S').

    Attributes:
        total, own: Triples of standard error, lower and upper limit; NaN where there is none.
        why: (K',) reason why the total has none, or an empty string.
    """

    total: tuple[Floats, Floats, Floats]
    own: tuple[Floats, Floats, Floats]
    why: list[str]


def movement_rows(headline: Headline) -> Iterator[Mapping[str, object]]:
    """One row a stratum and version; empty for a window of one day, or where :func:`movement_checks` says why."""
    days = headline.days()
    length = (headline.stamp.window_end - headline.stamp.window_start).days + 1
    if not headline.is_comparable or length < 2 or _why_none(headline):
        return
    half = (length + 1) // 2
    earlier, later = _halves(headline)
    contrast = constant_contrast(headline)
    if contrast is None or not (earlier[0].any() and later[0].any()):
        return
    deltas = [contrast @ rate for _, rate in (earlier, later)]
    start = headline.stamp.window_start + timedelta(days=half)
    shown = np.flatnonzero((earlier[0] > 0) | (later[0] > 0))
    weight = [part[0][shown] for part in (earlier, later)]
    both = (weight[0] > 0) & (weight[1] > 0)
    errors = _errors(headline, (days >= half).astype(np.int64), shown, weight, contrast)
    for at, k in enumerate(headline.compared):
        own = [part[1][at, shown] for part in (earlier, later)]
        delta = [values[at, shown] for values in deltas]
        moved = kitagawa(weight[0], delta[0], weight[1], delta[1])
        split = split_rate(weight[0], weight[1], (own[0], own[1]), (own[0] - delta[0], own[1] - delta[1]))
        total = [float(moved.total + values[at]) for values in errors.total[1:]]
        for place, s in enumerate(shown):
            part = split.own[place] if both[place] else 0.0
            reasons = [] if both[place] else ["one_half_only"]
            yield {
                "metric": headline.metric.name,
                "version": headline.versions[k],
                "stratum": headline.population.strata[s],
                "later_start": start,
                "own": part,
                "own_se": errors.own[0][at, place],
                "own_lo": part + errors.own[1][at, place],
                "own_hi": part + errors.own[2][at, place],
                "reference": split.reference[place] if both[place] else 0.0,
                "mix": moved.mix[place],
                "entry_exit": moved.entry_exit[place],
                "total": moved.total,
                "total_se": errors.total[0][at],
                "total_lo": total[0],
                "total_hi": total[1],
                "status": "inconclusive" if errors.why[at] else "ok",
                "reasons": [*reasons, errors.why[at]] if errors.why[at] else reasons,
            }


def movement_checks(headline: Headline) -> list[Check]:
    """Why a number that there is has no movement; nothing where it has one."""
    why = _why_none(headline) if headline.is_comparable else ""
    is_long = (headline.stamp.window_end - headline.stamp.window_start).days >= 1
    if headline.is_comparable and is_long and not why and not all(weight.any() for weight, _ in _halves(headline)):
        why = "No kind of work has all compared versions in both halves of the window: what moved is not split."
    return [Check("movement", "window", np.nan, np.nan, "unavailable", why)] if why else []


def _why_none(headline: Headline) -> str:
    if headline.options.population == "own_share":
        return "Each version is scored on its own mix of work, which no other shares: what moved is not split."
    if constant_contrast(headline) is None and headline.options.reference != "model":
        return "The reference weighs versions by their sessions and moves with routing itself: what moved is not split."
    return ""


def _halves(headline: Headline) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    days = headline.days()
    half = ((headline.stamp.window_end - headline.stamp.window_start).days + 2) // 2
    return _half(headline, days < half), _half(headline, days >= half)


def _half(headline: Headline, inside: Bools) -> tuple[Floats, Floats]:
    """Weights (S,) in the population and rates (K', S) of a half; a stratum that lacks a compared version weighs 0."""
    sample, size = headline.sample, headline.sample.n_strata
    place = _places(headline)
    used = inside & (place[sample.version] >= 0) & headline.found.kept[sample.stratum]
    stratum, k = headline.target[sample.stratum[used]], len(headline.compared)
    cell = place[sample.version[used]] * size + stratum
    v = headline.weight[used]
    rate = divide(tally(cell, v * sample.y[used], k * size), tally(cell, v * sample.d[used], k * size))
    rate = rate.reshape(k, size)
    whole = np.flatnonzero(np.isfinite(rate).all(axis=0))
    weight = np.zeros(size)
    if len(whole):
        served, standard = tally(cell, v, k * size).reshape(k, size)[:, whole], None
        options = headline.options
        if options.standard is not None:
            # As in the comparison: a group's weight is shared by the traffic of all its strata, those that the
            # comparison drops included, then merged.
            compared = inside & (place[sample.version] >= 0)
            own = tally(sample.stratum[compared], headline.weight[compared], size)
            standard = tally(headline.target, standard_weights(options.standard, own), size)[whole]
        weight[whole] = estimand(served, served, "uniform", None, options.population, standard).weights[0]
    return weight, rate


def _errors(headline: Headline, later: Ints, shown: Ints, weight: list[Floats], contrast: Floats) -> _Errors:
    """Errors with the mix of both halves held fixed, users that are in both counted once.

    Args:
        later: (N,) 1 for sessions of the later half. shown: (S',) strata with weight in either.
        weight: (S',) weights of each half. contrast: (K', K').
    """
    sample, k, s = headline.sample, len(headline.compared), len(shown)
    stratum_at, place = np.full(sample.n_strata, -1), _places(headline)
    stratum_at[shown] = np.arange(s)
    stratum = np.where(headline.found.kept[sample.stratum], stratum_at[headline.target[sample.stratum]], -1)
    use = np.flatnonzero((place[sample.version] >= 0) & (stratum >= 0) & (sample.d > 0))
    user, (d, y) = sample.user[use].astype(np.int64), (headline.weight[use] * v[use] for v in (sample.d, sample.y))
    version, at = place[sample.version[use]], later[use] * s + stratum[use]
    share = [values / values.sum() for values in weight]
    sign = np.array([-1.0, 1.0])
    # A total stands on the cells of all versions in both halves; a part of its own on the version's.
    coefficient = sign[:, None, None, None] * contrast.T[None, :, None, :] * np.stack(share)[:, None, :, None]
    ell = coefficient.transpose(1, 0, 2, 3).reshape(2 * k * s, k)
    alpha = headline.options.alpha
    total, is_alone = _spread(user, version * 2 * s + at, d, y, ell, alpha)
    why = np.where(is_alone, "one_user", np.where(np.isfinite(total[0]), "", "no_variation"))
    why[(contrast == 0).all(axis=1)] = ""
    mean = np.where((weight[0] > 0) & (weight[1] > 0), (share[0] + share[1]) / 2.0, 0.0)
    part = (sign[:, None, None] * np.diag(mean)[None]).reshape(2 * s, s)
    own = [
        _spread(user[mine], at[mine], d[mine], y[mine], part, alpha)[0] for mine in (version == i for i in range(k))
    ]  # fmt: skip
    lines = np.stack([np.stack(one) for one in own], axis=1)
    return _Errors(total, (lines[0], lines[1], lines[2]), why.tolist())


def _spread(
    user: Ints, cell: Ints, d: Floats, y: Floats, ell: Floats, alpha: float
) -> tuple[tuple[Floats, Floats, Floats], Bools]:
    """Standard errors of F functions of cell means and limits around 0, and which rest on a cell of one user.

    Such a cell has no spread between users: what stands on it has no error.
    """
    rows = group(user, cell, d, y, len(ell))
    sums = cell_sums(cell, d, y, rows)
    found = ClusterVariance(rows, sums).contrasts(ell)
    is_alone = ((ell != 0) & (sums.users < 2)[:, None]).any(axis=0)
    scale = np.abs(np.nan_to_num(sums.mean)) @ np.abs(ell)
    se = np.where(is_alone, np.nan, known_error(np.sqrt(np.maximum(np.diag(found.cov), 0.0)), scale))
    return (se, *t_interval(np.zeros(len(se)), se, found.df, alpha)), is_alone


def _places(headline: Headline) -> Ints:
    """(K,) place of each version among the compared ones, or -1."""
    place = np.full(headline.sample.n_versions, -1)
    place[headline.compared] = np.arange(len(headline.compared))
    return place


def constant_contrast(headline: Headline) -> Floats | None:
    """(K', K') what each version's rate is held against, or ``None`` where that is not constant."""
    k, options = len(headline.compared), headline.options
    index = None
    if options.reference == "model":
        at = np.flatnonzero(headline.compared == options.reference_index)
        if len(at) == 0:
            return None
        index = int(at[0])
    ones = np.ones((k, 1))
    return estimand(ones, ones, options.reference, index, "traffic").contrast
