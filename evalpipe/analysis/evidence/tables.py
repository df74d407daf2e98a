"""All tables of evidence of a window.

Belongs here: the list of them, and what a window without a comparison gets. Does not belong here:
their rows.
"""

from __future__ import annotations

import polars as pl

from evalpipe.analysis.evidence.attempts import attempt_rows
from evalpipe.analysis.evidence.drawn import drawn_rows
from evalpipe.analysis.evidence.durations import duration_rows
from evalpipe.analysis.evidence.estimators import estimator_rows
from evalpipe.analysis.evidence.headline import Headline, stamped, unweighted
from evalpipe.analysis.evidence.movement import movement_rows
from evalpipe.analysis.evidence.nights import night_rows
from evalpipe.analysis.evidence.paired_tasks import paired_task_rows
from evalpipe.analysis.evidence.sensitivity import sensitivity_rows
from evalpipe.analysis.stamp import Stamp
from evalpipe.contracts.tables import drawn, evidence

_ROWS = {
    evidence.ESTIMATORS: estimator_rows,
    evidence.SENSITIVITY: sensitivity_rows,
    evidence.DURATIONS: duration_rows,
    evidence.NIGHTS: night_rows,
    evidence.MOVEMENT: movement_rows,
    evidence.ATTEMPTS: attempt_rows,
    evidence.PAIRED_TASKS: paired_task_rows,
    drawn.DRAWN_RATES: drawn_rows,
}

#: Tables that compare versions over traffic, so that a failed design or too little common traffic
#: speaks against their numbers. The others count sessions, or compare on the same tasks.
_COMPARING = (
    evidence.ESTIMATORS,
    evidence.SENSITIVITY,
    evidence.DURATIONS,
    evidence.NIGHTS,
    evidence.MOVEMENT,
)  # fmt: skip

#: Tables that count sessions as they are: they speak of those that were drawn.
_COUNTING = (evidence.DURATIONS, evidence.ATTEMPTS)


def evidence_tables(headline: Headline | None, stamp: Stamp) -> dict[str, pl.DataFrame]:
    """Tables of evidence by full name, empty where nothing could be looked at.

    Args:
        headline: The headline metric over all traffic; ``None`` where no session has a known outcome.
        stamp: What every row carries.
    """
    if headline is None:
        return {table.full_name: stamped(table, stamp, ()) for table in _ROWS}
    standing = headline.standing()
    return {
        table.full_name: stamped(
            table,
            stamp,
            unweighted(make(headline)) if headline.is_drawn and table in _COUNTING else make(headline),
            standing if table in _COMPARING else None,
        )
        for table, make in _ROWS.items()
    }
