"""Rules on populations: whose work is weighed how, and weights that the criteria declare themselves.

Belongs here: which populations there are, and what their weights must look like. Does not belong here:
what a population does to an estimate (``inference/estimand.py``), or whether the work that is weighed
occurs in a window (``analysis/standard.py``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalpipe.criteria.problem import Problem

POPULATIONS = ("traffic", "equal", "own_share", "overlap", "business")
#: Weights of a baseline, under a name of their own: ``fixed:VERSION``.
FIXED = "fixed:"
#: Populations that a kind of work has a declared weight in, besides the fixed ones.
BUSINESS = "business"
#: Stratum column that weights may leave out: routing changes, and with it the names of its epochs.
EPOCH = "routing_epoch"

#: Weights are written with a few decimals; what they miss of 1 is no more than their rounding.
_SUM_TOLERANCE = 1e-6
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_POPULATION, _WEIGHTS = "estimand.population", "estimand.population_weights"


def is_weighted(population: str) -> bool:
    """Whether a population has weights that are declared in the criteria."""
    return population == BUSINESS or population.startswith(FIXED)


def kind_columns(weights: Mapping[str, float]) -> tuple[str, ...]:
    """Columns that keys of weights name, in their order: ``scenario=chat|language=de`` names two."""
    return columns_of(next(iter(weights), ""))


def columns_of(key: str) -> tuple[str, ...]:
    """Columns that one key names."""
    return tuple(part.partition("=")[0] for part in key.split("|")) if key else ()


def population_rules(data: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of a population whose key and type are right, and of its weights."""
    estimand = data["estimand"]
    population, weights = estimand["population"], estimand.get("population_weights", {})
    if population.startswith(FIXED):
        if not _NAME.fullmatch(population.removeprefix(FIXED)):
            fix = "Write fixed:VERSION, such as fixed:2026-q1; use letters, digits, '_', '.' and '-'."
            yield Problem(_POPULATION, "The weights have no plain name.", fix)
    elif population not in POPULATIONS:
        shown = ", ".join((*POPULATIONS, "fixed:VERSION"))
        yield Problem(_POPULATION, f"{population!r} is not known.", f"Use one of: {shown}.")
        return
    if not is_weighted(population):
        if weights:
            fix = f'Write population = "{BUSINESS}" or "fixed:VERSION", or take the weights out.'
            yield Problem(_WEIGHTS, f"{population!r} reads no weights.", fix)
        return
    if not weights:
        fix = f"Open the table [{_WEIGHTS}], one line a kind of work; evalpipe criteria freeze writes one."
        yield Problem(_WEIGHTS, f"{population!r} has no weights.", fix)
        return
    yield from _keys(weights, estimand["strata"])
    yield from _values(weights)


def _keys(weights: Mapping[str, float], strata: Sequence[str]) -> Iterator[Problem]:
    kinds = tuple(name for name in strata if name != EPOCH)
    allowed = [columns for columns in (kinds, tuple(strata)) if columns]
    written = " or ".join("|".join(f"{name}=VALUE" for name in columns) for columns in allowed)
    first = kind_columns(weights)
    for key in weights:
        columns = columns_of(key)
        if columns not in allowed:
            yield Problem(f"{_WEIGHTS}.{key}", "The key names no stratum.", f"Write {written}, in quotes.")
        elif columns != first:
            fix = "Name the same columns in every key."
            yield Problem(f"{_WEIGHTS}.{key}", "The key names other columns than the first one.", fix)


def _values(weights: Mapping[str, float]) -> Iterator[Problem]:
    for key, weight in weights.items():
        if weight < 0:
            yield Problem(f"{_WEIGHTS}.{key}", f"{weight:g} is negative.", "Choose a share from 0 to 1.")
    total = math.fsum(weights.values())
    if abs(total - 1.0) > _SUM_TOLERANCE:
        yield Problem(_WEIGHTS, f"The weights sum to {total:.7g}.", "They are shares of all work: make them sum to 1.")
