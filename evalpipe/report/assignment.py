"""What is known of how versions were assigned: where it is stated, and what the checks found.

Belongs here: the words on assignment that the facts, the caveats and the comparison share. Does not
belong here: the checks (``inference``) and the design that they leave (``analysis``). No check can
prove that an assignment was random, so none of these words says that it was.
"""

from __future__ import annotations

from evalpipe.criteria.rules import AS_LOGGED
from evalpipe.report import format as fmt
from evalpipe.report.model import Evidence
from evalpipe.report.phrases import phrase
from evalpipe.report.records import Check

OBSERVATIONAL = "observational"
#: Checks that could contradict an assignment at random, in the order of the report.
_CHECKS = ("stickiness", "srm", "multiple_exposure", "non_compliance", "balance")
_WORST = ("suspect", "inconclusive", "unavailable", "ok")


def is_observational(ev: Evidence) -> bool:
    """Whether a number may only be called associated with its version."""
    return ev.basis is not None and ev.basis.design == OBSERVATIONAL


def stated(ev: Evidence) -> str:
    """The design in words, with where it comes from."""
    if ev.basis is None:
        return fmt.UNAVAILABLE
    words = phrase("designs", ev.basis.design)
    if not is_observational(ev):
        source = "logged" if ev.declared_design == AS_LOGGED else "declared"
        return f"{words} ({source}, not verified)"
    if ev.declared_design != OBSERVATIONAL and _is_contradicted(ev):
        claim = "logged as random" if ev.declared_design == AS_LOGGED else "declared random"
        return f"{words} ({claim}, and a check contradicts it)"
    if ev.declared_design == AS_LOGGED:
        return f"{words} (no random assignment of every session is logged)"
    return f"{words} (declared)"


def _is_contradicted(ev: Evidence) -> bool:
    return any(check.status == "suspect" and check.check in _CHECKS for check in ev.health.checks or ())


def differs_before(ev: Evidence) -> str:
    """In what the sessions of observed versions differ before anything was done; empty if in nothing known.

    In traffic that nobody assigned at random that is no failure of a design. It is what a difference
    between versions may come from.
    """
    if not is_observational(ev) or _is_contradicted(ev):
        return ""
    return fmt.listed([
        check.subject
        for check in ev.health.checks or ()
        if check.check == "balance" and check.status == "inconclusive"
    ])  # fmt: skip


def unverified(ev: Evidence) -> str:
    """Why an assignment at random is only a claim, with what each check found; two sentences."""
    source = "It is logged" if ev.declared_design == AS_LOGGED else "It is declared in the criteria"
    found = findings(ev)
    tail = f" What the checks found: {found}." if found else " No check of it is on record."
    return f"{source}, not verified.{tail}"


def findings(ev: Evidence) -> str:
    """What each check of the assignment found, in one clause; empty where none is on record."""
    parts = []
    for code in _CHECKS:
        group = [check for check in ev.health.checks or () if check.check == code]
        if group:
            parts.append(_found(code, group))
    return "; ".join(parts)


def _found(code: str, group: list[Check]) -> str:
    worst = min(group, key=lambda check: _WORST.index(check.status))
    name = phrase("assignment_checks", code)
    if worst.status == "unavailable":
        return f"{name} could not be checked"
    if worst.value is None:
        return f"{name}: {phrase('status', worst.status)}"
    label = "p " if code in ("srm", "balance") else "excess share " if code == "stickiness" else "share "
    return f"{name}: {phrase('status', worst.status)} ({label}{fmt.number(worst.value)})"
