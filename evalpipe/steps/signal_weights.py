"""Labelled sessions of a home with their signals: what weights are proposed from.

Belongs here: reading them from the lake. Does not belong here: the proposal (``review/weights.py``).
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from evalpipe import review, signals
from evalpipe.contracts.errors import EvalpipeError
from evalpipe.steps.analysis import outcome_days_available
from evalpipe.steps.context import Context

_OUTCOMES = "signals.session_outcomes"


def proposed(context: Context, labels: Path | None) -> tuple[review.Proposal, int]:
    """Weights of signals from labels of sessions, and how many labels are of no session of this home.

    Args:
        context: The open home.
        labels: File of labels; where there is none, sessions whose log states success or failure are the
            labelled ones.

    Raises:
        EvalpipeError: ``REVIEW_INVALID``; ``NO_RESULT`` where no labelled session is in the home.
    """
    days = outcome_days_available(context)
    made = [m for day in days if (m := context.lookup("outcomes", day)) is not None]
    columns = ["session_id", "user_id", "objective_success_num", "objective_success_den"]
    known = context.lake.read(_OUTCOMES, made, columns)
    if labels is None:
        stated = known.filter(pl.col("objective_success_den") > 0)
        said = stated.select("session_id", success=pl.col("objective_success_num") > 0, inclusion_prob=pl.lit(1.0))
    else:
        said = review.read_session_labels(labels)
    here = said.join(known.select("session_id", "user_id"), on="session_id", how="inner").sort("session_id")
    if here.is_empty():
        what = "no labelled session is in this home" if labels else "no log of this home states success or failure"
        fix = "Name a file with session_id and success; ids are those of: evalpipe sql 'FROM signals.session_outcomes'"
        raise EvalpipeError("NO_RESULT", what, where=labels.name if labels else str(context.settings.home), fix=fix)
    user = pl.coalesce(pl.lit("user ") + pl.col("user_id"), pl.lit("session ") + pl.col("session_id"))
    here = here.with_columns(user=user.rank("dense").cast(pl.Int64))
    parts = []
    for day in days:
        now, gone = context.lookup("signals", day), context.demoted_on(day)
        if now is None:
            continue
        hard, semantic = (
            signals.counted(context.lake.read(f"signals.{name}", [now]), gone) for name in ("hard", "semantic")
        )
        counts = signals.event_counts(hard, semantic, context.criteria)
        parts.append(counts.join(here.select("session_id"), on="session_id", how="semi"))
    rules = context.criteria.outcomes
    return review.propose(here, pl.concat(parts), rules.weights, rules.score_threshold), said.height - here.height
