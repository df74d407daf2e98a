"""The gate card: one row a declared criterion, the verdict over all, and what each row says.

Belongs here: reading ``analysis.gates`` beside the declared criteria, and the sentences of the
card. Does not belong here: deciding a criterion (``inference``). Estimates of the table are signed
so that positive is better; sentences use the metric's own sign.
"""

from __future__ import annotations

import math
import shlex
from typing import Any

from evalpipe.contracts.metrics import BY_NAME
from evalpipe.criteria.model import GateCriterion
from evalpipe.report.format import MINUS, Unit, bound, count, listed, places_for, plural, signed, unit_of
from evalpipe.report.frames import Labels, ReportInputs, rounded, rows, window_of
from evalpipe.report.phrases import reasons
from evalpipe.report.records import Gate, GateRow

UNDECLARED = "Readiness is not determined: no thresholds were declared before the results."
UNNAMED = "Readiness is not determined: no candidate and baseline were named."
UNDECIDED = "Readiness is not determined: the gate was not decided for this pair in this window."
STRICTER = (
    "This gate compares one declared pair; the comparison below asks about every pair at once and is "
    "therefore stricter."
)
OBSERVED = (
    "Traffic was not assigned at random, so a verdict speaks of the sessions that each version was given, "
    "not of what a switch would do."
)
#: One-sided error rate of a gate, by the contract of analysis.gates.
ALPHA = 0.05
#: The reason of a verdict that is open for the width of its interval alone.
_CROSSES = "interval_crosses_margin"
_BEFORE = "decided_before"
_ALL_PASS = {1: "it passes", 2: "both pass"}
#: Beyond this factor a forecast of sessions is not worth printing.
_MOST_TIMES = 20.0


def threshold(kind: str, margin: float) -> float:
    """The value that the lower bound must exceed, with positive meaning better."""
    return -margin if kind == "non_inferiority" else margin


def build_gate(inputs: ReportInputs, labels: Labels, sessions: dict[str, int]) -> Gate:
    """The gate of the named pair.

    Args:
        inputs: Report inputs; of several decisions on the pair the last row's decision is shown.
        labels: Safe labels shared with the rest of the report.
        sessions: Candidate's sessions by metric, for the forecast of an open criterion.

    Returns:
        The gate, with ``verdict`` None and the fixed sentence where nothing was decided.
    """
    declared = inputs.criteria.gates
    candidate = labels(inputs.candidate) if inputs.candidate else None
    baseline = labels(inputs.baseline) if inputs.baseline else None
    if not declared:
        return Gate(candidate, baseline, None, UNDECLARED, "", None, None, ())
    if candidate is None or baseline is None:
        return Gate(candidate, baseline, None, UNNAMED, "", None, None, ())
    here = window_of(inputs)
    decided = [
        row
        for row in rows(inputs.tables, "analysis.gates")
        if row["candidate"] == inputs.candidate
        and row["baseline"] == inputs.baseline
        # Decisions are appended for ever: one of another window or measurement speaks of other numbers.
        and (row["as_of"], row["window_name"], row["measurement"]) == (here.as_of, here.window, here.measurement)
    ]
    if not decided:
        return Gate(candidate, baseline, None, UNDECIDED, "", None, None, ())
    decision = decided[-1]["decision_id"]
    by_name = {row["criterion"]: row for row in decided if row["decision_id"] == decision}
    days = (decided[-1]["window_end"] - decided[-1]["window_start"]).days + 1
    names = [gate.name for gate in declared] + sorted(set(by_name) - {gate.name for gate in declared})
    by_declared = {gate.name: gate for gate in declared}
    shown = tuple(_row(name, by_name.get(name), by_declared.get(name), candidate, sessions, days) for name in names)
    verdict = _overall(shown)
    return Gate(candidate, baseline, verdict, _sentence(shown, inputs), "", decision, decided[-1]["decided_on"], shown)


def command_for(ev_gate: Gate, criteria_name: str, window_name: str) -> str:
    """What to run so that a gate without a pair is decided; empty where no pair is what it waits for.

    Args:
        ev_gate: The gate.
        criteria_name: Criteria of the report.
        window_name: Its window.
    """
    if ev_gate.sentence != UNNAMED:
        return ""
    pair = "--candidate AGENT/MODEL --baseline AGENT/MODEL"
    criteria = "" if criteria_name == "default" else f" --criteria {shlex.quote(criteria_name)}"
    return f"evalpipe report{criteria} --window {window_name} {pair}"


def _row(
    name: str,
    row: dict[str, Any] | None,
    declared: GateCriterion | None,
    candidate: str,
    sessions: dict[str, int],
    days: int,
) -> GateRow:
    if row is None:
        assert declared is not None  # names come from one of the two
        reading = "The criterion is declared and no decision on it exists. The gate stays open."
        return GateRow(
            name, declared.metric, declared.kind, declared.margin, None, None, None, None, "unavailable",
            ("not_decided",), sessions.get(declared.metric), reading,
        )  # fmt: skip
    numbers = {key: rounded(row[key]) for key in ("estimate", "lower", "upper", "df")}
    has_bounds = numbers["lower"] is not None and numbers["upper"] is not None
    verdict = row["verdict"] if numbers["estimate"] is not None and has_bounds else "unavailable"
    draft = GateRow(
        criterion=name,
        metric=row["metric"],
        kind=row["kind"],
        margin=rounded(row["margin"]) or 0.0,
        verdict=verdict,
        reasons=tuple(row["reasons"]),
        n_candidate=sessions.get(row["metric"]),
        reading="",
        **numbers,
    )
    values = {f: getattr(draft, f) for f in GateRow.__slots__}
    return GateRow(**(values | {"reading": f"{_reading(draft, candidate, days)}{_repeated(draft)}"}))


def _overall(shown: tuple[GateRow, ...]) -> str:
    verdicts = {row.verdict for row in shown}
    if "fail" in verdicts:
        return "fail"
    return "pass" if verdicts == {"pass"} else "inconclusive"


def _sentence(shown: tuple[GateRow, ...], inputs: ReportInputs) -> str:
    counts = counts_in_words(shown)
    total = len(shown)
    rule = f"The gate passes only if {_ALL_PASS.get(total, f'all {total} pass')}."
    criteria = inputs.criteria
    source = f"criteria {criteria.name} {criteria.version}, gates {criteria.sub_hash('gates')}"
    return f"{counts}. {rule} Declared in {source}."


def counts_in_words(shown: tuple[GateRow, ...]) -> str:
    """``3 of 5 criteria pass, none fails, 1 cannot be decided yet and 1 is unavailable``."""
    n = {v: sum(row.verdict == v for row in shown) for v in ("pass", "fail", "inconclusive", "unavailable")}
    total = len(shown)
    noun = "criterion" if total == 1 else "criteria"
    parts = [
        f"{n['pass'] or 'none'} of {total} {noun} {'pass' if n['pass'] > 1 else 'passes'}",
        f"{n['fail']} {'fails' if n['fail'] == 1 else 'fail'}" if n["fail"] else "none fails",
    ]
    if n["inconclusive"]:
        parts.append(f"{n['inconclusive']} cannot be decided yet")
    if n["unavailable"]:
        parts.append(f"{n['unavailable']} {'is' if n['unavailable'] == 1 else 'are'} unavailable")
    text = listed(parts)
    return text[:1].upper() + text[1:]


def kind_text(row: GateRow) -> str:
    """What a criterion demands, such as ``fall of at most 5.0 pp``."""
    unit = unit_of(row.metric)
    amount = f"{row.margin * unit.scale:,.{_margin_places(unit)}f}{unit.suffix}"
    if row.kind == "superiority":
        return f"superior by more than {amount}" if row.margin else "superior: better than no change"
    return f"no worse: {'fall' if BY_NAME[row.metric].is_higher_better else 'rise'} of at most {amount}"


def natural(row: GateRow) -> tuple[float, float, float] | None:
    """Estimate, lower and upper end in the metric's own sign; None where a number is missing."""
    return natural_ends(row.metric, row.estimate, row.lower, row.upper)


def natural_ends(
    metric: str, estimate: float | None, lower: float | None, upper: float | None
) -> tuple[float, float, float] | None:
    """Numbers that are signed so that positive is better, in the metric's own sign.

    Args:
        metric: Name of the metric.
        estimate, lower, upper: As ``analysis.gates`` holds them, in units of the metric.
    """
    if estimate is None or lower is None or upper is None:
        return None
    if BY_NAME[metric].is_higher_better:
        return estimate, lower, upper
    return -estimate, -upper, -lower


def better_side(metric: str) -> str:
    """Which sign of a change is an improvement, in words."""
    return "a rise (+)" if BY_NAME[metric].is_higher_better else f"a fall ({MINUS})"


def _margin_places(unit: Unit) -> int:
    return 1 if unit.suffix else 2


def _reading(row: GateRow, candidate: str, days: int) -> str:
    ends = natural(row)
    if ends is None:
        why = reasons(row.reasons) or "no number exists"
        return f"Unavailable: {why}. An unavailable criterion leaves the gate open, never passed."
    unit = unit_of(row.metric)
    _, low, high = ends
    places = places_for(low, high, unit)
    higher = BY_NAME[row.metric].is_higher_better
    limit = threshold(row.kind, row.margin) * (1 if higher else -1)
    worst, best = (low, high) if higher else (high, low)
    worst_name, best_name = ("Lower", "Upper") if higher else ("Upper", "Lower")
    beyond, within = ("below", "above") if higher else ("above", "below")
    at = f"{signed(limit, unit, _margin_places(unit))}{unit.suffix}"
    worst_text, best_text = (f"{bound(v, unit, places)}{unit.suffix}" for v in (worst, best))
    if row.verdict == "pass":
        also = row.kind != "superiority" and row.lower is not None and row.lower > 0
        more = f" It is also {within} 0: better than the baseline." if also else ""
        return f"{worst_name} bound {worst_text} is {within} {at}.{more}"
    if row.verdict == "fail":
        return f"{best_name} bound {best_text} is {beyond} {at}."
    bounds = f"{bound(low, unit, places)} and {bound(high, unit, places)}{unit.suffix}"
    barred = tuple(code for code in row.reasons if code not in (_CROSSES, _BEFORE))
    if barred:
        return f"Not decided: {reasons(barred)}. Bounds {bounds}."
    return f"The limit {at} lies between the bounds {bounds}. {_forecast(row, candidate, days)}".strip()


def _repeated(row: GateRow) -> str:
    if _BEFORE not in row.reasons or row.lower is None:
        return ""
    return " It was decided on another day before, so these are the wider bounds that hold on all days at once."


def _forecast(row: GateRow, candidate: str, days: int) -> str:
    """What would decide an open criterion, if the estimate stayed (methods: power)."""
    if row.n_candidate is None or row.estimate is None or row.lower is None or row.upper is None:
        return ""
    gap = row.estimate - threshold(row.kind, row.margin)
    half = row.estimate - row.lower if gap > 0 else row.upper - row.estimate
    times = (half / gap) ** 2 if gap else math.inf
    if times > _MOST_TIMES:
        return f"The estimate lies so near to the limit that {_MOST_TIMES:.0f} times the sessions would not decide it."
    more = row.n_candidate * (times - 1)
    step = 10 ** max(0, math.floor(math.log10(max(more, 1))) - 1)
    rounded_up = max(1, math.ceil(more / step) * step)
    needed = max(1, math.ceil(rounded_up / max(row.n_candidate, 1) * days))
    return (
        f"About {count(rounded_up)} more sessions of {candidate} ({plural(needed, 'day')} at the present share) "
        "would decide it if the estimate stayed."
    )
