"""A change alarm that may look every night for ever.

Belongs here: the Shiryaev-Roberts e-detector. Does not belong here: what a night's estimate is, or
which nights count. If nothing has become worse, the mean time to a false alarm is at least the
threshold, in nights, whenever it is looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalpipe.inference.model import Floats

THRESHOLD = 500.0
#: Evidence past which nothing is counted.
LARGEST = 1e300
#: Losses that the detector is tuned to, as differences of means.
SHIFTS = (0.01, 0.02, 0.04)


@dataclass(frozen=True, slots=True)
class Alarm:
    """The path of the detector.

    Attributes:
        evidence: (T,) mean of the detectors after each night, at most :data:`LARGEST`; a night that
            was skipped keeps it.
        first: Index of the first night at or above the threshold, or -1.
    """

    evidence: Floats
    first: int


def edetector(delta: Floats, se: Floats, *, shifts: tuple[float, ...] = SHIFTS, threshold: float = THRESHOLD) -> Alarm:
    """Watch nightly differences for a loss (Shin, Ramdas and Rinaldo, 2024).

    Args:
        delta: (T,) each night's own estimate minus (baseline - tolerance); nights share no session.
            NaN: a night too thin to count; the evidence carries over.
        se: (T,) standard errors of ``delta``; a night without a positive one is skipped too.
        shifts: Losses, positive, in the units of ``delta``.
        threshold: Evidence at which the alarm rings.

    Returns:
        The path and the first alarm. For gains pass ``-delta``.

    Raises:
        ValueError: Lengths differ; no shift, or one that is not positive.
    """
    delta, se = np.asarray(delta, dtype=np.float64), np.asarray(se, dtype=np.float64)
    if delta.shape != se.shape or delta.ndim != 1:
        raise ValueError(f"delta has shape {delta.shape}, se {se.shape}")
    if not shifts or min(shifts) <= 0:
        raise ValueError("shifts must be positive")
    log_m = np.full(len(shifts), -np.inf)
    path = np.empty(len(delta))
    for t, (change, error) in enumerate(zip(delta, se, strict=True)):
        if math.isfinite(change) and math.isfinite(error) and error > 0:
            lam = -np.asarray(shifts) / error
            # In logs: after an alarm that nobody acknowledges, evidence passes 1e308.
            log_m = np.logaddexp(0.0, log_m) + lam * change / error - lam**2 / 2.0
        path[t] = np.logaddexp.reduce(log_m) - math.log(len(shifts)) if len(shifts) else -np.inf
    # Beyond the largest double evidence would be infinite, which no table can hold.
    evidence = np.exp(np.minimum(path, math.log(LARGEST)))
    above = np.flatnonzero(evidence >= threshold)
    return Alarm(evidence, int(above[0]) if len(above) else -1)
