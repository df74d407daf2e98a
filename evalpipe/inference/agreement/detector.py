"""A detector (judge, signal) against labels: precision, recall and specificity.

Belongs here: the two-by-two table of a detector and its shares, weighted for how labels were
sampled. Does not belong here: where labels come from, or corrections of an estimate (``labels``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalpipe.inference.model import Bools, Floats


@dataclass(frozen=True, slots=True)
class Detection:
    """What a detector found and missed.

    Attributes:
        tp, fp, fn, tn: Sums of weights. precision, recall, specificity: shares; NaN where the
            denominator is 0 (precision of a detector that never fired is unknown, not 0).
        ess_fired, ess_true: Kish's effective numbers of labels behind precision and recall.
    """

    tp: float
    fp: float
    fn: float
    tn: float
    precision: float
    recall: float
    specificity: float
    ess_fired: float
    ess_true: float


def detection(fired: Bools, truth: Bools, weight: Floats | None = None) -> Detection:
    """Compare a detector with labels.

    Args:
        fired: (N,) whether the detector fired. truth: (N,) whether it should have.
        weight: (N,) inverse probabilities of being labelled; 1 by default. Labels of sessions in
            which nothing fired are needed: without them there is no recall.

    Returns:
        The table and its shares.

    Raises:
        ValueError: Lengths differ, or a weight is not positive and finite.
    """
    fired, truth = np.asarray(fired, dtype=bool), np.asarray(truth, dtype=bool)
    v = np.ones(len(fired)) if weight is None else np.asarray(weight, dtype=np.float64)
    if fired.shape != truth.shape or fired.shape != v.shape:
        raise ValueError("fired, truth and weight must have one length")
    if not (np.isfinite(v).all() and (v > 0).all()):
        raise ValueError("weight must be positive and finite")
    tp, fp = float(v[fired & truth].sum()), float(v[fired & ~truth].sum())
    fn, tn = float(v[~fired & truth].sum()), float(v[~fired & ~truth].sum())
    return Detection(
        tp, fp, fn, tn,
        precision=_share(tp, tp + fp),
        recall=_share(tp, tp + fn),
        specificity=_share(tn, tn + fp),
        ess_fired=kish_ess(v[fired]),
        ess_true=kish_ess(v[truth]),
    )  # fmt: skip


def kish_ess(weight: Floats) -> float:
    """Effective sample size (sum v)^2 / sum v^2 (Kish, 1965); 0 without weights."""
    square = float((np.asarray(weight, dtype=np.float64) ** 2).sum())
    return float(np.sum(weight)) ** 2 / square if square > 0 else 0.0


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan
