"""Folding and zones: from a masked message to the prose that patterns see, and back to positions.

Belongs here: what is folded, cut and blanked, for whole columns (Polars) and for one text with
positions (Python). The two must agree, which a test proves on arbitrary text. Does not belong here:
any signal. Positions count characters of the masked field.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from evalpipe.signals import rulefiles

HEAD_CHARS = 220
BODY_CHARS = 420


@dataclass(frozen=True, slots=True)
class Zone:
    """One kind of text that is not prose."""

    id: str
    kind: str
    rust: str
    python: re.Pattern[str]
    to: str


@dataclass(frozen=True, slots=True)
class Reading:
    """How a message is reduced to prose."""

    fold: dict[str, str]
    zones: tuple[Zone, ...]
    trigger: str
    window_head: int
    window_tail: int


@lru_cache(maxsize=1)
def reading() -> Reading:
    """The shipped reading, from ``fold.toml`` and ``zones.toml``."""
    folding, zoning = rulefiles.load("fold.toml"), rulefiles.load("zones.toml")
    fold = {char: to for to, chars in folding["fold"].items() for char in chars}
    fold |= dict(zip(folding["variants"]["from"], folding["variants"]["to"], strict=True))
    zones = tuple(
        Zone(z["id"], z["kind"], rulefiles.to_rust(z["any"]), rulefiles.to_python(z["any"]), z["to"])
        for z in zoning["zone"]
    )
    trigger = rulefiles.to_rust(zoning["trigger"])
    return Reading(fold, zones, trigger, zoning["window_head"], zoning["window_tail"])


def fold_column(text: pl.Expr) -> pl.Expr:
    """Lower-case and fold a text column; every character stays one character."""
    # The dotted capital I is the only character whose lower case is longer than itself.
    lowered = text.str.replace_all("İ", "i", literal=True).str.to_lowercase()
    return lowered.str.replace_many(reading().fold)


def fold(text: str) -> str:
    """:func:`fold_column` for one text."""
    return text.replace("İ", "i").lower().translate(_table())


@lru_cache(maxsize=1)
def _table() -> dict[int, str]:
    return {ord(char): to for char, to in reading().fold.items()}


def _window_column(text: pl.Expr) -> pl.Expr:
    r = reading()
    cut = pl.concat_str(text.str.head(r.window_head), pl.lit("\n"), text.str.tail(r.window_tail))
    return pl.when(text.str.len_chars() > r.window_head + r.window_tail).then(cut).otherwise(text)


def prose_column(text: pl.Series) -> pl.DataFrame:
    """The prose of many messages.

    Args:
        text: (n,) masked messages; null counts as empty.

    Returns:
        (n, 2) frame: ``prose`` folded prose, ``is_plain`` whether it equals the folded message, so
        that positions need no mapping.
    """
    r = reading()
    folded = pl.DataFrame({"text": text.fill_null("")}).select(folded=fold_column(pl.col("text")))
    folded = folded.with_columns(
        is_plain=~pl.col("folded").str.contains(r.trigger)
        & (pl.col("folded").str.len_bytes() <= r.window_head + r.window_tail)
    ).with_row_index("row")
    rest = folded.filter(~pl.col("is_plain"))
    cleaned = _window_column(pl.col("folded"))
    for zone in r.zones:
        cleaned = cleaned.str.replace_all(zone.rust, zone.to)
    rest = rest.select("row", cleaned=cleaned)
    joined = folded.join(rest, on="row", how="left", maintain_order="left")
    return joined.select(prose=pl.coalesce("cleaned", "folded"), is_plain="is_plain")


def prose_positions(text: str) -> tuple[str, list[int]]:
    """The prose of one message with the position of each of its characters in the message.

    Returns:
        (prose, positions): ``positions[i]`` is the index in ``text`` of ``prose[i]``; one more entry
        at the end is the position behind the last character.
    """
    r = reading()
    prose, positions = fold(text), list(range(len(text) + 1))
    if len(text) > r.window_head + r.window_tail:
        tail = len(text) - r.window_tail
        prose = prose[: r.window_head] + "\n" + prose[tail:]
        positions = [*range(r.window_head), r.window_head, *range(tail, len(text) + 1)]
    for zone in r.zones:
        prose, positions = _blank(zone, prose, positions)
    return prose, positions


def _blank(zone: Zone, prose: str, positions: list[int]) -> tuple[str, list[int]]:
    chars: list[str] = []
    where: list[int] = []
    end = 0
    for match in zone.python.finditer(prose):
        start = match.start()
        chars.append(prose[end:start])
        where += positions[end:start]
        chars.append(zone.to)
        where += [positions[start]] * len(zone.to)
        end = match.end()
    if end == 0:
        return prose, positions
    chars.append(prose[end:])
    where += positions[end:]
    return "".join(chars), where
