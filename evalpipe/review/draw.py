"""Drawing a sample: parts of a budget, strata in a part, and the probability with which each item is in it.

Belongs here: which items are drawn, from what is known without their text. Does not belong here: their
text (``steps/review_sample.py``).

Each part draws for itself, without replacement and with equal probabilities in a stratum, so the
probability that a sample holds an item is one minus the product over the parts of what they leave out.
The order in which a stratum is drawn is a digest of the item: the same rows give the same sample.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from evalpipe.contracts.signals import BY_NAME
from evalpipe.review.rules import Limits

#: What may be drawn, one row an item. ``confidence`` is that of its rows, emitted or not.
FRAME = pl.Schema(
    {
        "key": pl.String(),
        "kind": pl.String(),
        "lang": pl.String(),
        "model": pl.String(),
        "emitted": pl.List(pl.String),
        "candidates": pl.List(pl.String),
        "confidence": pl.List(pl.Float64),
    }
)
DRAWN = pl.Schema({
    "key": pl.String(), "stratum": pl.String(), "parts": pl.List(pl.String), "inclusion_prob": pl.Float64(),
})  # fmt: skip
PARTS = ("uniform", "band", "conflict", "silent")


@dataclass(frozen=True, slots=True)
class _Candidate:
    key: str
    kind: str
    lang: str
    model: str
    emitted: tuple[str, ...]
    candidates: tuple[str, ...]
    confidence: tuple[float, ...]

    @property
    def signals(self) -> tuple[str, ...]:
        return self.emitted + self.candidates


def draw(frame: pl.DataFrame, size: int, limits: Limits, min_confidence: float) -> pl.DataFrame:
    """Draw items for review.

    Args:
        frame: Rows of :data:`FRAME`; an item that was drawn before is left out by the caller.
        size: Items at most.
        limits: Shares of the parts.
        min_confidence: Least confidence that outcomes count; the band lies around it.

    Returns:
        Rows of :data:`DRAWN`, in the order of their keys.
    """
    items = [_Candidate(*row[:4], *map(tuple, row[4:])) for row in frame.select(list(FRAME)).sort("key").iter_rows()]
    inside = {part: [item for item in items if _is_in(part, item, limits, min_confidence)] for part in PARTS}
    rare = Counter(signal for item in items for signal in item.signals)
    drawn: dict[str, list[str]] = defaultdict(list)
    left_out: dict[str, float] = defaultdict(lambda: 1.0)
    stratum_of: dict[str, str] = {}
    budget = _budget(inside, size, limits)
    for part in PARTS:
        # Last, because it takes the place of items that several parts drew.
        n = max(budget[part], size - len(drawn)) if part == "silent" else budget[part]
        strata: dict[str, list[_Candidate]] = defaultdict(list)
        for item in inside[part]:
            strata[_stratum(item, rare)].append(item)
        chosen = allocate({name: len(members) for name, members in strata.items()}, n)
        for name, members in sorted(strata.items()):
            for item in members:
                left_out[item.key] *= 1.0 - chosen[name] / len(members)
                stratum_of[item.key] = name
            for item in sorted(members, key=lambda item: _order(part, item.key))[: chosen[name]]:
                drawn[item.key].append(part)
    rows = [(key, stratum_of[key], parts, 1.0 - left_out[key]) for key, parts in sorted(drawn.items())]
    return pl.DataFrame(rows, schema=DRAWN, orient="row")


def _is_in(part: str, item: _Candidate, limits: Limits, min_confidence: float) -> bool:
    if part == "uniform":
        return bool(item.emitted)
    if part == "band":
        width = limits.sample["band_width"]
        return any(abs(confidence - min_confidence) <= width + 1e-9 for confidence in item.confidence)
    if part == "conflict":
        signs = {BY_NAME[signal].polarity for signal in item.signals}
        return item.kind == "turn" and {1, -1} <= signs
    # What is a candidate only was not given either: recall needs every such item to have a chance.
    return not item.emitted


def _budget(inside: Mapping[str, Sequence[_Candidate]], size: int, limits: Limits) -> dict[str, int]:
    """Items of each part; what a part cannot use goes to emitted rows, and then to silent ones."""
    asked = {part: min(round(limits.sample[part] * size), len(inside[part])) for part in ("silent", "conflict", "band")}
    asked["uniform"] = min(size - sum(asked.values()), len(inside["uniform"]))
    for part in ("silent", "band", "conflict"):
        asked[part] += min(size - sum(asked.values()), len(inside[part]) - asked[part])
    return {part: asked[part] for part in PARTS}


def _stratum(item: _Candidate, rare: Mapping[str, int]) -> str:
    """Rarest signal, language and model: a turn with two signals helps the one that has fewer rows."""
    signals = item.emitted or item.candidates
    first = min(signals, key=lambda signal: (rare[signal], signal)) if signals else f"none:{item.kind}"
    return f"{first}|{item.lang}|{item.model}"


def allocate(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Share n units among strata as equally as their sizes permit.

    Args:
        sizes: Size of each stratum, at least 1.
        n: Units; no more than there are are given.

    Returns:
        Units of each stratum. Those that cannot be shared equally go to the strata whose names come
        first in a fixed shuffled order.
    """
    out = dict.fromkeys(sizes, 0)
    left = min(n, sum(sizes.values()))
    open_strata = sorted(sizes, key=lambda name: _order("allocate", name))
    while left:
        level = max(1, left // len(open_strata))
        for name in open_strata:
            given = min(level, sizes[name] - out[name], left)
            out[name] += given
            left -= given
        open_strata = [name for name in open_strata if out[name] < sizes[name]]
    return out


def _order(part: str, key: str) -> bytes:
    return hashlib.blake2b(f"{part}\x1f{key}".encode(), digest_size=8).digest()
