"""What differs between two criteria, and whether a series survives it.

Belongs here: the comparison of typed criteria. Does not belong here: text differences of files;
two files that differ in comments and order only are the same criteria.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from evalpipe.criteria.model import TASK_TYPE_TESTS, Criteria

BREAKS_SERIES = "breaks_series"
BRIDGE = "bridge"
NONE = "none"

#: What a change in each part does to a series of results.
EFFECTS: dict[str, str] = {
    "name": NONE,
    "version": NONE,
    "description": NONE,
    "gates": NONE,
    "masking": BRIDGE,
    "extraction": BREAKS_SERIES,
    "extractors": BREAKS_SERIES,
    "outcomes": BREAKS_SERIES,
    "estimand": BREAKS_SERIES,
}


@dataclass(frozen=True, slots=True)
class Change:
    """One value that differs.

    Attributes:
        path: Dotted key; gates are named, not numbered: ``gates.outcome_no_worse.margin``.
        old, new: The values; ``None`` where a gate exists on one side only.
        effect: ``breaks_series`` (a new measurement; results before and after are not compared),
            ``bridge`` (the same measurement, but an overlap should be scored under both) or
            ``none``.
    """

    path: str
    old: object
    new: object
    effect: str


def diff(old: Criteria, new: Criteria) -> list[Change]:
    """Every value that differs between two criteria, sorted by effect, then by path.

    There is a change with effect ``breaks_series`` exactly when the two measurements differ.
    """
    before, after = _flat(old), _flat(new)
    changes = [
        Change(path, before.get(path), after.get(path), _effect(path))
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path)
    ]
    order = (BREAKS_SERIES, BRIDGE, NONE)
    return sorted(changes, key=lambda change: (order.index(change.effect), change.path))


def _effect(path: str) -> str:
    is_test = path.startswith("extraction.task_types.") and path.rsplit(".", 1)[1] in TASK_TYPE_TESTS
    return NONE if is_test else EFFECTS[path.split(".", 1)[0]]


def _flat(criteria: Criteria) -> dict[str, Any]:
    value = asdict(criteria)
    value["gates"] = _named(value["gates"])
    types = value["extraction"]["task_types"]
    # The first type that holds wins, so their order says something too.
    order = {"order": tuple(row["name"] for row in types)} if types else {}
    value["extraction"]["task_types"] = _named(types) | order
    rules = [f"{rule.name} {rule.kept:g}" for rule in criteria.estimand.sampling]
    value["estimand"]["sampling"] = tuple(rules)
    return dict(_leaves("", value))


def _named(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {row["name"]: {k: v for k, v in row.items() if k != "name"} for row in rows}


def _leaves(prefix: str, value: Mapping[str, Any]) -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for key, item in value.items():
        path = f"{prefix}{key}"
        out.extend(_leaves(f"{path}.", item) if isinstance(item, dict) else [(path, item)])
    return out
