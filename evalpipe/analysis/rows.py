"""From a comparison's arrays to rows of the contracts: NaN becomes null, and rank 0 becomes null.

Belongs here: the shape of rows and the rule that withholds ranks. Does not belong here: estimates
(``inference``) or which comparisons are made (``score.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from evalpipe.analysis.population import ALL, Population
from evalpipe.analysis.stamp import Stamp
from evalpipe.contracts import render
from evalpipe.contracts.metrics import Metric
from evalpipe.contracts.tables.analysis import NET_IMPROVEMENT, PAIRS, STRATA
from evalpipe.criteria.model import EstimandCriteria
from evalpipe.inference import Comparison

#: A share whose smallest visible effect is larger is not ranked within a slice: a rank there says
#: more about the size of the slice than about the versions.
MDE_LIMIT = 0.10
#: Name of the estimator on every row: post-stratified means with user-clustered CR3 errors.
ESTIMATOR = "post_stratified"

#: Reason of a test that ``n_permutations`` tells already.
_TOLD_BY_COUNT = "fewer_replicates"
_NUMBERS = ("estimate", "lo", "hi", "lo_sim", "hi_sim", "se", "df", "gstar", "p_perm", "p_adj",
            "theta", "theta_lo", "theta_hi", "deff", "mde")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Counts:
    """What is counted of each version in a slice, whether or not it can be compared, each (K,).

    Attributes:
        n_sessions, n_users: Sessions and clusters.
        raw_rate: Plain mean; NaN where there is nothing to divide by.
        missing_share: Share of sessions whose outcome is not known; NaN without sessions.
        is_unknown: Sessions exist, and no outcome of any is known.
    """

    n_sessions: NDArray[np.int64]
    n_users: NDArray[np.int64]
    raw_rate: NDArray[np.float64]
    missing_share: NDArray[np.float64]
    is_unknown: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Scored:
    """One metric in one slice: what was counted and, where two versions could be compared, found."""

    metric: Metric
    slice: str
    counts: Counts
    comparison: Comparison | None
    seed: int
    #: Why there is no comparison at all.
    why_none: str = ""


def unordered(scored: Scored) -> Scored:
    """The same estimates with no version ahead of another.

    Args:
        scored: A comparison whose versions differ in something that no stratum adjusts for.

    Returns:
        The comparison without ranks, letters and established pairs.
    """
    found = scored.comparison
    if found is None:
        return scored
    none, nobody = np.zeros_like(found.rank_lo), np.zeros_like(found.pair_better)
    found = replace(found, rank_lo=none, rank_hi=none, letters=[""] * len(found.letters), pair_better=nobody)
    return replace(scored, comparison=found)


@dataclass(frozen=True, slots=True)
class Basis:
    """What all comparisons of a window share."""

    stamp: Stamp
    estimand: EstimandCriteria
    versions: Sequence[str]
    design: str
    #: Names of the design checks that failed; empty when the design holds.
    failed_checks: tuple[str, ...]
    #: Names of those that did not pass in a design that claims nothing: told on every row.
    noted_checks: tuple[str, ...]
    #: Whether versions may be put in an order, or what they differ in besides may explain it.
    is_ordered: bool = True


def net_improvement_rows(scored: Scored, basis: Basis) -> pl.DataFrame:
    """Rows of ``analysis.net_improvement`` for one metric and slice, one a version."""
    counts, found, k = scored.counts, scored.comparison, len(basis.versions)
    status, reasons = _standing(scored, basis)
    numbers = {name: getattr(found, name) if found else np.full(k, np.nan) for name in _NUMBERS}
    is_ranked = ~_is_underpowered(scored) if scored.slice != ALL else np.ones(k, dtype=bool)
    has_p = np.isfinite(numbers["p_perm"])
    n_permutations = found.n_permutations if found else 0
    columns = {
        "version": pl.Series(list(basis.versions), dtype=pl.String),
        **{name: _null_nan(values) for name, values in numbers.items()},
        "n_permutations": _null_where(np.full(k, n_permutations), ~has_p, pl.Int32()),
        "p_method": _null_where(np.full(k, found.engine if found else ""), ~has_p, pl.String()),
        "rank_lo": _ranks(found.rank_lo if found else np.zeros(k), is_ranked),
        "rank_hi": _ranks(found.rank_hi if found else np.zeros(k), is_ranked),
        "letters": pl.Series(
            [found.letters[i] or None if found and is_ranked[i] else None for i in range(k)], dtype=pl.String
        ),
        "raw_rate": _null_nan(counts.raw_rate),
        "raw_rank": _ranks(_raw_rank(counts.raw_rate, is_higher_better=scored.metric.is_higher_better), is_ranked),
        "n_sessions": pl.Series(counts.n_sessions, dtype=pl.Int64),
        "n_users": pl.Series(counts.n_users, dtype=pl.Int64),
        "support_share": _null_nan(np.full(k, found.support_share if found else np.nan)),
        "missing_share": _null_nan(counts.missing_share),
        "status": pl.Series(status, dtype=pl.String),
        "reasons": pl.Series(reasons, dtype=pl.List(pl.String)),
    }
    rows = pl.DataFrame(columns).with_columns(
        *basis.stamp.columns,
        pl.lit(scored.metric.name).alias("metric"),
        pl.lit(scored.slice).alias("slice"),
        pl.lit(basis.estimand.reference).alias("reference"),
        pl.lit(basis.estimand.population).alias("population"),
        pl.lit(ESTIMATOR).alias("estimator"),
        pl.lit(basis.design).alias("design"),
        pl.lit(basis.estimand.alpha, dtype=pl.Float64).alias("alpha"),
        pl.lit(scored.seed, dtype=pl.Int64).alias("seed"),
    )
    return render.conform(NET_IMPROVEMENT, rows)


def pair_rows(scored: Scored, basis: Basis) -> pl.DataFrame:
    """Rows of ``analysis.pairs``: ordered pairs whose difference exists."""
    found = scored.comparison
    if found is None:
        return render.empty(PAIRS)
    exists = np.isfinite(found.pair_diff) & ~np.eye(len(basis.versions), dtype=bool)
    one, other = np.nonzero(exists)
    names = np.array(basis.versions, dtype=object)
    is_plain = np.isfinite(found.newcombe_lo[one, other])
    counts = {
        "n_successes": found.plain_successes[one],
        "n_sessions": found.plain_sessions[one],
        "n_other_successes": found.plain_successes[other],
        "n_other_sessions": found.plain_sessions[other],
    }
    rows = pl.DataFrame(
        {
            "version": pl.Series(list(names[one]), dtype=pl.String),
            "other": pl.Series(list(names[other]), dtype=pl.String),
            "difference": _null_nan(found.pair_diff[one, other]),
            "lo": _null_nan(found.pair_lo[one, other]),
            "hi": _null_nan(found.pair_hi[one, other]),
            "se": _null_nan(found.pair_se[one, other]),
            "df": _null_nan(found.pair_df[one, other]),
            "gstar": _null_nan(found.pair_gstar[one, other]),
            "newcombe_lo": _null_nan(found.newcombe_lo[one, other]),
            "newcombe_hi": _null_nan(found.newcombe_hi[one, other]),
            **{name: _null_nan(np.where(is_plain, values, np.nan)) for name, values in counts.items()},
            "is_better": pl.Series(found.pair_better[one, other], dtype=pl.Boolean),
            "is_indistinguishable": pl.Series(~(found.pair_better | found.pair_better.T)[one, other], dtype=pl.Boolean),
        }
    ).with_columns(
        *basis.stamp.columns,
        pl.lit(scored.metric.name).alias("metric"),
        pl.lit(scored.slice).alias("slice"),
    )
    return render.conform(PAIRS, rows)


def strata_rows(scored: Scored, population: Population, basis: Basis) -> pl.DataFrame:
    """Rows of ``analysis.strata``: cells behind an estimate, strata without any session left out."""
    found = scored.comparison
    if found is None:
        return render.empty(STRATA)
    n = found.cell_n
    total = n.sum(axis=0)
    stratum, version = np.nonzero(np.broadcast_to((total > 0)[:, None], n.T.shape))
    labels = np.array([*population.strata, None], dtype=object)
    share = n[version, stratum] / total[stratum]
    rows = pl.DataFrame(
        {
            "stratum": pl.Series(list(labels[stratum]), dtype=pl.String),
            "version": pl.Series([basis.versions[int(i)] for i in version], dtype=pl.String),
            "n_sessions": pl.Series(n[version, stratum], dtype=pl.Int64),
            "n_users": pl.Series(found.cell_users[version, stratum], dtype=pl.Int64),
            "mean": _null_nan(found.cell_mean[version, stratum]),
            "weight": _null_nan(found.weights[stratum]),
            "share": _null_nan(share),
            "is_kept": pl.Series(found.kept[stratum], dtype=pl.Boolean),
            "merged_into": pl.Series(list(labels[found.merged_into[stratum]]), dtype=pl.String),
        }
    ).with_columns(*basis.stamp.columns, pl.lit(scored.metric.name).alias("metric"))
    return render.conform(STRATA, rows)


def _standing(scored: Scored, basis: Basis) -> tuple[list[str], list[list[str]]]:
    statuses, all_reasons = [], []
    is_weak = _is_underpowered(scored)
    for k in range(len(basis.versions)):
        if scored.comparison is None:
            status, reasons = "unavailable", [scored.why_none]
        else:
            status, reasons = scored.comparison.status[k], list(scored.comparison.reasons[k])
        if "absent" in reasons and scored.counts.n_sessions[k]:
            # Inference sees only sessions that can be used; here it is known why there is none.
            why = "no_outcome" if scored.counts.is_unknown[k] else "zero_denominator"
            reasons = [why if code == "absent" else code for code in reasons]
        if is_weak[k]:
            reasons.append("underpowered")
        if basis.failed_checks and status != "unavailable":
            status, reasons = "suspect", [*reasons, *basis.failed_checks]
        elif status != "unavailable":
            reasons += basis.noted_checks
            if status == "ok" and not basis.is_ordered:
                status = "inconclusive"
        if scored.comparison is not None and status != "unavailable":
            reasons += [code for code in scored.comparison.test_reasons if code != _TOLD_BY_COUNT]
        statuses.append(status)
        all_reasons.append(list(dict.fromkeys(reasons)))
    return statuses, all_reasons


def _is_underpowered(scored: Scored) -> NDArray[np.bool_]:
    if scored.comparison is None or not scored.metric.is_rate:
        return np.zeros(len(scored.counts.n_sessions), dtype=bool)
    return np.nan_to_num(scored.comparison.mde, nan=0.0) > MDE_LIMIT


def _raw_rank(raw_rate: NDArray[np.float64], *, is_higher_better: bool) -> NDArray[np.int64]:
    score = raw_rate if is_higher_better else -raw_rate
    ahead = (score[None, :] > score[:, None]).sum(axis=1) + 1
    return np.where(np.isfinite(raw_rate), ahead, 0)


def _null_nan(values: ArrayLike) -> pl.Series:
    return pl.Series(np.asarray(values, dtype=np.float64), dtype=pl.Float64).fill_nan(None)


def _ranks(values: ArrayLike, is_ranked: NDArray[np.bool_]) -> pl.Series:
    ranks = np.asarray(values, dtype=np.int64)
    return _null_where(ranks, (ranks == 0) | ~is_ranked, pl.Int32())


def _null_where(values: ArrayLike, is_null: NDArray[np.bool_], dtype: pl.DataType) -> pl.Series:
    pairs = zip(np.asarray(values).tolist(), is_null.tolist(), strict=True)
    return pl.Series([None if null else value for value, null in pairs], dtype=dtype)
