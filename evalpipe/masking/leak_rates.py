"""Rates of masking over slices: a rule that died or turned noisy, text that is withheld too often.

Belongs here: counting a part's rates, and holding a slice's against those of earlier slices. Does not
belong here: where earlier slices lie (``steps``), values of any kind. Limits are data
(``data/masking/leak_limits.toml``).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Any

import polars as pl

from evalpipe.locations import data_dir
from evalpipe.masking.leak_search import Finding

_TEXTS = ("text", "arguments", "output")
_WITHHELD = "WITHHELD"
UNAVAILABLE, WITHIN, OUTSIDE = "unavailable", "within", "outside"


@dataclass(frozen=True, slots=True)
class Rates:
    """What was hidden in how much text.

    Attributes:
        n_bytes: Bytes of masked text.
        n_values: Text values that are not null.
        n_withheld: Values that were withheld whole.
        hits: Replaced spans by entity.
    """

    n_bytes: int
    n_values: int
    n_withheld: int
    hits: dict[str, int]


def rates_of(sessions: pl.DataFrame, steps: pl.DataFrame, redactions: pl.DataFrame, reserved: str) -> Rates:
    """The rates of a masked part.

    Args:
        sessions, steps: Masked frames.
        redactions: Audit counts of the same rows.
        reserved: Source of the canaries, which are left out.
    """
    planted = sessions.filter(pl.col("source") == reserved)["session_id"]
    own = steps.filter(~pl.col("session_id").is_in(planted.implode()))
    counts = redactions.filter((pl.col("source") != reserved) & pl.col("field").str.starts_with("steps."))
    hits = counts.group_by("entity").agg(pl.col("n_hits").sum()).sort("entity")
    by_entity = {str(entity): int(n) for entity, n in hits.iter_rows()}
    return Rates(
        n_bytes=sum(int(own[name].str.len_bytes().sum()) for name in _TEXTS),
        n_values=sum(own.height - own[name].null_count() for name in _TEXTS),
        n_withheld=by_entity.pop(_WITHHELD, 0),
        hits=by_entity,
    )


def add_rates(parts: Iterable[Rates]) -> Rates:
    """The rates of a slice from those of its parts."""
    n_bytes = n_values = n_withheld = 0
    hits: dict[str, int] = {}
    for part in parts:
        n_bytes, n_values, n_withheld = n_bytes + part.n_bytes, n_values + part.n_values, n_withheld + part.n_withheld
        for entity, n in part.hits.items():
            hits[entity] = hits.get(entity, 0) + n
    return Rates(n_bytes, n_values, n_withheld, dict(sorted(hits.items())))


def judge_rates(now: Rates, earlier: Sequence[Rates]) -> tuple[str, list[Finding]]:
    """Hold a slice against earlier ones.

    Args:
        now: The slice.
        earlier: Earlier slices under the same rule set and key, the newest last.

    Returns:
        ``unavailable`` where there is too little text or history to compare, else ``within`` or
        ``outside``, and what is wrong. The share of withheld values needs no history.
    """
    limits = _limits()
    findings = _withheld(now, limits["withheld"])
    band = limits["band"]
    least = band["min_megabytes"] * 1e6
    known = [rates for rates in earlier if rates.n_bytes >= least][-band["max_slices"] :]
    if len(known) < band["min_slices"] or now.n_bytes < least:
        return UNAVAILABLE, findings
    moved = []
    for entity in sorted({name for rates in (*known, now) for name in rates.hits}):
        expected = median(rates.hits.get(entity, 0) / rates.n_bytes for rates in known) * now.n_bytes
        n, floor = now.hits.get(entity, 0), band["min_hits"]
        if expected >= floor and n < band["low"] * expected:
            moved.append(Finding(entity, "far fewer hits per MB than before", n, band["drop_severity"] == "high"))
        elif n > band["high"] * max(expected, floor):
            moved.append(Finding(entity, "far more hits per MB than before", n, band["jump_severity"] == "high"))
    return (OUTSIDE if moved else WITHIN), findings + moved


def _withheld(now: Rates, limit: dict[str, Any]) -> list[Finding]:
    if now.n_values < limit["min_values"] or now.n_withheld <= limit["max_share"] * now.n_values:
        return []
    return [Finding("steps", "too much text is withheld", now.n_withheld, limit["severity"] == "high")]


def judge_contained(n_fields: int, n_values: int) -> list[Finding]:
    """Whether too many fields of a slice were withheld for what the leak check found in them.

    Args:
        n_fields: Fields withheld so, in all parts of the slice.
        n_values: Text values of the slice that are not null.
    """
    limit = _limits()["contained"]
    if n_fields <= max(int(limit["always"]), int(limit["max_share"] * n_values)):
        return []
    return [Finding("steps", "too many fields are withheld for what was found in them", n_fields)]


@lru_cache(maxsize=1)
def _limits() -> dict[str, Any]:
    return tomllib.loads((data_dir() / "masking" / "leak_limits.toml").read_text("utf-8"))
