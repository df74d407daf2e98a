"""Turns of a person: their prose, language and what stood before them.

Belongs here: one frame with everything that patterns, roles and episodes ask of a turn. Does not
belong here: any signal. Only messages of a person (origin ``human`` or ``queued``) are turns.
"""

from __future__ import annotations

import polars as pl

from evalpipe.signals.context import agent_flags
from evalpipe.signals.language import turn_languages
from evalpipe.signals.text import prose_column

HUMAN = ("human", "queued")
#: Language of turns whose language is not known.
UNKNOWN = "und"


def human_turns(steps: pl.DataFrame) -> pl.DataFrame:
    """All turns of a part.

    Args:
        steps: masked.steps, ordered by session and seq.

    Returns:
        One row a turn, in order: ``row`` (UInt32), ``session_id, seq, turn, text, prose, is_plain,
        lang, has_agent`` (an agent or a tool acted on an
        earlier turn), ``prev_turn_seq``, ``prev_agent_seq``
        (agent message since the previous turn, null if none), ``prev_agent_question``,
        ``agent_claimed_done``, ``agent_tail`` (folded).
    """
    is_main = pl.col("parent_id").is_null()
    is_turn = is_main & (pl.col("kind") == "user") & pl.col("origin").is_in(HUMAN)
    speaks = is_main & (pl.col("kind") == "agent") & (pl.col("text").str.len_bytes() > 0)
    acts = pl.col("kind").is_in(["agent", "model", "tool", "graph"])
    marked = steps.select(
        "session_id", "seq", "turn", is_turn=is_turn,
        agent_seq=pl.when(speaks).then("seq").forward_fill().over("session_id"),
        act_seq=pl.when(acts).then("seq").forward_fill().over("session_id"),
        turn_seq=pl.when(is_turn).then("seq").forward_fill().shift(1).over("session_id"),
        first_seq=pl.when(is_turn).then("seq").min().over("session_id"),
    ).with_row_index("place")  # fmt: skip
    turns = marked.filter("is_turn")
    agent = pl.col("agent_seq") > pl.col("turn_seq").fill_null(-1)
    turns = turns.select(
        "session_id", "seq", "turn", "place",
        # An agent that greets has not answered anybody yet.
        has_agent=(pl.col("act_seq") > pl.col("first_seq")).fill_null(value=False),
        prev_turn_seq="turn_seq",
        prev_agent_seq=pl.when(agent).then("agent_seq"),
    ).with_row_index("row")  # fmt: skip
    text = steps["text"][turns["place"]].fill_null("")
    prose = prose_column(text)
    before = turns.select("session_id", seq="prev_agent_seq").join(
        steps.select("session_id", "seq", "text"), on=["session_id", "seq"], how="left", maintain_order="left"
    )
    lang = turn_languages(prose["prose"], turns["session_id"], text)
    added = pl.DataFrame([text.alias("text"), lang.alias("lang")])
    return pl.concat([turns.drop("place"), added, prose, agent_flags(before["text"])], how="horizontal")


def turn_coverage(turns: pl.DataFrame) -> pl.DataFrame:
    """Rows of signals.turn_coverage, unsorted.

    Args:
        turns: Frame of :func:`human_turns`.
    """
    is_empty = pl.col("prose").str.strip_chars() == ""
    is_unknown = ~is_empty & (pl.col("lang") == UNKNOWN)
    return turns.group_by("session_id").agg(
        n_turns=pl.len().cast(pl.Int32),
        n_without_prose=is_empty.sum().cast(pl.Int32),
        n_unknown_language=is_unknown.sum().cast(pl.Int32),
    )


def closing_agent_flags(steps: pl.DataFrame) -> pl.DataFrame:
    """Flags of the agent's last message of a session, where it came after the last turn.

    Returns:
        One row a session that ends so: ``session_id, prev_agent_question, agent_claimed_done, agent_tail``.
    """
    main = steps.filter(pl.col("parent_id").is_null())
    is_turn = (pl.col("kind") == "user") & pl.col("origin").is_in(HUMAN)
    speaks = (pl.col("kind") == "agent") & (pl.col("text").str.len_bytes() > 0)
    last = main.filter(is_turn | speaks).group_by("session_id", maintain_order=True).last()
    last = last.filter(pl.col("kind") == "agent")
    return pl.concat([last.select("session_id"), agent_flags(last["text"])], how="horizontal")
