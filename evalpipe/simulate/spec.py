"""What a caller asks of the simulator.

Belongs here: the knobs and their validity. Does not belong here: the world they turn (``world.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.simulate.world import Version, World, load_world


def _default_versions() -> tuple[Version, ...]:
    return load_world().versions


def _default_languages() -> dict[str, float]:
    return dict(load_world().people.languages)


@dataclass(frozen=True, slots=True)
class Spec:
    """One simulation.

    Attributes:
        sessions: Sessions in all.
        days: UTC days over which they start.
        start: First day.
        seed: Seed; the same spec gives the same bytes.
        profile: ``demo`` (about 25 KB and 24 steps a session) or ``real`` (about 470 KB, 146 steps).
        routing: ``session`` draws a version for each session; ``sticky`` one for each user and epoch.
        confounding: 0 routes every task alike, 1 sends hard tasks to the better versions as strongly as
            the world says. Sticky routing fixes a user's version before any task is known, so there it
            has no effect.
        users: Number of users; None takes one for every 12 sessions, at least 30.
        user_spread: Standard deviation of a user's shift of P(positive outcome).
        versions: Versions with their planted effects.
        languages: Share of users by language (``en``, ``zh``, ``pt``).
        canary_rate: Share of sessions that carry planted personal data or secrets.
        late: Whether some sessions of each day are written to the ``late/`` folder.
    """

    sessions: int = 17_000
    days: int = 14
    start: date = date(2026, 1, 5)
    seed: int = 1
    profile: Literal["demo", "real"] = "demo"
    routing: Literal["session", "sticky"] = "session"
    confounding: float = 1.0
    users: int | None = None
    user_spread: float = 0.05
    versions: tuple[Version, ...] = field(default_factory=_default_versions)
    languages: Mapping[str, float] = field(default_factory=_default_languages)
    canary_rate: float = 0.03
    late: bool = True

    def __post_init__(self) -> None:
        models = [version.model for version in self.versions]
        for is_good, where, what in (
            (self.sessions >= 1, "sessions", "at least 1 is needed"),
            (self.days >= 1, "days", "at least 1 is needed"),
            (self.seed >= 0, "seed", "a seed is not negative"),
            (self.users is None or self.users >= 1, "users", "at least 1 is needed"),
            (self.profile in ("demo", "real"), "profile", "the profiles are demo and real"),
            (self.routing in ("session", "sticky"), "routing", "the routings are session and sticky"),
            (0.0 <= self.confounding <= 1.5, "confounding", "from 0 to 1.5"),
            (0.0 <= self.user_spread <= 0.15, "user_spread", "from 0 to 0.15"),
            (0.0 <= self.canary_rate <= 1.0, "canary_rate", "a share, from 0 to 1"),
            (2 <= len(set(models)) == len(models), "versions", "two or more, each with its own model name"),
            (bool(self.languages) and set(self.languages) <= {"en", "zh", "pt"}, "languages", "some of en, zh and pt"),
        ):
            if not is_good:
                raise EvalpipeError("BAD_ARGUMENT", f"the simulator's {where} is out of range: {what}.", where=where)

    @property
    def world(self) -> World:
        """The world that the spec turns knobs of."""
        return load_world()

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.users if self.users is not None else max(30, self.sessions // 12)

    @property
    def epoch_day(self) -> int:
        """Index of the first day of the second routing epoch."""
        return (self.days + 1) // 2
