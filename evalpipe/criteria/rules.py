"""Rules on the values of a criteria file: ranges, known names, strata, metrics, gates.

Belongs here: rules that hold for a file whose keys and types are right already
(``criteria/validate.py``), each with the key it concerns and a fix. Does not belong here: what a
value does later.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from evalpipe.contracts import metrics, signals
from evalpipe.contracts.model import Timing
from evalpipe.contracts.tables import analysis
from evalpipe.contracts.tables.signals import SESSION_OUTCOMES
from evalpipe.criteria.populations import population_rules
from evalpipe.criteria.problem import Problem
from evalpipe.criteria.task_types import task_type_rules

COMPARE_BY = ("agent", "agent_release", "model")
REFERENCES = ("uniform", "stratum_mean", "control_pool", "loo_uniform")
GATE_KINDS = ("non_inferiority", "superiority")
#: Nothing is declared: the design is what the log states, and observational where it states nothing.
AS_LOGGED = "as_logged"
DESIGNS = (AS_LOGGED, *analysis.DESIGNS)

#: Inclusive bounds and the reason for them.
RANGES: dict[str, tuple[float, float, str]] = {
    "masking.withhold_over_bytes": (1, math.inf, "a field has at least one byte"),
    "extraction.min_confidence": (0, 1, "it is a precision"),
    "extraction.snippet_chars": (1, 160, "the contract of the signal tables allows 160"),
    "extraction.self_fix_steps": (1, math.inf, "a repair needs a later step"),
    "extraction.retry_loop_length": (2, math.inf, "a loop repeats at least once"),
    "outcomes.score_threshold": (-1000, 1000, "scores are sums of weights of capped counts"),
    "outcomes.count_cap": (1, math.inf, "a cap of 0 would score nothing"),
    "outcomes.abandonment_hours": (0.01, 72, "outcomes look three days ahead at most"),
    "outcomes.convergence_turns": (1, math.inf, "it divides a number of turns"),
    "estimand.alpha": (0.0001, 0.5, "it is an error rate"),
    "estimand.window_days": (1, 3660, "a window holds whole days"),
    "estimand.settle_days": (1, 28, "an outcome looks ahead, so the last day is never settled"),
    "estimand.min_users_per_cell": (2, math.inf, "the variance of one user's cell does not exist"),
    "estimand.min_sessions_per_version": (2, math.inf, "one session has no variance"),
    "estimand.min_support_share": (0, 1, "it is a share"),
    "estimand.permutations": (99, 1_000_000, "99 is the fewest that can reach p = 0.01"),
    "estimand.simultaneous_draws": (1000, 1_000_000, "fewer leave the critical value unstable"),
}

#: Pre-treatment columns that still cannot be a stratum or a slice, and why.
NOT_STRATA: dict[str, str] = {
    "agent": "it is what is compared",
    "agent_release": "it is what is compared",
    "model": "it is what is compared",
    "user_id": "users are the clusters, and a stratum needs several of them",
    "scenario_method": "it says how the scenario was told, which is no kind of work",
    "started_at": "every session would be its own stratum",
    "assignment_probability": "it depends on the version that was drawn",
}

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_NAME_FIX = "Use letters, digits, '_', '.' and '-'."


Rule = Callable[[Mapping[str, Any]], Iterator[Problem]]


def nearest(word: str, known: Iterable[str]) -> str:
    """A did-you-mean clause for an unknown word, or the list of known ones."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"Did you mean {close[0]!r}?" if close else _one_of(names)


def strata_columns() -> tuple[str, ...]:
    """Columns of ``signals.session_outcomes`` that may be a stratum or a slice."""
    return tuple(c.name for c in SESSION_OUTCOMES if c.timing is Timing.PRE and c.name not in NOT_STRATA)


def _one_of(names: Iterable[str]) -> str:
    return f"Use one of: {', '.join(names)}."


def _known(key: str, values: list[str], known: Iterable[str]) -> Iterator[Problem]:
    for value in dict.fromkeys(values):
        if value not in known:
            yield Problem(key, f"{value!r} is not known.", nearest(value, known))


def _once(key: str, values: list[str]) -> Iterator[Problem]:
    for value in dict.fromkeys(values):
        if values.count(value) > 1:
            yield Problem(key, f"{value!r} stands twice.", "Name it once.")


def _names(data: Mapping[str, Any]) -> Iterator[Problem]:
    if not _NAME.fullmatch(data["name"]):
        yield Problem("name", "The value is not a plain name.", _NAME_FIX)
    if not data["version"].strip():
        yield Problem("version", "The value is empty.", "Write a version such as 1.0; raise it on each change.")
    if not _NAME.fullmatch(data["masking"]["ruleset"]):
        yield Problem("masking.ruleset", "The value is not a plain name.", _NAME_FIX)
    languages = data["extraction"]["languages"]
    yield from _once("extraction.languages", languages)
    for code in languages:
        if not _LANGUAGE.fullmatch(code):
            fix = "Write ISO 639 codes such as 'en'."
            yield Problem("extraction.languages", f"{code!r} is not a language code.", fix)


def _ranges(data: Mapping[str, Any]) -> Iterator[Problem]:
    for key, (low, high, why) in RANGES.items():
        section, name = key.split(".")
        value = data[section][name]
        if not low <= value <= high:
            bound = f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
            yield Problem(key, f"{value:g} is out of range: {why}.", f"Choose a value {bound}.")
    hours, days = data["outcomes"]["abandonment_hours"], data["estimand"]["settle_days"]
    if hours > 24 * days:
        what = f"{hours:g} hours look further ahead than settle_days = {days}."
        fix = f"Choose at most {24 * days:g}, or raise estimand.settle_days."
        yield Problem("outcomes.abandonment_hours", what, fix)


def _estimand(data: Mapping[str, Any]) -> Iterator[Problem]:
    compare_by, estimand = data["outcomes"]["compare_by"], data["estimand"]
    if not compare_by:
        yield Problem("outcomes.compare_by", "The list is empty.", _one_of(COMPARE_BY))
    yield from _known("outcomes.compare_by", compare_by, COMPARE_BY)
    yield from _once("outcomes.compare_by", compare_by)
    reference = estimand["reference"]
    if not reference.startswith("model:"):
        yield from _known("estimand.reference", [reference], (*REFERENCES, "model:VERSION"))
    elif not reference.removeprefix("model:").strip():
        fix = "Write model:VERSION, as versions are shown: model:acme · m-1"
        yield Problem("estimand.reference", "The reference names no version.", fix)
    yield from population_rules(data)
    yield from _known("estimand.design", [estimand["design"]], DESIGNS)


def _weights(data: Mapping[str, Any]) -> Iterator[Problem]:
    for name, weight in data["outcomes"]["weights"].items():
        key = f"outcomes.weights.{name}"
        if name not in signals.BY_NAME:
            yield Problem(key, "There is no such signal.", nearest(name, signals.BY_NAME))
        elif not 0 <= weight <= 1:
            fix = "Choose a weight from 0 to 1; the sign comes from the signal's polarity."
            yield Problem(key, f"{weight:g} is outside 0 to 1.", fix)
        elif weight and signals.BY_NAME[name].polarity == 0:
            yield Problem(key, "The signal speaks neither for nor against the agent.", "Set it to 0.")
        elif weight and name in signals.DERIVED_SIGNALS:
            # It is computed from other signals, which carry weights of their own.
            yield Problem(key, "A derived signal is not scored.", "Set it to 0; weigh what it is derived from.")


def _strata(data: Mapping[str, Any]) -> Iterator[Problem]:
    allowed = strata_columns()
    for name in ("strata", "slices"):
        key, columns = f"estimand.{name}", data["estimand"][name]
        yield from _once(key, columns)
        for column in dict.fromkeys(columns):
            if column in NOT_STRATA:
                why = f"{column!r} cannot be one: {NOT_STRATA[column]}."
                yield Problem(key, why, _one_of(allowed))
            elif column in SESSION_OUTCOMES and SESSION_OUTCOMES[column].timing is Timing.POST:
                why = f"{column!r} is post-treatment: the version changes it, so it would hide the effect."
                yield Problem(key, why, _one_of(allowed))
            else:
                yield from _known(key, [column], allowed)
    if "routing_epoch" not in data["estimand"]["strata"]:
        what = "'routing_epoch' is not there, so sessions of different periods would be compared."
        yield Problem("estimand.strata", what, "Add it; where no epoch is logged, it is one epoch.")


def _sampling(data: Mapping[str, Any]) -> Iterator[Problem]:
    rules, allowed, seen = data["estimand"].get("sampling", []), strata_columns(), list[tuple[str, str]]()
    for index, row in enumerate(rules):
        key, column, value = f"estimand.sampling[{index}]", row.get("column", ""), row.get("value", "")
        if not 0 <= row["kept"] <= 1:
            yield Problem(
                f"{key}.kept", f"{row['kept']:g} is no share.", "Write 0.1 where one session of ten was kept."
            )
        if bool(column) != bool(value):
            missing = "value" if column else "column"
            fix = "Name column and value, or neither for all other sessions."
            yield Problem(f"{key}.{missing}", "A kind is a column with a value.", fix)
        elif not column and index < len(rules) - 1:
            fix = "Let it be the last rule: it takes all that the rules above did not."
            yield Problem(key, "No session is left for the rules below.", fix)
        elif (column, value) in seen:
            yield Problem(key, f"'{column}={value}' stands twice.", "Name it once.")
        elif column in SESSION_OUTCOMES and column not in allowed:
            # A chance that follows what the version did, or which it was, does not undo how it was drawn.
            why = NOT_STRATA.get(column, "the version changes it")
            yield Problem(f"{key}.column", f"{column!r} cannot tell kinds apart: {why}.", _one_of(allowed))
        elif column:
            yield from _known(f"{key}.column", [column], allowed)
        if column == "task_type" and not data["extraction"].get("task_types"):
            fix = "Declare them with [[extraction.task_types]], or name another column."
            yield Problem(f"{key}.column", "'task_type' is named and no task type is declared.", fix)
        seen.append((column, value))


def _metrics(data: Mapping[str, Any]) -> Iterator[Problem]:
    key, named = "estimand.metrics", data["estimand"]["metrics"]
    if not named:
        yield Problem(key, "The list is empty.", _one_of(metrics.BY_NAME))
    yield from _known(key, named, metrics.BY_NAME)
    yield from _once(key, named)
    for name in named:
        metric = metrics.BY_NAME.get(name)
        if metric is not None and metric.partner and metric.partner not in named:
            what = f"{name!r} is read only beside {metric.partner!r}: a version changes its denominator."
            yield Problem(key, what, f"Add {metric.partner!r}.")
    yield from _computed("outcomes.headline", data["outcomes"]["headline"], named)


def _computed(key: str, metric: str, named: list[str]) -> Iterator[Problem]:
    if metric not in metrics.BY_NAME:
        yield Problem(key, f"{metric!r} is not a metric.", nearest(metric, metrics.BY_NAME))
    elif metric not in named:
        yield Problem(key, f"{metric!r} is not computed.", "Add it to estimand.metrics.")


def _gates(data: Mapping[str, Any]) -> Iterator[Problem]:
    gates = data.get("gates", [])
    names = [gate["name"] for gate in gates]
    for index, gate in enumerate(gates):
        key, name = f"gates[{index}]", gate["name"]
        if not _NAME.fullmatch(name):
            yield Problem(f"{key}.name", "The value is not a plain name.", _NAME_FIX)
        if name in names[:index]:
            yield Problem(f"{key}.name", f"{name!r} stands twice.", "Give each gate its own name.")
        yield from _computed(f"{key}.metric", gate["metric"], data["estimand"]["metrics"])
        yield from _known(f"{key}.kind", [gate["kind"]], GATE_KINDS)
        yield from _margin(f"{key}.margin", gate)


def _margin(key: str, gate: Mapping[str, Any]) -> Iterator[Problem]:
    margin, metric = gate["margin"], metrics.BY_NAME.get(gate["metric"])
    if margin < 0:
        fix = "Write the size of the loss that is acceptable; its direction is the metric's."
        yield Problem(key, "The margin is negative.", fix)
    elif margin == 0 and gate["kind"] == "non_inferiority":
        fix = 'Choose a margin above 0, or write kind = "superiority".'
        yield Problem(key, "A margin of 0 asks for superiority.", fix)
    elif margin >= 1 and metric is not None and metric.is_rate:
        what = f"{margin:g} lets every loss pass, because {metric.name!r} is a share."
        yield Problem(key, what, "Write 0.05 for 5 percentage points.")


RULES: tuple[Rule, ...] = (
    _names, _ranges, task_type_rules, _estimand, _weights, _strata, _sampling, _metrics, _gates,
)  # fmt: skip
