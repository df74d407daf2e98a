"""What may not be concluded: rules over the evidence, most serious first, five lines at most.

Belongs here: one function a rule, and their order. Does not belong here: the headline
(``words.py``). The list is never empty: the line on ties or the line on scope is always among it.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

from evalpipe.contracts.metrics import BY_NAME
from evalpipe.report import assignment
from evalpipe.report import format as fmt
from evalpipe.report.format import unit_of
from evalpipe.report.grouped import little_in_common
from evalpipe.report.model import Caveat, Evidence
from evalpipe.report.naming import why_unavailable
from evalpipe.report.phrases import check_effect, reasons
from evalpipe.report.records import ALL

LINES = 5
_POWER = 0.8
_NAMED_SLICES = 3
#: Differences in missing outcomes below this are not worth a line.
_MISSING_GAP = 0.02


def not_concluded(ev: Evidence) -> tuple[Caveat, ...]:
    """The lines to print: at most five, the tie or scope line always kept."""
    found = [caveat for rule in _RULES if (caveat := rule(ev)) is not None]
    if _ties(ev) is None:
        return (*found[: LINES - 1], _scope(ev))
    # At most three of the rules before the ties can hold at once, so the ties are always among the first five.
    return tuple(found[:LINES])


def _suspect(ev: Evidence) -> Caveat | None:
    failed = [check for check in ev.health.checks or () if check.status == "suspect"]
    rows = [row for row in ev.headline if row.status == "suspect"]
    if not failed and not rows:
        return None
    if failed:
        first = failed[0]
        effect = check_effect(first.check)
        tail = f" {effect[:1].upper()}{effect[1:]}." if effect else ""
        more = f" {fmt.plural(len(failed) - 1, 'further check')} likewise." if len(failed) > 1 else ""
        text = f"{first.title} is suspect: {_dot(first.detail)}{tail}{more}"
        return Caveat("suspect", "That these numbers are sound.", text)
    names = fmt.listed([ev.versions[row.version].label for row in rows])
    why = _dot(reasons(rows[0].reasons) or "it is marked suspect")
    return Caveat("suspect", f"That the number of {names} is sound.", f"{why[:1].upper()}{why[1:]}")


def _observational(ev: Evidence) -> Caveat | None:
    if not assignment.is_observational(ev):
        return None
    text = (
        "Traffic was not assigned at random, so a version is associated with its number and with whoever chose it, "
        "and for what. Only the strata are held equal."
    )
    if what := assignment.differs_before(ev):
        text += f" Within them the sessions differ in {what} before anything was done: a difference may come from that."
    return Caveat("observational", "That the version caused the difference.", text)


def _unverified(ev: Evidence) -> Caveat | None:
    """Where nothing contradicts an assignment at random it is still only a claim."""
    if not (ev.headline or ev.groups) or assignment.is_observational(ev):
        return None
    return Caveat("assignment", "That versions were assigned at random.", assignment.unverified(ev))


def _groups(ev: Evidence) -> Caveat | None:
    if not ev.groups:
        return None
    text = f"{little_in_common(ev)}. An order holds inside its group and for that work only."
    return Caveat("groups", "Who is best over all traffic.", text)


def _ties(ev: Evidence) -> Caveat | None:
    tied = [(ev.leading, ev.pairs), *((group.leading, group.pairs) for group in ev.groups)]
    tied = [(leading, pairs) for leading, pairs in tied if len(leading) >= 2]
    if not tied:
        return None
    gaps = [
        pair.se
        for leading, pairs in tied
        for pair in pairs
        if pair.se is not None and pair.version in leading and pair.other in leading
    ]
    text = "Not being told apart is absence of evidence"
    if gaps:
        # Methods, power: z for the level and for 80 % power, on the pair's own standard error.
        normal = NormalDist()
        factor = normal.inv_cdf(1 - ev.alpha / 2) + normal.inv_cdf(_POWER)
        unit = unit_of(ev.headline_metric)
        gap = fmt.size(factor * max(gaps), unit)
        text += f": a true gap of up to {gap} would often stay unseen at these sample sizes"
    return Caveat("ties", "That tied versions are equal.", f"{text}.")


def _slices(ev: Evidence) -> Caveat | None:
    items: list[str] = []
    for part in ev.slices:
        if part.name == ALL:
            continue
        # A version without a number over all traffic is told elsewhere, not once more for every slice.
        rows = [e for row in ev.headline if (e := ev.at(ev.headline_metric, part.name, row.version)) is not None]
        gone = [e for e in rows if not e.is_shown]
        weak = [e for e in rows if e.is_shown and e.is_underpowered]
        if len(gone) == 1:
            items.append(f"{part.title} of {ev.versions[gone[0].version].label} ({why_unavailable(ev, gone[0])})")
        elif gone:
            items.append(f"{part.title} ({len(gone)} of {len(rows)} versions unavailable)")
        if weak:
            gap = max(e.mde or 0.0 for e in weak)
            seen = f": gaps below {fmt.size(gap, unit_of(ev.headline_metric), 0)} may stay unseen" if gap else ""
            items.append(f"{part.title} ({len(weak)} of {len(rows)} versions underpowered{seen})")
    if not items:
        return None
    more = f"; and {len(items) - _NAMED_SLICES} more" if len(items) > _NAMED_SLICES else ""
    text = f"{'; '.join(items[:_NAMED_SLICES])}{more}."
    return Caveat("slices", "Anything about single scenarios that are too small.", text)


def _confounded(ev: Evidence) -> Caveat | None:
    if "agent" not in ev.compare_by or "model" not in ev.compare_by:
        return None
    split = {i: (v.name, v.detail) for i, v in enumerate(ev.versions) if v.detail}
    candidate, baseline = ev.with_role("candidate"), ev.with_role("baseline")
    lead = "That the model alone, or the harness alone, made the difference."
    if candidate in split and baseline in split:
        (a, m), (b, n) = split[candidate], split[baseline]
        if a != b and m != n:
            text = f"{ev.versions[candidate].label} and {ev.versions[baseline].label} differ in both."
            return Caveat("confounded", lead, text)
    pairs = set(split.values())
    one_to_one = len({a for a, _ in pairs}) == len({m for _, m in pairs}) == len(pairs) > 1
    if one_to_one and len(split) == len(ev.versions):
        return Caveat("confounded", lead, "Each harness ran with one model, so the two change together.")
    return None


def _uncalibrated(ev: Evidence) -> Caveat | None:
    rows = ev.headline
    if ev.headline_metric == "objective_success" or len(rows) < 2:
        return None
    unit = unit_of(ev.headline_metric)
    lead = f"That \u201c{BY_NAME[ev.headline_metric].title.lower()}\u201d equals task success."
    text = "Its weights are declared, not calibrated against human labels."
    candidate = ev.with_role("candidate")
    row = next((e for e in rows if e.version == candidate), rows[0])
    if row.estimate and BY_NAME[ev.headline_metric].is_rate:
        # Methods, misclassification robustness: |NI| / (2 (1 - 1/K)) with sensitivity + specificity near 2.
        delta = abs(row.estimate) / (2 * (1 - 1 / len(rows)))
        number = fmt.estimate(row.estimate, row.lo, row.hi, unit)
        text += (
            f" If signals erred by {fmt.size(delta, unit)} more for one version than for another, that alone could "
            f"make the {number} of {ev.versions[row.version].label}."
        )
    return Caveat("uncalibrated", lead, text)


def _missing(ev: Evidence) -> Caveat | None:
    shares = {e.version: e.missing_share for e in ev.headline if e.missing_share is not None}
    flagged = any("missingness_sensitive" in e.reasons for e in ev.headline)
    gap = max(shares.values()) - min(shares.values()) if shares else 0.0
    if not flagged and gap < _MISSING_GAP:
        return None
    text = "Sessions without a known outcome are left out"
    if shares:
        text += f": {fmt.percent(min(shares.values()))} to {fmt.percent(max(shares.values()))} of a version's sessions"
    return Caveat("missing", "That the order survives the sessions without an outcome.", f"{text}.")


def _scope(ev: Evidence) -> Caveat:
    days = fmt.day_range(ev.window.first, ev.window.last)
    return Caveat(
        "scope",
        "That this holds elsewhere.",
        f"The numbers are of the traffic of {days}; other traffic, windows or harnesses were not looked at."
        if ev.window.first
        else "Other traffic, windows or harnesses were not looked at.",
    )


def _dot(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


_RULES: tuple[Callable[[Evidence], Caveat | None], ...] = (
    _suspect, _observational, _unverified, _groups, _ties, _slices, _confounded, _uncalibrated, _missing,
)  # fmt: skip
