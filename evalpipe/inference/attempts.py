"""Attempts at tasks and the rates of them, each with the denominator that belongs to it.

Belongs here: attempt-level and task-level rates of an outcome ledger, and the checks that make it
one. Does not belong here: where attempts come from. Every attempt has exactly one outcome; an
invalid one says nothing of the agent and is in no denominator of its success.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalpipe.inference.cells import Ints
from evalpipe.inference.model import Bools

OUTCOMES = ("autonomous_success", "assisted_success", "failure", "timeout", "invalid")
_SUCCESS = ("autonomous_success", "assisted_success")


@dataclass(frozen=True, slots=True)
class AttemptRates:
    """Rates per attempt; NaN where the denominator is 0.

    Attributes:
        n_all, n_eval: Attempts, and those that are not invalid. counts: attempts by outcome.
        autonomous, assisted, non_completion: shares of ``n_eval``. invalid_rate: of ``n_all``.
    """

    n_all: int
    n_eval: int
    counts: dict[str, int]
    autonomous: float
    assisted: float
    non_completion: float
    invalid_rate: float


@dataclass(frozen=True, slots=True)
class TaskRates:
    """Rates per task; NaN where the denominator is 0 or the retries are not known.

    Attributes:
        t_all, t_eval: Tasks, and those with an attempt that is not invalid.
        t_first, t_eventual: Tasks whose first, or any, attempt succeeded.
        first_attempt: t_first / t_all. eventual: t_eventual / t_eval; NaN without lineage.
        operational: t_eventual / t_all. attempts_per_task, retry_rate.
        status: Of ``eventual``: ``ok`` or ``unavailable``.
        reason: ``no_tasks`` or ``unknown_lineage``.
    """

    t_all: int
    t_eval: int
    t_first: int
    t_eventual: int
    first_attempt: float
    eventual: float
    operational: float
    attempts_per_task: float
    retry_rate: float
    status: str = "ok"
    reason: str = ""


def attempt_rates(outcome: Sequence[str]) -> AttemptRates:
    """Rates per attempt.

    Args:
        outcome: (N,) one of :data:`OUTCOMES` each.

    Raises:
        ValueError: Another outcome.
    """
    unknown = sorted(set(outcome) - set(OUTCOMES))
    if unknown:
        raise ValueError(f"outcomes must be one of {', '.join(OUTCOMES)}; got {', '.join(unknown[:3])}")
    counts = {name: sum(value == name for value in outcome) for name in OUTCOMES}
    n_all = len(outcome)
    n_eval = n_all - counts["invalid"]
    return AttemptRates(
        n_all,
        n_eval,
        counts,
        autonomous=_share(counts["autonomous_success"], n_eval),
        assisted=_share(counts["assisted_success"], n_eval),
        non_completion=_share(counts["failure"] + counts["timeout"], n_eval),
        invalid_rate=_share(counts["invalid"], n_all),
    )


def task_rates(task: Ints, retry_index: Ints, parent: Ints, outcome: Sequence[str]) -> TaskRates:
    """Rates per task.

    Args:
        task: (N,) task codes. retry_index: (N,) 0 for a first attempt, then 1, 2, ...
        parent: (N,) place of the attempt that this one repeats, -1 for none.
        outcome: (N,) one of :data:`OUTCOMES`.

    Returns:
        The rates. ``eventual`` is unavailable where a lineage is broken: an attempt that is missing
        may have been the one that succeeded.

    Raises:
        ValueError: Lengths differ, or a parent is out of range.
    """
    task, index, parent = (np.asarray(values, dtype=np.int64) for values in (task, retry_index, parent))
    n = len(task)
    if not len(index) == len(parent) == len(outcome) == n:
        raise ValueError("task, retry_index, parent and outcome must have one length")
    if n == 0:
        nan = math.nan
        return TaskRates(0, 0, 0, 0, nan, nan, nan, nan, nan, "unavailable", "no_tasks")
    if parent.min() < -1 or parent.max() >= n:
        raise ValueError(f"parent must be -1 or a place below {n}")
    _, code = np.unique(task, return_inverse=True)
    t_all = int(code.max()) + 1
    names = np.asarray(outcome)
    is_success, is_valid = np.isin(names, _SUCCESS), names != "invalid"
    t_eval = _tasks(code, is_valid)
    t_first, t_eventual = _tasks(code, is_success & (index == 0)), _tasks(code, is_success)
    is_known = lineage_is_known(code, index, parent)
    return TaskRates(
        t_all,
        t_eval,
        t_first,
        t_eventual,
        first_attempt=t_first / t_all,
        eventual=_share(t_eventual, t_eval) if is_known else math.nan,
        operational=t_eventual / t_all if is_known else math.nan,
        attempts_per_task=n / t_all,
        retry_rate=float((index > 0).mean()),
        status="ok" if is_known else "unavailable",
        reason="" if is_known else "unknown_lineage",
    )


def lineage_is_known(task: Ints, retry_index: Ints, parent: Ints) -> bool:
    """Whether every task starts once, at index 0, and each retry follows an attempt of its own task."""
    first = retry_index == 0
    if (np.bincount(task[first], minlength=int(task.max(initial=-1)) + 1) != 1).any():
        return False
    if (parent[first] >= 0).any() or (parent[~first] < 0).any():
        return False
    before = parent[~first]
    return bool((task[before] == task[~first]).all() and (retry_index[before] + 1 == retry_index[~first]).all())


def _tasks(code: Ints, is_in: Bools) -> int:
    return len(np.unique(code[is_in]))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
