"""The dated price table, and what the tokens of a session cost under it.

Belongs here: reading ``prices.toml``, finding the row of a model and day, adding up. Does not belong
here: counting tokens (``usage.py``) or costs that a log states itself, which win over any table.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe.contracts.errors import EvalpipeError

_KEYS = frozenset({"models", "from", "input", "output", "cache_read", "cache_write"})
_PER = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """One row: USD per million tokens of the models that match, from a day on."""

    patterns: tuple[str, ...]
    since: date
    input: float
    output: float
    cache_read: float
    cache_write: float

    def rank(self, model: str, day: date) -> tuple[int, date] | None:
        """How well the row fits (longer pattern, then later day); ``None``: not at all."""
        if self.since > day:
            return None
        fitting = [len(p.replace("*", "")) for p in self.patterns if fnmatchcase(model, p)]
        return (max(fitting), self.since) if fitting else None


@dataclass(frozen=True, slots=True)
class Prices:
    """A price table and the digest of its text."""

    rows: tuple[Price, ...]
    digest: str

    def of(self, model: str, day: date) -> Price | None:
        """The price of a model on a day; ``None`` where the table does not know it.

        Args:
            model: Name as logged; case and a provider prefix do not matter.
            day: UTC day.
        """
        names = sorted({model.lower(), model.lower().rpartition("/")[2]})
        ranked = [
            (rank, index)
            for index, row in enumerate(self.rows)
            for name in names
            if (rank := row.rank(name, day)) is not None
        ]
        return self.rows[max(ranked)[1]] if ranked else None


def load_prices(path: Path) -> Prices:
    """Read a price table.

    Args:
        path: TOML file in the form of ``data/prices.toml``.

    Raises:
        EvalpipeError: ``PRICES_INVALID`` where it cannot be read or a row is wrong.
    """
    try:
        data = path.read_bytes()
        table = tomllib.loads(data.decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        what = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it cannot be read"
        raise EvalpipeError("PRICES_INVALID", what, where=str(path)) from None
    listed = table.get("price")
    if type(listed) is not list or not listed:
        raise EvalpipeError("PRICES_INVALID", "it holds no [[price]] rows", where=str(path))
    rows = tuple(_price(row, f"{path}, row {number}") for number, row in enumerate(listed, 1))
    return Prices(rows, hashlib.blake2b(data, digest_size=8).hexdigest())


def _price(row: Any, where: str) -> Price:
    def usd(key: str, default: float | None = None) -> float:
        value = row.get(key, default)
        if type(value) not in (int, float) or not 0 <= value < float("inf"):
            raise EvalpipeError("PRICES_INVALID", f"{key} must be a price in USD per million tokens", where=where)
        return float(value)

    if type(row) is not dict or set(row) - _KEYS:
        raise EvalpipeError("PRICES_INVALID", f"keys other than {', '.join(sorted(_KEYS))}", where=where)
    models, since = row.get("models"), row.get("from")
    if type(models) is not list or not models or not all(type(m) is str and m for m in models):
        raise EvalpipeError("PRICES_INVALID", "models must list name patterns", where=where)
    if type(since) is not date:
        raise EvalpipeError("PRICES_INVALID", "from must be a day such as 2026-01-31", where=where)
    base = usd("input")
    patterns = tuple(model.lower() for model in models)
    return Price(patterns, since, base, usd("output"), usd("cache_read", base), usd("cache_write", base))


def session_costs(usage: pl.DataFrame, days: pl.DataFrame, prices: Prices) -> pl.DataFrame:
    """Cost of every session whose usage is known.

    Args:
        usage: signals.session_usage.
        days: ``session_id, day``: the UTC day whose prices hold.
        prices: The table.

    Returns:
        ``session_id, priced_usd``; null where a model that answered has no price on that day, since
        a sum without it would be too low.
    """
    rows = usage.join(days, on="session_id", how="inner")
    pairs = rows.select("model", "day").unique().sort("model", "day")
    found = [prices.of(model, day) for model, day in pairs.iter_rows()]
    kinds = {"input_tokens": "input", "output_tokens": "output", "cache_read_tokens": "cache_read",
             "cache_write_tokens": "cache_write"}  # fmt: skip
    table = pairs.with_columns(
        pl.Series(f"usd_{kind}", [getattr(p, kind) if p else None for p in found], dtype=pl.Float64)
        for kind in kinds.values()
    )
    part = pl.sum_horizontal(
        [pl.col(column).fill_null(0) * pl.col(f"usd_{kind}") for column, kind in kinds.items()], ignore_nulls=False
    )
    priced = rows.join(table, on=["model", "day"], how="left").with_columns(part=part / _PER)
    is_known = pl.col("part").is_not_null().all()
    # Floating sums depend on order; a millionth of a cent does not matter.
    total = pl.col("part").sort().sum().round(8)
    return priced.group_by("session_id").agg(priced_usd=pl.when(is_known).then(total))
