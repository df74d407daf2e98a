"""Ids that programs give to conversations: which of them may mean another conversation elsewhere.

Belongs here: the form of an id. Does not belong here: what follows from two sessions that share one
(``store/identity.py``, ``store/traces.py``).
"""

from __future__ import annotations

#: Shorter ids are numbers and names, such as ``7`` or ``session-1``.
LONG_ID_CHARS = 16
#: Ids of fewer different characters are placeholders, such as a UUID of zeros.
LEAST_DIFFERENT_CHARS = 8

#: Between a short id that several users bear at once, and the trace that tells a session of theirs apart.
OF_USER = "@trace:"


def is_long_id(native: str) -> bool:
    """Whether an id of a conversation, without the name of its source, is long enough to mean it alone."""
    return len(native) >= LONG_ID_CHARS and len(set(native.lower())) >= LEAST_DIFFERENT_CHARS
