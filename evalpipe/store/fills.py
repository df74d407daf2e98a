"""What only another exporter's copy of a session knows: which copies are asked, and in which order.

Belongs here: the choice of copies, over the index. Does not belong here: which copy counts
(``store/identity.py``), or the values (``steps/fills.py``).

An agent's own log counts before a trace of the same session, and says nothing of who the user was, of what
came of it, or of the thumb that was turned down. The copies that lose by their id or their words (``same_id``,
``same_words``) are asked for what the one that counts does not say; they stay listed as copies. Files of
results are asked by a rule of their own (``store/trials.py``).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from datetime import date

import polars as pl

from evalpipe.store.identity import source_rank

_RULES = ("same_id", "same_words")


@dataclass(frozen=True, slots=True)
class Fill:
    """A copy that is asked for what the session that counts does not say.

    Attributes:
        session_id: The session that counts.
        day, stem, copy, landed_id: Where the copy lies, and its own id.
        is_gone: Whether it has expired as logged. Then it says nothing more; what was made with it stays.
    """

    session_id: str
    day: date
    stem: str
    copy: int
    landed_id: str
    is_gone: bool = False


def fills(best: pl.DataFrame, lost: pl.DataFrame, gone: Set[str]) -> list[Fill]:
    """Copies that are asked.

    Args:
        best: The best copy of each session, with its place.
        lost: Sessions that others count for: ``session_id``, ``counted_session_id``, ``rule``.
        gone: Landing parts that have expired.

    Returns:
        In order of the sessions that count; of one session the richest copy first, as it would count.
    """
    asked = (
        lost.filter(pl.col("rule").is_in(_RULES))
        # Signals that were extracted elsewhere name a user by a token.
        .join(best.filter(~pl.col("is_edge")), on="session_id")
        .with_columns(rank=source_rank())
        .sort(["counted_session_id", "rank", "n_messages", "session_id"], descending=[False, False, True, False])
        .select("counted_session_id", "day", "stem", "copy", "landed_id")
    )
    return [Fill(one, day, stem, copy, own, stem in gone) for one, day, stem, copy, own in asked.iter_rows()]
