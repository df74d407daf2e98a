"""Reading contract tables row by row: labels made safe, numbers rounded once, one measurement only.

Belongs here: what every builder of a section needs from a frame. Does not belong here: any section.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.criteria.model import Criteria
from evalpipe.report.format import clean_label
from evalpipe.report.records import Window

SEPARATOR = " \u00b7 "
_DIGITS = 8
_SCORED = ("net_improvement", "pairs", "strata", "diagnostics")


@dataclass(frozen=True, slots=True)
class ReportInputs:
    """What a report is made from.

    Attributes:
        tables: Frames by full contract name: ``analysis.net_improvement``, ``analysis.pairs``,
            ``analysis.strata``, ``analysis.diagnostics``, ``analysis.gates``, ``masked.files``,
            ``masked.redactions``, ``masked.quarantine``; one window and measurement. A table that
            is absent makes its part of the report say so.
        criteria: The criteria that scored the window.
        candidate, baseline: Version labels of the gate, or None.
        product_version: Version of evalpipe that made the numbers.
        leak: Result of the leak check: ``passed``, ``findings``, ``canaries_planted``,
            ``canaries_counted``; None where no check is on record.
    """

    tables: dict[str, pl.DataFrame]
    criteria: Criteria
    candidate: str | None
    baseline: str | None
    product_version: str
    leak: dict[str, Any] | None = None


def rows(tables: Mapping[str, pl.DataFrame], name: str) -> list[dict[str, Any]]:
    """Rows of a table as dictionaries; none where the table is absent or empty."""
    frame = tables.get(name)
    return [] if frame is None else frame.to_dicts()


def rounded(value: float | None) -> float | None:
    """A number at eight significant digits: rounded once, so that JSON and text agree."""
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def window_of(inputs: ReportInputs) -> Window:
    """The one window and measurement of the analysis tables.

    Raises:
        EvalpipeError: ``MIXED_MEASUREMENTS`` where the tables hold more than one.
    """
    criteria = inputs.criteria
    keys = ["as_of", "window_name", "window_start", "window_end", "measurement"]
    keys += ["criteria_name", "criteria_version", "criteria_hash"]
    found: set[tuple[Any, ...]] = set()
    for name in _SCORED:
        frame = inputs.tables.get(f"analysis.{name}")
        if frame is not None and not frame.is_empty():
            found.update(frame.select(keys).unique().rows())
    if len(found) > 1:
        raise EvalpipeError(
            "MIXED_MEASUREMENTS",
            f"the report's tables hold {len(found)} windows or measurements.",
            where="report",
            fix="Give the rows of one as-of day, window and measurement.",
        )
    if found:
        return Window(*found.pop())
    return Window(None, "", None, None, criteria.measurement, criteria.name, criteria.version, criteria.hash)


class Labels:
    """Safe, distinct labels for the versions and slices of a log.

    Labels come from logs: they may hold control characters or marks that turn the reading order.
    Two labels that look alike once cleaned are numbered, so that they stay two.
    """

    def __init__(self) -> None:
        self._clean: dict[str, str] = {}
        self._taken: set[str] = set()

    def __call__(self, raw: str) -> str:
        """The safe label of a raw one; the same one each time."""
        if raw not in self._clean:
            label, n = clean_label(raw), 1
            while label in self._taken:
                n += 1
                label = f"{clean_label(raw)} ({n})"
            self._clean[raw] = label
            self._taken.add(label)
        return self._clean[raw]


def split_label(label: str, compare_by: tuple[str, ...]) -> tuple[str, str]:
    """A label in two lines: agent with its release, and the model.

    A label that does not have one part a compared field (a name may hold the separator) stays whole.
    """
    parts = label.split(SEPARATOR)
    if len(parts) != len(compare_by) or len(parts) == 1:
        return label, ""
    named = dict(zip(compare_by, parts, strict=True))
    model = named.pop("model", "")
    return " ".join(named.values()), model
