"""Why a number moved between two windows: the rates themselves, or the mix they are averaged over.

Belongs here: the symmetric decomposition and the flag of a reversal. Does not belong here: which
windows are compared, standard errors of what moved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalpipe.inference.model import Bools, Floats


@dataclass(frozen=True, slots=True)
class Movement:
    """A change split over S strata; the parts add up to the total exactly.

    Attributes:
        total: New minus old. rate: (S,) change of the strata's rates at the mean mix.
        mix: (S,) change of the mix at the mean rates. mix_centred: (S,) the same with rates taken
            from the mean of the two overall values, so that a stratum that grew counts up only
            where its rate is high; it has the same sum.
        entry_exit: (S,) change from strata that one window lacks, which is neither.
    """

    total: float
    rate: Floats
    mix: Floats
    mix_centred: Floats
    entry_exit: Floats


def kitagawa(weight_old: Floats, rate_old: Floats, weight_new: Floats, rate_new: Floats) -> Movement:
    """Symmetric decomposition of a weighted mean (Kitagawa, 1955).

    Args:
        weight_old, weight_new: (S,) weights, each scaled to 1 here; 0 where a window lacks the
            stratum. rate_old, rate_new: (S,) rates, NaN allowed where the weight is 0.

    Returns:
        The parts; all NaN if a window has no weight at all.

    Raises:
        ValueError: Lengths differ, a weight is negative, or a rate is NaN where its weight is not 0.
    """
    w0, r0, w1, r1 = (np.asarray(v, dtype=np.float64) for v in (weight_old, rate_old, weight_new, rate_new))
    if not w0.shape == r0.shape == w1.shape == r1.shape:
        raise ValueError("weights and rates must have one length")
    if not (np.isfinite(w0).all() and np.isfinite(w1).all()) or (w0 < 0).any() or (w1 < 0).any():
        raise ValueError("weights must be finite and not negative")
    if not (np.isfinite(r0[w0 > 0]).all() and np.isfinite(r1[w1 > 0]).all()):
        raise ValueError("a rate is missing where its weight is not 0")
    nothing = np.full(w0.shape, np.nan)
    if not (w0.sum() > 0 and w1.sum() > 0):
        return Movement(math.nan, nothing, nothing, nothing, nothing)
    w0, w1 = w0 / w0.sum(), w1 / w1.sum()
    both = (w0 > 0) & (w1 > 0)
    r0, r1 = np.where(w0 > 0, r0, 0.0), np.where(w1 > 0, r1, 0.0)
    overall_old, overall_new = float(w0 @ r0), float(w1 @ r1)
    centre = (overall_old + overall_new) / 2.0
    rate = np.where(both, (w0 + w1) / 2.0 * (r1 - r0), 0.0)
    mix = np.where(both, (r0 + r1) / 2.0 * (w1 - w0), 0.0)
    return Movement(
        total=overall_new - overall_old,
        rate=rate,
        mix=mix,
        mix_centred=mix - np.where(both, centre * (w1 - w0), 0.0),
        entry_exit=np.where(both, 0.0, w1 * r1 - w0 * r0),
    )


@dataclass(frozen=True, slots=True)
class RateSplit:
    """A change of a net improvement's rate part: the version's own, and that of its reference, (S,)."""

    own: Floats
    reference: Floats


def split_rate(
    weight_old: Floats, weight_new: Floats, own: tuple[Floats, Floats], reference: tuple[Floats, Floats]
) -> RateSplit:
    """Whether a version changed or those it is compared with.

    Args:
        weight_old, weight_new: (S,) weights of each window.
        own, reference: Rates of the version and of its reference, each (old, new), each (S,).

    Returns:
        Parts that add up to the ``rate`` of :func:`kitagawa` on the differences: a fall that a
        stronger competitor caused shows under ``reference``.
    """
    w = (weight_old / weight_old.sum() + weight_new / weight_new.sum()) / 2.0
    return RateSplit(w * (own[1] - own[0]), -w * (reference[1] - reference[0]))


REVERSALS = ("reversal", "sign_differs", "uniform_reversal", "")


def simpson_flag(
    raw: float, net: float, raw_interval: tuple[float, float], net_interval: tuple[float, float], by_stratum: Floats
) -> str:
    """Whether the plain gap and the net improvement disagree on the sign.

    Args:
        raw: Version's plain mean minus that of its reference. net: net improvement.
        raw_interval, net_interval: Simultaneous limits; NaN where there are none.
        by_stratum: (S,) differences within strata; NaN where a stratum has none.

    Returns:
        ``uniform_reversal`` if every stratum has the other sign; ``reversal`` if signs differ and
        both intervals exclude 0; ``sign_differs`` if signs differ; else an empty string.
    """
    if not (math.isfinite(raw) and math.isfinite(net)) or raw == 0 or net == 0:
        return ""
    known = by_stratum[np.isfinite(by_stratum)]
    opposed: Bools = np.sign(known) == -np.sign(raw)
    if len(known) and opposed.all():
        return "uniform_reversal"
    if (raw > 0) == (net > 0):
        return ""
    return "reversal" if all(_excludes_zero(ends) for ends in (raw_interval, net_interval)) else "sign_differs"


def _excludes_zero(ends: tuple[float, float]) -> bool:
    return ends[0] > 0 or ends[1] < 0
