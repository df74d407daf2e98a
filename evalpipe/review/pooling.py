"""Several samples of one home as one: the probability that an item was drawn and labelled in any of them.

Belongs here: what earlier samples hold of an item, and what an item of several samples weighs. Does not
belong here: how one sample is drawn (``draw.py``), estimates (``evidence.py``).

Each sample leaves out what the earlier ones hold, so to weight its items by their probability in that
sample alone would count what all the samples were drawn from once for every sample.
"""

from __future__ import annotations

import polars as pl

_ITEM = ("session_id", "seq")
_CHANCE = (*_ITEM, "sample_id", "inclusion_prob")


def chances(items: pl.DataFrame, frames: pl.DataFrame) -> pl.DataFrame:
    """Probability with which each sample holds an item: ``session_id, seq, sample_id, inclusion_prob``.

    Args:
        items: Rows of ``signals.review_items``.
        frames: Rows of ``signals.review_frames``; of a sample that has none, drawn before they were kept, only
            what it holds is known. Those of a sample that was never finished hold nothing.
    """
    finished = items["sample_id"].unique().implode()
    frames = frames.filter(pl.col("sample_id").is_in(finished))
    known = frames["sample_id"].unique().implode()
    alone = items.filter(~pl.col("sample_id").is_in(known))
    return pl.concat([frames.select(_CHANCE), alone.select(_CHANCE)])


def held(found: pl.DataFrame) -> pl.DataFrame:
    """Probability that any sample holds an item: ``session_id, seq, held``, from rows of :func:`chances`."""
    return found.sort(_CHANCE).group_by(_ITEM, maintain_order=True).agg(held=pl.col("inclusion_prob").sum())


def pooled(opinions: pl.DataFrame, items: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Opinions with the probability that their item was drawn and labelled in any sample.

    Items of a sample lie in its file in a shuffled order, so of a sample that is labelled in part each item
    had the same chance to be labelled.

    Args:
        opinions: Rows of ``signals.reviews``.
        items: Rows of ``signals.review_items``.
        found: Rows of :func:`chances`, of the items of the opinions at least.

    Returns:
        The same rows; ``inclusion_prob`` is over all samples.
    """
    drawn = items.group_by("sample_id").agg(n=pl.col("item_id").n_unique())
    labelled = opinions.group_by("sample_id").agg(n_labelled=pl.col("item_id").n_unique())
    shares = labelled.join(drawn, on="sample_id", how="left").select(
        "sample_id", share=(pl.col("n_labelled") / pl.col("n")).clip(0.0, 1.0).fill_null(1.0)
    )
    chance = (pl.col("inclusion_prob") * pl.col("share")).sum().clip(0.0, 1.0)
    # In a fixed order, and rounded: what is made of it is told apart by its digest.
    placed = found.sort(_CHANCE).join(shares, on="sample_id", maintain_order="left")
    weighed = placed.group_by(_ITEM, maintain_order=True).agg(anywhere=chance.round(12))
    known = opinions.join(weighed, on=_ITEM, how="left", maintain_order="left")
    return known.with_columns(inclusion_prob=pl.coalesce("anywhere", "inclusion_prob")).select(opinions.columns)
