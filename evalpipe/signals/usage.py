"""Tokens of a session by model and size of prompt: what a price is put on.

Belongs here: adding up the tokens that steps state, each response once, sub-agents included. Does
not belong here: prices (``prices.py``).
"""

from __future__ import annotations

import polars as pl

from evalpipe.contracts.render import polars_schema
from evalpipe.contracts.tables.signals import SESSION_USAGE

KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
#: Sizes of a prompt beyond which some vendor charges more. A price table may use these and no others:
#: tokens are added up by them while steps are at hand, and prices are put on the sums.
PROMPT_LIMITS = (100_000, 128_000, 200_000, 272_000)

_HOUR = "cache_write_1h_tokens"


def session_usage(sessions: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Rows of signals.session_usage.

    Where no step states tokens and the log states them for the session, they are the session's
    model's. A session without any tokens has no row: its usage is unknown, not zero.

    Args:
        sessions: masked.sessions.
        steps: masked.steps of these sessions.

    Returns:
        One row a session, model and size of prompt; the model is empty where none is named.
    """
    told = pl.any_horizontal(pl.col(kind).is_not_null() for kind in KINDS)
    names = sessions.select("session_id", session_model="model")
    prompt = pl.sum_horizontal("input_tokens", "cache_read_tokens", "cache_write_tokens")
    above = pl.max_horizontal(
        pl.lit(0), *(pl.when(prompt > limit).then(pl.lit(limit)).otherwise(pl.lit(0)) for limit in PROMPT_LIMITS)
    )
    by_step = (
        steps.filter(told)
        .join(names, on="session_id", how="inner")
        .with_columns(model=pl.coalesce("model", "session_model", pl.lit("")), prompt_above_tokens=above.cast(pl.Int64))
        .group_by("session_id", "model", "prompt_above_tokens")
        .agg(*[_sum(kind) for kind in (*KINDS, _HOUR)], n_responses=pl.len().cast(pl.Int32))
    )
    stated = sessions.filter(told).join(by_step, on="session_id", how="anti")
    by_session = stated.select(
        "session_id",
        *KINDS,
        model=pl.col("model").fill_null(""),
        prompt_above_tokens=pl.lit(0, dtype=pl.Int64),
        n_responses=pl.lit(None, dtype=pl.Int32),
        **{_HOUR: pl.lit(None, dtype=pl.Int64)},
    )
    columns = polars_schema(SESSION_USAGE).names()
    return pl.concat([by_step.select(columns), by_session.select(columns)])


def _sum(kind: str) -> pl.Expr:
    """A sum that stays unknown where every summand is."""
    return pl.when(pl.col(kind).is_not_null().any()).then(pl.col(kind).sum()).alias(kind)
