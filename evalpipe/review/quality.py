"""Quality of signals as a table: evidence and verdicts of reviews beside counts and the golden set.

Belongs here: rows of ``signals.quality``. Does not belong here: verdicts (``evidence``).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, Protocol

import numpy as np
import polars as pl

from evalpipe.contracts.render import conform, frame
from evalpipe.contracts.signals import BY_NAME
from evalpipe.contracts.tables.reviews import QUALITY
from evalpipe.inference import adjust, equal_shares
from evalpipe.review.evidence import ALL, PROVEN, UNPROVEN, Key, Seen, Versions, joined_version, judge, verdict
from evalpipe.review.rules import Limits


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
    scored: Collection[str],
) -> pl.DataFrame:
    """Rows of ``signals.quality``.

    Args:
        reviews: Rows of ``signals.reviews``.
        emitted: ``signal, lang, model, n`` of the rows in the lake.
        limits: Thresholds.
        versions: Detector version in force of a signal and language.
        rules: Number of rules by (signal, language): what could be emitted at all.
        golden: The golden set by (signal, language).
        scored: Signals that outcomes rest on under the criteria in force.
    """
    judged = judge(reviews, limits)
    seen, verdicts = judged.seen, judged.verdicts
    counts: dict[tuple[str, str, str], int] = {}
    for signal, lang, model, n in emitted.select("signal", "lang", "model", "n").iter_rows():
        groups = [group for group, members in limits.joined.items() if signal in members]
        is_out = (signal, lang, versions(signal, lang)) in judged.fallen
        for name in (signal, *(() if is_out else groups)):
            for place in (ALL, model):
                counts[name, lang, place] = counts.get((name, lang, place), 0) + n
    current = _current({*rules, *((signal, lang) for signal, lang, _ in counts)}, limits, versions)
    blank: dict[str, Seen] = {}
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
            evidence = by_model.get(model, Seen())
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
                    "is_counted": is_current and _is_counted(signal, status, limits, scored),
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


def _is_counted(signal: str, status: str, limits: Limits, scored: Collection[str]) -> bool:
    is_scored = not limits.members(signal).isdisjoint(scored)
    return is_scored and (status == PROVEN or (status == UNPROVEN and limits.unproven_counts))


def _numbers(evidence: Seen) -> dict[str, Any]:
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


def _p_models(seen: Mapping[Key, Mapping[str, Seen]], limits: Limits) -> dict[Key, float]:
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


def _null(value: float) -> float | None:
    return None if math.isnan(value) else value
