"""Rows of ``analysis.attempts``: every session under exactly one outcome.

Belongs here: which outcome a session has. Does not belong here: the rates. Silence is no success,
and a session whose outcome is not known is invalid: it is counted, and in no denominator of success.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from evalpipe.analysis.evidence.headline import Headline
from evalpipe.analysis.labels import TASK
from evalpipe.inference.attempts import attempt_rates, task_rates
from evalpipe.inference.intervals import clustered_share
from evalpipe.inference.proportions import proportion_interval

#: Outcomes that each rate counts, and whether it is of all sessions or of those that are not invalid.
_RATES = {
    "autonomous": (("autonomous_success",), False),
    "assisted": (("assisted_success",), False),
    "non_completion": (("failure", "timeout"), False),
    "invalid_rate": (("invalid",), True),
    "passed_of_all": (("autonomous_success", "assisted_success"), True),
}


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
    """One row a version. Intervals are clustered by user, or by task where no user is known."""
    outcome = np.array(classified(headline), dtype=object)
    for k, name in enumerate(headline.versions):
        mine = headline.population.version == k
        own, cluster = outcome[mine], headline.population.cluster[mine].astype(np.int64)
        rates = attempt_rates(own.tolist())
        counts = rates.counts
        status, reasons = "ok", list[str]()
        if not rates.n_eval:
            status, reasons = "unavailable", ["no_outcome"]
        elif len(np.unique(cluster)) < 2:
            status, reasons = "inconclusive", ["one_user"]
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
            "assisted": rates.assisted,
            "non_completion": rates.non_completion,
            "invalid_rate": rates.invalid_rate,
            "passed_of_all": (counts["autonomous_success"] + counts["assisted_success"]) / rates.n_all
            if rates.n_all
            else float("nan"),
            "status": status,
            "reasons": reasons,
        }
        alpha, is_valid = headline.options.alpha, own != "invalid"
        for rate, (kinds, is_of_all) in _RATES.items():
            is_in = np.ones(len(own), dtype=bool) if is_of_all else is_valid
            limits = clustered_share(np.isin(own[is_in], kinds), cluster[is_in], alpha)
            row |= dict(zip((f"{rate}_lo", f"{rate}_hi"), limits, strict=True))
        yield row | _tasks(headline.population.sessions.filter(pl.Series(mine)), own.tolist(), alpha)


def _tasks(sessions: pl.DataFrame, outcome: list[str], alpha: float) -> dict[str, object]:
    """Rates over tasks of controlled task sets; trials of a task are repeats, not retries."""
    tried = (
        sessions.with_columns(pl.Series("outcome", outcome, dtype=pl.String))
        .filter(pl.col("task_id").is_not_null())
        .sort(*TASK, "trial", "session_id")
    )
    if tried.is_empty():
        return {"t_all": 0, "first_attempt": None, "eventual": None}
    task = tried.select(pl.struct(TASK).rank("dense").alias("task"))["task"].to_numpy().astype(np.int64)
    starts = np.flatnonzero(np.diff(task, prepend=-1))
    index = np.arange(len(task)) - np.repeat(starts, np.diff(np.append(starts, len(task))))
    found = task_rates(task, index, np.full(len(task), -1), tried["outcome"].to_list())
    row: dict[str, object] = {"t_all": found.t_all, "first_attempt": found.first_attempt, "eventual": found.eventual}
    # A task is a unit by itself here; one alone shows no spread between tasks.
    for rate, x, n in (("first_attempt", found.t_first, found.t_all), ("eventual", found.t_eventual, found.t_eval)):
        if n > 1 and (rate == "first_attempt" or found.status == "ok"):
            row[f"{rate}_lo"], row[f"{rate}_hi"] = proportion_interval(x, n, alpha)
    return row
