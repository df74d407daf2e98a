"""Drawing a sample: parts of a budget, strata in a part, and the probability with which each item is in it.

Belongs here: which items are drawn, from what is known without their text. Does not belong here: their
text (``steps/review_sample.py``).

Each part draws for itself, without replacement and with equal probabilities in a stratum, so the
probability that a sample holds an item is one minus the product over the parts of what they leave out.
What earlier samples hold is not drawn again, so a later sample holds an item only if the earlier ones left
it out. The probabilities of all samples therefore add up to that of being in any (``pooling.py``).
The order in which a stratum is drawn is a digest of the item: the same rows give the same sample.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping

import polars as pl

from evalpipe.contracts.signals import BY_NAME
from evalpipe.review.rules import Limits

#: What may be drawn, one row an item. ``confidence`` is that of its rows, emitted or not; ``held`` the
#: probability that an earlier sample holds it, and ``is_drawn`` whether one does.
FRAME = pl.Schema(
    {
        "key": pl.String(),
        "kind": pl.String(),
        "lang": pl.String(),
        "model": pl.String(),
        "emitted": pl.List(pl.String),
        "candidates": pl.List(pl.String),
        "confidence": pl.List(pl.Float64),
        "held": pl.Float64(),
        "is_drawn": pl.Boolean(),
    }
)
DRAWN = pl.Schema({
    "key": pl.String(), "stratum": pl.String(), "parts": pl.List(pl.String), "inclusion_prob": pl.Float64(),
})  # fmt: skip
PARTS = ("uniform", "band", "conflict", "silent")


#: Odd multipliers that give each part an order of its own.
_SHUFFLES = {
    "uniform": 0x9E3779B97F4A7C15, "band": 0xC2B2AE3D27D4EB4F,
    "conflict": 0x165667B19E3779F9, "silent": 0xD6E8FEB86659FD93,
}  # fmt: skip


def draw(frame: pl.DataFrame, size: int, limits: Limits, min_confidence: float) -> pl.DataFrame:
    """Draw items for review.

    Args:
        frame: Rows of :data:`FRAME`, those that earlier samples hold among them.
        size: Items at most.
        limits: Shares of the parts.
        min_confidence: Least confidence that outcomes count; the band lies around it.

    Returns:
        Rows of :data:`DRAWN` in the order of their keys, one an item of the frame. ``parts`` is empty where
        the sample does not hold the item. ``inclusion_prob`` is the probability that this sample holds it,
        over all ways in which it and the earlier ones could have come out.
    """
    items = _marked(frame.select(list(FRAME)).sort("key"), limits, min_confidence)
    is_open = ~pl.col("is_drawn")
    budget = _budget({part: items.filter(is_open & pl.col(f"is_{part}")).height for part in PARTS}, size, limits)
    for part in PARTS:
        n_drawn = int(items.select(pl.any_horizontal(pl.col("^drawn_.*$"), pl.lit(value=False)).sum()).item())
        # Last, because it takes the place of items that several parts drew.
        n = max(budget[part], size - n_drawn) if part == "silent" else budget[part]
        items = _with_part(items, part, n)
    left_out = pl.lit(1.0)
    for part in PARTS:
        left_out = left_out * (1.0 - pl.col(f"prob_{part}"))
    named = [pl.when(f"drawn_{part}").then(pl.lit(part)) for part in PARTS]
    prob = (1.0 - left_out) * (1.0 - pl.col("held")).clip(0.0, 1.0)
    drawn = items.with_columns(parts=pl.concat_list(named).list.drop_nulls(), inclusion_prob=prob)
    return drawn.select(list(DRAWN)).sort("key")


def _marked(items: pl.DataFrame, limits: Limits, min_confidence: float) -> pl.DataFrame:
    """Items with the parts that may draw them, their stratum, and a number that shuffles them.

    What is a candidate only is among the silent ones too: it was not given, and recall needs every such
    item to have a chance. A turn with two signals is in the stratum of the rarer, which has fewer rows.
    """
    signals = pl.concat_list("emitted", "candidates").alias("signals")
    told = items.select("key", "kind", signals, first=pl.coalesce(_if_any("emitted"), _if_any("candidates")))
    told = told.filter(pl.col("first").is_not_null())
    rare = Counter(told["signals"].explode())
    first = [min(names, key=lambda name: (rare[name], name)) for names in told["first"].to_list()]
    signs = [{BY_NAME[name].polarity for name in names} for names in told["signals"].to_list()]
    told = told.select(
        "key",
        first=pl.Series(first, dtype=pl.String),
        is_conflict=(pl.col("kind") == "turn") & pl.Series([{1, -1} <= both for both in signs], dtype=pl.Boolean),
    )
    items = items.join(told, on="key", how="left", maintain_order="left")
    near = (pl.element() - min_confidence).abs() <= limits.sample["band_width"] + 1e-9
    none = pl.concat_str(pl.lit("none:"), "kind")
    shuffle = [int.from_bytes(_order("item", key)) for key in items["key"]]
    return items.select(
        "key",
        stratum=pl.concat_str(pl.coalesce("first", none), "lang", "model", separator="|"),
        shuffle=pl.Series(shuffle, dtype=pl.UInt64),
        is_uniform=pl.col("emitted").list.len() > 0,
        is_silent=pl.col("emitted").list.len() == 0,
        is_band=pl.col("confidence").list.eval(near).list.any(),
        is_conflict=pl.col("is_conflict").fill_null(value=False),
        held="held",
        is_drawn="is_drawn",
    )


def _if_any(name: str) -> pl.Expr:
    return pl.when(pl.col(name).list.len() > 0).then(name)


def _with_part(items: pl.DataFrame, part: str, n: int) -> pl.DataFrame:
    """Draw one part: whether it drew an item, and with what probability."""
    inside = items.filter(f"is_{part}")
    left = inside.filter(~pl.col("is_drawn"))
    sizes = dict(left.group_by("stratum").len().sort("stratum").iter_rows())
    rows = [(name, n_here, sizes[name]) for name, n_here in allocate(sizes, n).items()]
    chosen = pl.DataFrame(rows, schema={"stratum": pl.String, "n": pl.Int64, "n_left": pl.Int64}, orient="row")
    shuffled = (pl.col("shuffle") * pl.lit(_SHUFFLES[part], dtype=pl.UInt64)).rank("ordinal").over("stratum")
    places = left.select("key", place=shuffled)
    inside = inside.select("key", "stratum").join(places, on="key", how="left").join(chosen, on="stratum", how="left")
    drawn = inside.select(
        "key",
        (pl.col("place") <= pl.col("n")).fill_null(value=False).alias(f"drawn_{part}"),
        # What an earlier sample holds has the chance of its like; where none of them is left, nothing was left out.
        (pl.col("n") / pl.col("n_left")).fill_null(1.0).alias(f"prob_{part}"),
    )
    return items.join(drawn, on="key", how="left", maintain_order="left").with_columns(
        pl.col(f"drawn_{part}").fill_null(value=False), pl.col(f"prob_{part}").fill_null(0.0)
    )


def _budget(sizes: Mapping[str, int], size: int, limits: Limits) -> dict[str, int]:
    """Items of each part; what a part cannot use goes to emitted rows, and then to silent ones."""
    asked = {part: min(round(limits.sample[part] * size), sizes[part]) for part in ("silent", "conflict", "band")}
    asked["uniform"] = min(size - sum(asked.values()), sizes["uniform"])
    for part in ("silent", "band", "conflict"):
        asked[part] += min(size - sum(asked.values()), sizes[part] - asked[part])
    return {part: asked[part] for part in PARTS}


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
