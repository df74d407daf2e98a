"""Randomness and progress of a run.

Belongs here: seeds that depend on a scenario's name and on nothing else that is run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

Advance = Callable[[int], None]


def stream(seed: int, name: str) -> np.random.Generator:
    """The source of randomness of one scenario.

    Args:
        seed: Seed of the run, non-negative.
        name: The scenario.
    """
    mixed = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return np.random.default_rng(np.random.SeedSequence([seed, int.from_bytes(mixed)]))
