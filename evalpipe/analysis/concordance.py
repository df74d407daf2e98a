"""Rows of ``analysis.concordance`` and ``analysis.layer_agreement``: do layers of evidence agree?

Belongs here: rows, and what may be established of a version at all. Does not belong here: the layers
(``layers.py``), labels and numbers of agreement (``inference/concordance.py``). Where fewer than two
layers know a pair there is nothing to agree: the row says which layer is missing, and has no number.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from evalpipe.analysis.design import BALANCE, CONTRADICTING
from evalpipe.analysis.evidence.headline import stamped
from evalpipe.analysis.layers import TASKS, Told, barred, layers_of
from evalpipe.analysis.population import ALL, encode
from evalpipe.analysis.stamp import Stamp
from evalpipe.contracts.tables.concordance import CONCORDANCE, LAYER_AGREEMENT
from evalpipe.criteria.model import Criteria
from evalpipe.inference.concordance import agreement, label

_ORDERS = {1: "better", -1: "worse", 0: "not_told"}
_SUSPECT = "suspect"


def concordance(
    outcomes: pl.DataFrame,
    counts: pl.DataFrame,
    reviewed: pl.DataFrame,
    numbers: pl.DataFrame,
    criteria: Criteria,
    stamp: Stamp,
) -> dict[str, pl.DataFrame]:
    """Both tables by full name.

    Args:
        outcomes: Rows of ``signals.session_outcomes``.
        counts: Signals by session. reviewed: reviewed units, as for corrected rates.
        numbers: ``analysis.net_improvement`` of the window. Where its design did not hold, or versions
            may not be put in an order, sessions and reviews establish nothing: what confounds traffic
            confounds both.
        criteria: Metric, strata and error rates.
        stamp: The window.
    """
    inside = outcomes.filter(stamp.settled)
    population = encode(inside, criteria.outcomes.compare_by, criteria.estimand.strata, (), criteria.estimand.sampling)
    if not population.n:
        return {table.full_name: stamped(table, stamp, ()) for table in (CONCORDANCE, LAYER_AGREEMENT)}
    layers = layers_of(population, counts, reviewed, criteria, stamp)
    codes, is_suspect = _doubts(numbers.filter(metric=criteria.outcomes.headline, slice=ALL))
    limits = dict.fromkeys(range(len(population.versions)), codes) if codes else {}
    layers = {name: told if name == TASKS else barred(told, limits) for name, told in layers.items()}
    made = (
        _pairs(layers, population.versions, is_suspect=is_suspect),
        _agreements(layers, population.versions, criteria, stamp),
    )
    return {
        table.full_name: stamped(table, stamp, rows)
        for table, rows in zip((CONCORDANCE, LAYER_AGREEMENT), made, strict=True)
    }


def _doubts(numbers: pl.DataFrame) -> tuple[tuple[str, ...], bool]:
    """Design checks for which traffic establishes nothing, and whether they contradict what was claimed."""
    met = set(numbers["reasons"].explode().drop_nulls())
    codes = tuple(code for code in CONTRADICTING if code in met)
    is_suspect = (numbers["status"] == _SUSPECT).any()
    is_unordered = BALANCE in codes and (numbers["design"] == "observational").any()
    return (codes, is_suspect) if is_suspect or is_unordered else ((), False)


def _pairs(layers: Mapping[str, Told], versions: list[str], *, is_suspect: bool) -> Iterator[Mapping[str, object]]:
    """Pairs that some layer knows."""
    for i, j in itertools.combinations(range(len(versions)), 2):
        orders = {name: told.layer.orders(i, j) if told.layer else None for name, told in layers.items()}
        known = [name for name, order in orders.items() if order is not None]
        if not known:
            continue
        row: dict[str, object] = {"version": versions[i], "other": versions[j], "n_layers": len(known)}
        for name in known:
            layer, order = layers[name].layer, orders[name]
            if layer is None or order is None:
                continue
            row[f"{name}_order"] = _ORDERS[order]
            if len(known) > 1:
                row[f"{name}_difference"] = layer.level[i] - layer.level[j]
                row[f"{name}_lo"], row[f"{name}_hi"] = layer.lo[i, j], layer.hi[i, j]
        yield {**row, "label": label(orders.values()), **_standing(layers, known, (i, j), is_suspect=is_suspect)}


def _standing(
    layers: Mapping[str, Told], known: list[str], pair: tuple[int, int], *, is_suspect: bool
) -> dict[str, object]:
    if len(known) < 2:
        why = [told.reason for name, told in layers.items() if name not in known and told.reason]
        return {"status": "unavailable", "reasons": list(dict.fromkeys(["one_layer", *why]))}
    reasons = [code for name in known for k in pair for code in (layers[name].limits or {}).get(k, ())]
    told = any(k in (layers[name].limits or {}) for name in known for k in pair)
    # A pair that two layers know is known to one that rests on traffic.
    status = _SUSPECT if is_suspect else "inconclusive" if told else "ok"
    return {"status": status, "reasons": list(dict.fromkeys(reasons))}


def _agreements(
    layers: Mapping[str, Told], versions: list[str], criteria: Criteria, stamp: Stamp
) -> Iterator[Mapping[str, object]]:
    """Every pair of layers, also those of which one is missing."""
    for (name, one), (against, other) in itertools.combinations(layers.items(), 2):
        row: dict[str, object] = {"first_layer": name, "second_layer": against, "reversals": []}
        if one.layer is None or other.layer is None:
            why = [told.reason for told in (one, other) if told.layer is None]
            yield {**row, "status": "unavailable", "reasons": list(dict.fromkeys(why))}
            continue
        seed = stamp.seed(f"{name} {against}", ALL, "concordance")
        found = agreement(one.layer, other.layer, alpha=criteria.estimand.alpha, seed=seed)
        if found.reason == "no_comparator":
            yield {**row, "status": "unavailable", "reasons": [found.reason]}
            continue
        yield {
            **row,
            "n_versions": found.n_versions,
            "n_pairs": found.n_pairs,
            "n_agree": found.n_agree,
            "agree_share": found.n_agree / found.n_pairs if found.n_pairs else np.nan,
            "reversals": [f"{versions[i]} over {versions[j]}" for i, j in found.reversed_pairs],
            "slope": found.slope,
            "chi2": found.chi2,
            "df": found.df if np.isfinite(found.chi2) else None,
            "p": found.p,
            "kendall_tau": found.tau,
            "tau_lo": found.tau_lo,
            "tau_hi": found.tau_hi,
            "status": "ok" if found.n_pairs else "inconclusive",
            "reasons": [found.reason] if found.reason else [],
        }
