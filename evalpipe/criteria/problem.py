"""One broken rule of a criteria file.

Belongs here: the record that all checks yield. Does not belong here: any check.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule: the dotted key, what is wrong in one sentence, and how to mend it."""

    key: str
    what: str
    fix: str
