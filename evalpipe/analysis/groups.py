"""Groups of strata that the same versions served: who can be compared where not all can.

Belongs here: finding the groups and naming their slices. Does not belong here: their comparison
(``score.py``) or words on it (``report``).

Versions that were tried on different work share no stratum, and no number over all traffic exists.
Most of them still met some of the others somewhere. Strata that were served by exactly the same
versions make a group: inside it every version was seen in every stratum, so it is compared like a
window of its own, and every session lies in one group at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evalpipe.analysis.population import Bools, Population
from evalpipe.criteria.model import EstimandCriteria

#: Slices of groups that are no slice of the criteria already.
PREFIX = "support="
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Group:
    """Strata that the same versions served.

    Attributes:
        slice: Name of its slice. inside: (N,) whether a session lies in it.
        versions: Codes of the versions that served it. n_strata: strata in it.
        n_sessions: Sessions of those versions in it.
    """

    slice: str
    inside: Bools
    versions: tuple[int, ...]
    n_strata: int
    n_sessions: int


def support_groups(population: Population, is_counted: Bools, estimand: EstimandCriteria) -> tuple[Group, ...]:
    """The groups in which at least two versions can be compared, the one with most sessions first.

    Args:
        population: Sessions of the window.
        is_counted: (N,) whether a session's outcome is known and has something to be divided by.
        estimand: Users that a cell and sessions that a version needs.

    Returns:
        Disjoint groups. A version with fewer than ``min_sessions_per_version`` sessions in the window
        makes no group, one with fewer in a group is not counted there.
    """
    k, s = len(population.versions), len(population.strata)
    version, stratum = population.version[is_counted], population.stratum[is_counted]
    enough = np.bincount(version, minlength=k) >= estimand.min_sessions_per_version
    cell = version.astype(np.int64) * s + stratum
    cluster = population.cluster[is_counted].astype(np.int64)
    seen = np.unique(cell * (int(population.cluster.max(initial=0)) + 1) + cluster)
    users = np.bincount(seen // (int(population.cluster.max(initial=0)) + 1), minlength=k * s).reshape(k, s)
    sessions = np.bincount(cell, minlength=k * s).reshape(k, s)
    served = (users >= estimand.min_users_per_cell) & enough[:, None]
    members: dict[tuple[int, ...], list[int]] = {}
    for code in range(s):
        members.setdefault(tuple(np.flatnonzero(served[:, code]).tolist()), []).append(code)
    found: list[Group] = []
    taken = dict(population.slices)
    for versions, strata in members.items():
        counts = sessions[np.ix_(versions, strata)].sum(axis=1)
        kept = tuple(v for v, n in zip(versions, counts, strict=True) if n >= estimand.min_sessions_per_version)
        if len(kept) < 2:
            continue
        inside = np.isin(population.stratum, strata)
        name = _name(population, inside, strata, taken)
        taken[name] = inside
        total = int(sessions[np.ix_(kept, strata)].sum())
        found.append(Group(name, inside, kept, len(strata), total))
    return tuple(sorted(found, key=lambda group: (-group.n_sessions, group.slice)))


def _name(population: Population, inside: Bools, strata: list[int], taken: Mapping[str, Bools]) -> str:
    """The slice of the criteria that holds the same sessions, or a name of what sets the group apart."""
    for name, mask in taken.items():
        if np.array_equal(mask, inside):
            return name
    values: dict[str, list[str]] = {}
    everywhere: dict[str, set[str]] = {}
    for code in np.unique(population.stratum).tolist():
        for column, value in _parts(population.strata[code]):
            everywhere.setdefault(column, set()).add(value)
            if code in strata and value not in values.setdefault(column, []):
                values[column].append(value)
    told = [
        f"{column} {', '.join(shown[:_SHOWN])}{f' and {len(shown) - _SHOWN} more' if len(shown) > _SHOWN else ''}"
        for column, shown in values.items()
        if set(shown) != everywhere[column]
    ]
    stem = PREFIX + ("; ".join(told) or f"{len(strata)} strata")
    name, n = stem, 1
    while name in taken:
        n += 1
        name = f"{stem} ({n})"
    return name


def _parts(label: str) -> list[tuple[str, str]]:
    return [(column, value) for column, _, value in (part.partition("=") for part in label.split("|"))]
