"""What the agent's words say about the moment at which a person writes.

Belongs here: whether the agent had asked, claimed to be done, or apologised. Wording is data
(``context.toml``); what follows from it is not decided here.
"""

from __future__ import annotations

from functools import lru_cache

import polars as pl

from evalpipe.signals import rulefiles
from evalpipe.signals.text import fold_column


@lru_cache(maxsize=1)
def _rules() -> tuple[str, str, int, int]:
    data = rulefiles.load("context.toml")
    question = rulefiles.to_rust(rulefiles.any_of(data["question"]))
    claim = rulefiles.to_rust(rulefiles.any_of(data["claim"]))
    return question, claim, data["tail_chars"], data["question_chars"]


@lru_cache(maxsize=1)
def _apology() -> tuple[str, int]:
    data = rulefiles.load("context.toml")
    return rulefiles.to_rust(rulefiles.any_of(data["apology"])), data["apology_chars"]


def agent_flags(text: pl.Series) -> pl.DataFrame:
    """Flags of the agent's message that a turn answers.

    Args:
        text: (n,) masked agent messages; null where the agent said nothing.

    Returns:
        (n, 3) frame: ``prev_agent_question`` and ``agent_claimed_done`` (Boolean), ``agent_tail`` (the folded
        end of the message that they were read on, empty without one).
    """
    question, claim, tail_chars, question_chars = _rules()
    # Lower-casing costs more than cutting, and messages are long.
    tails = pl.DataFrame({"tail": text.fill_null("").str.tail(tail_chars)})
    folded = tails.select(tail=fold_column(pl.col("tail")))
    return folded.select(
        prev_agent_question=pl.col("tail").str.tail(question_chars).str.contains(question),
        agent_claimed_done=pl.col("tail").str.contains(claim),
        agent_tail="tail",
    )


def promises(text: pl.Series) -> pl.Series:
    """Whether agent messages apologise at their beginning or claim at their end to be done.

    Args:
        text: (n,) masked agent messages.
    """
    apology, chars = _apology()
    head = pl.DataFrame({"head": text.fill_null("").str.head(chars)}).select(head=fold_column(pl.col("head")))
    is_sorry = head.select(pl.col("head").str.contains(apology))["head"]
    return is_sorry | agent_flags(text)["agent_claimed_done"]
