"""The data-health section: reading balance, quarantine, masking counts, leak check, design checks.

Belongs here: sums over ``masked.files``, ``masked.quarantine``, ``masked.redactions`` and
``analysis.diagnostics``. Does not belong here: paths, file ids or texts: only counts leave.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from evalpipe.contracts.errors import QUARANTINE_CODES
from evalpipe.report.format import clean_label
from evalpipe.report.frames import ReportInputs, rounded, rows
from evalpipe.report.phrases import check_title, entity_title
from evalpipe.report.records import Check, EntityCount, Health, Leak, QuarantineCount, SourceRows

#: Rows of ``analysis.diagnostics`` that state a group of versions, or what was done and why; they
#: check nothing.
SUPPORT_GROUP = "support_group"
STATEMENTS = (SUPPORT_GROUP, "plan")
_BALANCE = ("rows_read", "rows_kept", "rows_noise", "rows_quarantined")


def build_health(inputs: ReportInputs) -> Health:
    """Counts of reading, masking and checking; None for a table that was not given."""
    tables = inputs.tables
    return Health(
        sources=_sources(rows(tables, "masked.files")) if "masked.files" in tables else None,
        quarantine=_quarantine(rows(tables, "masked.quarantine")) if "masked.quarantine" in tables else None,
        entities=_entities(rows(tables, "masked.redactions")) if "masked.redactions" in tables else None,
        leak=_leak(inputs.leak),
        checks=_checks(rows(tables, "analysis.diagnostics")) if "analysis.diagnostics" in tables else None,
    )


def _sources(files: list[dict[str, Any]]) -> tuple[SourceRows, ...]:
    sums: dict[str, list[int]] = {}
    for row in files:
        total = sums.setdefault(row["source"], [0] * 5)
        total[0] += 1
        for slot, name in enumerate(_BALANCE, start=1):
            total[slot] += row[name]
    return tuple(SourceRows(clean_label(source), *sums[source]) for source in sorted(sums))


def _quarantine(records: list[dict[str, Any]]) -> tuple[QuarantineCount, ...]:
    counts = Counter(row["code"] for row in records)
    return tuple(
        QuarantineCount(code, QUARANTINE_CODES[code].meaning if code in QUARANTINE_CODES else "", n)
        for code, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )


def _entities(redactions: list[dict[str, Any]]) -> tuple[EntityCount, ...]:
    values: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    for row in redactions:
        values[row["entity"]] += row["n_rows"]
        hits[row["entity"]] += row["n_hits"]
    order = sorted(hits, key=lambda entity: (-hits[entity], entity))
    return tuple(EntityCount(entity, entity_title(entity), values[entity], hits[entity]) for entity in order)


def _leak(leak: dict[str, Any] | None) -> Leak:
    if leak is None:
        return Leak(None, None, None, None)
    findings = leak.get("findings")
    return Leak(
        passed=leak.get("passed"),
        findings=findings if findings is None or isinstance(findings, int) else len(findings),
        planted=leak.get("canaries_planted"),
        counted=leak.get("canaries_counted"),
    )


def _checks(table: list[dict[str, Any]]) -> tuple[Check, ...]:
    return tuple(
        Check(
            check=row["check_name"],
            title=check_title(row["check_name"]),
            subject=clean_label(row["subject"]),
            value=rounded(row["value"]),
            limit=rounded(row["bound"]),
            status=row["status"],
            detail=clean_label(row["detail"]),
        )
        for row in sorted(table, key=lambda row: (row["check_name"], row["subject"]))
        if row["check_name"] not in STATEMENTS
    )
