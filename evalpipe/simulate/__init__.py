"""Simulated agent sessions with known truth, in real log formats.

Belongs here: drawing sessions, writing them as logs, and the truth that was planted. Does not belong
here: anything that reads logs or estimates; the simulator imports neither sources nor signals nor
inference, so that agreement between them is evidence.
"""

from evalpipe.simulate.run import simulate
from evalpipe.simulate.spec import Spec
from evalpipe.simulate.truth import Truth
from evalpipe.simulate.world import Version

__all__ = ["Spec", "Truth", "Version", "simulate"]
