"""The grid: which worlds the default analysis is tried in, and what is counted there.

Belongs here: the scenarios, as data. Does not belong here: running them. Each is a way in which
logs of real sessions break a textbook: users with many sessions, users who keep a version, routing
that follows the kind of work, thin strata, many versions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from evalpipe.validation.measures import (
    COVERAGE,
    FALSE_FAIL,
    FALSE_ORDER,
    FALSE_PASS,
    GATE_MARGIN,
    RANKS,
    SIMULTANEOUS,
    TYPE_1,
    Measure,
)
from evalpipe.validation.worlds import World

_NULL = (0.0, 0.0, 0.0, 0.0)
_EFFECTS = (0.06, 0.02, -0.02, -0.06)
#: Two people in three kinds of work: sessions of a user correlate by 0.29.
_ALIKE = 0.27
_RARE = World(
    400,
    150,
    _NULL,
    strata=(0.50, 0.25, 0.12, 0.06, 0.04, 0.03),
    offsets=(-0.06, -0.02, 0.0, 0.02, 0.04, 0.06),
    user_part=0.1,
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One cell of the grid.

    Attributes:
        name: Scenario. world: what is true in it.
        measures: What is counted.
        design: Design that the analysis is told; it decides the randomization test.
        effort: Replications, as a share of those asked for: a replication of 30 versions counts 30
            intervals and takes as long as ten others.
        strata: ``work``: kinds of work. ``work_epoch``: with routing epochs.
        limits: Quantities that are known to miss their target here, and the range that is documented.
    """

    name: str
    world: World
    measures: tuple[Measure, ...]
    design: str = "observational"
    effort: float = 1.0
    strata: str = "work"
    limits: tuple[tuple[str, tuple[float, float]], ...] = ()

    def replications(self, asked: int) -> int:
        """Replications of this scenario, at least 2."""
        return max(2, round(asked * self.effort))


#: Where users keep a version and a few have much of its traffic, what holds for all versions at once errs
#: more often than it says. The stricter degrees of freedom that gates use would make it err far less often
#: than it says, and establish few orders (docs/validation.md).
_FEW_CARRY_MUCH = (("simultaneous_coverage", (0.9, 1.0)), ("any_false_order", (0.0, 0.09)))


def _pair(name: str, world: World, design: str) -> tuple[Scenario, Scenario]:
    """A scenario without effects, in which tests are counted, and the same with effects."""
    with_effects = (COVERAGE, SIMULTANEOUS, RANKS)
    null = (COVERAGE, SIMULTANEOUS, FALSE_ORDER, TYPE_1)
    changed = replace(world, effects=_EFFECTS)
    limits = _FEW_CARRY_MUCH if world.is_sticky else ()
    return (
        Scenario(f"{name}, no effects", world, null, design, limits=limits),
        Scenario(f"{name}, effects", changed, with_effects, limits=limits),
    )


def _many(*, is_sticky: bool) -> World:
    effects = tuple(round(-0.05 + 0.1 * i / 29, 6) for i in range(30))
    return World(6_000, 1_200, effects, user_part=0.2, is_sticky=is_sticky)


_IID = World(2_000, 0, _NULL)
_USERS = World(2_000, 400, _NULL, user_part=_ALIKE)
_STICKY = World(2_000, 400, _NULL, user_part=_ALIKE, is_sticky=True)
_TASTES = World(2_000, 400, _NULL, user_part=0.15, taste_part=0.2)
_ROUTED = World(
    2_000,
    400,
    _NULL,
    offsets=(-0.25, -0.05, 0.1, 0.3),
    routing=((0.55, 0.25, 0.1, 0.1), (0.35, 0.25, 0.25, 0.15), (0.15, 0.25, 0.25, 0.35), (0.1, 0.1, 0.25, 0.55)),
)
#: Traffic follows the board while the base rate drifts: without the epoch as a stratum, that is an effect.
_DRIFT = World(
    2_000,
    400,
    _NULL,
    epoch_routing=((0.25, 0.25, 0.25, 0.25), (0.4, 0.3, 0.2, 0.1), (0.55, 0.25, 0.15, 0.05)),
    epoch_offsets=(-0.12, 0.0, 0.12),
)
_TWO = World(1_000, 300, (0.0, 0.0), user_part=_ALIKE)
#: The gate at the edge: the candidate is worse by all of the margin.
_WORSE = (-GATE_MARGIN / 2, GATE_MARGIN / 2)

SCENARIOS: tuple[Scenario, ...] = (
    *_pair("single sessions", _IID, "randomized_session"),
    *_pair("users with many sessions", _USERS, "randomized_session"),
    Scenario("users suited by a version, no effects", _TASTES, (COVERAGE, SIMULTANEOUS, FALSE_ORDER)),
    *_pair("sticky users", _STICKY, "randomized_user"),
    *_pair("routing follows the work", _ROUTED, "randomized_session"),
    *_pair("400 sessions, rare strata", _RARE, "randomized_session"),
    *_pair("400 sessions, sticky users", World(400, 150, _NULL, user_part=_ALIKE, is_sticky=True), "randomized_user"),
    Scenario("30 versions, effects", _many(is_sticky=False), (COVERAGE, SIMULTANEOUS, RANKS), effort=0.2),
    Scenario("30 versions, sticky users, effects", _many(is_sticky=True), (COVERAGE, SIMULTANEOUS, RANKS), effort=0.2),
    Scenario(
        "routing follows the board while rates drift", _DRIFT, (COVERAGE, FALSE_ORDER, TYPE_1), "randomized_session",
        strata="work_epoch",
    ),
    Scenario("gate, equal versions", _TWO, (FALSE_FAIL,)),
    Scenario("gate, equal versions, sticky users", replace(_TWO, is_sticky=True), (FALSE_FAIL,)),
    Scenario("gate, worse by the margin", replace(_TWO, effects=_WORSE), (FALSE_PASS,)),
    Scenario("gate, worse by the margin, sticky users", replace(_TWO, effects=_WORSE, is_sticky=True), (FALSE_PASS,)),
)  # fmt: skip
