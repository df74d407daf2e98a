"""The dated price table, and what the tokens of a session cost under it.

Belongs here: reading ``prices.toml``, finding the row of a model and day, adding up. Does not belong
here: counting tokens (``usage.py``) or costs that a log states itself, which win over any table.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import polars as pl

from evalpipe.contracts.errors import EvalpipeError
from evalpipe.signals.usage import PROMPT_LIMITS

_RATES = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
_KEYS = frozenset({"vendor", "models", "from", "long", *_RATES})
_LONG_KEYS = frozenset({"above", *_RATES})
_PER = 1_000_000
_CLOUD_HEAD = re.compile(
    r"\A(?:(?:us|us-gov|eu|apac|jp|au|ca|sa|me|af|global)\.)?"
    r"(?:anthropic|amazon|meta|mistral|deepseek|openai|qwen)\."
)
_CLOUD_TAIL = re.compile(r"(?:-v\d+(?::\d+)?|@\d{8})\Z")


@dataclass(frozen=True, slots=True)
class Rates:
    """USD per million tokens; ``cache_write_1h`` is ``None`` where no such price is listed."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    cache_write_1h: float | None


@dataclass(frozen=True, slots=True)
class Price:
    """One row: prices of the models that match, from a day on.

    Attributes:
        patterns: Name patterns in small letters. since: First day.
        rates: Prices of a prompt of ordinary size.
        long_above: Tokens of a prompt beyond which ``long`` holds for the whole response.
        long: Prices of such a response; ``None`` where length makes no difference.
    """

    patterns: tuple[str, ...]
    since: date
    rates: Rates
    long_above: int = 0
    long: Rates | None = None

    def rank(self, model: str, day: date) -> tuple[int, date] | None:
        """How well the row fits (longer pattern, then later day); ``None``: not at all."""
        if self.since > day:
            return None
        fitting = [len(p.replace("*", "")) for p in self.patterns if fnmatchcase(model, p)]
        return (max(fitting), self.since) if fitting else None

    def of_prompt(self, above: int) -> Rates:
        """Prices of responses whose prompts have more than ``above`` tokens, a limit of ``PROMPT_LIMITS`` or 0."""
        return self.long if self.long is not None and above >= self.long_above else self.rates


@dataclass(frozen=True, slots=True)
class Prices:
    """A price table and the digest of its text."""

    rows: tuple[Price, ...]
    digest: str

    def of(self, model: str, day: date) -> Price | None:
        """The price of a model on a day; ``None`` where the table does not know it.

        Args:
            model: Name as logged; case, a provider prefix and what clouds put around a name do not matter.
            day: UTC day.
        """
        last = model.lower().rpartition("/")[2]
        names = sorted({model.lower(), last, _plain_name(last)})
        ranked = [
            (rank, index)
            for index, row in enumerate(self.rows)
            for name in names
            if (rank := row.rank(name, day)) is not None
        ]
        return self.rows[max(ranked)[1]] if ranked else None


def _plain_name(name: str) -> str:
    """A model's own name in what Bedrock (``us.anthropic.NAME-v1:0``) and Vertex (``NAME@20250929``) call it."""
    return _CLOUD_TAIL.sub("", _CLOUD_HEAD.sub("", name))


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
    vendors = _vendors(table.get("vendors", {}), str(path))
    listed = table.get("price")
    if type(listed) is not list or not listed:
        raise EvalpipeError("PRICES_INVALID", "it holds no [[price]] rows", where=str(path))
    rows = tuple(_price(row, vendors, f"{path}, row {number}") for number, row in enumerate(listed, 1))
    return Prices(rows, hashlib.blake2b(data, digest_size=8).hexdigest())


def _vendors(told: Any, where: str) -> frozenset[str]:
    """Names of the vendors whose price lists the table follows, each with its list and the day it was read."""
    if type(told) is not dict or not all(
        type(row) is dict and type(row.get("list")) is str and type(row.get("as_of")) is date and len(row) == 2
        for row in told.values()
    ):
        raise EvalpipeError("PRICES_INVALID", "[vendors.NAME] must hold list (text) and as_of (a day)", where=where)
    return frozenset(told)


def _price(row: Any, vendors: frozenset[str], where: str) -> Price:
    if type(row) is not dict or set(row) - _KEYS:
        raise EvalpipeError("PRICES_INVALID", f"keys other than {', '.join(sorted(_KEYS))}", where=where)
    models, since, vendor = row.get("models"), row.get("from"), row.get("vendor")
    if type(models) is not list or not models or not all(type(m) is str and m for m in models):
        raise EvalpipeError("PRICES_INVALID", "models must list name patterns", where=where)
    if type(since) is not date:
        raise EvalpipeError("PRICES_INVALID", "from must be a day such as 2026-01-31", where=where)
    if vendor is not None and vendor not in vendors:
        raise EvalpipeError("PRICES_INVALID", "vendor must be one of the [vendors.NAME] of the table", where=where)
    patterns = tuple(model.lower() for model in models)
    long = row.get("long")
    if long is None:
        return Price(patterns, since, _rates(row, where))
    if type(long) is not dict or set(long) - _LONG_KEYS:
        raise EvalpipeError("PRICES_INVALID", f"long has keys other than {', '.join(sorted(_LONG_KEYS))}", where=where)
    above = long.get("above")
    if type(above) is not int or above not in PROMPT_LIMITS:
        limits = ", ".join(map(str, PROMPT_LIMITS))
        raise EvalpipeError("PRICES_INVALID", f"long.above must be one of {limits}", where=where)
    return Price(patterns, since, _rates(row, where), above, _rates(long, where))


def _rates(row: dict[str, Any], where: str) -> Rates:
    def usd(key: str, default: float | None = None) -> float:
        value: Any = row.get(key, default)
        if type(value) not in (int, float) or not 0 <= value < float("inf"):
            raise EvalpipeError("PRICES_INVALID", f"{key} must be a price in USD per million tokens", where=where)
        return float(value)

    base = usd("input")
    hour = usd("cache_write_1h") if "cache_write_1h" in row else None
    return Rates(base, usd("output"), usd("cache_read", base), usd("cache_write", base), hour)


def session_costs(usage: pl.DataFrame, days: pl.DataFrame, prices: Prices) -> pl.DataFrame:
    """Cost of every session whose usage is known.

    Args:
        usage: signals.session_usage.
        days: ``session_id, day``: the UTC day whose prices hold.
        prices: The table.

    Returns:
        ``session_id, priced_usd``; null where a part of the cost is not known, since a sum without it
        would be too low: a model that answered has no price on that day, something was cached for an
        hour and no such price is listed, or only the session's total is logged and its prompts may
        have been long enough for another price.
    """
    rows = usage.join(days, on="session_id", how="inner")
    pairs = rows.select("model", "day", "prompt_above_tokens").unique().sort("model", "day", "prompt_above_tokens")
    found = [(prices.of(model, day), above) for model, day, above in pairs.iter_rows()]
    rates = [None if price is None else price.of_prompt(above) for price, above in found]
    table = pairs.with_columns(
        *(pl.Series(f"usd_{kind}", [r and getattr(r, kind) for r in rates], dtype=pl.Float64) for kind in _RATES),
        pl.Series("long_above", [p.long_above if p and p.long else None for p, _ in found], dtype=pl.Int64),
    )
    hour = pl.col("cache_write_1h_tokens").fill_null(0)
    tokens = {
        "input": pl.col("input_tokens").fill_null(0),
        "output": pl.col("output_tokens").fill_null(0),
        "cache_read": pl.col("cache_read_tokens").fill_null(0),
        "cache_write": (pl.col("cache_write_tokens").fill_null(0) - hour).clip(lower_bound=0),
    }
    part = pl.sum_horizontal([count * pl.col(f"usd_{kind}") for kind, count in tokens.items()], ignore_nulls=False)
    kept = pl.when(hour > 0).then(hour * pl.col("usd_cache_write_1h")).otherwise(0.0)
    prompt = tokens["input"] + tokens["cache_read"] + pl.col("cache_write_tokens").fill_null(0)
    may_be_long = (pl.col("n_responses").is_null() & (prompt > pl.col("long_above"))).fill_null(value=False)
    priced = rows.join(table, on=["model", "day", "prompt_above_tokens"], how="left").with_columns(
        part=pl.when(~may_be_long).then((part + kept) / _PER)
    )
    is_known = pl.col("part").is_not_null().all()
    # Floating sums depend on order; a millionth of a cent does not matter.
    total = pl.col("part").sort().sum().round(8)
    return priced.group_by("session_id").agg(priced_usd=pl.when(is_known).then(total))
