"""Shape of a criteria file: its sections, keys and types; rules on values are in ``rules.py``.

Belongs here: what may stand where, derived from the dataclasses of ``criteria/model.py``, so that
a field is declared once. Does not belong here: reading files (``criteria/load.py``). Every problem
of a file is found in one pass: a person who mends one key should not meet the next one only on the
next run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

from evalpipe.criteria.model import (
    EstimandCriteria,
    ExtractionCriteria,
    GateCriterion,
    MaskingCriteria,
    OutcomesCriteria,
    Sampling,
    TaskType,
)
from evalpipe.criteria.problem import Problem
from evalpipe.criteria.rules import RULES, nearest
from evalpipe.criteria.task_types import refused_evidence

SECTIONS: dict[str, type] = {
    "masking": MaskingCriteria,
    "extraction": ExtractionCriteria,
    "outcomes": OutcomesCriteria,
    "estimand": EstimandCriteria,
}
TEXTS = ("name", "version", "description")
TOP_KEYS = (*TEXTS, *SECTIONS, "gates")
OPTIONAL = ("description", "gates")
TASK_TYPES = "extraction.task_types"
SAMPLING = "estimand.sampling"

_WORDS: dict[object, str] = {
    str: "a string",
    int: "a whole number",
    float: "a finite number",
    bool: "true or false",
    tuple[str, ...]: "a list of strings",
    dict[str, float]: "a table of finite numbers",
}


def problems(data: Mapping[str, Any]) -> list[Problem]:
    """Every broken rule of a parsed criteria file, in the order of the sections.

    Args:
        data: The file as ``tomllib`` parsed it.

    Returns:
        Problems; empty if the file is valid. Rules on values run only when keys and types hold,
        so that one mistake is reported once.
    """
    found = list(_shape(data))
    return found or [problem for rule in RULES for problem in rule(data)]


def is_of(kind: object, value: object) -> bool:
    """Whether a TOML value has a field's type; ``true`` is not a number, and 1 may be a float."""
    if kind is bool:
        return isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if kind is str:
        return isinstance(value, str)
    if kind == dict[str, float]:
        return isinstance(value, dict) and all(is_of(float, item) for item in value.values())
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _shape(data: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _unknown("", data, TOP_KEYS)
    yield from (_absent(key) for key in TOP_KEYS if key not in data and key not in OPTIONAL)
    yield from (_mistyped(key, str) for key in TEXTS if not is_of(str, data.get(key, "")))
    for section, model in SECTIONS.items():
        values = data.get(section)
        if isinstance(values, dict):
            yield from _typed(section, values, model, lists=("task_types", "sampling"))
        elif section in data:
            yield Problem(section, "The key is not a table.", f"Open it with the line [{section}].")
    gates = data.get("gates", [])
    if not _is_tables(gates):
        yield Problem("gates", "The key is not a list of tables.", "Open each gate with [[gates]].")
    else:
        for index, gate in enumerate(gates):
            yield from _typed(f"gates[{index}]", gate, GateCriterion)
    yield from _task_types(data)
    yield from _sampling(data)


def _sampling(data: Mapping[str, Any]) -> Iterator[Problem]:
    estimand = data.get("estimand")
    rules = estimand.get("sampling", []) if isinstance(estimand, dict) else []
    if not _is_tables(rules):
        yield Problem(SAMPLING, "The key is not a list of tables.", f"Open each kind with [[{SAMPLING}]].")
        return
    for index, row in enumerate(rules):
        yield from _typed(f"{SAMPLING}[{index}]", row, Sampling, needed=("kept",))


def _task_types(data: Mapping[str, Any]) -> Iterator[Problem]:
    extraction = data.get("extraction")
    types = extraction.get("task_types", []) if isinstance(extraction, dict) else []
    if not _is_tables(types):
        yield Problem(TASK_TYPES, "The key is not a list of tables.", f"Open each task type with [[{TASK_TYPES}]].")
        return
    for index, row in enumerate(types):
        # Evidence that a version changes is refused with its reason, not as a word that is misspelled.
        told = list(refused_evidence(f"{TASK_TYPES}[{index}]", row))
        yield from told
        known = {
            key: value for key, value in row.items() if f"{TASK_TYPES}[{index}].{key}" not in {p.key for p in told}
        }
        yield from _typed(f"{TASK_TYPES}[{index}]", known, TaskType, needed=("name",))


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _typed(
    section: str,
    values: Mapping[str, Any],
    model: type,
    *,
    needed: Iterable[str] | None = None,
    lists: tuple[str, ...] = (),
) -> Iterator[Problem]:
    """Problems of one table; ``lists`` are keys that hold tables of their own and are checked apart."""
    hints = get_type_hints(model)
    # A field that may be left out has a default that says so: nothing is declared.
    required = {f.name for f in fields(model) if f.default is MISSING and f.default_factory is MISSING}
    yield from _unknown(f"{section}.", values, hints)
    for name, kind in hints.items():
        key = f"{section}.{name}"
        if name in lists:
            continue
        if name not in values:
            if name in (required if needed is None else needed):
                yield _absent(key)
        elif not is_of(kind, values[name]):
            yield _mistyped(key, kind)


def _unknown(prefix: str, values: Mapping[str, Any], known: Iterable[str]) -> Iterator[Problem]:
    names = list(known)
    for key in values:
        if key not in names:
            yield Problem(f"{prefix}{key}", "There is no such key in criteria.", nearest(key, names))


def _absent(key: str) -> Problem:
    fix = "Copy it from the default criteria; no key has a hidden default."
    return Problem(key, "The key is missing.", fix)


def _mistyped(key: str, kind: object) -> Problem:
    fix = f"Write {_WORDS[kind]}."
    if kind == dict[str, float]:
        # In TOML a bare dotted key opens a table, which is how a weight gets lost most often.
        fix = 'Write numbers, with dotted names in quotes: "confirm.explicit" = 1.0'
    return Problem(key, f"The value is not {_WORDS[kind]}.", fix)
