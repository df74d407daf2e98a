"""The leak check's record in a masked manifest: what parts found, added up and held against earlier slices.

Belongs here: the JSON form of a check, and which earlier slices are compared with. Does not belong here:
the checks (``masking``), making slices (``steps/masked.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from typing import Any

from evalpipe import masking
from evalpipe.masking import MaskPlan
from evalpipe.steps.context import Context
from evalpipe.steps.slices import total

#: How far back earlier slices are looked for.
_TRAILING_DAYS = 56


def of_report(
    report: masking.LeakReport, plan: MaskPlan, contained: masking.Contained | None = None, *, is_rescan: bool = False
) -> dict[str, Any]:
    """The record of one part.

    Args:
        report: What the check found.
        plan: What the part was masked by.
        contained: The part's fields that were withheld for what an earlier check found in them.
        is_rescan: Whether the text had been masked before; then there was less to hide, and the rates
            compare with those of other rescans only.
    """
    made_by = f"{plan.ruleset_digest()}.{plan.key.epoch}"
    withheld = contained.findings if contained is not None else ()
    return {
        "passed": report.passed,
        "findings": [asdict(finding) for finding in (*report.findings, *withheld)],
        "n_contained": contained.n_fields if contained is not None else 0,
        "counts": report.counts,
        "canaries_planted": report.canaries_planted,
        "canaries_counted": report.canaries_counted,
        "rates": asdict(report.rates),
        "witness": report.witness,
        "masked_by": f"{made_by}.rescan" if is_rescan else made_by,
    }


def with_findings(leak: Mapping[str, Any], more: Sequence[masking.Finding]) -> dict[str, Any]:
    """A record with further findings."""
    return {
        **leak,
        "passed": leak["passed"] and not any(finding.is_high for finding in more),
        "findings": [*leak["findings"], *map(asdict, more)],
    }


def trailing(context: Context, day: date) -> list[dict[str, Any]]:
    """Records of the slices of the last weeks before a day, oldest first."""
    days = [d for d in context.lake.days("masked") if day - timedelta(days=_TRAILING_DAYS) <= d < day]
    manifests = [context.lookup("masked", d) for d in sorted(days)]
    return [m.stats["leak"] for m in manifests if m is not None and m.stats.get("leak", {}).get("rates")]


def merge(parts: Sequence[Mapping[str, Any]], earlier: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The record of a slice.

    Args:
        parts: Records of its parts.
        earlier: Records of earlier slices; those that another rule set or key made are not compared.

    Returns:
        The parts added up. ``rate_state`` says how the slice's rates compare: ``within`` or
        ``outside`` the band, or ``unavailable`` with too little text or history.
    """
    leak = {
        "passed": all(part["passed"] for part in parts),
        "findings": [finding for part in parts for finding in part["findings"]],
        "n_contained": sum(part["n_contained"] for part in parts),
        "counts": dict(sorted(total(part["counts"] for part in parts).items())),
        "canaries_planted": sum(part["canaries_planted"] for part in parts),
        "canaries_counted": sum(part["canaries_counted"] for part in parts),
    }
    by = sorted({part["masked_by"] for part in parts})
    alike = [record for record in earlier if [record.get("masked_by")] == by]
    rates = masking.add_rates(masking.Rates(**part["rates"]) for part in parts)
    state, findings = masking.judge_rates(rates, [masking.Rates(**record["rates"]) for record in alike])
    findings += masking.judge_contained(leak["n_contained"], rates.n_values)
    witnesses = {part["witness"] for part in parts}
    if len(witnesses | {record["witness"] for record in alike}) > 1:
        findings.append(masking.Finding("steps.text", "one person has several tokens over partitions", 1))
    marks = {"witness": min(witnesses, default=""), "masked_by": ".".join(by[:1]), "rate_state": state}
    return with_findings({**leak, "rates": asdict(rates), **marks}, findings)
