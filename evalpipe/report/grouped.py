"""Sentences on groups: versions that share work with some of the others and not with all.

Belongs here: the headline over several groups, and the sentence and cells of one group. Does not
belong here: finding groups (``analysis``) and the order over all traffic (``words.py``).

The leading set of a group holds the versions that no other of the group is shown to be better than,
after step-down over all its ordered pairs; that is what a rank set that contains 1 means.
"""

from __future__ import annotations

from dataclasses import dataclass

from evalpipe.report import format as fmt
from evalpipe.report.assignment import is_observational
from evalpipe.report.format import unit_of
from evalpipe.report.model import Evidence, Phrase, Run
from evalpipe.report.naming import NAMED_IN_HEADLINE, difference, named
from evalpipe.report.phrases import reasons
from evalpipe.report.records import BETTER, BETTER_THROUGH, WORSE, WORSE_THROUGH, Group, Pair

#: Groups that the headline words; the others are in the sentences and the table.
_WORDED = 3
#: Members of a leading set that the headline names where it speaks of several groups.
_NAMED_OF_MANY = 2
#: Relations of a pair whose order is established; the mirror images are not printed.
_TOLD = (BETTER, BETTER_THROUGH)
_MIRRORED = (WORSE, WORSE_THROUGH)

Grouped = tuple[Phrase, tuple[Phrase, ...]]


@dataclass(frozen=True, slots=True)
class GroupCells:
    """One group as the tables print it: a row of the overview, its versions and its pairs."""

    group: Group
    sessions: str
    leading: str
    told: str
    versions: tuple[VersionCells, ...]
    pairs: tuple[PairLine, ...]


@dataclass(frozen=True, slots=True)
class VersionCells:
    """One version in a group."""

    index: int
    rate: str
    shift: str
    simultaneous: str
    sessions: str
    is_leading: bool
    flag: str


@dataclass(frozen=True, slots=True)
class PairLine:
    """One unordered pair of a group, the one with the better estimate first."""

    first: int
    second: int
    text: str
    word: str
    is_told: bool


def grouped(ev: Evidence) -> Grouped | None:
    """The headline that names the leading set of every group, and one sentence a group.

    None where versions are ordered over all traffic: then groups are of those that had no part in it.
    """
    if not ev.groups or ev.leading:
        return None
    bad = dict.fromkeys(code for group in ev.groups for code in suspicions(ev, group))
    if bad:
        below = "The numbers of each group are shown, and no order may be read from them."
        return (Run(f"Not safe to compare: {reasons(tuple(bad))}"),), ((Run(below),),)
    several = len(ev.groups) > 1
    parts: list[Run] = [Run("No order over all traffic; in ")]
    for n, group in enumerate(ev.groups[:_WORDED]):
        parts += [Run("; in ") if n else Run(""), Run(f"{group.title} "), *_told(ev, group, several=several)]
    if len(ev.groups) > _WORDED:
        parts.append(Run(f"; and {fmt.plural(len(ev.groups) - _WORDED, 'further group')}"))
    if is_observational(ev):
        parts.append(Run(" (observed traffic)"))
    sentences = [_why(ev), *(group_sentence(ev, group) for group in ev.groups)]
    return tuple(parts), tuple(sentences)


def suspicions(ev: Evidence, group: Group) -> tuple[str, ...]:
    """Reasons of the suspect numbers of a group."""
    rows = [ev.at(ev.headline_metric, group.slice, i) for i in group.versions]
    return tuple(code for row in rows if row is not None and row.status == "suspect" for code in row.reasons)


def little_in_common(ev: Evidence) -> str:
    """Why there is no order over all traffic, as a clause that opens a sentence."""
    if ev.leading:
        return "Versions that share too little work with those compared over all traffic are compared apart"
    return "Too little work is common to every version" if ev.headline else "No work is common to every version"


def _why(ev: Evidence) -> Phrase:
    groups = fmt.plural(len(ev.groups), "group")
    alone = f"Each group is held to {fmt.percent(ev.alpha, 0)} on its own" if len(ev.groups) > 1 else ""
    tail = f" {alone}, and versions of different groups are not compared." if alone else ""
    return (Run(f"{little_in_common(ev)}, so those that did the same work are compared apart, in {groups}.{tail}"),)


def _told(ev: Evidence, group: Group, *, several: bool) -> Phrase:
    k, lead = len(group.versions), group.leading
    most = _NAMED_OF_MANY if several else NAMED_IN_HEADLINE
    if len(lead) == 1:
        other = tuple(i for i in group.versions if i not in lead)
        if k > 2:
            return (*named(ev, lead), Run(f" leads {k} versions"))
        verb = " is ahead of " if is_observational(ev) else " is better than "
        return (*named(ev, lead), Run(verb), *named(ev, other))
    if len(lead) == k:
        if k <= most:
            return (*named(ev, lead), Run(" cannot be told apart"))
        return (Run(f"the {k} versions cannot be told apart"),)
    if len(lead) <= most:
        return (*named(ev, lead), Run(f" cannot be told apart at the top of {k}"))
    return (Run(f"{len(lead)} of {k} versions cannot be told apart at the top"),)


def group_sentence(ev: Evidence, group: Group) -> Phrase:
    """One group in plain words: who may be the best, and how many pairs are told apart."""
    k, lead = len(group.versions), group.leading
    start = f"In {group.title} ({fmt.plural(group.n_sessions, 'session')}, {fmt.plural(k, 'version')}) "
    told = [pair for pair in group.pairs if pair.relation in _TOLD]
    total = k * (k - 1) // 2
    if len(lead) == 1:
        parts = [Run(start), *named(ev, lead), Run(" leads")]
    elif len(lead) == k:
        parts = [Run(start), *named(ev, lead), Run(" cannot be told apart")]
    else:
        parts = [Run(start), *named(ev, lead), Run(" may each be the best")]
    if not told:
        return (*parts, Run(f": none of {fmt.plural(total, 'pair')} can be told apart."))
    widest = max(told, key=lambda pair: (abs(pair.difference or 0.0), -pair.version, -pair.other))
    return (
        *parts,
        Run(f": {len(told)} of {fmt.plural(total, 'pair')} can be told apart, the widest apart being "),
        *named(ev, (widest.version,)), Run(" against "), *named(ev, (widest.other,)),
        Run(f", {difference(ev, widest)}."),
    )  # fmt: skip


def note(ev: Evidence) -> str:
    """How to read the tables of the groups."""
    level, alpha = fmt.percent(1 - ev.alpha, 0), fmt.percent(ev.alpha, 0)
    return (
        f"{little_in_common(ev)}. A group holds the work that the same versions did. Its leading set holds every "
        f"version that no other of the group is shown to be better than, after step-down over all its ordered pairs "
        f"(family-wise {alpha} in each group). The {level} interval of a pair is its own, so an interval without 0 "
        "may still belong to a pair that cannot be told apart among so many."
    )


def group_rows(ev: Evidence) -> tuple[GroupCells, ...]:
    """Every group for the tables of all outputs."""
    return tuple(_cells(ev, group) for group in ev.groups)


def _cells(ev: Evidence, group: Group) -> GroupCells:
    k = len(group.versions)
    told = sum(pair.relation in _TOLD for pair in group.pairs)
    lines = tuple(line for pair in group.pairs if (line := _line(ev, group, pair)) is not None)
    names = fmt.listed([ev.versions[i].label for i in group.leading])
    return GroupCells(
        group=group,
        sessions=fmt.count(group.n_sessions),
        leading="none: suspect" if suspicions(ev, group) else names,
        told=f"{told} of {k * (k - 1) // 2}",
        versions=tuple(_version(ev, group, i) for i in group.versions),
        pairs=tuple(sorted(lines, key=lambda line: not line.is_told)),
    )


def _version(ev: Evidence, group: Group, i: int) -> VersionCells:
    row, unit = ev.at(ev.headline_metric, group.slice, i), unit_of(ev.headline_metric)
    assert row is not None  # a group holds versions with a number only
    places = fmt.places_for(row.lo, row.hi, unit)
    return VersionCells(
        index=i,
        rate=fmt.level(row.theta, row.theta_lo, row.theta_hi, unit),
        shift=fmt.estimate(row.estimate, row.lo, row.hi, unit),
        simultaneous=fmt.interval(row.lo_sim, row.hi_sim, unit, places),
        sessions=fmt.count(row.n_sessions),
        is_leading=i in group.leading,
        flag="" if row.status == "ok" else f"{row.status}: {reasons(row.reasons)}",
    )


def _line(ev: Evidence, group: Group, pair: Pair) -> PairLine | None:
    place = {version: n for n, version in enumerate(group.versions)}
    is_told = pair.relation in _TOLD
    if pair.relation in _MIRRORED or (not is_told and place[pair.version] > place[pair.other]):
        return None  # its mirror image is printed
    word = "better" if is_told else "cannot be told apart"
    if pair.through is not None:
        word += f", through {ev.versions[pair.through].label}"
    return PairLine(pair.version, pair.other, difference(ev, pair), word, is_told)
