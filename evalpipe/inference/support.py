"""Common support: in which strata all compared versions were seen, and who leaves otherwise.

Belongs here: merging rare strata into their parents, dropping what stays incomplete, and excluding
a version that causes the loss. Does not belong here: estimation. A version that was never tried on
some kind of work cannot be scored on it; a number that pretends otherwise is extrapolation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evalpipe.inference.cells import Ints, tally
from evalpipe.inference.model import Bools, Codes, Floats, Standard


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the support rule reads.

    Attributes:
        user, version, stratum: One row a distinct (user, version, stratum) with data, (R,).
        traffic: (K, S) sampling-weighted sessions, those without a denominator included.
        sessions: (K,) sessions with a denominator.
        standard: Declared weights of the population; None where traffic is what is weighed. A stratum
            without a weight is outside the population: it is dropped, and merged with nothing.
    """

    user: Ints
    version: Ints
    stratum: Ints
    traffic: Floats
    sessions: Ints
    standard: Standard | None = None


@dataclass(frozen=True, slots=True)
class Support:
    """The common support of the versions that stay.

    Attributes:
        version_reasons: Per version, why it left; empty when it stays.
        target: (S,) stratum that each stratum's sessions are estimated in (itself unless merged).
        is_kept: (S,) whether an estimation stratum is in the support.
        share: Traffic share of the kept strata among versions that stay, NaN without traffic; with a
            standard population the share of its weights.
        weight: (S,) weights of the kept strata in a standard population, 0 elsewhere; None without one.
    """

    version_reasons: tuple[tuple[str, ...], ...]
    target: Ints
    is_kept: Bools
    share: float
    weight: Floats | None = None

    @property
    def versions(self) -> Ints:
        """Codes of the versions that stay."""
        return np.array([k for k, why in enumerate(self.version_reasons) if not why], dtype=np.int64)


def common_support(
    evidence: Evidence,
    parents: Codes | None,
    min_users: int,
    min_sessions: int,
    min_share: float,
    protected: int | None = None,
) -> Support:
    """Find the strata in which every version has a counted cell.

    A cell counts with sessions of at least ``min_users`` distinct users. An incomplete stratum is
    merged into its parent, deepest first, then smallest first, then by code; one that stays
    incomplete is dropped. If the remaining traffic share is below ``min_share``, the version whose
    absence restores most support leaves, then the next, as long as that restores the share and
    those that leave carry less traffic than those that stay.

    Args:
        evidence: Distinct users, traffic and session counts.
        parents: (S,) parent code or -1, or None.
        min_users: Distinct users that make a cell count.
        min_sessions: Sessions that a version needs.
        min_share: Share that is aimed at.
        protected: A version that may not leave for lack of overlap (the named reference).

    Returns:
        The support. With fewer than two versions left it keeps no stratum.
    """
    n_versions, n_strata = evidence.traffic.shape
    reasons: list[tuple[str, ...]] = [()] * n_versions
    for k in range(n_versions):
        if evidence.sessions[k] == 0:
            reasons[k] = ("absent",)
        elif evidence.sessions[k] < min_sessions:
            reasons[k] = ("too_few_sessions",)
    present = np.array([not why for why in reasons])
    tree = np.full(n_strata, -1, dtype=np.int64) if parents is None else parents.astype(np.int64)
    if evidence.standard is not None:
        evidence, tree = _inside(evidence, evidence.standard, tree)

    merged = _merge(evidence, present, tree, min_users)
    if merged.share < min_share:
        leaving = _leavers(evidence, present, tree, min_users, min_share, protected)
        for k in leaving:
            reasons[k] = ("insufficient_overlap",)
            present[k] = False
        if leaving:
            merged = _merge(evidence, present, tree, min_users)
    if present.sum() < 2:
        return Support(tuple(reasons), merged.target, np.zeros(n_strata, dtype=bool), merged.share)
    weight = None if evidence.standard is None else np.where(merged.is_kept, merged.weight, 0.0)
    return Support(tuple(reasons), merged.target, merged.is_kept, merged.share, weight)


def _inside(evidence: Evidence, standard: Standard, tree: Ints) -> tuple[Evidence, Ints]:
    """The evidence and the parents of strata that have a weight; those without it are nobody's parent."""
    has_weight = (standard.group >= 0) & (standard.weight[standard.group] > 0)
    outside = (evidence.traffic.sum(axis=0) > 0) & ~has_weight
    keep = ~outside[evidence.stratum]
    inside = replace(
        evidence,
        user=evidence.user[keep],
        version=evidence.version[keep],
        stratum=evidence.stratum[keep],
        traffic=np.where(outside, 0.0, evidence.traffic),
    )
    return inside, np.where(outside | ((tree >= 0) & outside[tree]), -1, tree)


def standard_weights(standard: Standard, traffic: Floats) -> Floats:
    """Weights of strata in a standard population, (S,).

    Args:
        standard: Declared weights. traffic: (S,) by which the strata of a group share its weight; a
            stratum without any has none.
    """
    has = (standard.group >= 0) & (traffic > 0)
    group = standard.group[has]
    weight = np.zeros(len(traffic))
    weight[has] = standard.weight[group] * traffic[has] / tally(group, traffic[has], len(standard.weight))[group]
    return weight


@dataclass(frozen=True, slots=True)
class _Merged:
    target: Ints
    is_kept: Bools
    share: float
    is_counted: Bools
    traffic: Floats
    weight: Floats


def _merge(evidence: Evidence, members: Bools, parents: Ints, min_users: int) -> _Merged:
    n_versions, n_strata = evidence.traffic.shape
    keep = members[evidence.version]
    user, version, stratum = evidence.user[keep], evidence.version[keep], evidence.stratum[keep]
    counts = np.bincount(version * n_strata + stratum, minlength=n_versions * n_strata)
    is_counted = counts.reshape(n_versions, n_strata) >= min_users
    traffic = evidence.traffic[members].sum(axis=0)
    standard = evidence.standard
    weight = np.zeros(n_strata) if standard is None else standard_weights(standard, traffic)
    depth = _depths(parents)
    target = np.arange(n_strata)
    while True:
        is_complete = is_counted[members].all(axis=0)
        open_strata = np.flatnonzero((traffic > 0) & ~is_complete & (parents >= 0))
        if len(open_strata) == 0:
            break
        child = min(open_strata, key=lambda s: (-depth[s], traffic[s], s))
        parent = parents[child]
        target[target == child] = parent
        traffic[parent] += traffic[child]
        traffic[child] = 0.0
        weight[parent] += weight[child]
        weight[child] = 0.0
        inside = target[stratum] == parent
        # Distinct users of a merged cell: the same user may have sessions in several children.
        pairs = np.unique(version[inside] * (int(user.max(initial=0)) + 1) + user[inside])
        users = np.bincount(pairs // (int(user.max(initial=0)) + 1), minlength=n_versions)
        is_counted[:, parent] = users >= min_users
    is_kept = (traffic > 0) & is_counted[members].all(axis=0)
    total = float(traffic.sum())
    share = float(traffic[is_kept].sum()) / total if total > 0 else float("nan")
    if standard is not None:
        # A weight whose strata nobody served in this window is not covered either.
        # Both are sums of the same weights in another order, and the last bit of a share is no reason to refuse it.
        share = min(1.0, float(weight[is_kept].sum()) / float(standard.weight.sum()))
    return _Merged(target, is_kept, share, is_counted, traffic, weight)


def _leavers(
    evidence: Evidence,
    present: Bools,
    parents: Ints,
    min_users: int,
    min_share: float,
    protected: int | None,
) -> list[int]:
    """Versions whose absence restores the support: one if one suffices, else the thinnest first."""
    own_traffic = evidence.traffic.sum(axis=1)
    total = own_traffic[present].sum()

    def without(gone: list[int]) -> _Merged:
        members = present.copy()
        members[gone] = False
        return _merge(evidence, members, parents, min_users)

    candidates = [int(k) for k in np.flatnonzero(present) if k != protected and own_traffic[k] < total / 2]
    if present.sum() <= 2:
        return []
    single = [(without([k]).share, -own_traffic[k], -k) for k in candidates]
    if single and max(single)[0] >= min_share:
        return [-max(single)[2]]
    gone: list[int] = []
    while present.sum() - len(gone) > 2:
        merged = without(gone)
        if merged.share >= min_share:
            return gone
        covered = merged.is_counted @ merged.traffic
        rest = [k for k in candidates if k not in gone]
        if not rest:
            return []
        gone.append(min(rest, key=lambda k: (covered[k], own_traffic[k], k)))
        if own_traffic[gone].sum() >= total / 2:
            return []
    return gone if without(gone).share >= min_share else []


def _depths(parents: Ints) -> Ints:
    depth = np.zeros(len(parents), dtype=np.int64)
    above = parents.copy()
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parents[above], -1)
    return depth
