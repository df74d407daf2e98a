"""The simulated world as read from ``data/simulate/world.toml``: tasks, versions, people, rates.

Belongs here: typed forms of that file. Does not belong here: what a caller asks for (``spec.py``), or
any draw.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from evalpipe.locations import data_dir


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of task.

    Attributes:
        name: Name, as evalpipe's scenario rules give it.
        share: Share of the traffic.
        difficulty: How much it attracts versions with positive ``pull``.
        positive, correction, complaint, unresolved: Probabilities of a version without effect.
        errors: Mean number of failed calls, at most 4.
        tools, prose: Factors on the profile's tool calls and on its answer length.
    """

    name: str
    share: float
    difficulty: float
    positive: float
    correction: float
    complaint: float
    unresolved: float
    errors: float
    tools: float
    prose: float


@dataclass(frozen=True, slots=True)
class Version:
    """One agent version with its planted effects.

    Attributes:
        model: Model name.
        pull: 1 is sent hard tasks, -1 easy ones, under task-correlated routing.
        ramp: Factor on its share in the second routing epoch.
        positive: Shift of P(positive outcome), additive.
        correction, complaint, unresolved, errors: Factors on the scenario's base.
        self_repair: P(a failed command is mended without the user).
    """

    model: str
    pull: float
    ramp: float
    positive: float
    correction: float
    complaint: float
    unresolved: float
    errors: float
    self_repair: float


@dataclass(frozen=True, slots=True)
class Routing:
    """How versions get traffic; see the data file for the meaning of each number."""

    strength: float
    floor: float
    drift: float


@dataclass(frozen=True, slots=True)
class People:
    """How users differ: activity, tasks, languages, where their sessions are logged."""

    activity: float
    activity_cap: float
    main_task: float
    correction_spread: float
    claude_share: float
    languages: dict[str, float]


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of sessions with events that do not depend on the version."""

    no_user: float
    switches_model: float
    late: float
    continued: float
    praise: float
    interrupt: float
    refusal: float
    cascade: float
    queued: float
    check_failure: float
    benign_exit: float
    sentiment: float
    meta: float
    declared: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """Size of a session: calls, characters, noise."""

    follow: tuple[int, int]
    tools: tuple[int, int]
    output: int
    reach: int
    prose: int
    thinking: float
    noise: float
    compaction: float


@dataclass(frozen=True, slots=True)
class World:
    """All of ``world.toml``."""

    scenarios: tuple[Scenario, ...]
    versions: tuple[Version, ...]
    routing: Routing
    people: People
    rates: Rates
    profiles: dict[str, Profile]


@cache
def load_world() -> World:
    """The shipped world."""
    data = read_toml("world")
    return World(
        scenarios=tuple(Scenario(name, **row) for name, row in data["scenario"].items()),
        versions=tuple(Version(**row) for row in data["version"]),
        routing=Routing(**data["routing"]),
        people=People(**data["people"]),
        rates=Rates(**{**data["rates"], "declared": tuple(data["rates"]["declared"])}),
        profiles={
            name: Profile(**{**row, "follow": tuple(row["follow"]), "tools": tuple(row["tools"])})
            for name, row in data["profile"].items()
        },
    )


def read_toml(name: str) -> dict[str, Any]:
    """One file of ``data/simulate``, by stem."""
    return tomllib.loads((data_dir() / "simulate" / f"{name}.toml").read_text("utf-8"))
