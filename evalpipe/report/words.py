"""The answer in words: headline table, the sentences under it, section headings, fixed phrases.

Belongs here: sentences from :class:`~evalpipe.report.model.Evidence`, without markup, so that HTML,
Markdown, terminal and Dagster say the same. Does not belong here: what may not be concluded
(``caveats.py``), the gate card (``gate.py``), methods (``notes.py``).

The leading set L holds the versions whose rank set contains 1. None of them is shown to be worse
than any version, so all its pairs are mutually unseparated and "cannot be told apart" is true of
the whole set.
"""

from __future__ import annotations

from collections.abc import Sequence

from evalpipe.report import format as fmt
from evalpipe.report.format import unit_of
from evalpipe.report.gate import counts_in_words
from evalpipe.report.model import Answer, Evidence, Phrase, Run
from evalpipe.report.phrases import phrase, reasons
from evalpipe.report.records import ALL, BETTER, BETTER_THROUGH, Estimate, Pair

#: More leaders than this are counted in the headline and named in the sentence below it.
NAMED_IN_HEADLINE = 4
_MANY = 6


def answer(ev: Evidence) -> Answer:
    """The headline (first state that matches) and the sentences that follow it."""
    k = len(ev.headline)
    for state, found in (
        ("no_comparison", _no_comparison(ev)),
        ("suspect", _suspect(ev)),
        ("low_support", _low_support(ev)),
        ("no_comparison", _unranked(ev)),
    ):
        if found is not None:
            headline, why = found
            return Answer(state, headline, tuple(s for s in (why, _left_out(ev), gate_sentence(ev)) if s))
    state, headline, lead = _ranking(ev, k)
    sentences = (*lead, _against_reference(ev), _left_out(ev), gate_sentence(ev), _threat(ev))
    return Answer(state, headline, tuple(s for s in sentences if s))


def _no_comparison(ev: Evidence) -> tuple[Phrase, Phrase] | None:
    if len(ev.headline) >= 2:
        return None
    rows = [e for e in ev.estimates if e.metric == ev.headline_metric and e.slice == ALL]
    if not rows:
        why = "no session in this window has a version and an outcome"
    elif len(rows) == 1:
        why = "only one version has sessions in this window"
    else:
        why = _common_reason(ev, rows)
    return (Run(f"No comparison: {why}"),), (Run("No order between versions is shown for this window."),)


def _unranked(ev: Evidence) -> tuple[Phrase, Phrase] | None:
    if ev.leading:
        return None
    own = ev.basis is not None and ev.basis.population == "own_share"
    codes = ("own_traffic",) if own else tuple(dict.fromkeys(code for e in ev.headline for code in e.reasons))
    why = reasons(codes) or "no rank set exists"
    below = "The numbers are shown, and no order may be read from them."
    return (Run(f"No comparison: {why}"),), (Run(below),)


def _common_reason(ev: Evidence, rows: Sequence[Estimate]) -> str:
    missing = [e for e in rows if not e.is_shown]
    small = [e for e in missing if e.n_sessions < ev.min_sessions]
    if small and len(small) >= len(rows) - 1:
        return f"{len(small)} of {len(rows)} versions have fewer than {ev.min_sessions} sessions"
    codes = tuple(dict.fromkeys(code for e in missing for code in e.reasons))
    return reasons(codes) or "no estimate could be made"


def _suspect(ev: Evidence) -> tuple[Phrase, Phrase] | None:
    leaders = set(ev.leading) or {row.version for row in ev.headline}
    bad = [row for row in ev.headline if row.version in leaders and row.status == "suspect"]
    if not bad:
        return None
    codes = tuple(dict.fromkeys(code for row in bad for code in row.reasons))
    failed = [check for check in ev.health.checks or () if check.status == "suspect" and check.check in codes]
    if failed:
        titles = list(dict.fromkeys(check.title for check in failed))
        why = f"the check {_quoted(titles)} failed" if len(titles) == 1 else f"the checks {_quoted(titles)} failed"
        detail = " ".join(_sentence(check.detail) for check in failed[:2])
        below = f"{detail} The numbers are shown, and no order may be read from them."
    else:
        why = reasons(codes) or "a design check failed"
        below = "The numbers are shown, and no order may be read from them."
    return (Run(f"Not safe to compare: {why}"),), (Run(below),)


def _low_support(ev: Evidence) -> tuple[Phrase, Phrase] | None:
    shares = [e.support_share for e in ev.headline if e.support_share is not None]
    if not shares or min(shares) >= ev.min_support:
        return None
    below = (
        f"Only {fmt.percent(min(shares))} of the traffic lies in strata where every version was seen; "
        f"{fmt.percent(ev.min_support, 0)} are needed to rank them."
    )
    return (Run(f"Too little common ground to rank the {len(ev.headline)} versions"),), (Run(below),)


def _ranking(ev: Evidence, k: int) -> tuple[str, Phrase, tuple[Phrase, ...]]:
    leading = ev.leading
    if k == 2:
        return _two(ev)
    if len(leading) == 1:
        headline = (*named(ev, leading), Run(f" leads the {k} versions"))
        return "leader", headline, (_distance(ev, leading[0]),)
    if len(leading) == k:
        headline = (Run(f"The {k} versions cannot be told apart"),)
        lead = (Run("None of "), *named(ev, leading), Run(" is shown to be better than another."))
        return "all_tied", headline, (lead,)
    n = len(leading)
    if n <= NAMED_IN_HEADLINE:
        headline = (Run("No single leader: "), *named(ev, leading), Run(" cannot be told apart"))
        any_of = "Either of these two" if n == 2 else f"Any of these {_word(n)}"
        lead = (Run(f"{any_of} may be the best of the {k} versions compared."),)
        return "tied", headline, (lead,)
    headline = (Run(f"No single leader: {n} of the {k} versions cannot be told apart at the top"),)
    return "many_tied", headline, ((Run("Any of "), *named(ev, leading), Run(" may be the best.")),)


def _two(ev: Evidence) -> tuple[str, Phrase, tuple[Phrase, ...]]:
    first, second = (row.version for row in ev.headline)
    pair = ev.pair(first, second)
    if len(ev.leading) == 1:
        lead, other = ev.leading[0], second if ev.leading[0] == first else first
        headline = (*named(ev, (lead,)), Run(" is better than "), *named(ev, (other,)))
        gap = ev.pair(lead, other)
        below = (Run(f"The difference is {difference(ev, gap)}."),) if gap else ()
        return "two_separated", headline, (below,)
    headline = (*named(ev, (first, second)), Run(" cannot be told apart"))
    below = (Run(f"The difference is {difference(ev, pair)}; either may be the better one."),) if pair else ()
    return "two_tied", headline, (below,)


def _distance(ev: Evidence, leader: int) -> Phrase:
    rest = [row.version for row in ev.headline if row.version != leader]
    pair = ev.pair(leader, rest[0]) if rest else None
    if pair is None:
        return ()
    next_one = named(ev, (rest[0],))
    start = (*named(ev, (leader,)), Run(f" stands at {difference(ev, pair)} against the next, "), *next_one)
    if pair.relation == BETTER:
        return (*start, Run("."))
    if pair.relation == BETTER_THROUGH and pair.through is not None:
        return (*start, Run(", and is better through "), *named(ev, (pair.through,)), Run("."))
    return (*start, Run("."))


def difference(ev: Evidence, pair: Pair) -> str:
    """A pair's difference with its interval."""
    return fmt.estimate(pair.difference, pair.lo, pair.hi, unit_of(ev.headline_metric))


def reference_text(ev: Evidence) -> str:
    """What the shifts are measured against, in words."""
    basis, k = ev.basis, len(ev.headline)
    reference = basis.reference if basis else ""
    if reference.startswith("model:"):
        return fmt.clean_label(reference.removeprefix("model:"))
    return {
        "uniform": f"the average of the {k}",
        "stratum_mean": "the average session",
        "control_pool": "the sessions of all others",
        "loo_uniform": "the average of the others",
    }.get(reference, reference.replace("_", " "))


def _against_reference(ev: Evidence) -> Phrase:
    higher = ev.metric(ev.headline_metric).is_higher_better
    up: list[int] = []
    down: list[int] = []
    for row in ev.headline:
        if row.lo_sim is None or row.hi_sim is None:
            continue
        if row.lo_sim > 0:
            (up if higher else down).append(row.version)
        elif row.hi_sim < 0:
            (down if higher else up).append(row.version)
    k, target = len(ev.headline), reference_text(ev)
    above, below = ("above", "below") if higher else ("better than", "worse than")
    at_once = f"when all {k} intervals must hold at once"
    if not up and not down:
        return (Run(f"No version is {above} or {below} {target} {at_once}."),)
    parts: list[Run] = []
    if up:
        parts += [*_named_or_counted(ev, up), Run(f" {_are(up)} {above} {target} even {at_once}")]
    if down:
        told = "it" if up else f"{target} even {at_once}"
        parts += [Run("; ")] if up else []
        parts += [*_named_or_counted(ev, down), Run(f" {_are(down)} {below} {told}")]
    return (*parts, Run("."))


def _left_out(ev: Evidence) -> Phrase:
    rows = [
        (i, ev.at(ev.headline_metric, ALL, i)) for i in range(len(ev.versions)) if not _has_number(ev, i)
    ]  # fmt: skip
    if not rows or len(rows) == len(ev.versions):
        return ()
    if len(rows) > _MANY:
        return (Run(f"{len(rows)} further versions are unavailable and not compared."),)
    parts: list[Run] = [Run("Not compared: ")]
    for n, (i, row) in enumerate(rows):
        parts += [Run("; ") if n else Run(""), *named(ev, (i,)), Run(f" ({why_unavailable(ev, row)})")]
    return (*parts, Run("."))


def _has_number(ev: Evidence, version: int) -> bool:
    row = ev.at(ev.headline_metric, ALL, version)
    return row is not None and row.is_shown


def why_unavailable(ev: Evidence, row: Estimate | None) -> str:
    """Why a version has no number: the missing evidence in numbers where that is the reason."""
    if row is None:
        return "unavailable: no session in this window"
    if row.n_sessions < ev.min_sessions and row.slice == ALL:
        return f"unavailable: {fmt.plural(row.n_sessions, 'session')}, {ev.min_sessions} needed"
    if row.reasons:
        return f"unavailable: {reasons(row.reasons)}, {fmt.plural(row.n_sessions, 'session')}"
    return f"unavailable: {fmt.plural(row.n_sessions, 'session')} from {fmt.plural(row.n_users, 'user')}"


def gate_sentence(ev: Evidence) -> Phrase:
    """The gate in one sentence, or the fixed sentence where nothing was decided."""
    gate = ev.gate
    if gate.verdict is None:
        return (Run(gate.sentence),)
    counts = counts_in_words(gate.rows)
    return (
        Run("The release gate for "), Run(gate.candidate or "", "candidate"),
        Run(" against "), Run(gate.baseline or "", "baseline"), Run(" "),
        Run({"pass": "passes", "fail": "fails"}.get(gate.verdict, "is inconclusive"), "strong"),
        Run(f": {counts[:1].lower()}{counts[1:]}."),
    )  # fmt: skip


def _threat(ev: Evidence) -> Phrase:
    if ev.basis is not None and ev.basis.design == "observational":
        return (Run("Traffic was not assigned at random: a version is associated with its number."),)
    checks = ev.health.checks
    if not checks:
        return ()
    open_checks = [check for check in checks if check.status != "ok"]
    if not open_checks:
        return (Run(f"All {fmt.plural(len(checks), 'check')} of design and data passed."),) if len(checks) > 1 else ()
    worst = min(open_checks, key=lambda c: ("suspect", "inconclusive", "unavailable").index(c.status))
    word = phrase("status", worst.status)
    which = (
        f"{_quoted([worst.title])} is {word}"
        if len(open_checks) == 1
        else f"the first, {_quoted([worst.title])}, is {word}"
    )
    return (Run(f"{len(open_checks)} of {fmt.plural(len(checks), 'check')} of design and data did not pass: {which}."),)


def named(ev: Evidence, versions: Sequence[int]) -> Phrase:
    """Versions by label, joined as a list, each with its role."""
    parts: list[Run] = []
    for n, i in enumerate(versions):
        if n:
            parts.append(Run(" and " if n == len(versions) - 1 else ", "))
        parts.append(Run(ev.versions[i].label, ev.versions[i].role or "version"))
    return tuple(parts)


def _named_or_counted(ev: Evidence, versions: Sequence[int]) -> Phrase:
    return named(ev, versions) if len(versions) <= _MANY else (Run(fmt.plural(len(versions), "version")),)


def _are(versions: Sequence[int]) -> str:
    return "is" if len(versions) == 1 else "are"


def _word(n: int) -> str:
    return {3: "three", 4: "four"}.get(n, str(n))


def _quoted(titles: Sequence[str]) -> str:
    return fmt.listed([f"\u201c{title}\u201d" for title in titles])


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
