"""Agreement of reviewers as a table: the ceiling of any detector.

Belongs here: rows of ``signals.agreement``. Does not belong here: its coefficients (``inference``).
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
from evalpipe.inference.agreement.cohen import cohen_kappa, contingency, gwet_ac1, pabak
from evalpipe.inference.agreement.several import krippendorff_alpha, rating_counts
from evalpipe.inference.model import Floats
from evalpipe.review.evidence import ALL, last_opinions
from evalpipe.review.rules import guide


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
        alpha = _alpha(by_reviewer)
        for one, two in combinations(sorted(by_reviewer), 2):
            both = sorted(by_reviewer[one].keys() & by_reviewer[two].keys())
            if not both:
                continue
            counts = _counts(kind, [by_reviewer[one][i] for i in both], [by_reviewer[two][i] for i in both])
            found, n = cohen_kappa(counts), len(both)
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
                    "kappa_lo": _null(np.maximum(-1.0, found.lo)),
                    "kappa_hi": _null(np.minimum(1.0, found.hi)),
                    "ac1": _null(gwet_ac1(counts)),
                    "pabak": _null(pabak(counts)),
                    "n_reviewers": len(by_reviewer),
                    "alpha": _null(alpha),
                }
            )
    return conform(AGREEMENT, frame(AGREEMENT, rows)).sort(AGREEMENT.sort)


def _counts(kind: str, first: list[str], second: list[str]) -> Floats:
    """Pairs of labels of two reviewers, (Q, Q) over the labels that they could have given.

    Over those that they happened to give, one more label between them would be more agreement.
    """
    names = sorted({*(label.name for label in guide().of(kind)), *first, *second})
    one, two = (np.array([names.index(label) for label in labels], dtype=np.int64) for labels in (first, second))
    return contingency(one, two, len(names))


def _alpha(by_reviewer: dict[str, dict[str, str]]) -> float:
    """Krippendorff's alpha of three reviewers or more; NaN for fewer, or where nothing can be paired."""
    if len(by_reviewer) < 3:
        return math.nan
    items = sorted({item for said in by_reviewer.values() for item in said})
    codes = {name: at for at, name in enumerate(sorted({v for said in by_reviewer.values() for v in said.values()}))}
    ratings = np.full((len(items), len(by_reviewer)), -1, dtype=np.int64)
    for at, name in enumerate(sorted(by_reviewer)):
        ratings[:, at] = [codes[by_reviewer[name][item]] if item in by_reviewer[name] else -1 for item in items]
    return krippendorff_alpha(rating_counts(ratings, len(codes)))


def _null(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
