"""Task types that criteria declare: kinds of work finer than a scenario, from the same evidence.

Belongs here: applying the declared rules, and trying them on their own examples. Does not belong here:
which keys a type may have (``criteria``) or the scenario (``scenario.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria.model import TaskType
from evalpipe.signals.rulefiles import RuleError
from evalpipe.signals.scenario import any_holds, openings
from evalpipe.signals.text import fold_column


def with_task_types(
    scenarios: pl.DataFrame, sessions: pl.DataFrame, turns: pl.DataFrame, types: Sequence[TaskType]
) -> pl.DataFrame:
    """Add ``task_type`` to sessions: the first declared type that holds, else null.

    Args:
        scenarios: Frame of :func:`~evalpipe.signals.scenario.scenarios`.
        sessions: masked.sessions, in the same order. turns: Turns of persons, in order.
        types: Declared types in order.
    """
    if not types:
        return scenarios.with_columns(task_type=pl.lit(None, dtype=pl.String))
    evidence = openings(sessions, turns).with_columns(scenarios["scenario"])
    told = pl.coalesce([pl.when(_holds(kind)).then(pl.lit(kind.name)) for kind in types])
    return scenarios.with_columns(evidence.select(task_type=told)["task_type"])


def check_task_types(types: Sequence[TaskType], where: str) -> None:
    """Try declared types on their own examples.

    Args:
        types: Declared types. where: The criteria, for messages.

    Raises:
        EvalpipeError: ``CRITERIA_INVALID`` with the key of the first pattern that cannot run, example that
            its type does not take, or counterexample that it does.
    """
    for index, kind in enumerate(types):
        key = f"{where}: extraction.task_types[{index}]"
        for name, column in (("text", "text"), ("unless", "text"), ("tools", "tools")):
            for pattern in getattr(kind, name):
                _require_runs(pattern, column, f"{key}.{name}")
        for name, number, what in _misread(kind):
            fix = "Mend text and unless, or the example. Patterns see small letters without accents."
            raise EvalpipeError("CRITERIA_INVALID", f"Number {number} is {what}.", where=f"{key}.{name}", fix=fix)


def _holds(kind: TaskType) -> pl.Expr:
    tests = [_text_holds(kind)] if kind.text else []
    if kind.tools:
        tests.append(any_holds("tools", kind.tools))
    if kind.scenario:
        tests.append(pl.col("scenario").is_in(list(kind.scenario)))
    if kind.needs_workspace:
        tests.append(pl.col("workspace").is_not_null())
    return pl.all_horizontal(tests)


def _text_holds(kind: TaskType) -> pl.Expr:
    found = any_holds("text", kind.text)
    return found & ~any_holds("text", kind.unless) if kind.unless else found


def _misread(kind: TaskType) -> Iterator[tuple[str, int, str]]:
    """(key, number from 1, what is wrong) of examples that the patterns read wrongly."""
    groups = (("examples", kind.examples, "not taken"), ("counterexamples", kind.counterexamples, "taken"))
    for name, texts, wrong in groups:
        if texts:
            frame = pl.DataFrame({"text": list(texts)}).select(text=fold_column(pl.col("text")))
            held = frame.select(held=_text_holds(kind))["held"].to_list()
            unwanted = name == "counterexamples"
            what = f"{wrong} by the patterns of {kind.name!r}"
            yield from ((name, number, what) for number, found in enumerate(held, 1) if found == unwanted)


def _require_runs(pattern: str, column: str, key: str) -> None:
    try:
        pl.DataFrame({column: ["a"]}).select(any_holds(column, [pattern]))
    except (RuleError, IndexError, pl.exceptions.ComputeError) as error:
        fix = "Write it without look-around, back-references and lazy quantifiers; brackets must close."
        raise EvalpipeError("CRITERIA_INVALID", "A pattern cannot be run.", where=key, fix=fix) from error
