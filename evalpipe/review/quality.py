"""From reviews to precision: per signal, language, detector version and model, and what is demoted.

Belongs here: estimates and verdicts over review rows, pure. Does not belong here: what a demotion does
to outcomes (``signals/demotion.py``).

A reviewer labels what an item is and never sees what the detector said. So one sample serves every
signal: its precision is read off the items on which it was emitted, its recall off those that have it by
their labels, silent ones included, each weighted by the inverse of its probability to be drawn.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Protocol

import numpy as np
import polars as pl

from evalpipe.contracts.render import conform, frame
from evalpipe.contracts.signals import BY_NAME, Family
from evalpipe.contracts.tables.reviews import AGREEMENT, QUALITY
from evalpipe.inference import Share, adjust, cohen_kappa, equal_shares, hajek_share, units_for_bound
from evalpipe.review.rules import UNSURE, Limits

ALL = "all"
#: Language of signals that have none.
ANY = "any"
PROVEN, UNPROVEN, DEMOTED = "proven", "unproven", "demoted"

#: (signal, language) to the version of its detector that is in force.
Versions = Callable[[str, str], str]
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
class _Seen:
    """What the reviews hold of one signal, language, version and model."""

    right: list[float] = field(default_factory=list)
    right_prob: list[float] = field(default_factory=list)
    found: list[float] = field(default_factory=list)
    labelled: list[float] = field(default_factory=list)
    labelled_prob: list[float] = field(default_factory=list)
    n_unsure: int = 0

    @property
    def precision(self) -> Share:
        return hajek_share(self.right, self.right_prob)

    @property
    def recall(self) -> Share:
        # An item that one of two reviewers gave the label counts half.
        weight = np.asarray(self.labelled)
        return hajek_share(self.found, np.asarray(self.labelled_prob) / weight if weight.size else [])


def last_opinions(reviews: pl.DataFrame) -> pl.DataFrame:
    """The last revision of every item and reviewer, in order."""
    ordered = reviews.sort("item_id", "reviewer", "revision")
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


def _seen(items: Iterable[Item], limits: Limits, left_out: frozenset[Key] = frozenset()) -> dict[Key, dict[str, _Seen]]:
    """Evidence by (signal, language, version), and in it by model; ``all`` is over all models.

    Groups are without the signals of ``left_out``.
    """
    out: dict[Key, dict[str, _Seen]] = defaultdict(lambda: defaultdict(_Seen))
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
class _Judged:
    """Evidence with its verdicts.

    Attributes:
        seen: Evidence; groups are without the signals that are demoted by themselves.
        verdicts: Verdict by (signal, language, version).
        fallen: Signals that are demoted by themselves.
    """

    seen: dict[Key, dict[str, _Seen]]
    verdicts: dict[Key, str]
    fallen: frozenset[Key]


def _judge(reviews: pl.DataFrame, limits: Limits) -> _Judged:
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
    return _Judged(seen, verdicts, fallen)


def _own(seen: Mapping[Key, Mapping[str, _Seen]], limits: Limits) -> dict[Key, str]:
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
        for (signal, lang, version), status in _judge(reviews, limits).verdicts.items()
        if signal in BY_NAME and versions(signal, lang) == version
        if status == DEMOTED or (status == UNPROVEN and not limits.unproven_counts)
    )


class Golden(Protocol):
    """What the golden set says of one signal and language."""

    n: int
    n_emitted: int
    n_right: int
    n_labelled: int
    n_found: int


def quality(
    reviews: pl.DataFrame,
    emitted: pl.DataFrame,
    limits: Limits,
    versions: Versions,
    *,
    rules: Mapping[tuple[str, str], int],
    golden: Mapping[tuple[str, str], Golden],
    weights: Mapping[str, float],
) -> pl.DataFrame:
    """Rows of ``signals.quality``.

    Args:
        reviews: Rows of ``signals.reviews``.
        emitted: ``signal, lang, model, n`` of the rows in the lake.
        limits: Thresholds.
        versions: Detector version in force of a signal and language.
        rules: Number of rules by (signal, language): what could be emitted at all.
        golden: The golden set by (signal, language).
        weights: Weights of the criteria; what has none is not counted.
    """
    judged = _judge(reviews, limits)
    seen, verdicts = judged.seen, judged.verdicts
    counts: dict[tuple[str, str, str], int] = {}
    for signal, lang, model, n in emitted.select("signal", "lang", "model", "n").iter_rows():
        groups = [group for group, members in limits.joined.items() if signal in members]
        is_out = (signal, lang, versions(signal, lang)) in judged.fallen
        for name in (signal, *(() if is_out else groups)):
            for place in (ALL, model):
                counts[name, lang, place] = counts.get((name, lang, place), 0) + n
    current = _current({*rules, *((signal, lang) for signal, lang, _ in counts)}, limits, versions)
    blank: dict[str, _Seen] = {}
    keys = sorted({*seen, *((signal, lang, version) for (signal, lang), version in current.items())})
    p_models = _p_models(seen, limits)
    rows = []
    for key in keys:
        signal, lang, version = key
        by_model = seen.get(key, blank)
        is_current = current.get((signal, lang)) == version
        models = {model for (s, at, model) in counts if (s, at) == (signal, lang)} if is_current else set()
        status = verdicts.get(key, UNPROVEN)
        for model in sorted({ALL, *by_model, *models}):
            evidence = by_model.get(model, _Seen())
            own = status if model == ALL else verdict(evidence.precision, limits.threshold(signal), limits.min_reviewed)
            rows.append(
                {
                    "signal": signal,
                    "lang": lang,
                    "extractor_version": version,
                    "model": model,
                    "family": _family(signal, limits),
                    "is_current": is_current,
                    "n_rules": sum(rules.get((member, lang), 0) for member in limits.members(signal)),
                    "n_emitted": counts.get((signal, lang, model), 0) if is_current else None,
                    "threshold": limits.threshold(signal),
                    "status": own,
                    "is_counted": is_current and _is_counted(signal, status, limits, weights),
                    "p_models": p_models.get(key) if model == ALL else None,
                    "is_unequal": model == ALL and p_models.get(key, 1.0) < limits.models["alpha"],
                    **_numbers(evidence),
                    **_golden(golden, signal, lang, limits),
                }
            )
    return conform(QUALITY, frame(QUALITY, rows)).sort(QUALITY.sort)


def _current(pairs: set[tuple[str, str]], limits: Limits, versions: Versions) -> dict[tuple[str, str], str]:
    out = {}
    for signal, lang in sorted(pairs):
        members = limits.joined.get(signal)
        out[signal, lang] = (
            versions(signal, lang) if members is None else joined_version(versions(member, lang) for member in members)
        )
    for name, members in limits.joined.items():
        for lang in sorted({lang for signal, lang in pairs if signal in members}):
            out[name, lang] = joined_version(versions(member, lang) for member in members)
    return out


def _family(signal: str, limits: Limits) -> str:
    return BY_NAME[min(limits.members(signal))].family.value


def _is_counted(signal: str, status: str, limits: Limits, weights: Mapping[str, float]) -> bool:
    # Signals from the environment are counted by metrics of their own, whatever their weight.
    has_weight = any(weights.get(member) or BY_NAME[member].family is Family.HARD for member in limits.members(signal))
    return has_weight and (status == PROVEN or (status == UNPROVEN and limits.unproven_counts))


def _numbers(evidence: _Seen) -> dict[str, Any]:
    precision, recall = evidence.precision, evidence.recall
    return {
        "n_reviewed": precision.n,
        "n_unsure": evidence.n_unsure,
        "n_correct": sum(evidence.right),
        "n_effective": precision.n_effective,
        "precision": _null(precision.value),
        "precision_lo": _null(precision.low),
        "precision_hi": _null(precision.high),
        "n_labelled": float(sum(evidence.labelled)),
        "recall": _null(recall.value),
        "recall_lo": _null(recall.low),
        "recall_hi": _null(recall.high),
    }


def _golden(golden: Mapping[tuple[str, str], Golden], signal: str, lang: str, limits: Limits) -> dict[str, Any]:
    found = golden.get((signal, lang))
    if found is None or signal in limits.joined:
        return {"n_golden": 0, "golden_precision": None, "golden_recall": None}
    return {
        "n_golden": found.n,
        "golden_precision": found.n_right / found.n_emitted if found.n_emitted else None,
        "golden_recall": found.n_found / found.n_labelled if found.n_labelled else None,
    }


def _p_models(seen: Mapping[Key, Mapping[str, _Seen]], limits: Limits) -> dict[Key, float]:
    """Adjusted p-values of equal precision over models, where at least two have enough reviews."""
    raw: dict[Key, float] = {}
    for key, by_model in sorted(seen.items()):
        if key[0] in limits.joined:
            continue
        shares = [evidence.precision for model, evidence in sorted(by_model.items()) if model != ALL]
        p = equal_shares([share for share in shares if share.n >= limits.models["min_reviewed"]])
        if not math.isnan(p):
            raw[key] = p
    if not raw:
        return {}
    return dict(zip(raw, adjust(np.array(list(raw.values())), "holm").tolist(), strict=True))


def agreement(reviews: pl.DataFrame) -> pl.DataFrame:
    """Rows of ``signals.agreement``: every pair of reviewers, per kind of item, by language and over all.

    Args:
        reviews: Rows of ``signals.reviews``.
    """
    labels: dict[tuple[str, str], dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for row in last_opinions(reviews).iter_rows(named=True):
        for lang in (ALL, row["lang"]):
            labels[row["kind"], lang][row["reviewer"]][row["item_id"]] = row["labels"][0]
    rows = []
    for (kind, lang), by_reviewer in sorted(labels.items()):
        for one, two in combinations(sorted(by_reviewer), 2):
            both = sorted(by_reviewer[one].keys() & by_reviewer[two].keys())
            if not both:
                continue
            found = cohen_kappa([by_reviewer[one][i] for i in both], [by_reviewer[two][i] for i in both])
            rows.append(
                {
                    "reviewer": one,
                    "other": two,
                    "kind": kind,
                    "lang": lang,
                    "n_items": found.n,
                    "agreement": found.agreement,
                    "agreement_lo": found.agreement_low,
                    "agreement_hi": found.agreement_high,
                    "kappa": _null(found.value),
                    "kappa_lo": _null(found.low),
                    "kappa_hi": _null(found.high),
                }
            )
    return conform(AGREEMENT, frame(AGREEMENT, rows)).sort(AGREEMENT.sort)


def _null(value: float) -> float | None:
    return None if math.isnan(value) else value
