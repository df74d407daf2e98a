"""Balance of pre-treatment covariates over versions.

Belongs here: statistics of balance and their p-values under the assignment that is assumed. Does
not belong here: limits and verdicts (``design``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from evalpipe.inference.cells import Ints, tally
from evalpipe.inference.model import Floats, Sample

_MAX_PERMUTATIONS = 1_999
_FEWEST = 199
_BUDGET = 5e7
_FEW_EXPECTED = 5.0


@dataclass(frozen=True, slots=True)
class Balance:
    """A p-value and how it was found."""

    p: float
    method: str


@dataclass(frozen=True, slots=True)
class _Rows:
    """Sums of the columns of X a (unit, stratum); X is centred within strata.

    A category is one column a level, a number one column.
    """

    unit: Ints
    stratum: Ints
    n: Floats
    X: Floats
    label: Ints
    block: Ints


def chi_square(
    x: NDArray[np.integer], version: NDArray[np.integer], block: NDArray[np.integer]
) -> tuple[float, int, float, float]:
    """Pearson chi-square of category x version, summed over blocks.

    Args:
        x, version, block: Codes from 0, (N,).

    Returns:
        Statistic, degrees of freedom (rows and columns without sessions do not count), p-value (NaN
        without degrees of freedom) and the mean expected count.
    """
    n_x, n_versions = int(x.max()) + 1, int(version.max()) + 1
    code = (block.astype(np.int64) * n_x + x) * n_versions + version
    shape = (int(block.max()) + 1, n_x, n_versions)
    counts = np.bincount(code, minlength=int(np.prod(shape))).reshape(shape).astype(float)
    rows, columns = counts.sum(axis=2), counts.sum(axis=1)
    total = np.maximum(counts.sum(axis=(1, 2)), 1.0)
    expected = rows[:, :, None] * columns[:, None, :] / total[:, None, None]
    used = expected > 0
    statistic = float(((counts[used] - expected[used]) ** 2 / expected[used]).sum())
    df = int((np.maximum((rows > 0).sum(axis=1) - 1, 0) * np.maximum((columns > 0).sum(axis=1) - 1, 0)).sum())
    p = float(stats.chi2.sf(statistic, df)) if df > 0 else np.nan
    return statistic, df, p, float(expected[used].mean()) if used.any() else 0.0


def balance_test(
    sample: Sample,
    values: NDArray[np.generic],
    *,
    by_user: bool,
    seed: np.random.SeedSequence,
) -> Balance:
    """Test a covariate against the versions within strata.

    Args:
        sample: Sessions.
        values: (N,) floats (numeric) or anything else (categories).
        by_user: Whether (user, epoch) units were assigned, so that they are permuted whole.
        seed: Seed of the permutation.

    Returns:
        For categories under session assignment Pearson's chi-square, by permutation if the mean
        expected count is below 5; for numbers the between-version sum of squares, by its chi-square
        limit where permuting all sessions is too dear. Under user assignment always by permuting
        units. Where only few replicates are affordable, the tail is that of a gamma distribution
        with their mean and variance, since counting them could not show a small p-value. NaN if the
        covariate does not vary within strata.
    """
    X, category = _columns(sample, values)
    spread = (X**2).sum(axis=0)
    if not (spread > 1e-12).any():
        return Balance(np.nan, "constant")
    if not by_user:
        if category is not None:
            _, df, p, expected = chi_square(category, sample.version, sample.stratum)
            if df > 0 and expected >= _FEW_EXPECTED:
                return Balance(p, "chi-square")
        elif len(values) * _MAX_PERMUTATIONS > _BUDGET * 4:
            return _limit(sample, X[:, 0])
    rows = _rows(sample, X, by_user=by_user)
    affordable = int(_BUDGET // (len(rows.n) * X.shape[1]))
    n = max(_FEWEST, min(_MAX_PERMUTATIONS, affordable))
    return Balance(_permute(rows, sample, n, seed), "user permutation" if by_user else "permutation")


def largest_smd(sample: Sample, values: NDArray[np.generic]) -> float:
    """Largest absolute standardized difference of two versions, over levels of a category.

    Values are centred within strata, so that routing by stratum is not taken for imbalance.
    """
    X, _ = _columns(sample, values)
    sd = np.sqrt((X**2).mean(axis=0))
    counts = np.bincount(sample.version, minlength=sample.n_versions)
    present = counts > 0
    if present.sum() < 2 or not (sd > 1e-12).any():
        return float("nan")
    largest = 0.0
    for column, scale in zip(X.T, sd, strict=True):
        if scale > 1e-12:
            means = np.bincount(sample.version, column, sample.n_versions)[present] / counts[present]
            largest = max(largest, float(np.ptp(means)) / float(scale))
    return largest


def _columns(sample: Sample, values: NDArray[np.generic]) -> tuple[Floats, Ints | None]:
    """Columns centred within strata, and category codes."""
    category: Ints | None = None
    if np.issubdtype(values.dtype, np.floating):
        columns = [values.astype(float)]
    else:
        levels, codes = np.unique(values, return_inverse=True)
        category = codes.astype(np.int64)
        columns = [(category == level).astype(float) for level in range(len(levels))]
    n = np.maximum(np.bincount(sample.stratum, minlength=sample.n_strata), 1)
    centred = [x - (np.bincount(sample.stratum, x, sample.n_strata) / n)[sample.stratum] for x in columns]
    return np.stack(centred, axis=1), category


def _limit(sample: Sample, x: Floats) -> Balance:
    """Chi-square limit of the between-version sum of squares over the stratum's variance."""
    n_versions, n_strata = sample.n_versions, sample.n_strata
    cell = sample.stratum.astype(np.int64) * n_versions + sample.version
    n = np.bincount(cell, minlength=n_strata * n_versions).reshape(n_strata, n_versions)
    total = np.bincount(cell, x, n_strata * n_versions).reshape(n_strata, n_versions)
    variance = np.bincount(sample.stratum, x**2, n_strata) / np.maximum(n.sum(axis=1) - 1, 1)
    used = variance > 1e-12
    between = np.divide(total**2, n, out=np.zeros(n.shape), where=n > 0).sum(axis=1)
    df = int(((n[used] > 0).sum(axis=1) - 1).sum())
    if df == 0:
        return Balance(np.nan, "constant")
    return Balance(float(stats.chi2.sf((between[used] / variance[used]).sum(), df)), "chi-square limit")


def _rows(sample: Sample, X: Floats, *, by_user: bool) -> _Rows:
    if not by_user:
        n = len(sample.version)
        # Permuting sessions: each is a unit, and labels move within strata.
        return _Rows(
            unit=np.arange(n),
            stratum=sample.stratum.astype(np.int64),
            n=np.ones(n),
            X=X,
            label=sample.version.astype(np.int64),
            block=sample.stratum.astype(np.int64),
        )
    n_users = int(sample.user.max()) + 1
    key = (sample.epoch.astype(np.int64) * n_users + sample.user) * sample.n_versions + sample.version
    units, unit = np.unique(key, return_inverse=True)
    pairs, row = np.unique(unit.astype(np.int64) * sample.n_strata + sample.stratum, return_inverse=True)
    sums = np.stack([tally(row, column, len(pairs)) for column in X.T], axis=1)
    place, label = np.divmod(units, sample.n_versions)
    return _Rows(
        unit=pairs // sample.n_strata,
        stratum=pairs % sample.n_strata,
        n=np.bincount(row, minlength=len(pairs)).astype(float),
        X=sums,
        label=label,
        block=place // n_users,
    )


def _permute(rows: _Rows, sample: Sample, n: int, seed: np.random.SeedSequence) -> float:
    rng = np.random.Generator(np.random.PCG64(seed))
    size = sample.n_strata * sample.n_versions
    weight = _precision(rows, sample.n_strata)

    def statistic(label: Ints) -> float:
        cell = rows.stratum * sample.n_versions + label[rows.unit]
        count = np.bincount(cell, rows.n, size)
        value = np.zeros(size)
        for at in range(rows.X.shape[1]):
            value += np.bincount(cell, rows.X[:, at], size) ** 2 * np.repeat(weight[:, at], sample.n_versions)
        return float((value[count > 0] / count[count > 0]).sum())

    order = np.argsort(rows.block, kind="stable")
    edges = np.flatnonzero(np.diff(rows.block[order])) + 1
    slices = list(zip([0, *edges], [*edges, len(order)], strict=True))
    observed = statistic(rows.label)
    drawn = np.empty(n)
    shuffled = rows.label[order]
    label = np.empty_like(rows.label)
    for at in range(n):
        for lo, hi in slices:
            rng.shuffle(shuffled[lo:hi])
        label[order] = shuffled
        drawn[at] = statistic(label)
    if n < _MAX_PERMUTATIONS and drawn.var() > 0:
        scale = drawn.var() / drawn.mean()
        return float(stats.gamma.sf(observed, drawn.mean() / scale, scale=scale))
    return float((1.0 + (drawn >= observed * (1.0 - 1e-12)).sum()) / (n + 1.0))


def _precision(rows: _Rows, n_strata: int) -> Floats:
    """(S, p) scale of each column: the inverse of its mean square over units of a stratum."""
    count = np.bincount(rows.stratum, rows.n, n_strata)
    out = np.zeros((n_strata, rows.X.shape[1]))
    for at, column in enumerate(rows.X.T):
        square = np.bincount(rows.stratum, column**2, n_strata)
        np.divide(count, square, out=out[:, at], where=square > 1e-12)
    return out
