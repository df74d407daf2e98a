"""The error table: what the result of one tool call means.

Belongs here: loading the rows of ``errors.toml`` and finding the first that holds. Does not belong
here: the rows themselves, why something failed (``causes``), finding suspicious calls in bulk
(``calls``), signals (``hard``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evalpipe.contracts.taxonomy import CATEGORY_LAYERS
from evalpipe.signals import causes, commands, rulefiles

FAILURES = frozenset({"error", "check_failure"})
#: A row with this category asks ``causes``.
BY_CAUSE = "cause"
_SHELL_SPEAKERS = frozenset({"bash", "sh", "zsh", "dash", "fish"})


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
    also: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    is_head: bool
    is_run: bool
    is_speaker: bool
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
    viewers: re.Pattern[str]


@lru_cache(maxsize=1)
def table() -> Table:
    """The shipped error table."""
    data = rulefiles.load("errors.toml")
    macros = rulefiles.load("phrases.toml")["macros"] | data["macros"]
    prefilter = tuple(
        Prefilter(tuple(p["tools"]), p["part"], rulefiles.expand(p.get("command", ""), macros), tuple(p["words"]))
        for p in data["prefilter"]
    )
    rules = tuple(_rule(row, macros) for row in data["rule"])
    return Table(
        rules, data["edge_chars"], data["start_chars"], data["opening_chars"], prefilter,
        rulefiles.to_python(data["viewers"]),
    )  # fmt: skip


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
        also=pattern("also"),
        unless=pattern("unless"),
        is_head=row.get("head", False),
        is_run=row.get("runs", False),
        is_speaker=row.get("speaker", False),
        examples=tuple(row["examples"]),
    )


@lru_cache(maxsize=256)
def _rules_for(tool: str, failed: bool, code: int | None) -> tuple[Rule, ...]:  # noqa: FBT001
    def holds(rule: Rule) -> bool:
        if tool not in rule.tools or (rule.flagged is not None and rule.flagged is not failed):
            return False
        if isinstance(rule.exit, frozenset):
            return code in rule.exit
        return rule.exit == "any" or (rule.exit == "nonzero") == failed

    return tuple(rule for rule in table().rules if holds(rule))


def classify_all(calls: Sequence[Call]) -> list[Verdict]:
    """The first row of the table that holds, for many calls.

    Args:
        calls: (n,) calls; only the first and last characters of an output are read.

    Returns:
        (n,) verdicts; ``start`` and ``end`` are positions in the call's output.
    """
    found = [_hold(call) for call in calls]
    asked = [hit for hit in found if hit.rule.category == BY_CAUSE]
    told = causes.causes_of([causes.Failure(hit.texts(), hit.code, hit.line.last) for hit in asked])
    by_cause = iter(told)
    return [hit.verdict(next(by_cause) if hit.rule.category == BY_CAUSE else None) for hit in found]


@dataclass(frozen=True, slots=True)
class _Hit:
    """A rule that holds for a call, before its cause is known."""

    rule: Rule
    region: str
    shift: tuple[int, int]
    span: tuple[int, int]
    code: int | None
    line: commands.CommandLine

    def texts(self) -> tuple[str, ...]:
        """Where the cause is sought: of a hidden failure the line that gave it away comes first."""
        if not self.rule.is_hidden:
            return (self.region,)
        end = self.region.find("\n", self.span[1])
        return self.region[self.region.rfind("\n", 0, self.span[0]) + 1 : end if end >= 0 else None], self.region

    def verdict(self, told: tuple[str, str | None] | None) -> Verdict:
        """The verdict; the words that told a cause are the evidence, else what the row had found."""
        rule, category, span = self.rule, self.rule.category, self.span
        if told is not None:
            category, words = told
            at = self.region.find(words) if words else -1
            span = (at, at + len(words)) if words and at >= 0 else span
        layer = CATEGORY_LAYERS[category] if category else None
        scope = "unknown" if self.code is None else self.line.scope
        start, end = (at if at < self.shift[0] else at + self.shift[1] for at in span)
        return Verdict(rule.status, category, layer, rule.confidence, rule.id, rule.is_hidden, scope, start, end)


def _hold(call: Call) -> _Hit:
    region, shift = _region(call.output)
    failed = call.exit_code not in (None, 0) or call.is_flagged
    line = commands.parse(call.command) if call.tool == "shell" else commands.NOTHING
    for rule in _rules_for(call.tool, failed, call.exit_code):
        if rule.known is not None and call.is_known is not rule.known:
            continue
        span = _evidence(rule, call.command, line, region)
        if span is not None:
            return _Hit(rule, region, shift, span, call.exit_code, line)
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


def _evidence(rule: Rule, command: str, line: commands.CommandLine, region: str) -> tuple[int, int] | None:
    if rule.command is not None and not any(rule.command.search(segment.text) for segment in line.segments):
        return None
    if rule.unless_command is not None and rule.unless_command.search(command.lower()):
        return None
    if rule.last is not None and not rule.last.search(line.last):
        return None
    if rule.is_run and line.segments and all(table().viewers.search(name) for name in line.programs):
        return None
    if rule.is_head:
        region = region[: table().start_chars]
    if rule.unless is not None and rule.unless.search(region):
        return None
    if rule.also is not None and not rule.also.search(region):
        return None
    if rule.any is None:
        return _first_line(region)
    if rule.is_speaker:
        return _spoken(rule.any, line, region)
    found = rule.any.search(region)
    return found.span() if found else None


def _spoken(pattern: re.Pattern[str], line: commands.CommandLine, region: str) -> tuple[int, int] | None:
    """The first match that opens with the name of one of the command's programs."""
    names = {name.split(" ")[0] for name in line.programs} | _SHELL_SPEAKERS
    for found in pattern.finditer(region):
        if found[0].partition(":")[0].rsplit("/", 1)[-1] in names:
            return found.span()
    return None


def _first_line(region: str) -> tuple[int, int]:
    stripped = len(region) - len(region.lstrip())
    end = region.find("\n", stripped)
    return stripped, end if end >= 0 else len(region.rstrip()) if region.strip() else stripped


def signature(verdict: Verdict, output: str) -> str:
    """What makes two failures the same: category and first line of the evidence, numbers blanked."""
    end = output.find("\n", verdict.start)
    line = output[output.rfind("\n", 0, verdict.start) + 1 : end if end >= 0 else None].strip()[:200]
    return f"{verdict.status}:{verdict.category}:" + re.sub(r"0x[0-9a-f]+|\d+", "#", line.lower())
