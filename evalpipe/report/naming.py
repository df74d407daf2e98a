"""Versions, differences and references inside a sentence, alike wherever they stand.

Belongs here: the small pieces that sentences are made of. Does not belong here: whole sentences on a
result (``words.py``, ``withheld.py``, ``grouped.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

from evalpipe.report import format as fmt
from evalpipe.report.format import unit_of
from evalpipe.report.model import Evidence, Phrase, Run
from evalpipe.report.phrases import reasons
from evalpipe.report.records import ALL, Estimate, Pair

#: More leaders than this are counted in the headline and named in the sentence below it.
NAMED_IN_HEADLINE = 4
MANY = 6


def named(ev: Evidence, versions: Sequence[int]) -> Phrase:
    """Versions by label, joined as a list, each with its role."""
    parts: list[Run] = []
    for n, i in enumerate(versions):
        if n:
            parts.append(Run(" and " if n == len(versions) - 1 else ", "))
        parts.append(Run(ev.versions[i].label, ev.versions[i].role or "version"))
    return tuple(parts)


def named_or_counted(ev: Evidence, versions: Sequence[int]) -> Phrase:
    """Versions by label, or their number where they are many."""
    return named(ev, versions) if len(versions) <= MANY else (Run(fmt.plural(len(versions), "version")),)


def are(versions: Sequence[int]) -> str:
    """The verb of a list of versions."""
    return "is" if len(versions) == 1 else "are"


def word(n: int) -> str:
    """A small number as a word."""
    return {3: "three", 4: "four"}.get(n, str(n))


def quoted(titles: Sequence[str]) -> str:
    """Titles in quotation marks, as a list."""
    return fmt.listed([f"\u201c{title}\u201d" for title in titles])


def sentence(text: str) -> str:
    """The text with a full stop."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


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


def has_number(ev: Evidence, version: int) -> bool:
    """Whether a version has a number of the headline over all traffic."""
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
