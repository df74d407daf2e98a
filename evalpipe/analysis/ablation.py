"""Ablation: how versions would be ordered by signals of the environment alone, by words alone, by both.

Belongs here: scores of one family of signals at a time, in the same comparison as any metric. Does not
belong here: which signals count for outcomes, which criteria decide.

Criteria give most signals of the environment no weight. So that the families can be held against each
other, every signal counts here with its weight of the catalogue; the two families add up to ``all``, and
so do the shifts of a version. An order that only words give is no stronger than the precision of words.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from evalpipe.analysis.design import Examined, examine
from evalpipe.analysis.ledger import ledger_checks
from evalpipe.analysis.population import Population, encode, mergeable_parents
from evalpipe.analysis.stamp import Stamp
from evalpipe.analysis.standard import with_population
from evalpipe.contracts import render
from evalpipe.contracts.tables.analysis import ABLATION
from evalpipe.criteria.model import Criteria
from evalpipe.inference import Options, kendall_tau, top_overlap
from evalpipe.inference.shift import Shift, net_shift

#: Masks with the columns of signals.session_scores that each adds up.
MASKS: dict[str, tuple[str, ...]] = {
    "all": ("hard_score", "semantic_score"),
    "hard": ("hard_score",),
    "semantic": ("semantic_score",),
}
#: Versions that an order is looked at from the top.
TOP = 3


def ablation(
    outcomes: pl.DataFrame,
    scores: pl.DataFrame,
    criteria: Criteria,
    stamp: Stamp,
    *,
    arms: pl.DataFrame,
) -> pl.DataFrame:
    """Rows of ``analysis.ablation``.

    Args:
        outcomes: Rows of ``signals.session_outcomes``.
        scores: Rows of ``signals.session_scores`` of these sessions.
        criteria: Versions, strata and intervals.
        stamp: The window.
        arms: ``signals.routing_arms`` of these days.

    Returns:
        One row a mask and version; none without sessions.
    """
    inside = outcomes.filter(stamp.settled)
    inside = inside.join(scores, on="session_id", how="inner", maintain_order="left")
    population = encode(inside, criteria.outcomes.compare_by, criteria.estimand.strata, (), criteria.estimand.sampling)
    if not population.n:
        return render.empty(ABLATION)
    assigned = ledger_checks(inside, arms, criteria.outcomes.compare_by, criteria.outcomes.headline)
    examined = examine(population, criteria.estimand, assigned)
    found = {mask: _compared(population, mask, criteria, examined.design) for mask in MASKS}
    n = np.bincount(population.version, minlength=len(population.versions))
    names = population.versions
    rows = [row for mask, one in found.items() for row in _rows(mask, one, found["all"], names, n, examined)]
    out = pl.DataFrame(rows, schema={c.name: render.polars_schema(ABLATION)[c.name] for c in ABLATION.columns[8:]})
    return render.conform(ABLATION, out.with_columns(*stamp.columns)).sort(ABLATION.sort)


def _compared(population: Population, mask: str, criteria: Criteria, design: str) -> Shift:
    y = population.sessions.select(pl.sum_horizontal(MASKS[mask]).alias("y"))["y"].to_numpy()
    estimand = criteria.estimand
    sample = population.sample(y, np.ones(population.n))
    options = Options(
        # Shifts against one version would leave that one out of the order.
        reference="uniform" if estimand.reference.startswith("model:") else estimand.reference,
        design=design,
        alpha=estimand.alpha,
        min_users_per_cell=estimand.min_users_per_cell,
        min_sessions_per_version=estimand.min_sessions_per_version,
        min_support_share=estimand.min_support_share,
        parents=mergeable_parents(population, estimand.min_sessions_per_version),
    )
    return net_shift(sample, with_population(options, population, estimand))


def _rows(
    mask: str,
    found: Shift,
    whole: Shift,
    versions: list[str],
    n: np.ndarray[tuple[int], np.dtype[np.intp]],
    examined: Examined,
) -> list[dict[str, object]]:
    # An order, and what depends on one, is given where the comparison itself would rank.
    is_ranked = found.is_ranked and whole.is_ranked and examined.is_ordered
    is_known = np.isfinite(found.estimate) & np.isfinite(whole.estimate) & is_ranked
    one, two = found.estimate[is_known], whole.estimate[is_known]
    tau = kendall_tau(one, two) if is_known.sum() > 1 else np.nan
    overlap = top_overlap(one, two, TOP) if is_known.sum() > TOP else np.nan
    order = np.full(len(versions), 0)
    order[is_known] = (-one).argsort(kind="stable").argsort(kind="stable") + 1
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(is_known & (np.abs(whole.estimate) > 1e-9), found.estimate / whole.estimate, np.nan)
    return [
        {
            "mask": mask,
            "version": version,
            "n_sessions": int(n[i]),
            "estimate": _null(found.estimate[i]),
            "lo": _null(found.lo[i]),
            "hi": _null(found.hi[i]),
            "place": int(order[i]) or None,
            "share_of_shift": _null(share[i]),
            "kendall_tau": _null(tau),
            "top_overlap": _null(overlap),
            **_standing(found.status[i], found.reasons[i], examined),
        }
        for i, version in enumerate(versions)
    ]


def _standing(status: str, reasons: tuple[str, ...], examined: Examined) -> dict[str, object]:
    """Status and reasons of a row, worse where a check of the design failed."""
    if status != "unavailable":
        reasons = (*reasons, *(examined.failed or examined.noted))
        status = "suspect" if examined.failed else status
    return {"status": status, "reasons": list(dict.fromkeys(reasons))}


def _null(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
