"""Fields on which masking and the independent detector disagree: withheld and counted, so that a day is not lost.

Belongs here: withholding single fields that the leak check found, and what tells of them. Does not belong here: the
check (``leak_check``), how many a day may lose (``leak_rates``, ``leak_limits.toml``). Anyone can write a line into a
log that looks like a key to one of the two and like an example to the other. Canaries are never touched: a rule that
broke leaves them in, and the slice stays red.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from evalpipe.masking import detector
from evalpipe.masking.canary_rows import CANARY_SOURCE
from evalpipe.masking.decode import is_json, looks_like_json
from evalpipe.masking.kernel import MaskedPart
from evalpipe.masking.leak_check import MALFORMED, UNSTABLE, malformed_tokens
from evalpipe.masking.leak_search import Finding
from evalpipe.masking.plan import MaskPlan
from evalpipe.masking.policy import Counts

REASON = "leak"
_TEXTS = ("text", "arguments", "output")


@dataclass(frozen=True, slots=True)
class Contained:
    """A part without its disputed fields.

    Attributes:
        part: The part, each such field replaced by its token and counted as ``WITHHELD``, subtype ``leak``.
        n_fields: How many were withheld.
        findings: For the record: what the leak check had found, which blocks no more.
    """

    part: MaskedPart
    n_fields: int
    findings: tuple[Finding, ...]


def contain(part: MaskedPart, findings: Iterable[Finding], plan: MaskPlan) -> Contained | None:
    """Withhold the fields of a part that blocking findings are about.

    Args:
        part: Masked frames, canary rows included.
        findings: What the leak check found.
        plan: What the part was masked with.

    Returns:
        What is left; or ``None`` where that mends nothing: findings elsewhere, or in canaries.
    """
    wanted: dict[str, set[str]] = {}
    told: list[Finding] = []
    for finding in findings:
        if not finding.is_high:
            continue
        table, _, column = finding.field.partition(".")
        is_of_text = detector.is_high(finding.test) or finding.test in (MALFORMED, UNSTABLE)
        if table != "steps" or column not in _TEXTS or not is_of_text:
            return None
        wanted.setdefault(column, set()).add(finding.test)
        told.append(Finding(finding.field, f"withheld: {finding.test}", finding.n, is_high=False))
    owners = part.steps.select("session_id").join(
        part.sessions.select("session_id", "source"), on="session_id", how="left", maintain_order="left"
    )["source"]
    counts, steps, n = Counts(), part.steps, 0
    for column, tests in sorted(wanted.items()):
        values = steps[column].to_list()
        for row in _rows(steps[column], tests, plan):
            if owners[row] == CANARY_SOURCE:
                return None
            text = values[row]
            document = looks_like_json(text.encode()) and is_json(text.encode())
            token, hits = plan.withheld(REASON, len(text.encode()), document=document)
            values[row] = token.decode()
            counts.add(owners[row] or "", f"steps.{column}", hits)
            n += 1
        steps = steps.with_columns(pl.Series(column, values, dtype=pl.String))
    if not n:
        return None
    masked = MaskedPart(part.sessions, steps, pl.concat([part.redactions, counts.frame(plan)]))
    return Contained(masked, n, tuple(told))


def _rows(series: pl.Series, tests: set[str], plan: MaskPlan) -> list[int]:
    """Rows that one of some tests is about."""
    shapes = [d.shape for d in detector.detectors() if d.id in tests]
    suspects = [series.str.contains(shape).fill_null(value=False) for shape in shapes]
    out = {
        row
        for mask in suspects
        for row in mask.arg_true().to_list()
        if any(detector.is_high(name) for name in detector.scan(series[row : row + 1]))
    }
    for row, text in enumerate(series.to_list()):
        if text is None or row in out:
            continue
        is_malformed = MALFORMED in tests and re.search("<[A-Z]", text) and malformed_tokens(text, plan.key.epoch)[1]
        if is_malformed or (UNSTABLE in tests and plan.mask_text(text)[0] != text):
            out.add(row)
    return sorted(out)
