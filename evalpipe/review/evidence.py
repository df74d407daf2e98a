"""From reviews to verdicts: what they hold of each signal, language and detector version, and what is demoted.

Belongs here: evidence and verdicts over review rows, pure. Does not belong here: tables of it
(``quality``), what a demotion does to outcomes (``signals/demotion.py``).

A reviewer labels what an item is and never sees what the detector said. So one sample serves every
signal: its precision is read off the items on which it was emitted, its recall off those that have it by
their labels, silent ones included, each weighted by the inverse of its probability to be drawn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from evalpipe.contracts.signals import BY_NAME
from evalpipe.inference import Share, hajek_share, units_for_bound
from evalpipe.review.rules import UNSURE, Limits

ALL = "all"
PROVEN, UNPROVEN, DEMOTED = "proven", "unproven", "demoted"

#: (signal, language) to the version of its detector that is in force.
Versions = Callable[[str, str], str]
#: Signal, language, version.
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Item:
    """A reviewed item with the last opinion of each reviewer.

    Attributes:
        lang, model, inclusion_prob, emitted: As drawn.
        versions: Detector version by signal.
        opinions: Labels of each reviewer; those who were unsure are left out.
    """

    lang: str
    model: str
    inclusion_prob: float
    emitted: frozenset[str]
    versions: Mapping[str, str]
    opinions: tuple[frozenset[str], ...]

    def share_with(self, labels: frozenset[str]) -> float:
        """Share of the reviewers that gave any of some labels."""
        return sum(bool(labels & opinion) for opinion in self.opinions) / len(self.opinions)


@dataclass(slots=True)
class Seen:
    """What the reviews hold of one signal, language, version and model.

    Attributes:
        right, right_prob: Of emitted items, share of reviewers that call them right, and inclusion.
        found, labelled, labelled_prob: Of items with the label, whether it was emitted, share of reviewers that
            gave it, and inclusion.
        n_unsure: Emitted items of which nobody was sure.
    """

    right: list[float] = field(default_factory=list)
    right_prob: list[float] = field(default_factory=list)
    found: list[float] = field(default_factory=list)
    labelled: list[float] = field(default_factory=list)
    labelled_prob: list[float] = field(default_factory=list)
    n_unsure: int = 0

    @property
    def precision(self) -> Share:
        """Share of the emitted items that are right."""
        return hajek_share(self.right, self.right_prob)

    @property
    def recall(self) -> Share:
        """Share of the items with the label that were emitted."""
        # An item that one of two reviewers gave the label counts half.
        weight = np.asarray(self.labelled)
        return hajek_share(self.found, np.asarray(self.labelled_prob) / weight if weight.size else [])


def last_opinions(reviews: pl.DataFrame) -> pl.DataFrame:
    """The last revision of every item and reviewer, in order; letter case makes no other reviewer."""
    one = reviews.with_columns(pl.col("reviewer").str.to_lowercase())
    ordered = one.sort("item_id", "reviewer", "revision")
    return ordered.unique(["item_id", "reviewer"], keep="last", maintain_order=True)


def items_of(reviews: pl.DataFrame) -> list[Item]:
    """Reviewed items, in the order of their ids.

    Args:
        reviews: Rows of ``signals.reviews``.
    """
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in last_opinions(reviews).iter_rows(named=True):
        grouped.setdefault(row["item_id"], []).append(row)
    out = []
    for rows in grouped.values():
        first = rows[0]
        opinions = tuple(frozenset(row["labels"]) for row in rows if UNSURE not in row["labels"])
        versions = dict(pair.split("=", 1) for pair in first["versions"])
        out.append(
            Item(
                first["lang"], first["model"], first["inclusion_prob"], frozenset(first["emitted"]), versions, opinions
            )
        )
    return out


def _seen(items: Iterable[Item], limits: Limits, left_out: frozenset[Key] = frozenset()) -> dict[Key, dict[str, Seen]]:
    """Evidence by (signal, language, version), and in it by model; ``all`` is over all models.

    Groups are without the signals of ``left_out``.
    """
    out: dict[Key, dict[str, Seen]] = defaultdict(lambda: defaultdict(Seen))
    for item in items:
        for name, version in _names(item, limits).items():
            key = (name, item.lang, version)
            members, right = limits.members(name), limits.right(name)
            emitted = {one for one in item.emitted if (one, item.lang, item.versions.get(one, "")) not in left_out}
            is_emitted = bool(members & (emitted if name in limits.joined else item.emitted))
            for model in (ALL, item.model):
                seen = out[key][model]
                if not item.opinions:
                    seen.n_unsure += is_emitted
                    continue
                if is_emitted:
                    seen.right.append(item.share_with(right))
                    seen.right_prob.append(item.inclusion_prob)
                share = item.share_with(members)
                if share:
                    seen.found.append(float(is_emitted))
                    seen.labelled.append(share)
                    seen.labelled_prob.append(item.inclusion_prob)
    return out


def evidence_of(reviews: pl.DataFrame, limits: Limits) -> dict[Key, dict[str, Seen]]:
    """Evidence of some reviews by (signal, language, version), and in it by model; ``all`` is over all models.

    Args:
        reviews: Rows of ``signals.reviews``. limits: what makes a row right.
    """
    return _seen(items_of(reviews), limits)


def _names(item: Item, limits: Limits) -> dict[str, str]:
    """Signals and groups that an item speaks of, with their version."""
    out = dict(item.versions)
    for name, members in limits.joined.items():
        inside = [item.versions[member] for member in members if member in item.versions]
        if inside:
            out[name] = joined_version(inside)
    return out


def joined_version(versions: Iterable[str]) -> str:
    """Version of a group: those of its signals."""
    return "/".join(dict.fromkeys(versions))


def verdict(precision: Share, threshold: float | None, min_reviewed: int) -> str:
    """What reviews say of one signal in one language.

    Args:
        precision: Its precision.
        threshold: Bound that it must reach, or ``None`` where none is asked.
        min_reviewed: Rows under which nothing is said.

    Returns:
        ``proven``, ``unproven`` or ``demoted``. While even a faultless sample could not reach the
        threshold, only a bound above that lies under it demotes: more reviews must never be what
        takes a signal away from which no fault is known.
    """
    if threshold is None or precision.n < min_reviewed:
        return UNPROVEN
    if precision.low >= threshold:
        return PROVEN
    could_reach = precision.n_effective >= units_for_bound(threshold)
    return DEMOTED if could_reach or precision.high < threshold else UNPROVEN


@dataclass(frozen=True, slots=True)
class Judged:
    """Evidence with its verdicts.

    Attributes:
        seen: Evidence; groups are without the signals that are demoted by themselves.
        verdicts: Verdict by (signal, language, version).
        fallen: Signals that are demoted by themselves.
    """

    seen: dict[Key, dict[str, Seen]]
    verdicts: dict[Key, str]
    fallen: frozenset[Key]


def judge(reviews: pl.DataFrame, limits: Limits) -> Judged:
    """Judge every signal by itself, then what is left of each group.

    A group under its threshold takes those with it that have not proven themselves; but what made it
    fall may be one signal alone, which is demoted already.
    """
    items = items_of(reviews)
    own = _own(_seen(items, limits), limits)
    fallen = frozenset(key for key, status in own.items() if status == DEMOTED and key[0] in BY_NAME)
    seen = _seen(items, limits, fallen)
    verdicts = _own(seen, limits)
    for (name, lang, version), status in list(verdicts.items()):
        if name not in limits.joined or status != DEMOTED:
            continue
        parts = set(version.split("/"))
        for key, state in own.items():
            if key[0] in limits.joined[name] and key[1] == lang and key[2] in parts and state == UNPROVEN:
                verdicts[key] = DEMOTED
    return Judged(seen, verdicts, fallen)


def _own(seen: Mapping[Key, Mapping[str, Seen]], limits: Limits) -> dict[Key, str]:
    return {
        key: verdict(by_model[ALL].precision, limits.threshold(key[0]), limits.min_reviewed)
        for key, by_model in seen.items()
    }


def demoted(reviews: pl.DataFrame, limits: Limits, versions: Versions) -> frozenset[tuple[str, str]]:
    """Signals that outcomes must not count, as (signal, language), by the detectors in force.

    Args:
        reviews: Rows of ``signals.reviews``.
        limits: Thresholds.
        versions: Detector version in force of a signal and language.
    """
    return frozenset(
        (signal, lang)
        for (signal, lang, version), status in judge(reviews, limits).verdicts.items()
        if signal in BY_NAME and versions(signal, lang) == version
        if status == DEMOTED or (status == UNPROVEN and not limits.unproven_counts)
    )
