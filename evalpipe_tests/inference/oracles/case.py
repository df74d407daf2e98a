"""One folder of reference results: its tables, its checks, and how a number is compared.

A check is answered by the function whose pattern matches the whole of its name; groups of the
pattern arrive as arguments, so that parameters in names are read, not known.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from evalpipe_tests.inference.oracles.parameters import relative_tolerance

ROOT = Path(os.environ.get("EVALPIPE_ORACLES") or Path(__file__).resolve().parents[3].parent / "shared" / "oracles")


@dataclass(frozen=True)
class Check:
    case: Case
    file: str
    name: str
    expected: Any
    tolerance: float | None
    source: str


@dataclass(frozen=True)
class Case:
    path: Path

    @property
    def kind(self) -> str:
        """Name of the folder without its number: what decides which functions answer."""
        return re.sub(r"^\d+_", "", self.path.name)

    def rows(self, table: str) -> list[dict[str, str]]:
        return list(_rows(self.path / f"{table}.csv"))

    def column(self, table: str, name: str) -> np.ndarray:
        return np.array([float(row[name]) for row in self.rows(table)])

    def labels(self, table: str, name: str) -> tuple[np.ndarray, list[str]]:
        values = [row[name] for row in self.rows(table)]
        levels = sorted(set(values))
        place = {level: i for i, level in enumerate(levels)}
        return np.array([place[value] for value in values], dtype=np.int32), levels

    def columns(self, table: str) -> list[str]:
        return list(self.rows(table)[0])

    def checks(self) -> list[Check]:
        found: list[Check] = []
        for file in sorted(self.path.glob("expected_*.json")):
            for name, check in json.loads(file.read_text())["checks"].items():
                tolerance = check["tolerance_abs"]
                found.append(Check(self, file.stem, name, check["expected"], tolerance, check["source"]))
        return found


@cache
def _rows(path: Path) -> tuple[dict[str, str], ...]:
    with path.open() as handle:
        return tuple(csv.DictReader(handle))


def cases(root: Path = ROOT) -> list[Case]:
    return [Case(path) for path in sorted(root.iterdir()) if path.is_dir()] if root.is_dir() else []


@dataclass(frozen=True)
class Between:
    """An answer known up to the reference's own simulation error: any value from ``low`` to ``high``."""

    low: float
    high: float


Answer = Callable[..., Any]
_ANSWERS: list[tuple[str, re.Pattern[str], Answer]] = []


def answers(kind: str, pattern: str) -> Callable[[Answer], Answer]:
    """Register a function as the answer to checks of a kind of case."""

    def register(function: Answer) -> Answer:
        _ANSWERS.append((kind, re.compile(pattern), function))
        return function

    return register


def answer(check: Check) -> Any:
    """What the product says to a check.

    Raises:
        LookupError: Nobody answers it, or two do.
    """
    found = [(f, m) for kind, p, f in _ANSWERS if kind == check.case.kind and (m := p.fullmatch(check.name))]
    if len(found) != 1:
        raise LookupError(f"{len(found)} functions answer {check.case.path.name}: {check.name}")
    function, match = found[0]
    return function(check, **match.groupdict())


def differences(found: Any, check: Check) -> list[str]:
    """Where an answer is not what is expected; empty if it is."""
    relative = relative_tolerance(check.source) if check.tolerance is None else None
    return _differ(found, check.expected, check.tolerance, relative, check.name)


def _differ(found: Any, expected: Any, tolerance: float | None, relative: float | None, path: str) -> list[str]:
    if expected is None:
        # The reference software gave no answer there.
        return []
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return [f"{path}: expected an object, found {found!r}"]
        missing = [f"{path}.{key}: no answer" for key in expected if key not in found]
        both = [key for key in expected if key in found]
        return missing + [d for k in both for d in _differ(found[k], expected[k], tolerance, relative, f"{path}.{k}")]
    if isinstance(expected, list):
        items = list(found) if isinstance(found, list | tuple | np.ndarray) else None
        if items is None or len(items) != len(expected):
            return [f"{path}: expected {len(expected)} entries, found {found!r}"]
        pairs = enumerate(zip(items, expected, strict=True))
        return [d for i, (a, b) in pairs for d in _differ(a, b, tolerance, relative, f"{path}[{i}]")]
    if isinstance(expected, str | bool):
        return [] if found == expected else [f"{path}: expected {expected!r}, found {found!r}"]
    return _number(found, float(expected), tolerance, relative, path)


def _number(found: Any, expected: float, tolerance: float | None, relative: float | None, path: str) -> list[str]:
    if isinstance(found, Between):
        gap = max(found.low - expected, expected - found.high, 0.0)
    else:
        try:
            gap = abs(float(found) - expected)
        except (TypeError, ValueError):
            return [f"{path}: expected {expected!r}, found {found!r}"]
    allowed = tolerance if tolerance is not None else (relative or 0.0) * abs(expected)
    # NaN differs from every number. Rounding of the tolerance itself is not a difference.
    is_close = not math.isnan(gap) and gap <= allowed * (1.0 + 1e-9)
    return [] if is_close else [f"{path}: expected {expected!r}, found {found!r}, allowed {allowed:g}"]
