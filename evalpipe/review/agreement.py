"""Agreement of reviewers as a table: the ceiling of any detector.

Belongs here: rows of ``signals.agreement``. Does not belong here: kappa itself (``inference``).
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import combinations

import numpy as np
import polars as pl

from evalpipe.contracts.render import conform, frame
from evalpipe.contracts.tables.reviews import AGREEMENT
from evalpipe.inference import wilson
from evalpipe.inference.agreement.cohen import Kappa, cohen_kappa, contingency
from evalpipe.review.evidence import ALL, last_opinions


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
            found, n = _kappa([by_reviewer[one][i] for i in both], [by_reviewer[two][i] for i in both]), len(both)
            low, high = wilson(found.agreement * n, n)
            rows.append(
                {
                    "reviewer": one,
                    "other": two,
                    "kind": kind,
                    "lang": lang,
                    "n_items": n,
                    "agreement": found.agreement,
                    "agreement_lo": float(low),
                    "agreement_hi": float(high),
                    "kappa": _null(found.kappa),
                    "kappa_lo": _null(max(-1.0, found.lo)),
                    "kappa_hi": _null(min(1.0, found.hi)),
                }
            )
    return conform(AGREEMENT, frame(AGREEMENT, rows)).sort(AGREEMENT.sort)


def _kappa(first: list[str], second: list[str]) -> Kappa:
    names = sorted({*first, *second})
    one, two = (np.array([names.index(label) for label in labels], dtype=np.int64) for labels in (first, second))
    return cohen_kappa(contingency(one, two, len(names)))


def _null(value: float) -> float | None:
    return None if math.isnan(value) else value
