"""What was read of objects in a store, so that an object that did not change is not copied again.

Belongs here: the table of places, states and digests. Does not belong here: asking the store
(``sources/buckets.py``), or which digests were landed (``store/landing.py``): this says only which bytes
a state of an object has. What is lost here is copied once more, and lands nothing twice.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import astuple, dataclass
from datetime import date, timedelta
from pathlib import Path

import polars as pl

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.store.files import locked, move_durably

#: Objects that no listing has shown for so long are forgotten: lifecycle rules delete old logs.
_KEPT = timedelta(days=60)

#: The day that an object was last listed on is written anew when it is older than this.
_FRESH = timedelta(days=7)

_SCHEMA = {
    "place": pl.String(),
    "n_bytes": pl.Int64(),
    "mtime_ns": pl.Int64(),
    "etag": pl.String(),
    "digest": pl.String(),
    "listed_on": pl.Date(),
}


@dataclass(frozen=True, slots=True)
class KnownObject:
    """One state of one object.

    Attributes:
        n_bytes: Size.
        mtime_ns: When it was written; -1 where it was so new that another state may have the same time.
        etag: The store's own name for the state.
        digest: Digest of the bytes.
        listed_on: UTC day on which it was last listed.
    """

    n_bytes: int
    mtime_ns: int
    etag: str
    digest: str
    listed_on: date


class ObjectMemory:
    """The objects that a home has read.

    Args:
        path: A file of the landing zone.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def known(self, places: Collection[str]) -> dict[str, KnownObject]:
        """What is known of some places.

        Raises:
            EvalpipeError: ``HOME_DAMAGED``.
        """
        if not places:
            return {}
        rows = self._read().filter(pl.col("place").is_in(list(places)))
        return {place: KnownObject(*facts) for place, *facts in rows.iter_rows()}

    def note(self, objects: Mapping[str, KnownObject], today: date) -> None:
        """Keep what was found of objects, by place; whoever writes last is right.

        Args:
            objects: New and seen again.
            today: UTC day of the listing.
        """
        if not objects:
            return
        fresh = pl.DataFrame([(place, *astuple(item)) for place, item in objects.items()], schema=_SCHEMA, orient="row")
        with locked(self._path.with_suffix(".lock")):
            rest = self._read().join(fresh, on="place", how="anti").filter(pl.col("listed_on") > today - _KEPT)
            self._write(pl.concat([rest, fresh]))

    def forget(self, is_gone: Callable[[str], bool]) -> None:
        """Forget objects by the digest of their bytes, with the places that they were read at."""
        if not self._path.exists():
            return
        with locked(self._path.with_suffix(".lock")):
            rows = self._read()
            kept = rows.filter(pl.Series([not is_gone(digest) for digest in rows["digest"]], dtype=pl.Boolean))
            if kept.height < rows.height:
                self._write(kept)

    def _write(self, rows: pl.DataFrame) -> None:
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        rows.sort("place").write_parquet(draft, compression="zstd")
        move_durably([(draft, self._path)])

    def _read(self) -> pl.DataFrame:
        if not self._path.exists():
            return pl.DataFrame(schema=_SCHEMA)
        try:
            return pl.read_parquet(self._path, schema=_SCHEMA)
        except (OSError, pl.exceptions.PolarsError):
            what = "what is known of objects cannot be read."
            fix = "Delete it; the next run copies the objects once more and lands none twice."
            raise EvalpipeError("HOME_DAMAGED", what, where=str(self._path), fix=fix) from None


def is_old_mention(item: KnownObject, today: date) -> bool:
    """Whether the day of its last listing is to be written anew."""
    return item.listed_on < today - _FRESH
