"""Sessions that a log says were withdrawn: a withdrawal in any copy is one of the whole session.

Belongs here: which sessions these are, over all copies, and where the text of each lies. Does not belong
here: the consent ledger (``masking/consent.py``), or emptying text (``steps/withdrawal.py``).

A person may withdraw after the session was logged, so the line that says so is often a small copy, from
another writer or of a later day, that never counts. Too much withheld is mended by a better log, too
little is not mended at all: every copy is asked, also one that is no duplicate by its times.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import polars as pl

from evalpipe.contracts.tables.raw import CONSENT_WITHDRAWN
from evalpipe.store.identity import has_unique_id


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A withdrawn session.

    Attributes:
        session_id: The session that counts.
        places: Day and stem of the landing part of each of its copies, and the copy's id there.
    """

    session_id: str
    places: tuple[tuple[date, str, str], ...]


def withdrawn_sessions(ranked: pl.DataFrame, lost: pl.DataFrame) -> list[Withdrawn]:
    """Sessions of which a copy says that consent is withdrawn.

    Args:
        ranked: Every copy, with its place, ``landed_id`` and ``consent``.
        lost: Sessions that others count for: ``session_id`` and ``counted_session_id``.

    Returns:
        One entry a session that counts, in order of ids.
    """
    says_so = (pl.col("consent") == CONSENT_WITHDRAWN).fill_null(value=False)
    if not ranked.select(says_so.any()).item():
        return []
    unique_id = pl.col("session_id").str.replace(r"^[^:]*:", "").str.to_lowercase()
    rows = ranked.join(lost.select("session_id", "counted_session_id"), on="session_id", how="left").select(
        "day",
        "stem",
        "landed_id",
        counted=pl.coalesce("counted_session_id", "session_id"),
        unique_id=pl.when(has_unique_id()).then(unique_id),
        says_so=says_so,
    )
    said = rows.filter("says_so")
    ids = said["unique_id"].drop_nulls().unique()
    alike = rows.filter(pl.col("unique_id").is_in(ids.implode()))["counted"]
    gone = pl.concat([said["counted"], alike]).unique()
    places = rows.filter(pl.col("counted").is_in(gone.implode())).group_by("counted").agg("day", "stem", "landed_id")
    found = (
        Withdrawn(session_id, tuple(sorted(set(zip(days, stems, landed, strict=True)))))
        for session_id, days, stems, landed in places.iter_rows()
    )
    return sorted(found, key=lambda one: one.session_id)
