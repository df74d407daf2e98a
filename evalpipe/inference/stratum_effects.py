"""Net improvement stratum by stratum, for tests of whether strata agree.

Belongs here: the effect of each version in each kept stratum and its user-clustered variance. Does
not belong here: those tests (``exact.tables``), or the estimate over all strata (``shift``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalpipe.inference.cells import Ints, divide
from evalpipe.inference.intervals import known_error
from evalpipe.inference.model import Floats, Options, Sample
from evalpipe.inference.prepare import find_support, prepare, total
from evalpipe.inference.variance import ClusterVariance


@dataclass(frozen=True, slots=True)
class StratumEffects:
    """Effects of the K' compared versions in the S' kept strata.

    Attributes:
        versions, strata: Codes of the sample, (K',) and (S',).
        effect: (K', S') mean of the version less its reference inside the stratum.
        variance: (K', S') CR3 variance of it; NaN where a cell has one user or nothing varies.
    """

    versions: Ints
    strata: Ints
    effect: Floats
    variance: Floats


def stratum_effects(sample: Sample, options: Options) -> StratumEffects:
    """Effects within strata, against the reference of the comparison.

    Args:
        sample, options: As in a comparison in which two versions at least can be compared.

    Returns:
        Effects whose weighted sum is the net improvement. A user with sessions in several cells of
        a stratum counts once; that strata may share users is left out of account.
    """
    totals = total(sample)
    prepared = prepare(sample, totals, find_support(sample, totals, options), options)
    k, s = len(prepared.versions), len(prepared.strata)
    sums, weights = prepared.sums, prepared.target.weights
    engine = ClusterVariance(prepared.rows, sums)
    # Of version j in what version i shows in a stratum: (j, stratum, i).
    part = divide(prepared.target.ell.reshape(k, s, k), np.broadcast_to(weights.T[None], (k, s, k)))
    part = np.nan_to_num(part)
    mean = np.nan_to_num(sums.mean.reshape(k, s))
    effect = np.where(weights > 0, np.einsum("jsi,js->is", part, mean), np.nan)
    variance = np.full((k, s), np.nan)
    at = np.arange(s)
    for i in range(k):
        block = np.zeros((k, s, s))
        block[:, at, at] = part[:, :, i]
        ell = block.reshape(k * s, s)
        se = np.sqrt(np.maximum(np.diag(engine.contrasts(ell).cov), 0.0))
        is_alone = ((ell != 0) & (sums.users < 2)[:, None]).any(axis=0)
        variance[i] = np.where(is_alone, np.nan, known_error(se, np.abs(mean.ravel()) @ np.abs(ell)) ** 2)
    return StratumEffects(prepared.versions, prepared.strata, effect, variance)
