"""Rows of ``analysis.attempts``: every session under exactly one outcome.

Belongs here: which outcome a session has. Does not belong here: the rates. Silence is no success,
and a session whose outcome is not known is invalid: it is counted, and in no denominator of success.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from evalpipe.analysis.evidence.headline import Headline
from evalpipe.inference.attempts import attempt_rates, task_rates
from evalpipe.inference.proportions import wilson


def classified(headline: Headline) -> list[str]:
    """(P,) outcome of every session of the population, by the headline metric."""
    name = headline.metric.name
    is_known = pl.col(f"{name}_den").fill_null(0.0) > 0
    is_success = pl.col(f"{name}_num") >= pl.col(f"{name}_den")
    if not headline.metric.is_higher_better:
        is_success = pl.col(f"{name}_num") <= 0
    outcome = (
        pl.when(~is_known)
        .then(pl.lit("invalid"))
        .when(is_success & (pl.col("correction_num").fill_null(0.0) > 0))
        .then(pl.lit("assisted_success"))
        .when(is_success)
        .then(pl.lit("autonomous_success"))
        .when(pl.col("end_status") == "timeout")
        .then(pl.lit("timeout"))
        .otherwise(pl.lit("failure"))
    )
    values: list[str] = headline.population.sessions.select(outcome.alias("outcome"))["outcome"].to_list()
    return values


def attempt_rows(headline: Headline) -> Iterator[Mapping[str, object]]:
    """One row a version."""
    outcome = np.array(classified(headline), dtype=object)
    for k, name in enumerate(headline.versions):
        mine = headline.population.version == k
        rates = attempt_rates(outcome[mine].tolist())
        counts = rates.counts
        lo, hi = wilson(counts["autonomous_success"], rates.n_eval, headline.options.alpha)
        row: dict[str, object] = {
            "version": name,
            "n_all": rates.n_all,
            "n_eval": rates.n_eval,
            "n_autonomous": counts["autonomous_success"],
            "n_assisted": counts["assisted_success"],
            "n_failure": counts["failure"],
            "n_timeout": counts["timeout"],
            "n_invalid": counts["invalid"],
            "autonomous": rates.autonomous,
            "autonomous_lo": float(lo),
            "autonomous_hi": float(hi),
            "assisted": rates.assisted,
            "non_completion": rates.non_completion,
            "invalid_rate": rates.invalid_rate,
            "passed_of_all": (counts["autonomous_success"] + counts["assisted_success"]) / rates.n_all
            if rates.n_all
            else float("nan"),
            "status": "ok" if rates.n_eval else "unavailable",
            "reasons": [] if rates.n_eval else ["no_outcome"],
        }
        yield row | _tasks(headline.population.sessions.filter(pl.Series(mine)), outcome[mine].tolist())


def _tasks(sessions: pl.DataFrame, outcome: list[str]) -> dict[str, object]:
    """Rates over tasks of controlled task sets; trials of a task are repeats, not retries."""
    tried = (
        sessions.with_columns(pl.Series("outcome", outcome, dtype=pl.String))
        .filter(pl.col("task_id").is_not_null())
        .sort("source", "task_id", "trial", "session_id")
    )
    if tried.is_empty():
        return {"t_all": 0, "first_attempt": None, "eventual": None}
    task = tried.select(pl.struct("source", "task_id").rank("dense").alias("task"))["task"].to_numpy().astype(np.int64)
    starts = np.flatnonzero(np.diff(task, prepend=-1))
    index = np.arange(len(task)) - np.repeat(starts, np.diff(np.append(starts, len(task))))
    found = task_rates(task, index, np.full(len(task), -1), tried["outcome"].to_list())
    return {"t_all": found.t_all, "first_attempt": found.first_attempt, "eventual": found.eventual}
