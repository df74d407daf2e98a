"""Second looks: what stands beside the estimate, in at most six sentences, and the plan in words.

Belongs here: sentences from the tables of evidence. Does not belong here: the answer (``words.py``) or
what may not be concluded (``caveats.py``). A table that is absent, or says nothing, gets no sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalpipe.report import format as fmt
from evalpipe.report.frames import ReportInputs, rows
from evalpipe.report.model import Note

#: Estimators that answer the question of the estimate in another way; recipes answer other questions.
_OPINIONS = {
    "aipw": "weighting for routing with an outcome model",
    "overlap": "overlap weights",
    "cuped": "adjustment for earlier outcomes of the user",
    "user_bootstrap": "the bootstrap over users",
}
_THREATS = {
    "fragile": "weak hidden routing (odds below 1.2) would explain the shift of {}",
    "missingness_sensitive": "the unknown outcomes alone could undo the shift of {}",
    "reversal": (
        "by plain rates, which leave out who got the hard work, {} would stand on the other side of the reference, "
        "and chance explains neither number"
    ),
}
_NAMED = 3
_PLAN = ("estimate", "interval", "test", "order", "routing")
_UNITS = {"turn": "later turns", "call": "calls"}


def looks(inputs: ReportInputs, names: Mapping[str, str]) -> tuple[Note, ...]:
    """The sentences, alarms first.

    Args:
        inputs: Tables of the window.
        names: Safe label of each version by its raw one.
    """
    made = (_alarms, _opinions, _threats, _layers, _reviews, _bridge)
    return tuple(note for one in made if (note := one(inputs, names)) is not None)


def plan(inputs: ReportInputs) -> tuple[tuple[str, str], ...]:
    """What was picked for this window and why, as name and sentence."""
    said = {
        row["subject"]: row["detail"]
        for row in rows(inputs.tables, "analysis.diagnostics")
        if row["check_name"] == "plan"
    }
    return tuple((f"Picked: {name}", said[name]) for name in _PLAN if name in said)


def _named(names: Mapping[str, str], found: list[str]) -> str:
    shown = [names.get(name, fmt.clean_label(name)) for name in found[:_NAMED]]
    more = [f"{len(found) - _NAMED} more"] if len(found) > _NAMED else []
    return fmt.listed([*shown, *more])


def _alarms(inputs: ReportInputs, names: Mapping[str, str]) -> Note | None:
    nights = [row for row in rows(inputs.tables, "analysis.nights") if row["evidence"] is not None]
    if not nights:
        return None
    first: dict[str, Any] = {}
    for row in sorted(nights, key=lambda row: row["night"]):
        if row["is_alarm"]:
            first.setdefault(row["version"], row["night"])
    if not first:
        return Note("No alarm.", "No version shows a loss against its own first fourteen days.")
    told = [f"{_named(names, [name])} since {fmt.day(night)}" for name, night in first.items()]
    more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    text = f"{fmt.listed(told[:_NAMED])}{more}, against its own first fourteen days."
    return Note("Alarm on a loss:", f"{text} Without a loss it rings once in 500 nights.")


def _opinions(inputs: ReportInputs, names: Mapping[str, str]) -> Note | None:
    headline = {
        row["version"]: row
        for row in rows(inputs.tables, "analysis.net_improvement")
        if row["metric"] == inputs.criteria.outcomes.headline and row["slice"] == "all"
    }
    asked: dict[str, list[str]] = {}
    for row in rows(inputs.tables, "analysis.estimators"):
        main = headline.get(row["version"])
        if row["estimator"] in _OPINIONS and row["estimate"] is not None and main and main["lo"] is not None:
            is_told = main["lo"] > 0 or main["hi"] < 0
            is_other = is_told and row["estimate"] * main["estimate"] < 0
            asked.setdefault(row["estimator"], []).extend([row["version"]] if is_other else [])
    if not asked:
        return None
    others = {name: found for name, found in asked.items() if found}
    if not others:
        listed = fmt.listed([_OPINIONS[name] for name in _OPINIONS if name in asked])
        return Note(
            "Second opinions agree.", f"No version that is told from the reference changes sign under {listed}."
        )
    told = [f"{_OPINIONS[name]} puts {_named(names, found)} on the other side" for name, found in others.items()]
    return Note("A second opinion differs:", f"{fmt.listed(told)} of the reference.")


def _threats(inputs: ReportInputs, names: Mapping[str, str]) -> Note | None:
    found: dict[str, list[str]] = {}
    for row in rows(inputs.tables, "analysis.sensitivity"):
        for code in row["reasons"]:
            if code in _THREATS:
                found.setdefault(code, []).append(row["version"])
    if not found:
        return None
    told = [words.format(_named(names, found[code])) for code, words in _THREATS.items() if code in found]
    return Note("What could overturn a number:", f"{'; '.join(told)}.")


def _layers(inputs: ReportInputs, names: Mapping[str, str]) -> Note | None:
    known = [row for row in rows(inputs.tables, "analysis.concordance") if row["n_layers"] > 1]
    if not known:
        return None
    n_backed = sum(row["label"] == "corroborated" for row in known)
    against = [row for row in known if row["label"] == "contradicted"]
    pairs = f"{fmt.plural(len(known), 'pair')} of versions that two layers of evidence know"
    text = f"Of {pairs} (sessions, tasks, reviews), a second layer backs the order of {n_backed}"
    if not against:
        return Note("Layers of evidence do not contradict each other.", f"{text}.")
    told = [_named(names, [row["version"], row["other"]]) for row in against[:_NAMED]]
    more = f", and {len(against) - _NAMED} more" if len(against) > _NAMED else ""
    return Note("Layers of evidence contradict each other:", f"the order of {'; of '.join(told)}{more}. {text}.")


def _reviews(inputs: ReportInputs, names: Mapping[str, str]) -> Note | None:
    rates = rows(inputs.tables, "analysis.corrected_rates")
    if not rates:
        return None
    known = [row for row in rates if row["rate"] is not None and row["raw_rate"] is not None]
    if not known:
        text = "Too few people have looked: rates of signals stand as the detectors count them."
        return Note("No rate is corrected by reviews.", text)
    known.sort(key=lambda row: -abs(row["rate"] - row["raw_rate"]))
    row = known[0]
    text = (
        f"Furthest from what was counted: {row['signal']} of {_named(names, [row['version']])}, in "
        f"{fmt.percent(row['rate'])} [{fmt.percent(row['rate_lo'])}, {fmt.percent(row['rate_hi'])}] of "
        f"{_UNITS[row['unit']]} instead of {fmt.percent(row['raw_rate'])}."
    )
    return Note(f"Reviews correct {fmt.plural(len(known), 'rate')} of {len(rates)}.", text)


def _bridge(inputs: ReportInputs, names: Mapping[str, str]) -> Note | None:
    del names
    found = [row for row in rows(inputs.tables, "analysis.bridges") if row["mean_shift"] is not None]
    if not found:
        return None
    row = found[0]
    moved = f"the same sessions stand {100 * row['mean_shift']:+.1f} points from where the earlier criteria put them"
    if row["is_chained"]:
        return Note("Other criteria before:", f"{moved}, every version alike: series of levels may be chained.")
    return Note("Other criteria before:", f"{moved}, and versions were not shown to be moved alike: a break.")
