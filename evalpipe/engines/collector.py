"""The cycle collector of a process that evalpipe runs: how often it looks.

Belongs here: its thresholds. Does not belong here: pausing it around one loop (``sources/parse``).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: Allocations between two looks. Python's own 700 are for programs of a few objects; a night holds Dagster, Great
#: Expectations and thousands of compiled rules, walks them all at each full look, and finds next to nothing.
_YOUNG, _MIDDLE, _OLD = 50_000, 20, 50


@contextmanager
def rarely() -> Iterator[None]:
    """Let the collector look less often, and leave what is loaded already out of its walks."""
    before = gc.get_threshold()
    # What somebody else froze stays so: there is one freezer for all of a process.
    is_mine = gc.get_freeze_count() == 0
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    if is_mine:
        gc.freeze()
    try:
        yield
    finally:
        if is_mine:
            gc.unfreeze()
        gc.set_threshold(*before)
