"""Simulated worlds: sessions of users, kinds of work and versions whose true effects are known.

Belongs here: drawing many replications of a world at once. Does not belong here: which worlds are
drawn (``scenarios.py``) or what is estimated from them. Chances of success are sums of a base, a
stratum's, a version's and a user's part, and none leaves [0, 1], so the truth is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalpipe.inference import Sample

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

#: A user's activity follows a Pareto law of this shape, cut at this share of all activity.
ACTIVITY_SHAPE = 1.2
LARGEST_USER = 0.03


@dataclass(frozen=True, slots=True)
class World:
    """A world in which versions serve users.

    Attributes:
        n_sessions: Sessions of a replication, N.
        n_users: Users among whom they are spread; 0 where every session is another person's.
        effects: Effect of each version on the chance of success, (K,).
        strata: Share of each kind of work, (S,). offsets: its part of the chance, (S,).
        routing: Share of each version in each kind of work, (S, K); ``None`` for equal shares.
        is_sticky: Whether a user keeps one version, drawn with equal shares.
        user_part: A user is so much above or below others, with equal chance.
        taste_part: Likewise for a user with one version: some people suit it.
        n_epochs: Routing epochs of equal length.
        epoch_routing: Share of each version in each epoch, (E, K), in place of ``routing``.
        epoch_offsets: Each epoch's part of the chance, (E,).
    """

    n_sessions: int
    n_users: int
    effects: tuple[float, ...]
    strata: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)
    offsets: tuple[float, ...] = (-0.06, -0.02, 0.02, 0.06)
    routing: tuple[tuple[float, ...], ...] | None = None
    is_sticky: bool = False
    user_part: float = 0.0
    taste_part: float = 0.0
    epoch_routing: tuple[tuple[float, ...], ...] | None = None
    epoch_offsets: tuple[float, ...] = (0.0,)

    def __post_init__(self) -> None:
        reach = max(map(abs, self.effects)) + max(map(abs, self.offsets)) + max(map(abs, self.epoch_offsets))
        if reach + abs(self.user_part) + abs(self.taste_part) > 0.5:
            raise ValueError("a chance of success would leave [0, 1]")

    @property
    def n_versions(self) -> int:
        """K."""
        return len(self.effects)

    @property
    def truth(self) -> Floats:
        """(K,) net improvement against the plain average of the versions."""
        effects = np.array(self.effects)
        return np.asarray(effects - effects.mean())


@dataclass(frozen=True, slots=True)
class Draws:
    """B replications of a world; every array (B, N).

    Attributes:
        version, stratum, user, epoch: Codes.
        chance: Chance of success. y: whether it succeeded.
    """

    version: Codes
    stratum: Codes
    user: Codes
    epoch: Codes
    chance: Floats
    y: Floats


def draw(world: World, n: int, rng: np.random.Generator) -> Draws:
    """Draw replications of a world.

    Args:
        world: What is true.
        n: Replications, B.
        rng: Source of randomness.
    """
    shape = (n, world.n_sessions)
    k, s, e = world.n_versions, len(world.strata), len(world.epoch_offsets)
    user = _users(world, n, rng)
    stratum = _choose(np.array(world.strata)[None, :], rng.random(shape), np.zeros(shape, dtype=np.int64))
    epoch = np.broadcast_to(np.arange(world.n_sessions) * e // world.n_sessions, shape).astype(np.int32)
    at = np.arange(n)[:, None]
    if world.is_sticky:
        version = rng.integers(0, k, (n, world.n_users)).astype(np.int32)[at, user]
    elif world.epoch_routing is not None:
        version = _choose(np.array(world.epoch_routing), rng.random(shape), epoch)
    else:
        shares = np.full((s, k), 1.0 / k) if world.routing is None else np.array(world.routing)
        version = _choose(shares, rng.random(shape), stratum)
    chance = 0.5 + np.array(world.offsets)[stratum] + np.array(world.effects)[version]
    chance += np.array(world.epoch_offsets)[epoch]
    if world.user_part:
        chance += world.user_part * _signs((n, world.n_users), rng)[at, user]
    if world.taste_part:
        chance += world.taste_part * _signs((n, world.n_users, k), rng)[at, user, version]
    return Draws(version, stratum, user, epoch, chance, (rng.random(shape) < chance).astype(np.float64))


def sample_of(world: World, draws: Draws, at: int, *, stratum: Codes | None = None, n_strata: int = 0) -> Sample:
    """One replication as the input of a comparison.

    Args:
        world: The world that was drawn.
        draws: Its replications.
        at: Which of them.
        stratum: (N,) strata in place of the kinds of work, with their number ``n_strata``.
    """
    return Sample(
        y=draws.y[at],
        d=np.ones(world.n_sessions),
        version=draws.version[at],
        stratum=draws.stratum[at] if stratum is None else stratum,
        user=draws.user[at],
        epoch=draws.epoch[at],
        n_versions=world.n_versions,
        n_strata=n_strata or len(world.strata),
        y_low=0.0,
    )


def _users(world: World, n: int, rng: np.random.Generator) -> Codes:
    """(B, N) the user of each session: few users have many of them."""
    if not world.n_users:
        return np.broadcast_to(np.arange(world.n_sessions, dtype=np.int32), (n, world.n_sessions))
    activity = rng.pareto(ACTIVITY_SHAPE, (n, world.n_users)) + 1.0
    share = activity / activity.sum(axis=1, keepdims=True)
    share = np.minimum(share, LARGEST_USER)
    share /= share.sum(axis=1, keepdims=True)
    rows = np.broadcast_to(np.arange(n)[:, None], (n, world.n_sessions))
    return _choose(share, rng.random((n, world.n_sessions)), rows)


def _choose(shares: Floats, uniform: Floats, row: NDArray[np.integer]) -> Codes:
    """A code of the row of ``shares`` that each uniform number falls into: one search for all."""
    n_rows, n_codes = shares.shape
    edges = np.cumsum(shares, axis=1)
    edges[:, -1] = 1.0
    edges += np.arange(n_rows)[:, None]
    found = np.searchsorted(edges.ravel(), uniform + row, side="right") - np.asarray(row) * n_codes
    return np.asarray(np.clip(found, 0, n_codes - 1), dtype=np.int32)


def _signs(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    return np.asarray(rng.integers(0, 2, shape) * 2.0 - 1.0, dtype=np.float64)
