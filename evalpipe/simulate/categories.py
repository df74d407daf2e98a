"""How a session can go, and with what probability: the planted outcome model.

Belongs here: the ten courses of a session, what each means for every metric, and their probabilities
given version, task and user. Does not belong here: draws (``plan.py``) and words (``script.py``).

The courses are chosen so that what was planted is what the default criteria measure: a positive session
ends with a confirmation that at most one correction stands against (1.0 - 0.8 > 0); one that was
confirmed only after two corrections is confirmed, yet not positive (1.0 - 1.6 < 0); silence is never
positive. A user's shift is additive on the probability scale and moves mass between the accepted and the
silent courses, so a version's effect is the same for every user unless a probability meets its bound;
the truth counts such sessions (``clipped``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evalpipe.simulate.world import Scenario, Version

#: The courses; the index is the code in the plan.
COURSES = (
    "accepted",  # confirmed, nothing against it
    "accepted_after_correction",  # one correction, then confirmed
    "accepted_late",  # two corrections, then confirmed
    "complaint_end",  # the last word is a complaint
    "complaint_mid",  # a complaint, then the work goes on and ends in silence
    "correction_end",  # the last word is a correction
    "correction_mid",  # a correction, then the work goes on and ends in silence
    "waiting",  # the agent asks, nobody answers
    "relapse",  # confirmed early, then a correction and a complaint
    "silent",  # the agent finishes, nobody comments
)
CODE = {name: code for code, name in enumerate(COURSES)}

#: Which courses count for a metric. ``unresolved`` becomes abandonment unless the user comes back.
MEMBERS: dict[str, tuple[str, ...]] = {
    "positive_outcome": ("accepted", "accepted_after_correction"),
    "confirmation": ("accepted", "accepted_after_correction", "accepted_late"),
    "correction": ("accepted_after_correction", "accepted_late", "correction_end", "correction_mid", "relapse"),
    "complaint": ("complaint_end", "complaint_mid", "relapse"),
    "unresolved": ("complaint_end", "correction_end", "waiting", "relapse"),
}

#: Failed calls of a session are Binomial(MAX_ERRORS, mean / MAX_ERRORS).
MAX_ERRORS = 4

_POSITIVE = (0.02, 0.86)
_CORRECTION = (0.02, 0.60)


def indicator(metric: str) -> NDArray[np.float64]:
    """Vector over the courses: 1 where the course counts for the metric."""
    out = np.zeros(len(COURSES))
    out[[CODE[name] for name in MEMBERS[metric]]] = 1.0
    return out


def probabilities(
    version: Version,
    scenarios: Sequence[Scenario],
    scenario: NDArray[np.int8],
    positive_shift: NDArray[np.float64],
    correction_shift: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Probability of each course for each session, were it served by this version.

    Args:
        version: The version.
        scenarios: The kinds of task.
        scenario: (N,) index of each session's task.
        positive_shift: (N,) shift of P(positive outcome): the user's and the calendar's.
        correction_shift: (N,) the user's shift of P(any correction).

    Returns:
        (N, 10) probabilities that sum to 1, and (N,) whether a bound was met.
    """

    def base(name: str) -> NDArray[np.float64]:
        return np.array([getattr(s, name) for s in scenarios], dtype=np.float64)[scenario]

    wanted_p = base("positive") + version.positive + positive_shift
    wanted_r = base("correction") * version.correction + correction_shift
    p, r = np.clip(wanted_p, *_POSITIVE), np.clip(wanted_r, *_CORRECTION)
    complaint, unresolved = base("complaint") * version.complaint, base("unresolved") * version.unresolved

    after_correction, late, relapse = 0.8 * r * p, 0.25 * r, 0.05 * r
    other_correction = r * (0.7 - 0.8 * p)  # what is left of r, so that P(any correction) is r
    half_complaint = (complaint - relapse) / 2
    courses = {
        "accepted": p - after_correction,
        "accepted_after_correction": after_correction,
        "accepted_late": late,
        "complaint_end": half_complaint,
        "complaint_mid": half_complaint,
        "correction_end": other_correction / 2,
        "correction_mid": other_correction / 2,
        "waiting": unresolved - half_complaint - other_correction / 2 - relapse,
        "relapse": relapse,
    }
    raw = np.column_stack([courses[name] for name in COURSES[:-1]])
    raw = np.column_stack([raw, 1.0 - raw.sum(axis=1)])
    clipped = (wanted_p != p) | (wanted_r != r) | (raw < 0.0).any(axis=1)
    raw = np.maximum(raw, 0.0)
    return raw / raw.sum(axis=1, keepdims=True), clipped


def mean_errors(version: Version, scenarios: Sequence[Scenario], scenario: NDArray[np.int8]) -> NDArray[np.float64]:
    """(N,) mean number of failed calls of each session, were it served by this version."""
    per_task = np.array([min(s.errors * version.errors, MAX_ERRORS) for s in scenarios])
    return per_task[scenario]
