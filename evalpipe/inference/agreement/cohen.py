"""Agreement of two raters beyond chance.

Belongs here: Cohen's kappa with weights, its two standard errors, and the coefficients that are
shown beside it where one category is nearly everything. Does not belong here: more than two raters
or missing ratings (``several``), which raters are compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from evalpipe.inference.cells import Ints
from evalpipe.inference.model import Floats

WEIGHTS = ("unweighted", "linear", "quadratic")


@dataclass(frozen=True, slots=True)
class Kappa:
    """Cohen's kappa of one pair of raters.

    Attributes:
        kappa: The coefficient; NaN when it is unavailable.
        se: Standard error for an interval (Fleiss, Cohen and Everitt, 1969).
        se_null: Standard error if the raters agreed by chance alone, for a test of 0.
        lo, hi: kappa -+ z se.
        agreement: Weighted share of agreement that was observed; NaN without ratings.
        status: ``ok`` or ``unavailable``. reason: ``no_ratings`` or ``one_category``.
    """

    kappa: float
    se: float
    se_null: float
    lo: float
    hi: float
    agreement: float
    status: str = "ok"
    reason: str = ""


def contingency(first: Ints, second: Ints, n_categories: int) -> Floats:
    """Counts of pairs of ratings, (Q, Q).

    Args:
        first, second: Category codes 0..Q-1, (N,); an item without one of the ratings is left out
            by the caller.
        n_categories: Q, unused categories included.

    Raises:
        ValueError: Lengths differ, or a code is out of range.
    """
    first, second = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"ratings have shapes {first.shape} and {second.shape}, expected one length")
    for codes in (first, second):
        if len(codes) and (codes.min() < 0 or codes.max() >= n_categories):
            raise ValueError(f"ratings must be codes below {n_categories}")
    counts = np.bincount(first * n_categories + second, minlength=n_categories**2)
    return counts.reshape(n_categories, n_categories).astype(np.float64)


def agreement_weights(n_categories: int, kind: str) -> Floats:
    """Agreement weights between categories, (Q, Q), 1 on the diagonal.

    Args:
        n_categories: Q.
        kind: ``unweighted``; ``linear`` 1 - |i - j|/(Q - 1); ``quadratic`` 1 - ((i - j)/(Q - 1))^2
            (Fleiss and Cohen, 1973).

    Raises:
        ValueError: Unknown kind.
    """
    if kind not in WEIGHTS:
        raise ValueError(f"weights must be one of {', '.join(WEIGHTS)}; got {kind!r}")
    if kind == "unweighted":
        return np.eye(n_categories)
    place = np.arange(n_categories, dtype=np.float64)
    distance = np.abs(place[:, None] - place[None, :]) / max(n_categories - 1, 1)
    return np.asarray(1.0 - (distance if kind == "linear" else distance**2))


def cohen_kappa(counts: Floats, weights: str = "unweighted", alpha: float = 0.05) -> Kappa:
    """Cohen's kappa (Cohen, 1960 and 1968).

    Args:
        counts: (Q, Q) table of ratings: rows of one rater, columns of the other.
        weights: One of :data:`WEIGHTS`.
        alpha: Error rate of the interval.

    Returns:
        The coefficient. It is ``unavailable`` where no agreement beyond chance is possible, since
        both raters gave one category to everything: the share of agreement is then all there is.
    """
    counts = np.asarray(counts, dtype=np.float64)
    n = counts.sum()
    if not n > 0:
        return _none("no_ratings", math.nan)
    w = agreement_weights(len(counts), weights)
    p = counts / n
    row, column = p.sum(axis=1), p.sum(axis=0)
    observed, expected = float((w * p).sum()), float(row @ w @ column)
    if 1.0 - expected <= 1e-12:
        return _none("one_category", observed)
    kappa = (observed - expected) / (1.0 - expected)
    # Mean weight of a rating with what the other rater gives by chance.
    margin = (w @ column)[:, None] + (row @ w)[None, :]
    spread = float((p * (w - margin * (1.0 - kappa)) ** 2).sum())
    centre = kappa - expected * (1.0 - kappa)
    variance = (spread - centre**2) / (n * (1.0 - expected) ** 2)
    null = float((np.outer(row, column) * (w - margin) ** 2).sum())
    variance_null = (null - expected**2) / (n * (1.0 - expected) ** 2)
    se, se_null = math.sqrt(max(variance, 0.0)), math.sqrt(max(variance_null, 0.0))
    half = float(special.ndtri(1.0 - alpha / 2.0)) * se
    return Kappa(kappa, se, se_null, kappa - half, kappa + half, observed)


def gwet_ac1(counts: Floats) -> float:
    """Gwet's AC1 (Gwet, 2008): chance agreement is that of raters who guess where they are unsure.

    Args:
        counts: (Q, Q) table, Q at least 2.

    Returns:
        The coefficient; NaN without ratings or with one category.
    """
    counts = np.asarray(counts, dtype=np.float64)
    n, q = counts.sum(), len(counts)
    if not n > 0 or q < 2:
        return math.nan
    share = (counts.sum(axis=0) + counts.sum(axis=1)) / (2.0 * n)
    chance = float((share * (1.0 - share)).sum()) / (q - 1.0)
    return float((np.trace(counts) / n - chance) / (1.0 - chance))


def pabak(counts: Floats) -> float:
    """Prevalence- and bias-adjusted kappa (Byrt, Bishop and Carlin, 1993): (q po - 1)/(q - 1).

    Args:
        counts: (Q, Q) table.

    Returns:
        The coefficient; NaN without ratings or with one category.
    """
    counts = np.asarray(counts, dtype=np.float64)
    n, q = counts.sum(), len(counts)
    if not n > 0 or q < 2:
        return math.nan
    return float((q * np.trace(counts) / n - 1.0) / (q - 1.0))


def _none(reason: str, agreement: float) -> Kappa:
    nan = math.nan
    return Kappa(nan, nan, nan, nan, nan, agreement, "unavailable", reason)
