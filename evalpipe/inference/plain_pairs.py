"""Differences of two versions from plain counts, where that is all that there is to them.

Belongs here: when two shares are independent counts, and their score interval then. Does not belong
here: the interval itself (``proportions``), and differences over strata or with users who come again,
which the comparison has (``compare``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from evalpipe.inference.cells import Ints, tally
from evalpipe.inference.model import Floats, Sample
from evalpipe.inference.proportions import newcombe
from evalpipe.inference.scatter import Strata

#: Sessions of a version from which on a score interval and one of t are alike.
FEW = 100


@dataclass(frozen=True, slots=True)
class PlainPairs:
    """Pairs of versions of which plain counts say all.

    Attributes:
        lo, hi: (K, K) Newcombe's limits of theta_i - theta_j; NaN for other pairs.
        successes, sessions: (K,) the counts; NaN where no version's are plain.
    """

    lo: Floats
    hi: Floats
    successes: Floats
    sessions: Floats


def newcombe_pairs(sample: Sample, strata: Strata, versions: Ints, alpha: float) -> PlainPairs:
    """Newcombe's intervals of the differences of shares of small independent samples.

    Args:
        sample: Sessions of a comparison. strata: what was estimated in which.
        versions: Codes of the compared versions. alpha: error rate.

    Returns:
        Limits and counts. A pair has them only if every session counts one success
        or none, all kept ones lie in one stratum and were not drawn with unequal chances, each of the
        pair is of another user, and one of the two versions has fewer than :data:`FEW`.
    """
    k = sample.n_versions
    lo, hi, nothing = np.full((k, k), np.nan), np.full((k, k), np.nan), np.full(k, np.nan)
    target = np.where(strata.merged_into >= 0, strata.merged_into, np.arange(sample.n_strata))
    weighing = np.flatnonzero(np.isfinite(strata.weights) & (strata.weights > 0))
    has = sample.d > 0
    if sample.weight is not None or len(weighing) != 1 or not strata.is_binary or not (sample.d[has] == 1.0).all():
        return PlainPairs(lo, hi, nothing, nothing)
    use = has & strata.kept[sample.stratum] & (target[sample.stratum] == weighing[0])
    version, user = sample.version[use].astype(np.int64), sample.user[use].astype(np.int64)
    n, x = tally(version, np.ones(len(version)), k), tally(version, sample.y[use], k)
    seen = sparse.csr_array((np.ones(len(version)), (user, version)), shape=(int(user.max(initial=0)) + 1, k))
    # Sum over users of sessions of one version times sessions of the other: 0 if no user met both, and
    # the number of sessions on the diagonal if nobody came twice.
    together = (seen.T @ seen).toarray()
    is_single = np.diag(together) == n
    for i in versions:
        for j in versions:
            if i < j and is_single[i] and is_single[j] and together[i, j] == 0 and min(n[i], n[j]) < FEW:
                lo[i, j], hi[i, j] = newcombe(x[i], n[i], x[j], n[j], alpha)
                lo[j, i], hi[j, i] = -hi[i, j], -lo[i, j]
    return PlainPairs(lo, hi, x, n)
