"""Release gates on an analysis: may the candidate ship in the baseline's place?

Belongs here: which numbers a gate reads, and what bars a decision. Does not belong here: the rule
itself (``inference.gate``) or which gates exist (criteria, declared before the results).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from evalpipe.analysis.design import CONTRADICTING
from evalpipe.analysis.measurement import require_one_measurement
from evalpipe.analysis.population import ALL
from evalpipe.analysis.scorecard import require_versions
from evalpipe.analysis.stamp import digest
from evalpipe.contracts import render
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.metrics import BY_NAME
from evalpipe.contracts.tables.analysis import GATES, NET_IMPROVEMENT, PAIRS
from evalpipe.criteria.model import Criteria, GateCriterion
from evalpipe.inference import gate
from evalpipe.inference.gates import GATE_ALPHA
from evalpipe.inference.two_proportions import margin_test, miettinen_nurminen

_STAMP = ("as_of", "window_name", "window_start", "window_end", "measurement")
#: Columns by which an earlier decision is known as one of the same question.
DECIDED = ("candidate", "baseline", "measurement", "as_of", "metric", "kind")
#: Reason on every verdict, a pass too, whose bounds are the wider ones of a gate that is asked again.
DECIDED_BEFORE = "decided_before"


def decide_gates(
    tables: Mapping[str, pl.DataFrame],
    criteria: Criteria,
    candidate: str,
    baseline: str,
    *,
    decided: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Decide every gate of the criteria for one candidate and baseline.

    The decision reads the difference over all traffic, signed so that positive is better. It is
    ``inconclusive`` where a number is suspect, unavailable or rests on too little common traffic.

    Args:
        tables: ``analysis.net_improvement`` and ``analysis.pairs`` of one as-of day and window.
        criteria: The gates; of the measurement that the tables were made under.
        candidate: Version that may ship.
        baseline: Version that it is compared with.
        decided: :data:`DECIDED` columns of ``analysis.gates`` so far. A gate that was
            decided on another as-of day is decided by bounds that hold on all of them.

    Returns:
        ``analysis.gates``, one row a gate, all with one ``decision_id``: a digest of criteria,
        versions and every number that was read. Empty if no gate is declared.

    Raises:
        EvalpipeError: ``UNKNOWN_VERSION``, ``MIXED_MEASUREMENTS``, or ``BAD_ARGUMENT`` if candidate
            and baseline are one version or the tables hold more than one analysis.
    """
    numbers, pairs = tables[NET_IMPROVEMENT.full_name], tables[PAIRS.full_name]
    _require_one_analysis(numbers, criteria)
    _require_one_analysis(pairs, criteria)
    require_versions(numbers, candidate, baseline)
    if candidate == baseline:
        raise EvalpipeError("BAD_ARGUMENT", "Candidate and baseline are the same version.", fix="Name two versions.")
    stamp = numbers.select(_STAMP).row(0, named=True)
    before = render.empty(GATES) if decided is None else decided
    before = before.filter(
        (pl.col("candidate") == candidate)
        & (pl.col("baseline") == baseline)
        & (pl.col("measurement") == stamp["measurement"])
        & (pl.col("as_of") != stamp["as_of"])
    )
    rows = [_decide(numbers, pairs, criteria, one, candidate, baseline, before) for one in criteria.gates]
    decision = digest(criteria.hash, stamp, candidate, baseline, rows).hex()
    shared = {
        **stamp,
        "decision_id": decision,
        "criteria_name": criteria.name,
        "criteria_version": criteria.version,
        "criteria_hash": criteria.hash,
        "decided_on": stamp["as_of"],
        "candidate": candidate,
        "baseline": baseline,
    }
    return render.conform(GATES, render.frame(GATES, [{**shared, **row} for row in rows])).sort(GATES.sort)


def _require_one_analysis(numbers: pl.DataFrame, criteria: Criteria) -> None:
    found = require_one_measurement(numbers)
    if found and found != criteria.measurement:
        raise EvalpipeError(
            "MIXED_MEASUREMENTS",
            f"The analysis was made under measurement {found}, the criteria are {criteria.measurement}.",
            where=f"criteria {criteria.name} {criteria.version}",
        )
    if numbers.select("as_of", "window_name").n_unique() > 1:
        what = "The tables hold more than one analysis."
        raise EvalpipeError("BAD_ARGUMENT", what, fix="Pass the tables of one as-of day and window.")


def _decide(
    numbers: pl.DataFrame,
    pairs: pl.DataFrame,
    criteria: Criteria,
    criterion: GateCriterion,
    candidate: str,
    baseline: str,
    before: pl.DataFrame,
) -> dict[str, Any]:
    same = (pl.col("metric") == criterion.metric) & (pl.col("kind") == criterion.kind)
    n_earlier = before.filter(same)["as_of"].n_unique()
    here = (pl.col("metric") == criterion.metric) & (pl.col("slice") == ALL)
    mine = numbers.filter(here & pl.col("version").is_in([candidate, baseline])).sort("version")
    pair = pairs.filter(here & (pl.col("version") == candidate) & (pl.col("other") == baseline))
    values = pair.select("difference", "se", "df", "gstar").row(0) if pair.height else (None,) * 4
    difference, se, df, gstar = (math.nan if value is None else float(value) for value in values)
    sign = 1.0 if BY_NAME[criterion.metric].is_higher_better else -1.0
    found = gate(
        sign * difference,
        se,
        df,
        gstar,
        criterion.margin,
        criterion.kind,
        alpha=GATE_ALPHA,
        blockers=_blockers(mine, criteria),
        n_earlier=n_earlier,
    )
    return {
        "criterion": criterion.name,
        "metric": criterion.metric,
        "kind": criterion.kind,
        "margin": criterion.margin,
        "estimate": _null(sign * difference),
        "lower": _null(found.lower),
        "upper": _null(found.upper),
        "df": _null(found.df),
        **_plain(pair if not n_earlier else pair.clear(), criterion),
        "verdict": found.verdict,
        "reasons": [*dict.fromkeys(found.reasons), *([DECIDED_BEFORE] if n_earlier else [])],
    }


def _plain(pair: pl.DataFrame, criterion: GateCriterion) -> dict[str, Any]:
    """What two plain counts say of the question, where they say all that there is to say of the pair.

    Such bounds are for one look: a question that is asked again has none.
    """
    counts = pair.select("n_successes", "n_sessions", "n_other_successes", "n_other_sessions").drop_nulls()
    if counts.is_empty():
        return {"score_lower": None, "p_score": None}
    x1, n1, x2, n2 = counts.row(0)
    if not BY_NAME[criterion.metric].is_higher_better:
        x1, x2 = n1 - x1, n2 - x2
    p = math.nan
    if criterion.kind == "non_inferiority":
        p = margin_test(x1, n1, x2, n2, criterion.margin, GATE_ALPHA).p_score
    return {"score_lower": miettinen_nurminen(x1, n1, x2, n2, 2.0 * GATE_ALPHA)[0], "p_score": _null(p)}


def _blockers(rows: pl.DataFrame, criteria: Criteria) -> list[str]:
    """What bars a decision, whatever the numbers say: from the rows of both versions."""
    found: list[str] = []
    for status, reasons, share in rows.select("status", "reasons", "support_share").iter_rows():
        if status in ("suspect", "unavailable"):
            found += [status, *reasons]
        found += [code for code in reasons if code in CONTRADICTING]
        if share is not None and share < criteria.estimand.min_support_share:
            found.append("low_support")
    return list(dict.fromkeys(found))


def _null(value: float) -> float | None:
    return value if math.isfinite(value) else None
