"""Rows of ``analysis.paired_tasks``: two versions on the tasks that both were given.

Belongs here: which trial of a task counts. Does not belong here: the test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from evalpipe.analysis.evidence.attempts import classified
from evalpipe.analysis.evidence.headline import Headline
from evalpipe.analysis.labels import TASK
from evalpipe.inference.paired import paired_difference

_SUCCESS = ("autonomous_success", "assisted_success")


def paired_task_rows(headline: Headline) -> Iterator[Mapping[str, object]]:
    """One row an ordered pair; empty without a controlled task set.

    The first trial of a task that was graded counts: more trials of a task would not be more tasks.
    """
    tried = (
        headline.population.sessions.with_columns(pl.Series("outcome", classified(headline), dtype=pl.String))
        .filter(pl.col("task_id").is_not_null() & (pl.col("outcome") != "invalid"))
        .sort(*TASK, "trial", "session_id")
        .group_by("version", *TASK, maintain_order=True)
        .agg(pl.col("outcome").first().is_in(_SUCCESS).alias("is_passed"))
    )
    if tried.is_empty():
        return
    table = tried.pivot(on="version", index=TASK, values="is_passed").sort(TASK)
    names = [name for name in headline.versions if name in table.columns]
    passed = {name: table[name] for name in names}
    for one in names:
        for other in names:
            both = passed[one].is_not_null() & passed[other].is_not_null()
            if one == other or not both.any():
                continue
            new, old = (passed[name].filter(both).to_numpy().astype(bool) for name in (one, other))
            found = paired_difference(old, new, headline.options.alpha)
            yield {
                "version": one,
                "other": other,
                "n_tasks": found.n,
                "n_gained": len(np.asarray(found.fail_to_pass)),
                "n_lost": len(np.asarray(found.pass_to_fail)),
                "difference": found.estimate,
                "lo": found.lo,
                "hi": found.hi,
                "p": found.p,
                "status": found.status,
                "reasons": [found.reason] if found.reason else [],
            }
