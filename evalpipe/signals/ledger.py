"""The assignment ledger: who was assigned what, by which policy, from when.

Belongs here: the columns of a ledger, its epochs and arms, the match of a session with its rows, and
which rows concern a day. Does not belong here: reading the file and pseudonyms (``steps/ledger.py``),
or what the checks make of it (``analysis``).

A row with a ``unit_id`` is one assignment; a row without is one arm of a policy and holds for every
session of that version. A row holds from ``starts_at`` to ``ends_at``; of several that hold, the one
that began last counts, and an assignment comes before an arm. Where a row matches, it replaces what
the log says: the ledger is written by whoever runs the lottery, and correcting it must be possible
without touching logs.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from itertools import accumulate
from typing import Any

import polars as pl

from evalpipe.contracts.render import conform, polars_schema
from evalpipe.contracts.tables.signals import ROUTING_ARMS

_TIME = pl.Datetime("us", "UTC")

#: Columns of a ledger after reading. ``unit_id`` and ``tenant`` are tokens.
_COLUMNS: dict[str, Any] = {
    "policy": pl.String,  # name of the policy
    "unit": pl.String,  # what it assigns: session or user
    "unit_id": pl.String,  # who was assigned; null for an arm
    "agent": pl.String,  # version: null stands for any
    "agent_release": pl.String,
    "model": pl.String,
    "probability": pl.Float64,  # of this version
    "starts_at": _TIME,
    "ends_at": _TIME,  # null: still holds
    "epoch": pl.String,  # routing epoch
}  # fmt: skip
LEDGER = pl.Schema(_COLUMNS)
VERSION_COLUMNS = ("agent", "agent_release", "model")
UNITS = ("session", "user")
#: Column of a session that a unit's token stands in.
UNIT_COLUMN = {"session": "session_id", "user": "user_id"}
_NAMES = {
    "policy": "assignment_policy",
    "unit": "assignment_unit",
    "probability": "assignment_probability",
    "epoch": "routing_epoch",
}
_OUT = tuple(_NAMES.values())
_ANY = "*"
_MASK = (1 << 128) - 1


def empty_ledger() -> pl.DataFrame:
    """A ledger without rows."""
    return pl.DataFrame(schema=LEDGER)


def with_epochs(ledger: pl.DataFrame) -> pl.DataFrame:
    """Give rows that name no epoch the one in which their policy's probabilities hold.

    A policy's epoch ends where it begins to give a version another probability. A unit that is assigned
    on its first visit does not open an epoch of its own: it drew from the lottery that was going on.

    Args:
        ledger: Rows of ``LEDGER``.

    Returns:
        The rows, each with an epoch, in the order that they had.
    """
    rows = ledger.with_row_index("row")
    told: dict[int, str] = {}
    for (policy,), mine in rows.filter(pl.col("epoch").is_null()).group_by("policy", maintain_order=True):
        known: dict[tuple[Any, ...], float] = {}
        name = ""
        for (start,), batch in mine.sort("starts_at", "row").group_by("starts_at", maintain_order=True):
            odds = dict.fromkeys(batch.select(*VERSION_COLUMNS, "probability").drop_nulls("probability").iter_rows())
            here = {version: p for *version_parts, p in odds if (version := tuple(version_parts))}
            if not name or any(known.get(version, p) != p for version, p in here.items()):
                assert isinstance(start, datetime)
                known, name = {}, f"{policy} from {start:%Y-%m-%dT%H:%M}"
            known |= here
            told |= dict.fromkeys(batch["row"].to_list(), name)
    named = pl.DataFrame({"row": list(told), "told": list(told.values())}, schema={"row": pl.UInt32, "told": pl.String})
    joined = rows.join(named, on="row", how="left", maintain_order="left")
    return joined.with_columns(epoch=pl.coalesce("epoch", "told")).select(ledger.columns)


def ledger_receipts(ledger: pl.DataFrame) -> Callable[[date], str]:
    """Digests of the rows that concern sessions which start on a day.

    A row that begins later, or ended before, changes nothing: appending tonight's assignments leaves
    the outcomes of earlier days as they are. Rows are digested once; a day then costs two look-ups,
    since a plan asks for every day of a home.

    Args:
        ledger: Rows of ``LEDGER``.

    Returns:
        From a day to the digest of its rows, whatever their order.
    """
    rows = ledger.unique().sort(pl.all(), nulls_last=True)
    digests = [int.from_bytes(hashlib.blake2b(repr(row).encode(), digest_size=16).digest()) for row in rows.iter_rows()]

    def sums(times: list[datetime | None]) -> tuple[list[datetime], list[int]]:
        dated = sorted((at, digest) for at, digest in zip(times, digests, strict=True) if at is not None)
        return [at for at, _ in dated], list(accumulate((digest for _, digest in dated), initial=0))

    starts, started = sums(rows["starts_at"].to_list())
    ends, ended = sums(rows["ends_at"].to_list())

    def receipt(day: date) -> str:
        first = datetime.combine(day, time(), UTC)
        begun = started[bisect_left(starts, first + timedelta(days=1))]
        return f"{(begun - ended[bisect_right(ends, first)]) & _MASK:032x}"

    return receipt


def routing_arms(ledger: pl.DataFrame, day: date) -> pl.DataFrame:
    """Arms between which the ledger's policies chose on a day, also those that served nobody.

    Args:
        ledger: Rows of ``LEDGER``.
        day: UTC day.

    Returns:
        Rows of signals.routing_arms.
    """
    first = datetime.combine(day, time(), UTC)
    last = first + timedelta(days=1)
    ends = pl.col("ends_at")
    here = ledger.filter((pl.col("starts_at") < last) & (ends.is_null() | (ends > first)), _is_arm())
    arms = here.group_by("policy", "unit", routing_epoch="epoch", arm=_arm()).agg(
        *[pl.col(name).first() for name in VERSION_COLUMNS],
        probability_low=pl.col("probability").min(),
        probability_high=pl.col("probability").max(),
    )
    arms = arms.with_columns(day=pl.lit(day)).select(polars_schema(ROUTING_ARMS).names())
    return conform(ROUTING_ARMS, arms).sort(ROUTING_ARMS.sort)


def _is_arm() -> pl.Expr:
    return pl.any_horizontal(pl.col(name).is_not_null() for name in VERSION_COLUMNS)


def _arm(suffix: str = "") -> pl.Expr:
    """The version that a row names, as one label; null where it names none."""
    parts = [pl.col(f"{name}{suffix}") for name in VERSION_COLUMNS]
    label = pl.concat_str([part.fill_null(_ANY) for part in parts], separator=" · ")
    return pl.when(pl.any_horizontal(part.is_not_null() for part in parts)).then(label)


def with_assignment(sessions: pl.DataFrame, ledger: pl.DataFrame) -> pl.DataFrame:
    """Put the ledger's word on sessions.

    Args:
        sessions: masked.sessions, or rows with its identity, version, time and assignment columns.
        ledger: Rows of ``LEDGER``.

    Returns:
        The sessions with the assignment columns replaced where a row matches, and three more:
        ``assignment_source`` ("ledger", "logged" or null), ``assigned_arm``, the version that the row
        names, and ``is_as_assigned``, which is null unless the ledger names what this very unit was
        assigned, and tells whether it got that.
    """
    logged = pl.any_horizontal(
        pl.col(name).is_not_null() for name in ("assignment_policy", "assignment_unit", "assignment_probability")
    )
    if ledger.is_empty():
        return sessions.with_columns(
            assignment_source=pl.when(logged).then(pl.lit("logged")),
            assigned_arm=pl.lit(None, dtype=pl.String),
            is_as_assigned=pl.lit(None, dtype=pl.Boolean),
        )
    place = sessions.select("session_id", "user_id", *VERSION_COLUMNS, "started_at")
    found = pl.concat([*(_assigned(place, ledger, unit) for unit in UNITS), _arms(place, ledger)])
    # An assignment of the session itself says more than one of its user, and both more than an arm.
    # Everything that is used decides, so that the order of rows does not.
    order = {
        "session_id": False, "rank": False, "starts_at": True, "n_named": True, "policy": False, "epoch": False,
        "unit": False, "probability": False, "assigned_arm": False, "is_as_assigned": False,
    }  # fmt: skip
    best = found.sort(list(order), descending=list(order.values()), nulls_last=True)
    best = best.unique("session_id", keep="first", maintain_order=True).drop("rank", "starts_at", "n_named")
    best = best.rename(_NAMES)
    joined = sessions.join(best, on="session_id", how="left", maintain_order="left", suffix="_told")
    is_told = pl.col("assignment_policy_told").is_not_null()
    return joined.with_columns(
        *[pl.when(is_told).then(pl.col(f"{name}_told")).otherwise(pl.col(name)).alias(name) for name in _OUT],
        assignment_source=pl.when(is_told).then(pl.lit("ledger")).when(logged).then(pl.lit("logged")),
    ).drop(f"{name}_told" for name in _OUT)


def _holds() -> pl.Expr:
    at, since, until = pl.col("started_at"), pl.col("starts_at"), pl.col("ends_at")
    return (since <= at) & (until.is_null() | (at < until))


def _is_version() -> pl.Expr:
    return pl.all_horizontal(
        pl.col(f"{name}_row").is_null() | (pl.col(f"{name}_row") == pl.col(name)).fill_null(value=False)
        for name in VERSION_COLUMNS
    )


def _n_named() -> pl.Expr:
    """How much of the version a row names: the more of it, the more the row says."""
    return pl.sum_horizontal(pl.col(f"{name}_row").is_not_null().cast(pl.Int32) for name in VERSION_COLUMNS)


_FOUND = ("session_id", "rank", "starts_at", "n_named", "policy", "unit", "probability", "epoch", "assigned_arm",
          "is_as_assigned")  # fmt: skip


def _assigned(place: pl.DataFrame, ledger: pl.DataFrame, unit: str) -> pl.DataFrame:
    """Rows that assign this very unit."""
    rows = ledger.filter((pl.col("unit") == unit) & pl.col("unit_id").is_not_null())
    rows = rows.rename({name: f"{name}_row" for name in VERSION_COLUMNS})
    pairs = place.join(rows, left_on=UNIT_COLUMN[unit], right_on="unit_id", how="inner", coalesce=False)
    pairs = pairs.filter(_holds())
    is_named = pl.any_horizontal(pl.col(f"{name}_row").is_not_null() for name in VERSION_COLUMNS)
    return pairs.with_columns(
        rank=pl.lit(UNITS.index(unit), dtype=pl.Int32),
        n_named=_n_named(),
        assigned_arm=_arm("_row"),
        is_as_assigned=pl.when(is_named).then(_is_version()),
    ).select(_FOUND)


def _arms(place: pl.DataFrame, ledger: pl.DataFrame) -> pl.DataFrame:
    """Arms of policies that the session's version is one of."""
    rows = ledger.filter(pl.col("unit_id").is_null())
    rows = rows.rename({name: f"{name}_row" for name in VERSION_COLUMNS})
    # Arms are few: a policy has some, an archive of years has hundreds.
    pairs = place.join(rows, how="cross").filter(_holds() & _is_version())
    return pairs.with_columns(
        rank=pl.lit(len(UNITS), dtype=pl.Int32),
        n_named=_n_named(),
        assigned_arm=_arm("_row"),
        is_as_assigned=pl.lit(None, dtype=pl.Boolean),
    ).select(_FOUND)
