"""What the classifier tells apart: the labels of turns, complaints by their kind.

Belongs here: classes, the signals that they stand for, targets of training.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evalpipe.signals.labelled import LabelledTurn

CLASSES = (
    "confirm", "praise", "complaint.failure_report", "complaint.sentiment", "correction", "requirement_iteration",
    "neutral",
)  # fmt: skip
#: Signal that a class stands for; the other classes are none.
SIGNAL_OF = {
    "confirm": "confirm.explicit",
    "praise": "praise",
    "complaint.failure_report": "complaint.failure_report",
    "complaint.sentiment": "complaint.sentiment",
    "correction": "correction",
}
NEGATIVE = tuple(CLASSES.index(name) for name in ("complaint.failure_report", "complaint.sentiment", "correction"))
POSITIVE = tuple(CLASSES.index(name) for name in ("confirm", "praise"))
#: Share of a mixed turn that its primary label has; the others have the rest.
_PRIMARY_SHARE = 0.8


def class_of(turn: LabelledTurn) -> int:
    """Index of the primary class; a complaint without a kind is a failure report."""
    if turn.label == "complaint":
        return CLASSES.index(f"complaint.{turn.subtype or 'failure_report'}")
    return CLASSES.index(turn.label)


def targets(turns: list[LabelledTurn]) -> npt.NDArray[np.float64]:
    """(n, classes) shares of each class in each turn; rows add up to 1."""
    out = np.zeros((len(turns), len(CLASSES)))
    for row, turn in zip(out, turns, strict=True):
        others = sorted(turn.labels - {turn.label})
        row[class_of(turn)] += _PRIMARY_SHARE if others else 1.0
        for name in others:
            known = "complaint.failure_report" if name == "complaint" else name
            row[CLASSES.index(known)] += (1.0 - _PRIMARY_SHARE) / len(others)
    return out
