"""The answer in words: headline table, the sentences under it, section headings, fixed phrases.

Belongs here: sentences from :class:`~evalpipe.report.model.Evidence`, without markup, so that HTML,
Markdown, terminal and Dagster say the same. Does not belong here: what may not be concluded
(``caveats.py``), the gate card (``gate.py``), methods (``notes.py``).

The leading set L holds the versions whose rank set contains 1. None of them is shown to be worse
than any version, so all its pairs are mutually unseparated and "cannot be told apart" is true of
the whole set.
"""

from __future__ import annotations

from evalpipe.report import format as fmt
from evalpipe.report.assignment import differs_before, is_observational
from evalpipe.report.gate import counts_in_words
from evalpipe.report.grouped import group_sentence, grouped, suspicions
from evalpipe.report.model import Answer, Evidence, Phrase, Run
from evalpipe.report.naming import (
    MANY,
    NAMED_IN_HEADLINE,
    are,
    difference,
    has_number,
    named,
    named_or_counted,
    quoted,
    reference_text,
    why_unavailable,
    word,
)
from evalpipe.report.phrases import phrase
from evalpipe.report.records import ALL, BETTER, BETTER_THROUGH
from evalpipe.report.withheld import alike, low_support, no_comparison, suspect, unranked


def answer(ev: Evidence) -> Answer:
    """The headline (first state that matches) and the sentences that follow it."""
    for state, found in (
        ("no_comparison", no_comparison(ev) if not ev.groups else None),
        ("suspect", suspect(ev)),
        ("groups", grouped(ev)),
        ("alike", alike(ev)),
        ("low_support", low_support(ev)),
        ("no_comparison", unranked(ev)),
    ):
        if found is not None:
            headline, why = found
            threat = _threat(ev) if state == "groups" else ()
            sentences = (*why, _left_out(ev), gate_sentence(ev), threat)
            return Answer(state, headline, tuple(s for s in sentences if s))
    state, headline, lead = _ranking(ev, len(ev.headline))
    apart = tuple(group_sentence(ev, group) for group in ev.groups if not suspicions(ev, group))
    sentences = (*lead, _against_reference(ev), _left_out(ev), *apart, gate_sentence(ev), _threat(ev))
    return Answer(state, headline, tuple(s for s in sentences if s))


def _ranking(ev: Evidence, k: int) -> tuple[str, Phrase, tuple[Phrase, ...]]:
    leading = ev.leading
    if k == 2:
        return _two(ev)
    if len(leading) == 1:
        headline = (*named(ev, leading), Run(f" leads the {k} versions{_observed(ev)}"))
        return "leader", headline, (_distance(ev, leading[0]),)
    if len(leading) == k:
        headline = (Run(f"The {k} versions cannot be told apart"),)
        lead = (Run("None of "), *named(ev, leading), Run(" is shown to be better than another."))
        return "all_tied", headline, (lead,)
    n = len(leading)
    if n <= NAMED_IN_HEADLINE:
        headline = (Run("No single leader: "), *named(ev, leading), Run(" cannot be told apart"))
        any_of = "Either of these two" if n == 2 else f"Any of these {word(n)}"
        lead = (Run(f"{any_of} may be the best of the {k} versions compared."),)
        return "tied", headline, (lead,)
    headline = (Run(f"No single leader: {n} of the {k} versions cannot be told apart at the top"),)
    return "many_tied", headline, ((Run("Any of "), *named(ev, leading), Run(" may be the best.")),)


def _two(ev: Evidence) -> tuple[str, Phrase, tuple[Phrase, ...]]:
    first, second = (row.version for row in ev.headline)
    pair = ev.pair(first, second)
    if len(ev.leading) == 1:
        lead, other = ev.leading[0], second if ev.leading[0] == first else first
        if is_observational(ev):
            headline = (*named(ev, (lead,)), Run(" is ahead of "), *named(ev, (other,)), Run(_observed(ev)))
        else:
            headline = (*named(ev, (lead,)), Run(" is better than "), *named(ev, (other,)))
        gap = ev.pair(lead, other)
        below = (Run(f"The difference is {difference(ev, gap)}."),) if gap else ()
        return "two_separated", headline, (below,)
    headline = (*named(ev, (first, second)), Run(" cannot be told apart"))
    below = (Run(f"The difference is {difference(ev, pair)}; either may be the better one."),) if pair else ()
    return "two_tied", headline, (below,)


def _observed(ev: Evidence) -> str:
    """What keeps a headline from being read as cause."""
    return " in observed traffic" if is_observational(ev) else ""


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
        parts += [*named_or_counted(ev, up), Run(f" {are(up)} {above} {target} even {at_once}")]
    if down:
        told = "it" if up else f"{target} even {at_once}"
        parts += [Run("; ")] if up else []
        parts += [*named_or_counted(ev, down), Run(f" {are(down)} {below} {told}")]
    return (*parts, Run("."))


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
    if is_observational(ev):
        told = "Traffic was not assigned at random: a version is associated with its number."
        if what := differs_before(ev):
            told += f" Within strata the sessions of the versions differ in {what}, which may make the difference."
        return (Run(told),)
    checks = ev.health.checks
    if not checks:
        return ()
    open_checks = [check for check in checks if check.status != "ok"]
    if not open_checks:
        return (Run(f"All {fmt.plural(len(checks), 'check')} of design and data passed."),) if len(checks) > 1 else ()
    worst = min(open_checks, key=lambda c: ("suspect", "inconclusive", "unavailable").index(c.status))
    state = phrase("status", worst.status)
    which = (
        f"{quoted([worst.title])} is {state}"
        if len(open_checks) == 1
        else f"the first, {quoted([worst.title])}, is {state}"
    )
    return (Run(f"{len(open_checks)} of {fmt.plural(len(checks), 'check')} of design and data did not pass: {which}."),)


def _left_out(ev: Evidence) -> Phrase:
    inside = {i for group in ev.groups for i in group.versions} if not ev.leading else set()
    rows = [
        (i, ev.at(ev.headline_metric, ALL, i))
        for i in range(len(ev.versions))
        if not has_number(ev, i) and i not in inside
    ]
    if not rows or len(rows) == len(ev.versions):
        return ()
    if len(rows) > MANY:
        return (Run(f"{len(rows)} further versions are unavailable and not compared."),)
    parts: list[Run] = [Run("Not compared: ")]
    for n, (i, row) in enumerate(rows):
        parts += [Run("; ") if n else Run(""), *named(ev, (i,)), Run(f" ({why_unavailable(ev, row)})")]
    return (*parts, Run("."))
