"""How good probabilities of labelled turns are, as counts and curves.

Belongs here: hits by class and language, average precision, precision at thresholds, calibration. Does not
belong here: intervals and tables (``steps/borderline.py``, the console), what is emitted by patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from evalpipe.signals.borderline.classes import CLASSES, NEGATIVE, POSITIVE
from evalpipe.signals.labelled import NEGATIVE_CLASSES, POSITIVE_CLASSES, TURN_CLASSES, LabelledTurn
from evalpipe.signals.scoring import ALL_LANGUAGES, Hits

#: Probabilities at which precision is told.
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_BINS = 10
_FAMILIES = {"negative": (NEGATIVE, NEGATIVE_CLASSES), "positive": (POSITIVE, POSITIVE_CLASSES)}


@dataclass(slots=True)
class Measured:
    """Measures of one set of turns.

    Attributes:
        n_rows: Turns by language.
        hits: Counts by (language, class), the most probable class emitted, complaints joined.
        average_precision: By family, negative and positive joined; null where a set has none or only such.
        at: Hits by (family, threshold) of its joined probability.
        calibration_error: Mean distance of the top probability from the share that is right, over ten bins.
    """

    n_rows: dict[str, int] = field(default_factory=dict)
    hits: dict[tuple[str, str], Hits] = field(default_factory=dict)
    average_precision: dict[str, float | None] = field(default_factory=dict)
    at: dict[tuple[str, float], Hits] = field(default_factory=dict)
    calibration_error: float = 0.0


def measure(turns: Sequence[LabelledTurn], probabilities: npt.NDArray[np.float32]) -> Measured:
    """Measure probabilities against labels.

    Args:
        turns: (n,) labelled turns, at least one.
        probabilities: (n, classes).
    """
    out = Measured()
    top = probabilities.argmax(axis=1)
    labels = [CLASSES[k].split(".")[0] for k in top]
    for turn, label in zip(turns, labels, strict=True):
        for lang in (ALL_LANGUAGES, turn.lang):
            out.n_rows[lang] = out.n_rows.get(lang, 0) + 1
            for name in TURN_CLASSES:
                out.hits.setdefault((lang, name), Hits()).count(
                    is_emitted=label == name, is_true=name in turn.labels, is_sought=turn.label == name
                )
    for family, (columns, members) in _FAMILIES.items():
        joined = probabilities[:, list(columns)].sum(axis=1)
        truth = np.array([bool(turn.labels & members) for turn in turns])
        sought = np.array([turn.label in members for turn in turns])
        out.average_precision[family] = average_precision(joined, truth)
        for threshold in THRESHOLDS:
            chosen = joined >= threshold
            out.at[family, threshold] = Hits(
                int(chosen.sum()), int((chosen & truth).sum()), int(sought.sum()), int((chosen & sought).sum())
            )
    right = np.array([label in turn.labels for turn, label in zip(turns, labels, strict=True)])
    out.calibration_error = calibration_error(probabilities.max(axis=1), right)
    return out


def average_precision(scores: npt.NDArray[np.float32], truth: npt.NDArray[np.bool_]) -> float | None:
    """Mean precision at the place of every true row, best score first; null where all or none are true.

    Rows of one score share their place: their order says nothing.
    """
    if truth.all() or not truth.any():
        return None
    order = np.argsort(-scores, kind="stable")
    found, place = np.cumsum(truth[order]), np.arange(1, truth.size + 1)
    ranked = scores[order]
    last = np.searchsorted(-ranked, -ranked, side="right") - 1
    return float((found[last] / place[last])[truth[order]].mean())


def calibration_error(top: npt.NDArray[np.float32], right: npt.NDArray[np.bool_]) -> float:
    """Expected calibration error over ten bins of equal width."""
    bins = np.minimum((top * _BINS).astype(np.int64), _BINS - 1)
    n = np.bincount(bins, minlength=_BINS)
    gap = np.abs(np.bincount(bins, top, _BINS) - np.bincount(bins, right.astype(np.float64), _BINS))
    return float(gap.sum() / max(n.sum(), 1))
