"""What the error message of a benchmark run blames: the agent, the clock, or everything around it.

Belongs here: wording of run-level errors that several benchmarks share. Does not belong here:
errors of single tool calls (``signals``), or status words that one format defines.

A run that the infrastructure broke says nothing about the agent, so it must count as neither
success nor failure. What the agent brought about itself (a context that overflowed, turns or time
used up, arguments that are no JSON) is its failure.
"""

from __future__ import annotations

import re
from typing import Literal

Blame = Literal["agent", "timeout", "infrastructure"]

_TIMEOUT = re.compile(r"timed?[ _-]?out|max(?:imum)?[ _-]?(?:turns|steps|iterations)|deadline exceeded", re.I)
_AGENT = re.compile(
    r"context[ _-]?(?:window|length|limit)|maximum context|too long|tokens? (?:limit|exceed)|input tokens? exceed"
    r"|input characters limit|range of input length|too many (?:input )?tokens|output length|exceeded model token"
    r"|function\.arguments|too many consecutive failures"
    # A parser that read what the model wrote.
    r"|^(?:expecting (?:value|property|',|':)|extra data:|unterminated string|invalid (?:\\|control))",
    re.I,
)
# "Connection timed out" and "gateway timeout" are no deadline of the run.
_NETWORK = re.compile(r"connect|gateway|socket|read timed out|install|docker|container|image", re.I)


def blame(message: str) -> Blame:
    """Who a run's error message blames.

    Args:
        message: The message as logged.

    Returns:
        ``agent`` or ``timeout`` where the agent used up what it was given, else ``infrastructure``.
    """
    start = message[:2000]
    if _AGENT.search(start):
        return "agent"
    if _TIMEOUT.search(start) and not _NETWORK.search(start):
        return "timeout"
    return "infrastructure"
