"""Demotion: what outcomes read once reviews have taken a signal away in a language.

Belongs here: signals and session features without the rows that do not count any more, from what is in
the lake without any text, so that it can be done over an archive whose text is gone. Does not belong
here: which signals are demoted (``review``), what a demoted signal means for a metric (``outcomes``).

Features were counted when there was text, with all signals. Counts, confirmations and correction
episodes are counted again exactly. Whether the agent was waiting for an answer when a session ended
cannot be told again; where that decided, how the session ended is unknown, and is not guessed.
"""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from evalpipe.signals.episodes import episodes
from evalpipe.signals.features import said
from evalpipe.signals.semantic import NEGATIVE, POSITIVE
from evalpipe.signals.turns import HUMAN

#: Language of signals that have none.
ANY = "any"
#: (signal, language)
Demoted = Collection[tuple[str, str]]
#: Columns of masked.steps that are read; none of them is text.
STEPS_READ = ("session_id", "seq", "turn", "kind", "origin", "parent_id")
#: Columns that say that a session's end, or how it went on after a signal, cannot be told any more.
END_UNKNOWN, COURSE_UNKNOWN = "is_end_unknown", "is_course_unknown"


def names(demoted: Demoted) -> str:
    """Signals with their languages as one text, such as ``correction@pt,praise@pt``."""
    return ",".join(f"{signal}@{lang}" for signal, lang in sorted(demoted))


def counted(rows: pl.DataFrame, demoted: Demoted) -> pl.DataFrame:
    """Rows of signals.hard or signals.semantic that are not demoted.

    Args:
        rows: With ``signal``, and ``lang`` where they have one.
        demoted: What is.
    """
    return rows.filter(~_is_demoted(rows, demoted))


def _is_demoted(rows: pl.DataFrame, demoted: Demoted) -> pl.Series:
    lang = pl.col("lang") if "lang" in rows.columns else pl.lit(ANY)
    wanted = [f"{signal}\x1f{at}" for signal, at in sorted(demoted)]
    return rows.select(is_in=pl.concat_str("signal", lang, separator="\x1f").is_in(wanted))["is_in"]


def without(
    features: pl.DataFrame, semantic: pl.DataFrame, steps: pl.DataFrame, calls: pl.DataFrame, demoted: Demoted
) -> pl.DataFrame:
    """Session features as they are without demoted semantic signals.

    Args:
        features: signals.session_features.
        semantic: signals.semantic of these sessions, demoted rows included.
        steps: :data:`STEPS_READ` of masked.steps, in order, at least of sessions with a demoted row.
        calls: ``session_id, seq`` of tool calls, likewise.
        demoted: What is demoted.

    Returns:
        The features in their order, with :data:`END_UNKNOWN` and :data:`COURSE_UNKNOWN`, which holds of
        sessions that came without steps.
    """
    is_gone = _is_demoted(semantic, demoted)
    touched = semantic.filter(is_gone)["session_id"].unique()
    features = features.with_columns(pl.lit(value=False).alias(name) for name in (END_UNKNOWN, COURSE_UNKNOWN))
    if touched.is_empty():
        return features
    inside = pl.col("session_id").is_in(touched.implode())
    kept = semantic.filter(~is_gone).filter(inside)
    steps = steps.filter(inside)
    turns = steps.filter(
        pl.col("parent_id").is_null() & (pl.col("kind") == "user") & pl.col("origin").is_in(HUMAN)
    ).select("session_id", "seq", "turn")
    mine = features.filter(inside)
    changed = said(turns, calls.filter(inside), kept, episodes(turns, steps, kept))
    mine = mine.drop(name for name in changed.columns if name != "session_id")
    mine = mine.join(changed, on="session_id", how="left", maintain_order="left")
    mine = mine.join(_last_turn(turns, semantic, kept), on="session_id", how="left", maintain_order="left")
    lost = pl.col("was_negative").fill_null(value=False) & ~pl.col("is_negative").fill_null(value=False)
    is_bare = ~pl.col("session_id").is_in(steps["session_id"].implode())
    unknown = pl.col("is_last_task_unresolved") & (lost | is_bare)
    mine = mine.with_columns(
        pl.col("^n_.*$").fill_null(0).cast(pl.Int32),
        pl.col("sum_steerability").fill_null(0.0),
        pl.col("has_final_confirmation").fill_null(value=False),
        (unknown & ~pl.col("is_last_turn_interrupted")).alias(END_UNKNOWN),
        is_bare.alias(COURSE_UNKNOWN),
        has_closing_signal=pl.col("has_closing_signal") & (is_bare | pl.col("is_positive").fill_null(value=False)),
    )
    order = features.select("session_id").with_row_index("place")
    out = pl.concat([features.filter(~inside), mine.select(features.columns)])
    return out.join(order, on="session_id").sort("place").drop("place")


def _last_turn(turns: pl.DataFrame, before: pl.DataFrame, kept: pl.DataFrame) -> pl.DataFrame:
    """What was said in each session's last turn, with and without the demoted rows."""
    last = turns.group_by("session_id").agg(seq=pl.col("seq").max())

    def marks(rows: pl.DataFrame, **signals: tuple[str, ...]) -> pl.DataFrame:
        there = rows.join(last, on=["session_id", "seq"], how="semi")
        return there.group_by("session_id").agg(
            **{name: pl.col("signal").is_in(list(members)).any() for name, members in signals.items()}
        )

    was = marks(before, was_negative=NEGATIVE)
    now = marks(kept, is_negative=NEGATIVE, is_positive=POSITIVE)
    return was.join(now, on="session_id", how="full", coalesce=True)
