"""Checks of design and data as the report prints them: one row a check, the worst state first.

Belongs here: grouping and wording of ``analysis.diagnostics``. Does not belong here: making a check.
"""

from __future__ import annotations

from dataclasses import dataclass

from evalpipe.report import format as fmt
from evalpipe.report.model import Evidence
from evalpipe.report.phrases import phrase
from evalpipe.report.records import Check


@dataclass(frozen=True, slots=True)
class CheckCells:
    """All rows of one check: worst status, and what to print of it."""

    title: str
    status: str
    word: str
    value: str
    details: tuple[str, ...]


def checks_chip(ev: Evidence) -> tuple[str, str]:
    """The worst state of all checks and its words, for the fact beside the answer."""
    checks = ev.health.checks
    if not checks:
        return "unavailable", "no check on record"
    for status in ("suspect", "inconclusive", "unavailable"):
        n = sum(check.status == status for check in checks)
        if n:
            return status, f"{n} of {fmt.plural(len(checks), 'check')} {phrase('status', status)}"
    return "ok", f"{fmt.plural(len(checks), 'check')} passed"


#: Checks that pass on their limit or above it; the others pass on it or below it.
LOWER_LIMITS = frozenset({"srm", "balance", "positivity", "support_share"})
#: Checks whose value is a p-value.
P_VALUES = frozenset({"srm", "balance"})
_WORST = ("suspect", "inconclusive", "unavailable", "ok")


def check_rows(ev: Evidence) -> tuple[CheckCells, ...]:
    """One row a check, whatever the number of subjects; every subject that did not pass is named."""
    groups: dict[str, list[Check]] = {}
    for check in ev.health.checks or ():
        groups.setdefault(check.title, []).append(check)
    rows = [_check_row(title, group) for title, group in groups.items()]
    return tuple(sorted(rows, key=lambda row: _WORST.index(row.status)))


def _check_row(title: str, group: list[Check]) -> CheckCells:
    status = min((check.status for check in group), key=_WORST.index)
    open_ones = [check for check in group if check.status != "ok"]
    if len(group) == 1:
        only = group[0]
        return CheckCells(title, status, phrase("status", status), _value_text([only]), (only.detail,))
    details = [f"{check.subject}: {check.detail}" for check in open_ones]
    passed = len(group) - len(open_ones)
    details.append(f"{passed} of {len(group)} subjects passed.")
    return CheckCells(title, status, phrase("status", status), _value_text(group), tuple(details))


def _value_text(group: list[Check]) -> str:
    values = [check.value for check in group if check.value is not None]
    limits = {check.limit for check in group if check.limit is not None}
    if not values:
        return ""
    low, high = fmt.number(min(values)), fmt.number(max(values))
    text = low if low == high else f"{low} to {high}"
    if group[0].check in P_VALUES:
        text = f"p {text}"
    if len(limits) != 1:
        return text
    side = "at least" if group[0].check in LOWER_LIMITS else "at most"
    return f"{text}, {side} {fmt.number(limits.pop())} passes"
