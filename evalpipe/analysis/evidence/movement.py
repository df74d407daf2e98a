"""Rows of ``analysis.movement``: what moved between the earlier and the later half of a window.

Belongs here: the halves, and the cells that both are made of. Does not belong here: the
decomposition. The halves share no session, so neither is made from what the other is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

import numpy as np

from evalpipe.analysis.evidence.headline import Bools, Headline
from evalpipe.inference.cells import divide, tally
from evalpipe.inference.estimand import estimand
from evalpipe.inference.model import Floats
from evalpipe.inference.movement import kitagawa, split_rate


def movement_rows(headline: Headline) -> Iterator[Mapping[str, object]]:
    """One row a stratum and version; empty for a window of one day, or a reference without a movement.

    A reference that weighs the versions by their sessions moves with routing itself.
    """
    days = headline.days()
    length = (headline.stamp.window_end - headline.stamp.window_start).days + 1
    if not headline.is_comparable or length < 2 or headline.options.population != "traffic":
        return
    half = (length + 1) // 2
    earlier, later = _half(headline, days < half), _half(headline, days >= half)
    contrast = _contrast(headline)
    if contrast is None or not (earlier[0].any() and later[0].any()):
        return
    deltas = [contrast @ rate for _, rate in (earlier, later)]
    start = headline.stamp.window_start + timedelta(days=half)
    shown = np.flatnonzero((earlier[0] > 0) | (later[0] > 0))
    weight = [part[0][shown] for part in (earlier, later)]
    for at, k in enumerate(headline.compared):
        own = [part[1][at, shown] for part in (earlier, later)]
        delta = [values[at, shown] for values in deltas]
        moved = kitagawa(weight[0], delta[0], weight[1], delta[1])
        both = (weight[0] > 0) & (weight[1] > 0)
        split = split_rate(weight[0], weight[1], (own[0], own[1]), (own[0] - delta[0], own[1] - delta[1]))
        for place, s in enumerate(shown):
            yield {
                "metric": headline.metric.name,
                "version": headline.versions[k],
                "stratum": headline.population.strata[s],
                "later_start": start,
                "own": split.own[place] if both[place] else 0.0,
                "reference": split.reference[place] if both[place] else 0.0,
                "mix": moved.mix[place],
                "entry_exit": moved.entry_exit[place],
                "total": moved.total,
                "status": "ok",
                "reasons": [] if both[place] else ["one_half_only"],
            }


def _half(headline: Headline, inside: Bools) -> tuple[Floats, Floats]:
    """Traffic (S,) and rates (K', S) of a half; a stratum that lacks a compared version weighs 0."""
    sample, size = headline.sample, headline.sample.n_strata
    place = np.full(sample.n_versions, -1)
    place[headline.compared] = np.arange(len(headline.compared))
    used = inside & (place[sample.version] >= 0) & headline.found.kept[sample.stratum]
    stratum, k = headline.target[sample.stratum[used]], len(headline.compared)
    cell = place[sample.version[used]] * size + stratum
    rate = divide(tally(cell, sample.y[used], k * size), tally(cell, sample.d[used], k * size)).reshape(k, size)
    is_whole = np.isfinite(rate).all(axis=0)
    traffic = tally(stratum, np.ones(int(used.sum())), size)
    return np.where(is_whole, traffic, 0.0), rate


def _contrast(headline: Headline) -> Floats | None:
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
