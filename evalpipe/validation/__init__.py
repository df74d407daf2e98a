"""Holding the product against known truth: simulated worlds, guards, and A/A replay of real sessions.

Belongs here: worlds whose truth is known, what is counted of the product's answers to them, and the
targets. Does not belong here: any estimate. What is validated is called as it is (``inference``,
``analysis``, ``signals``), because a copy would prove nothing about what is shipped. Start at
:func:`validate`.
"""

from evalpipe.validation.finding import Finding, finding_rows
from evalpipe.validation.replay import n_replays, replay
from evalpipe.validation.run import VERSION, n_steps, validate

__all__ = ["VERSION", "Finding", "finding_rows", "n_replays", "n_steps", "replay", "validate"]
