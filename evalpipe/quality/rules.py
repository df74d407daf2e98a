"""Rules of precision, read from ``data/quality/*.toml`` and checked against the contracts.

Belongs here: the form of a rule and its validation. Does not belong here: any rule or bound, which is
data, nor how a measure is computed (``quality/profiles.py``).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.contracts.model import Table
from evalpipe.contracts.tables import TABLES
from evalpipe.locations import data_dir

#: Measures, with the keys that each needs beside its bounds.
MEASURES: dict[str, tuple[str, ...]] = {
    "rows": (),
    "distinct": ("of",),
    "null_share": ("of",),
    "duplicate_share": (),
    "share": ("of", "equal"),
    "ratio": ("of", "over"),
    "unaccounted": ("of", "minus"),
    "min": ("of",),
    "median": ("of",),
    "max": ("of",),
}
SEVERITIES = ("error", "warn")

_OPTIONAL: dict[str, tuple[str, ...]] = {"duplicate_share": ("of",), "share": ("weight",)}
_COMMON = ("measure", "where", "low", "high", "severity", "why")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a measure of a table, its bounds, and how much a broken one matters.

    Attributes:
        table: Full name of the table.
        column: Name of the profile column.
        measure: One of :data:`MEASURES`.
        of: Columns that are measured.
        over, weight: Column that a ratio is divided by; that a row of a share counts with.
        equal: Values that a share counts.
        minus: Columns that must add up to ``of``.
        where: Only rows whose columns hold one of these values.
        low, high: Inclusive bounds; one of them may be ``None``.
        severity: ``error`` or ``warn``.
        why: What a broken rule means.
    """

    table: str
    column: str
    measure: str
    severity: str
    why: str
    of: tuple[str, ...] = ()
    over: str = ""
    weight: str = ""
    equal: tuple[Any, ...] = ()
    minus: tuple[str, ...] = ()
    where: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    low: float | None = None
    high: float | None = None

    @property
    def bounds(self) -> str:
        """The bounds in words."""
        parts = [f"at least {self.low:g}"] if self.low is not None else []
        parts += [f"at most {self.high:g}"] if self.high is not None else []
        return " and ".join(parts)


def load_rules(directory: Path | None = None) -> list[Rule]:
    """Read every rule file of a folder.

    Args:
        directory: Folder of TOML files; the shipped ``data/quality`` by default.

    Returns:
        The rules of all tables, in the order of the files.

    Raises:
        EvalpipeError: ``CRITERIA_INVALID`` naming file, table and profile column.
    """
    out: list[Rule] = []
    known: set[tuple[str, str]] = set()
    for path in sorted((directory or data_dir() / "quality").glob("*.toml")):
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise _invalid(path, "", f"The file is not TOML: {error}.") from None
        for table, columns in content.items():
            if table not in TABLES:
                raise _invalid(path, table, "There is no table of that name.")
            for column, spec in columns.items():
                if (table, column) in known:
                    raise _invalid(path, f"{table}.{column}", "Another file has a rule of that name.")
                known.add((table, column))
                out.append(_rule(path, TABLES[table], column, spec))
    return out


def _invalid(path: Path, key: str, what: str) -> EvalpipeError:
    where = f"quality/{path.name}: {key}" if key else f"quality/{path.name}"
    return EvalpipeError("CRITERIA_INVALID", what, where=where)


def _rule(path: Path, table: Table, column: str, spec: Mapping[str, Any]) -> Rule:
    problem = "A profile has a column table already." if column == "table" else _problem(table, spec)
    if problem:
        raise _invalid(path, f"{table.full_name}.{column}", problem)
    of = spec.get("of", ())
    return Rule(
        table=table.full_name,
        column=column,
        measure=spec["measure"],
        severity=spec["severity"],
        why=spec["why"],
        of=(of,) if isinstance(of, str) else tuple(of) or (table.keys if spec["measure"] == "duplicate_share" else ()),
        over=spec.get("over", ""),
        weight=spec.get("weight", ""),
        equal=tuple(spec.get("equal", ())),
        minus=tuple(spec.get("minus", ())),
        where=tuple((name, tuple(values)) for name, values in spec.get("where", {}).items()),
        low=spec.get("low"),
        high=spec.get("high"),
    )


def _problem(table: Table, spec: Mapping[str, Any]) -> str:
    """What is wrong with a rule, or nothing."""
    measure = spec.get("measure")
    if measure not in MEASURES:
        return f"measure is none of {', '.join(MEASURES)}."
    needed = MEASURES[measure]
    for key in spec:
        if key not in (*needed, *_OPTIONAL.get(measure, ()), *_COMMON):
            return f"{key} is not a key of a {measure} rule."
    for key in (*needed, "severity", "why"):
        if not spec.get(key):
            return f"{key} is missing."
    if spec["severity"] not in SEVERITIES:
        return f"severity is none of {', '.join(SEVERITIES)}."
    return _bad_bounds(spec) or _bad_columns(table, spec)


def _bad_bounds(spec: Mapping[str, Any]) -> str:
    low, high = spec.get("low"), spec.get("high")
    for bound in (low, high):
        if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int | float)):
            return "low and high are numbers."
    if low is None and high is None:
        return "low or high is missing."
    if low is not None and high is not None and low > high:
        return "low is above high."
    return ""


def _bad_columns(table: Table, spec: Mapping[str, Any]) -> str:
    named: list[str] = [spec[key] for key in ("over", "weight") if key in spec]
    for key in ("of", "minus"):
        value: str | Sequence[str] = spec.get(key, ())
        named += [value] if isinstance(value, str) else list(value)
    for name in (*named, *spec.get("where", {})):
        if name not in table:
            return f"{table.full_name} has no column {name}."
    lists = {"equal": spec.get("equal"), **{f"where.{name}": values for name, values in spec.get("where", {}).items()}}
    for key, values in lists.items():
        if values is not None and not (isinstance(values, list) and values):
            return f"{key} is a list of values."
    return ""
