"""Batches of the landing zone that have expired: their parts go, their index entries stay.

Belongs here: marking entries and deleting their parts. Does not belong here: periods and what of later
layers goes with them (``steps/retention.py``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.store.entries import RAW, Entry
from evalpipe.store.files import locked, write_atomically
from evalpipe.store.lake import read_part
from evalpipe.store.landing import LANDED, Landing


def due(landing: Landing, days: Mapping[str, int], today: date) -> dict[str, tuple[str, ...]]:
    """What has to expire of each batch and has not yet, by batch.

    Args:
        landing: The landing zone.
        days: Days for which each of ``raw``, ``text`` and ``snippets`` is kept after landing.
        today: UTC day.
    """
    found = {entry.batch: _due_of(entry, days, today) for entry in landing.entries()}
    return {batch: what for batch, what in found.items() if what}


def _due_of(entry: Entry, days: Mapping[str, int], today: date) -> tuple[str, ...]:
    return tuple(w for w, n in days.items() if w not in entry.expired and entry.landed_on + timedelta(days=n) < today)


def expire(landing: Landing, expiring: Mapping[str, Sequence[str]]) -> set[date]:
    """Mark what expires, and delete landed parts where it is ``raw``.

    Args:
        landing: The landing zone.
        expiring: What of :func:`due`.

    Returns:
        Days that the batches have sessions or files of.
    """
    touched: set[date] = set()
    with locked(landing.root / ".lock"):
        entries = [entry for entry in landing.entries() if entry.batch in expiring]
        _keep_tenants(landing, [entry for entry in entries if RAW in expiring[entry.batch]])
        for entry in entries:
            what = expiring[entry.batch]
            touched |= {part.day for part in entry.parts}
            # Marked first: a part that is gone and not marked as expired looks like a loss.
            landing.write_entry(replace(entry, expired=(*entry.expired, *what)))
            for part in entry.parts if RAW in what else ():
                for name in LANDED:
                    landing.path(part.day, part.stem, name).unlink(missing_ok=True)
    return touched


def is_left_behind(landing: Landing) -> bool:
    """Whether a landed part is there whose batch is marked as expired: an expiry was killed in between."""
    expired = {part.stem for entry in landing.entries() if RAW in entry.expired for part in entry.parts}
    return bool(expired) and any(path.name.split(".")[0] in expired for path in landing.root.glob("day=*/*.parquet"))


def known_tenants(landing: Landing) -> list[str]:
    """Tenants of sessions whose landed parts have expired, as logged: a token is of an id and a tenant.

    Raises:
        EvalpipeError: ``HOME_DAMAGED``.
    """
    path = landing.root / "_tenants.json"
    try:
        return [str(name) for name in json.loads(path.read_text("utf-8"))]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError):
        fix = "Write the tenants of your logs into it, as a JSON list."
        raise EvalpipeError("HOME_DAMAGED", "the tenants cannot be read.", where=str(path), fix=fix) from None


def _keep_tenants(landing: Landing, entries: Sequence[Entry]) -> None:
    paths = [
        path
        for entry in entries
        for part in entry.parts
        if (path := landing.path(part.day, part.stem, "sessions")).exists()
    ]
    found = {name for path in paths for name in read_part("raw.sessions", path, ["tenant"])["tenant"].drop_nulls()}
    if found - set(known_tenants(landing)):
        write_atomically(landing.root / "_tenants.json", json.dumps(sorted({*known_tenants(landing), *found})))
