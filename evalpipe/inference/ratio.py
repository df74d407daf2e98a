"""Sample ratio mismatch: counts of assigned units against the shares that were configured.

Belongs here: the statistic and its p-values. Does not belong here: limits and verdicts (``design``),
where shares come from (``analysis``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from evalpipe.inference.model import Floats
from evalpipe.inference.multiplicity import adjust

#: Below so many expected units in a cell the chi-square limit calls a rare arm's first unit a mismatch.
_FEW_EXPECTED = 5.0
_DRAWS = 9_999
_DRAWS_PER_EPOCH = 4_000
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class SampleRatio:
    """A sample ratio test over E epochs.

    Attributes:
        statistic, df: Pearson chi-square and degrees of freedom of each epoch, (E,).
        p: p-value of each epoch after Holm, (E,); NaN where only one arm has a share.
        pooled: Sum of statistics, sum of degrees of freedom, and the p-value of both.
    """

    statistic: Floats
    df: Floats
    p: Floats
    pooled: tuple[float, int, float]


def sample_ratio(counts: Floats, shares: Floats, *, seed: int) -> SampleRatio:
    """Test counts against shares, by epoch and over all.

    Args:
        counts: Units by epoch and arm, (E, A).
        shares: Configured shares, (E, A); each row sums to 1.
        seed: Seed of the draws that replace the chi-square limit where cells are small.

    Returns:
        The test. A unit in an arm with a share of 0 has a p-value of 0.
    """
    counts, shares = np.asarray(counts, dtype=float), np.asarray(shares, dtype=float)
    total = counts.sum(axis=1)
    expected = shares * total[:, None]
    df = np.where(total > 0, (shares > 0).sum(axis=1) - 1, 0)
    statistic = _pearson(counts, expected)
    p, p_all = stats.chi2.sf(statistic, df), float(stats.chi2.sf(statistic.sum(), df.sum()))
    if (expected[shares > 0] < _FEW_EXPECTED).any():
        rng, sums = np.random.default_rng(seed), np.zeros(_DRAWS)
        for e in np.flatnonzero(df > 0):
            drawn = rng.multinomial(int(total[e]), shares[e] / shares[e].sum(), size=_DRAWS).astype(float)
            found = _pearson(drawn, expected[e])
            sums += found
            if (expected[e][shares[e] > 0] < _FEW_EXPECTED).any():
                p[e] = _tail(found, statistic[e])
                n_more = _DRAWS_PER_EPOCH * len(total)
                # Holm multiplies by the number of epochs: the smallest p that draws can give must survive that.
                if not (found >= statistic[e] - _TIE).any() and n_more > _DRAWS:
                    more = rng.multinomial(int(total[e]), shares[e] / shares[e].sum(), size=n_more).astype(float)
                    p[e] = _tail(_pearson(more, expected[e]), statistic[e])
        p_all = _tail(sums, statistic.sum())
    is_impossible = ((shares == 0) & (counts > 0)).any(axis=1)
    p = np.where(is_impossible, 0.0, np.where(df > 0, p, np.nan))
    pooled = 0.0 if is_impossible.any() else p_all if df.sum() else np.nan
    return SampleRatio(statistic, df.astype(float), adjust(p, "holm"), (float(statistic.sum()), int(df.sum()), pooled))


def _pearson(counts: Floats, expected: Floats) -> Floats:
    safe = np.where(expected > 0, expected, 1.0)
    return np.asarray(np.where(expected > 0, (counts - expected) ** 2 / safe, 0.0).sum(axis=-1))


def _tail(drawn: Floats, found: float) -> float:
    return float((1 + (drawn >= found - _TIE).sum()) / (len(drawn) + 1))
