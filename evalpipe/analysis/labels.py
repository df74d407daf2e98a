"""Names of agent versions, and which sessions cannot be given one.

Belongs here: labels and the count of sessions without one. Does not belong here: whether a version
has enough sessions to be compared (``score.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

SEPARATOR = " · "

#: What a task of a controlled set goes by, in rows that have their domain (:func:`with_domain`): the
#: domains of one benchmark count their tasks from the beginning each, so task 40 of one is not task 40 of
#: another.
TASK = ("source", "task_domain", "task_id")

#: Check in ``analysis.diagnostics`` that counts sessions which lack a part of their label.
MISSING = {"agent_release": "missing_release", "model": "missing_model"}
MIXED = "mixed_models"


def with_domain(outcomes: pl.DataFrame) -> pl.DataFrame:
    """The rows with ``task_domain``, what the log declares of the work; empty where the scenario was inferred.

    What is inferred rests on the first message and the tools that a harness offers: attempts at one task in
    two harnesses would be two tasks, which pair with nothing and count as independent. A task goes by one rule
    in all its rows: by its scenario where all of them declare it, or where one of them was made before the method
    was kept, as it went then.

    Args:
        outcomes: Rows of ``signals.session_outcomes``.
    """
    method, task = pl.col("scenario_method"), ["source", "task_id"]
    is_older = method.is_null().any().over(task)
    is_declared = (method == "declared").all().over(task)
    return outcomes.with_columns(task_domain=pl.when(is_older | is_declared).then("scenario").otherwise(pl.lit("")))


def version_labels(outcomes: pl.DataFrame, compare_by: Sequence[str]) -> pl.Series:
    """The version of each session.

    A session without one of the parts has no version, and neither has one that several models
    answered while models are compared: neither model can be credited with its outcome.

    Args:
        outcomes: Rows of ``signals.session_outcomes``.
        compare_by: Parts of the label, in order: ``agent``, ``agent_release``, ``model``.

    Returns:
        One label a row, parts joined by a middle dot; null where there is none.
    """
    label = pl.concat_str([pl.col(part) for part in compare_by], separator=SEPARATOR)
    return outcomes.select(pl.when(~_is_mixed(compare_by)).then(label).alias("version"))["version"]


def unlabelled(outcomes: pl.DataFrame, compare_by: Sequence[str]) -> dict[str, int]:
    """Sessions without a version, counted by reason; a session counts once, at its first reason.

    Args:
        outcomes: Rows of ``signals.session_outcomes``.
        compare_by: As for :func:`version_labels`.

    Returns:
        Counts by name of the check, zeros included.
    """
    counts: dict[str, int] = {}
    is_open = pl.lit(value=True)
    tests = {MISSING[part]: pl.col(part).is_null() for part in compare_by if part in MISSING}
    if "model" in compare_by:
        tests[MIXED] = _is_mixed(compare_by)
    for check, test in tests.items():
        counts[check] = outcomes.select((is_open & test).sum()).item() if outcomes.height else 0
        is_open = is_open & ~test
    return counts


def _is_mixed(compare_by: Sequence[str]) -> pl.Expr:
    return pl.col("n_models") > 1 if "model" in compare_by else pl.lit(value=False)
