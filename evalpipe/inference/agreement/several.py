"""Agreement of more than two raters, or of raters who did not rate everything.

Belongs here: Fleiss' kappa and Krippendorff's alpha. Does not belong here: two complete raters
(``cohen``), which has standard errors of its own.
"""

from __future__ import annotations

import math

import numpy as np

from evalpipe.inference.cells import Ints
from evalpipe.inference.model import Floats

LEVELS = ("nominal", "ordinal", "interval")


def rating_counts(ratings: Ints, n_categories: int) -> Floats:
    """Ratings of each item by category, (N, Q).

    Args:
        ratings: (N, R) category codes 0..Q-1, -1 where a rater gave none.
        n_categories: Q.

    Raises:
        ValueError: A code is out of range.
    """
    ratings = np.asarray(ratings, dtype=np.int64)
    if ratings.size and (ratings.min() < -1 or ratings.max() >= n_categories):
        raise ValueError(f"ratings must be -1 or codes below {n_categories}")
    return np.asarray((ratings[:, :, None] == np.arange(n_categories)).sum(axis=1), dtype=np.float64)


def fleiss_kappa(counts: Floats) -> float:
    """Fleiss' kappa (Fleiss, 1971).

    Args:
        counts: (N, Q) ratings of each item by category; every item has the same number, 2 or more.

    Returns:
        The coefficient; NaN without items, or where one category holds every rating.

    Raises:
        ValueError: Items have different numbers of ratings.
    """
    counts = np.asarray(counts, dtype=np.float64)
    if counts.size == 0:
        return math.nan
    raters = counts.sum(axis=1)
    if not (raters == raters[0]).all() or raters[0] < 2:
        raise ValueError("every item needs the same number of ratings, at least 2; use krippendorff_alpha")
    r = float(raters[0])
    agreed = float(((counts**2).sum(axis=1) - r).mean()) / (r * (r - 1.0))
    share = counts.sum(axis=0) / counts.sum()
    chance = float((share**2).sum())
    return math.nan if 1.0 - chance <= 1e-12 else (agreed - chance) / (1.0 - chance)


def krippendorff_alpha(counts: Floats, level: str = "nominal", values: Floats | None = None) -> float:
    """Krippendorff's alpha (Krippendorff, 1980; ordinal metric of 2011).

    Args:
        counts: (N, Q) ratings of each item by category; items with fewer than two ratings pair with
            nothing and do not count.
        level: ``nominal``, ``ordinal`` or ``interval``: what a distance between categories means.
        values: (Q,) values of the categories for ``interval``, increasing; 0..Q-1 by default.

    Returns:
        1 - observed / expected disagreement; NaN where nothing can be paired or one category holds
        every rating.

    Raises:
        ValueError: Unknown level.
    """
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}; got {level!r}")
    counts = np.asarray(counts, dtype=np.float64)
    counts = counts[counts.sum(axis=1) >= 2]
    if counts.size == 0:
        return math.nan
    raters = counts.sum(axis=1)
    # Coincidences: ordered pairs of ratings of one item, each item weighing as its ratings.
    pairs = counts[:, :, None] * counts[:, None, :]
    q = counts.shape[1]
    pairs[:, np.arange(q), np.arange(q)] -= counts
    together = (pairs / (raters - 1.0)[:, None, None]).sum(axis=0)
    n = together.sum(axis=1)
    distance = _distance(level, n, np.arange(q, dtype=np.float64) if values is None else values)
    expected = float((distance * np.outer(n, n)).sum()) / (n.sum() - 1.0)
    if expected <= 0:
        return math.nan
    return float(1.0 - (distance * together).sum() / expected)


def _distance(level: str, n: Floats, values: Floats) -> Floats:
    """Squared distances between categories, (Q, Q)."""
    if level == "nominal":
        return 1.0 - np.eye(len(n))
    # Ordinal: a category lies at the mean rank of its ratings.
    place = np.cumsum(n) - n / 2.0 if level == "ordinal" else np.asarray(values, dtype=np.float64)
    return np.asarray((place[:, None] - place[None, :]) ** 2)
