"""The error table: what the result of one tool call means.

Belongs here: loading the rows of ``errors.toml`` and finding the first that holds. Does not belong
here: the rows themselves, finding suspicious calls in bulk (``calls``), signals (``hard``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evalpipe.contracts.signals import CATEGORY_LAYERS
from evalpipe.signals import commands, rulefiles

FAILURES = frozenset({"error", "check_failure"})


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call with its result, as the table sees it.

    Attributes:
        tool: Class of the tool: shell, edit, read or other.
        command: Command of a shell tool; empty otherwise.
        output: Result text.
        exit_code: Exit code, or None where the log has none.
        is_flagged: The log marks the result as an error. A non-zero exit code marks it too.
        is_known: The session's registry names the tool; None where it is not logged.
    """

    tool: str
    command: str
    output: str
    exit_code: int | None
    is_flagged: bool
    is_known: bool | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a call's result means, with the evidence's place in the output."""

    status: str
    category: str | None
    layer: str | None
    confidence: float
    rule_id: str
    is_hidden: bool
    exit_scope: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table."""

    id: str
    step: int
    status: str
    category: str | None
    confidence: float
    is_hidden: bool
    tools: frozenset[str]
    exit: str | frozenset[int]
    flagged: bool | None
    known: bool | None
    command: re.Pattern[str] | None
    unless_command: re.Pattern[str] | None
    last: re.Pattern[str] | None
    any: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    examples: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Prefilter:
    """Words that make a quiet result worth a look: for which tools, where, after which command."""

    tools: tuple[str, ...]
    part: str
    command: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """All rows, the characters looked at on each side, and the prefilter of quiet results."""

    rules: tuple[Rule, ...]
    edge_chars: int
    start_chars: int
    opening_chars: int
    prefilter: tuple[Prefilter, ...]


@lru_cache(maxsize=1)
def table() -> Table:
    """The shipped error table."""
    data = rulefiles.load("errors.toml")
    macros = data["macros"]
    prefilter = tuple(
        Prefilter(tuple(p["tools"]), p["part"], rulefiles.expand(p.get("command", ""), macros), tuple(p["words"]))
        for p in data["prefilter"]
    )
    rules = tuple(_rule(row, macros) for row in data["rule"])
    return Table(rules, data["edge_chars"], data["start_chars"], data["opening_chars"], prefilter)


def _rule(row: Mapping[str, Any], macros: Mapping[str, str]) -> Rule:
    def pattern(key: str) -> re.Pattern[str] | None:
        return rulefiles.to_python(rulefiles.expand(row[key], macros)) if key in row else None

    code = row.get("exit", "any")
    return Rule(
        id=row["id"],
        step=row["step"],
        status=row["status"],
        category=row.get("category"),
        confidence=row["confidence"],
        is_hidden=row.get("hidden", False),
        tools=frozenset(row.get("tools", ("shell", "edit", "read", "other"))),
        exit=code if isinstance(code, str) else frozenset(code),
        flagged=row.get("flagged"),
        known=row.get("known"),
        command=pattern("command"),
        unless_command=pattern("unless_command"),
        last=pattern("last"),
        any=pattern("any"),
        unless=pattern("unless"),
        examples=tuple(row["examples"]),
    )


@lru_cache(maxsize=64)
def _rules_for(tool: str, failed: bool, code: int | None) -> tuple[Rule, ...]:  # noqa: FBT001
    def holds(rule: Rule) -> bool:
        if tool not in rule.tools or (rule.flagged is not None and rule.flagged is not failed):
            return False
        if isinstance(rule.exit, frozenset):
            return code in rule.exit
        return rule.exit == "any" or (rule.exit == "nonzero") == failed

    return tuple(rule for rule in table().rules if holds(rule))


def classify(call: Call) -> Verdict:
    """The first row of the table that holds for a call.

    Args:
        call: The call; only the first and last characters of its output are read.

    Returns:
        The verdict; ``start`` and ``end`` are positions in ``call.output``.
    """
    region, shift = _region(call.output)
    failed = call.exit_code not in (None, 0) or call.is_flagged
    command = call.command.lower()
    line = None if call.exit_code is None else commands.parse(call.command)
    for rule in _rules_for(call.tool, failed, call.exit_code):
        if rule.known is not None and call.is_known is not rule.known:
            continue
        span = _evidence(rule, command, line.last if line else "", region)
        if span is not None:
            scope = line.scope if line else "unknown"
            layer = CATEGORY_LAYERS[rule.category] if rule.category else None
            start, end = (at if at < shift[0] else at + shift[1] for at in span)
            return Verdict(
                rule.status, rule.category, layer, rule.confidence, rule.id, rule.is_hidden, scope, start, end
            )  # fmt: skip
    raise rulefiles.RuleError(f"no row of the error table holds for a {call.tool} call with exit {call.exit_code}")


def _region(output: str) -> tuple[str, tuple[int, int]]:
    """The text that rules see, and (position, shift) to lead a position back into the output."""
    edge = table().edge_chars
    if len(output) <= 2 * edge:
        text, shift = output, (len(output) + 1, 0)
    else:
        text, shift = output[:edge] + "\n" + output[-edge:], (edge + 1, len(output) - 2 * edge - 1)
    # The dotted capital I is the only character whose lower case is longer than itself.
    return text.replace("İ", "i").lower(), shift


def _evidence(rule: Rule, command: str, last: str, region: str) -> tuple[int, int] | None:
    if rule.command is not None and not rule.command.search(command):
        return None
    if rule.unless_command is not None and rule.unless_command.search(command):
        return None
    if rule.last is not None and not rule.last.search(last):
        return None
    if rule.unless is not None and rule.unless.search(region):
        return None
    if rule.any is None:
        return _first_line(region)
    found = rule.any.search(region)
    return found.span() if found else None


def _first_line(region: str) -> tuple[int, int]:
    stripped = len(region) - len(region.lstrip())
    end = region.find("\n", stripped)
    return stripped, end if end >= 0 else len(region.rstrip()) if region.strip() else stripped


def signature(verdict: Verdict, output: str) -> str:
    """What makes two failures the same: category and first line of the evidence, numbers blanked."""
    end = output.find("\n", verdict.start)
    line = output[output.rfind("\n", 0, verdict.start) + 1 : end if end >= 0 else None].strip()[:200]
    return f"{verdict.status}:{verdict.category}:" + re.sub(r"0x[0-9a-f]+|\d+", "#", line.lower())
