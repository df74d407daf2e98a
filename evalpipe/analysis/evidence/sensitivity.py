"""Rows of ``analysis.sensitivity``: what could overturn a net improvement, and how much of it.

Belongs here: which cells a bound is made from. Does not belong here: the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from evalpipe.analysis.evidence.headline import UNWEIGHTED, Headline
from evalpipe.inference.agreement.detector import kish_ess
from evalpipe.inference.causal.evalue import EValue, e_value
from evalpipe.inference.causal.rosenbaum import Sensitivity, sensitivity
from evalpipe.inference.exact.tables import heterogeneity, qualitative_interaction
from evalpipe.inference.labels.prevalence import misclassification_value
from evalpipe.inference.missing import worst_case_bounds
from evalpipe.inference.model import Floats
from evalpipe.inference.movement import simpson_flag
from evalpipe.inference.stratum_effects import stratum_effects

_NAN = float("nan")
#: References that are the other sessions of a stratum, however many versions served them.
_POOLED = ("control_pool", "stratum_mean")


@dataclass(frozen=True, slots=True)
class _Cells:
    """Counts of the compared versions in the kept strata, (K', S')."""

    n: Floats
    x: Floats


def sensitivity_rows(headline: Headline) -> Iterator[Mapping[str, object]]:
    """One row a version."""
    found, compared = headline.found, headline.compared
    is_uniform = headline.options.reference == "uniform"
    cells = _binary_cells(headline)
    strata = stratum_effects(headline.sample, headline.options) if headline.is_comparable else None
    worst = _worst(headline)
    for k, name in enumerate(headline.versions):
        at = int(np.searchsorted(compared, k)) if k in compared else -1
        if at < 0:
            reasons = list(found.reasons[k])
            yield {"metric": headline.metric.name, "version": name, "status": "unavailable", "reasons": reasons}
            continue
        bears, ratio = _bears(headline, cells, at, k), _ratio(headline, k)
        q_p = s_p = _NAN
        flag = ""
        if strata is not None:
            effect, variance = strata.effect[at], strata.variance[at]
            q_p, s_p = heterogeneity(effect, variance).p, qualitative_interaction(effect, variance)[1]
            if is_uniform and cells is not None:
                flag = simpson_flag(*_gaps(headline, k), (found.lo_sim[k], found.hi_sim[k]), effect)
        lo, hi = worst[0][k], worst[1][k]
        reasons = []
        # What is not told from 0 needs no hidden cause to be explained.
        if found.lo[k] > 0 or found.hi[k] < 0:
            reasons += ["fragile"] if bears.is_fragile else []
            reasons += ["missingness_sensitive"] if lo <= 0 <= hi else []
        if flag:
            reasons.append(flag)
        if bears.reason:
            reasons.append(bears.reason)
        yield {
            "metric": headline.metric.name,
            "version": name,
            "error_rate_gap": misclassification_value(float(found.estimate[k]), len(compared)) if is_uniform else _NAN,
            "e_value": ratio.point,
            "e_value_limit": ratio.limit,
            "gamma": bears.gamma,
            "heterogeneity_p": q_p,
            "interaction_p": s_p,
            "simpson": flag or None,
            "worst_lo": lo,
            "worst_hi": hi,
            "status": found.status[k],
            "reasons": reasons,
        }


def _binary_cells(headline: Headline) -> _Cells | None:
    """Counts of successes, or ``None`` where outcomes are not 0 or 1."""
    sample, found = headline.sample, headline.found
    if not headline.is_comparable or not np.isin(sample.y, (0.0, 1.0)).all() or not np.isin(sample.d, (0.0, 1.0)).all():
        return None
    weighs = np.flatnonzero(np.isfinite(found.weights) & (found.weights > 0))
    block = np.ix_(headline.compared, weighs)
    n = found.cell_n[block].astype(np.float64)
    if len(weighs) == 0 or (n == 0).any():
        return None
    return _Cells(n, np.rint(found.cell_mean[block] * n))


def _bears(headline: Headline, cells: _Cells | None, at: int, k: int) -> Sensitivity:
    """How much hidden routing the declared contrast of a version bears, in the direction of its estimate.

    A bound on hidden routing is of a version and one control. A reference that averages several
    versions is none, and users who keep a version are routed once, not session by session.
    """
    found, reference = headline.found, headline.options.reference
    if cells is None or "is_reference" in found.reasons[k] or not np.isfinite(found.lo[k]):
        return Sensitivity(_NAN, is_fragile=False)
    if headline.is_by_user:
        return Sensitivity(_NAN, is_fragile=False, status="unavailable", reason="not_clustered")
    if headline.is_drawn:
        return Sensitivity(_NAN, is_fragile=False, status="unavailable", reason=UNWEIGHTED)
    if reference == "model":
        other = np.flatnonzero(headline.compared == headline.options.reference_index)
    elif reference in _POOLED or len(headline.compared) == 2:
        other = np.delete(np.arange(len(headline.compared)), at)
    else:
        return Sensitivity(_NAN, is_fragile=False, status="unavailable", reason="several_controls")
    rest = cells.x[other].sum(axis=0), cells.n[other].sum(axis=0)
    level, is_more = headline.options.alpha / 2.0, bool(found.estimate[k] > 0)
    return sensitivity(cells.x[at], cells.n[at], *rest, alpha=level, is_more=is_more)


def _ratio(headline: Headline, k: int) -> EValue:
    """E-value of a version's rate over that of its reference."""
    found = headline.found
    base = float(found.theta[k] - found.estimate[k])
    if not headline.metric.is_rate or not base > 0:
        return EValue(_NAN, _NAN)
    ratios = [(base + float(value)) / base for value in (found.estimate[k], found.lo[k], found.hi[k])]
    return e_value(ratios[0], max(ratios[1], 1e-12) if np.isfinite(ratios[1]) else _NAN, ratios[2])


def _gaps(headline: Headline, k: int) -> tuple[float, float, tuple[float, float]]:
    """The plain gap, the net improvement, and limits of the plain gap that hold for all versions."""
    found, compared = headline.found, headline.compared
    rate = found.raw_rate[compared]
    size = len(compared)
    n = np.array(
        [kish_ess(headline.weight[(headline.sample.version == k) & (headline.sample.d > 0)]) for k in compared]
    )
    variance = rate * (1.0 - rate) / n
    at = int(np.searchsorted(compared, k))
    gap = float(rate[at] - rate.mean())
    spread = (1.0 - 1.0 / size) ** 2 * variance[at] + (variance.sum() - variance[at]) / size**2
    # Clustered as much as the net improvement is, and Bonferroni over versions.
    half = float(special.ndtri(1.0 - headline.options.alpha / (2.0 * size)))
    half *= float(np.sqrt(spread * max(float(np.nan_to_num(found.deff[k], nan=1.0)), 1.0)))
    return gap, float(found.estimate[k]), (gap - half, gap + half)


def _worst(headline: Headline) -> tuple[Floats, Floats]:
    """Bounds over unknown outcomes of the compared versions, (K,)."""
    lower, upper = (np.full(len(headline.versions), np.nan) for _ in range(2))
    sample, population, compared = headline.sample, headline.population, headline.compared
    is_share = headline.metric.is_rate and np.isin(sample.d, (0.0, 1.0)).all()
    if not headline.is_comparable or not is_share or headline.options.reference != "uniform":
        return lower, upper
    place = np.full(sample.n_versions, -1)
    place[compared] = np.arange(len(compared))
    used = place[population.version] >= 0
    y, known = np.zeros(population.n), np.zeros(population.n, dtype=bool)
    y[headline.use], known[headline.use] = sample.y, sample.d > 0
    # A session that the metric does not speak of (denominator 0) is no unknown outcome.
    used[np.flatnonzero(headline.use)[sample.d == 0]] = False
    lo, hi = worst_case_bounds(
        y[used],
        known[used],
        place[population.version[used]],
        headline.target[population.stratum[used]],
        headline.found.weights,
        len(compared),
        None if population.weight is None else population.weight[used],
    )
    lower[compared], upper[compared] = lo, hi
    return lower, upper
