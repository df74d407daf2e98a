"""Tokens of a session by model: what a price is put on.

Belongs here: adding up the tokens that steps state, each response once, sub-agents included. Does
not belong here: prices (``prices.py``).
"""

from __future__ import annotations

import polars as pl

from evalpipe.contracts.render import polars_schema
from evalpipe.contracts.tables.signals import SESSION_USAGE

KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


def session_usage(sessions: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Rows of signals.session_usage.

    Where no step states tokens and the log states them for the session, they are the session's
    model's. A session without any tokens has no row: its usage is unknown, not zero.

    Args:
        sessions: masked.sessions.
        steps: masked.steps of these sessions.

    Returns:
        One row a session and model; the model is empty where none is named.
    """
    told = pl.any_horizontal(pl.col(kind).is_not_null() for kind in KINDS)
    names = sessions.select("session_id", session_model="model")
    by_step = (
        steps.filter(told)
        .join(names, on="session_id", how="inner")
        .group_by("session_id", model=pl.coalesce("model", "session_model", pl.lit("")))
        .agg(*[_sum(kind) for kind in KINDS], n_responses=pl.len().cast(pl.Int32))
    )
    stated = sessions.filter(told).join(by_step, on="session_id", how="anti")
    by_session = stated.select(
        "session_id", *KINDS, model=pl.col("model").fill_null(""), n_responses=pl.lit(None, dtype=pl.Int32)
    )
    columns = polars_schema(SESSION_USAGE).names()
    return pl.concat([by_step.select(columns), by_session.select(columns)])


def _sum(kind: str) -> pl.Expr:
    """A sum that stays unknown where every summand is."""
    return pl.when(pl.col(kind).is_not_null().any()).then(pl.col(kind).sum()).alias(kind)
