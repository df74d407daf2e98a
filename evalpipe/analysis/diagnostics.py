"""Rows of ``analysis.diagnostics``: what a number rests on, passed checks included.

Belongs here: counts of what was left out, and checks as rows. Does not belong here: statistics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from evalpipe.analysis.carry_over import carry_over_checks
from evalpipe.analysis.design import Examined
from evalpipe.analysis.evidence.headline import Headline
from evalpipe.analysis.evidence.movement import movement_checks
from evalpipe.analysis.feedback import feedback_checks
from evalpipe.analysis.groups import Group
from evalpipe.analysis.labels import MIXED, unlabelled
from evalpipe.analysis.plan import plan_checks
from evalpipe.analysis.population import Population
from evalpipe.analysis.rows import Scored
from evalpipe.analysis.sampling import sampling_checks
from evalpipe.analysis.stamp import Stamp
from evalpipe.analysis.standard import population_checks
from evalpipe.contracts import render
from evalpipe.contracts.tables.analysis import DIAGNOSTICS
from evalpipe.criteria.model import Criteria
from evalpipe.criteria.populations import is_weighted
from evalpipe.inference import Check
from evalpipe.inference.intraclass import anova_icc, kish_design_effect

#: Share of sessions that may be left out, or lack a user, before the rest may not stand for all.
LEFT_OUT_LIMIT = 0.05
#: How much more often an outcome may be unknown for one version than for another.
MISSING_GAP_LIMIT = 0.05

_LEFT_OUT = {
    "missing_release": "name no release of the agent",
    "missing_model": "name no model",
    MIXED: "were answered by several models",
}


def diagnostics_rows(
    inside: pl.DataFrame,
    settled: pl.DataFrame,
    population: Population,
    examined: Examined,
    headline: Scored | None,
    criteria: Criteria,
    stamp: Stamp,
    groups: tuple[Group, ...] = (),
    arrays: Headline | None = None,
    demoted: Sequence[str] = (),
) -> pl.DataFrame:
    """All checks of a window.

    Args:
        inside: Outcome rows of the window.
        settled: Those that will not change.
        population: Those that have a version.
        examined: Checks of the design.
        headline: The headline metric over all traffic; ``None`` without sessions.
        criteria: Criteria in force.
        stamp: What every row carries.
        groups: Groups of versions that can be compared where not all can.
        arrays: The headline metric's sessions; ``None`` where nothing of them is known.
        demoted: Signals that reviews kept out of the outcomes.

    Returns:
        Rows of ``analysis.diagnostics``.
    """
    warned = [*carry_over_checks(arrays), *feedback_checks(arrays)] if arrays else []
    untold = movement_checks(arrays) if arrays else []
    checks = [
        _sessions(population),
        _unsettled(inside.height, settled.height),
        *_left_out(settled, criteria),
        _users(population),
        *_drawn(settled, population, criteria),
        *examined.checks,
        *(_headline(headline, criteria) if headline else []),
        *population_checks(population, criteria.estimand, headline.comparison if headline else None),
        *(_group(group) for group in groups),
        *(_demoted(name) for name in demoted),
        *(_alike(arrays) if arrays else []),
        *warned,
        *untold,
        *plan_checks(headline, examined, criteria, [c.check for c in warned if c.status == "inconclusive"]),
    ]
    rows = pl.DataFrame(
        [
            (c.check, c.subject, _null(c.value), _null(c.limit), c.status, c.detail)
            for c in checks
        ],
        schema={name: render.polars_schema(DIAGNOSTICS)[name] for name in _COLUMNS},
        orient="row",
    )  # fmt: skip
    return render.conform(DIAGNOSTICS, rows.with_columns(*stamp.columns))


_COLUMNS = ("check_name", "subject", "value", "bound", "status", "detail")


def _null(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _sessions(population: Population) -> Check:
    k, s = len(population.versions), len(set(population.stratum.tolist()))
    detail = f"{population.n} sessions of {k} versions in {s} strata."
    status = "ok" if population.n else "unavailable"
    return Check("sessions", "window", population.n, math.nan, status, detail)


def _unsettled(n_inside: int, n_settled: int) -> Check:
    open_share = 1.0 - n_settled / n_inside if n_inside else math.nan
    detail = f"{n_inside - n_settled} of {n_inside} sessions may still change and were left out."
    return Check("unsettled", "window", open_share, math.nan, "ok" if n_inside else "unavailable", detail)


def _left_out(settled: pl.DataFrame, criteria: Criteria) -> list[Check]:
    n = settled.height
    return [
        _limited(check, "window", count, n, f"{count} of {n} sessions {_LEFT_OUT[check]} and were left out.")
        for check, count in unlabelled(settled, criteria.outcomes.compare_by).items()
    ]


def _users(population: Population) -> Check:
    alone = population.n_without_user - population.n_by_task
    detail = f"{population.n_without_user} of {population.n} sessions name no user"
    detail += f"; {population.n_by_task} of them are clustered by task" if population.n_by_task else ""
    detail += f"; {alone} count as one user each." if alone else "."
    return _limited("missing_user", "window", population.n_without_user, population.n, detail)


def _drawn(settled: pl.DataFrame, population: Population, criteria: Criteria) -> list[Check]:
    rules = criteria.estimand.sampling
    return sampling_checks(settled, rules, population.version, population.versions, population.weight)


def _limited(check: str, subject: str, count: int, n: int, detail: str) -> Check:
    if not n:
        return Check(check, subject, math.nan, LEFT_OUT_LIMIT, "unavailable", "No sessions.")
    share = count / n
    return Check(check, subject, share, LEFT_OUT_LIMIT, "suspect" if share > LEFT_OUT_LIMIT else "ok", detail)


def _alike(arrays: Headline) -> list[Check]:
    """How alike sessions of one user are, and what that would cost if users kept a version."""
    sample = arrays.sample
    has = sample.d > 0
    user = sample.user[has].astype(np.int64)
    icc = anova_icc(sample.y[has] / sample.d[has], user)
    if math.isnan(icc):
        detail = "No user has several sessions with outcomes that vary."
        return [Check("icc", arrays.metric.name, icc, math.nan, "unavailable", detail)]
    effect = kish_design_effect(user, icc)
    detail = f"Correlation of outcomes of one user; a design effect of {effect:.2f} if users kept a version."
    return [Check("icc", arrays.metric.name, icc, math.nan, "ok", detail)]


def _group(group: Group) -> Check:
    n = len(group.versions)
    strata = "1 stratum" if group.n_strata == 1 else f"{group.n_strata} strata"
    detail = f"{n} versions share {strata} with {group.n_sessions} of their sessions."
    return Check("support_group", group.slice, n, math.nan, "ok", detail)


def _demoted(name: str) -> Check:
    signal, _, lang = name.partition("@")
    detail = f"Reviews put the precision of {signal} ({lang}) under its threshold: it is not counted."
    return Check("demoted_signal", name, math.nan, math.nan, "suspect", detail)


def _headline(headline: Scored, criteria: Criteria) -> list[Check]:
    metric, counts = headline.metric.name, headline.counts
    limit = criteria.estimand.min_support_share
    share = headline.comparison.support_share if headline.comparison else math.nan
    if math.isnan(share):
        support = Check("support_share", metric, share, limit, "unavailable", "Nothing could be compared.")
    else:
        status = "ok" if share >= limit else "inconclusive"
        what = "weight" if is_weighted(criteria.estimand.population) else "traffic"
        detail = f"{share:.1%} of the {what} lies in strata where every compared version was seen."
        support = Check("support_share", metric, share, limit, status, detail)
    n, shares = int(counts.n_sessions.sum()), counts.missing_share[counts.n_sessions > 0]
    missing = float((counts.missing_share * counts.n_sessions)[counts.n_sessions > 0].sum()) / n
    gap = float(shares.max() - shares.min())
    return [
        support,
        Check("missing_outcome", metric, missing, math.nan, "ok", f"{missing:.1%} of {n} outcomes are not known."),
        Check(
            "differential_missingness",
            metric,
            gap,
            MISSING_GAP_LIMIT,
            "suspect" if gap > MISSING_GAP_LIMIT else "ok",
            "Largest difference between versions in the share of outcomes that are not known.",
        ),
    ]
