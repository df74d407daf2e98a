"""Pairs of versions and groups of them, from the tables: who is shown to be better than whom.

Belongs here: relations of pairs, leading sets of groups. Does not belong here: words
(``words.py``, ``grouped.py``) or any estimate.
"""

from __future__ import annotations

from typing import Any

from evalpipe.contracts.metrics import BY_NAME
from evalpipe.report.frames import Labels, ReportInputs, rounded, rows
from evalpipe.report.health import SUPPORT_GROUP
from evalpipe.report.records import (
    ALL,
    BETTER,
    BETTER_THROUGH,
    UNTOLD,
    WORSE,
    WORSE_THROUGH,
    Estimate,
    Group,
    Pair,
)

#: How the name of a slice begins that was made for a group.
GROUP_SLICE = "support="


def pairs(table: list[dict[str, Any]], headline: str, slice_name: str, index: dict[str, int]) -> tuple[Pair, ...]:
    """Ordered pairs of one slice on the headline metric.

    Args:
        table: Rows of ``analysis.pairs``.
        headline: The headline metric.
        slice_name: Raw name of the slice.
        index: Index of each raw version label.
    """
    chosen = [row for row in table if row["metric"] == headline and row["slice"] == slice_name]
    better = {(index[row["version"]], index[row["other"]]) for row in chosen if row["is_better"]}
    out = []
    for row in chosen:
        i, j = index[row["version"]], index[row["other"]]
        relation, through = _relation(i, j, better, len(index))
        numbers = {name: rounded(row[name]) for name in ("difference", "lo", "hi", "se", "df", "gstar")}
        out.append(Pair(version=i, other=j, relation=relation, through=through, **numbers))
    return tuple(sorted(out, key=lambda pair: (pair.version, pair.other)))


def _relation(i: int, j: int, better: set[tuple[int, int]], k: int) -> tuple[str, int | None]:
    if (i, j) in better:
        return BETTER, None
    if (j, i) in better:
        return WORSE, None
    for z in range(k):
        # Both separations hold under one family-wise error, so their chain holds as well.
        if (i, z) in better and (z, j) in better:
            return BETTER_THROUGH, z
        if (j, z) in better and (z, i) in better:
            return WORSE_THROUGH, z
    return UNTOLD, None


def groups(
    inputs: ReportInputs, estimates: tuple[Estimate, ...], headline: str, index: dict[str, int], labels: Labels
) -> tuple[Group, ...]:
    """Groups that the analysis found, in its order of sessions.

    Args:
        inputs: The tables; ``analysis.diagnostics`` states which slices are groups.
        estimates: All estimates of the report.
        headline: The headline metric.
        index: Index of each raw version label.
        labels: Safe labels of slices.
    """
    table = rows(inputs.tables, "analysis.pairs")
    named = [
        row["subject"] for row in rows(inputs.tables, "analysis.diagnostics") if row["check_name"] == SUPPORT_GROUP
    ]
    out = []
    for raw in named:
        name = labels(raw)
        shown = [e for e in estimates if e.metric == headline and e.slice == name and e.is_shown]
        if len(shown) >= 2:
            out.append(_group(name, shown, pairs(table, headline, raw, index)))
    return tuple(sorted(out, key=lambda group: (-group.n_sessions, group.slice)))


def _group(name: str, shown: list[Estimate], found: tuple[Pair, ...]) -> Group:
    beaten = {pair.other for pair in found if pair.relation == BETTER}
    sign = 1.0 if BY_NAME[shown[0].metric].is_higher_better else -1.0
    order = sorted(shown, key=lambda e: (-sign * (e.estimate or 0.0), e.version))
    versions = tuple(e.version for e in order)
    total = sum(e.n_sessions for e in shown)
    leading = tuple(i for i in versions if i not in beaten)
    return Group(name, slice_title(name), total, versions, leading, found)


def slice_title(name: str) -> str:
    """A slice in words: its value."""
    return "All traffic" if name == ALL else name.partition("=")[2] or name
