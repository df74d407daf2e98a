"""Net improvement with its standard error, and nothing else: for estimates that are made many times.

Belongs here: the same estimate as :func:`compare` gives, without tests, ranks and draws. Does not
belong here: any other estimator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalpipe.inference.cells import Ints
from evalpipe.inference.gates import MIN_DF
from evalpipe.inference.intervals import known_error, t_interval
from evalpipe.inference.model import Floats, Options, Sample
from evalpipe.inference.prepare import find_support, nothing_to_compare, prepare, total
from evalpipe.inference.scatter import spread
from evalpipe.inference.validate import check_options, check_sample
from evalpipe.inference.variance import ClusterVariance


@dataclass(frozen=True, slots=True)
class Shift:
    """Net improvement of K versions, (K,) each; NaN for those that cannot be compared.

    Attributes:
        estimate, se, df: As in a comparison. lo, hi: pointwise interval.
        n_sessions, n_users: Sessions with a denominator, and users among them.
        is_ranked: Whether the versions may be put in an order: one population for all, and enough
            common traffic.
        status, reasons: Of each version, as in a comparison but for its flags.
    """

    estimate: Floats
    se: Floats
    df: Floats
    lo: Floats
    hi: Floats
    n_sessions: Ints
    n_users: Ints
    is_ranked: bool
    status: list[str]
    reasons: list[tuple[str, ...]]


def net_estimate(sample: Sample, options: Options) -> Floats:
    """Net improvement of every version without its error: many times faster where only the number is read.

    Args:
        sample, options: As in a comparison.

    Returns:
        (K,) as :func:`net_shift` estimates it; NaN for versions that cannot be compared.

    Raises:
        ValueError: As :func:`compare`.
    """
    check_sample(sample)
    check_options(options, sample.n_versions, sample.n_strata)
    totals = total(sample)
    support = find_support(sample, totals, options)
    if nothing_to_compare(sample, totals, support, options):
        return np.full(sample.n_versions, np.nan)
    prepared = prepare(sample, totals, support, options)
    return spread(sample.n_versions, prepared.versions)(prepared.sums.mean @ prepared.target.ell)


def net_shift(sample: Sample, options: Options) -> Shift:
    """Net improvement of every version with its CR3 interval.

    Args:
        sample, options: As in a comparison.

    Raises:
        ValueError: As :func:`compare`.
    """
    check_sample(sample)
    check_options(options, sample.n_versions, sample.n_strata)
    totals = total(sample)
    support = find_support(sample, totals, options)
    why = nothing_to_compare(sample, totals, support, options)
    if why:
        nan = np.full(sample.n_versions, np.nan)
        reasons = [told or (why,) for told in support.version_reasons]
        status = ["unavailable"] * sample.n_versions
        return Shift(
            nan, nan, nan, nan, nan, totals.n_sessions, totals.n_users, is_ranked=False, status=status, reasons=reasons
        )
    prepared = prepare(sample, totals, support, options)
    mean, ell = prepared.sums.mean, prepared.target.ell
    variance = ClusterVariance(prepared.rows, prepared.sums).contrasts(ell)
    se = np.sqrt(np.maximum(np.diag(variance.cov), 0.0))
    se = known_error(se, np.abs(mean) @ np.abs(ell))
    estimate = mean @ ell
    lo, hi = t_interval(estimate, se, variance.df, options.alpha)
    lay = spread(sample.n_versions, prepared.versions)
    is_low = support.share < options.min_support_share
    status, reasons = ["unavailable"] * sample.n_versions, list(support.version_reasons)
    for at, k in enumerate(prepared.versions):
        blocking = ["low_support"] if is_low else []
        if (ell[:, at] != 0).any():
            blocking += ["no_variation"] if np.isnan(se[at]) else []
            blocking += ["few_degrees_of_freedom"] if np.isfinite(se[at]) and not variance.df[at] >= MIN_DF else []
        status[k], reasons[k] = "inconclusive" if blocking else "ok", tuple(blocking)
    return Shift(
        lay(estimate),
        lay(se),
        lay(variance.df),
        lay(lo),
        lay(hi),
        totals.n_sessions,
        totals.n_users,
        is_ranked=prepared.target.is_comparable and not is_low,
        status=status,
        reasons=reasons,
    )
