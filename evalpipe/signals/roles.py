"""What a turn does: opens a task, approves, repeats a request, accepts in silence.

Belongs here: roles of turns and the structural signals that follow from them. Wording and thresholds
are data (``roles.toml``). Silence and the end of a session are not acceptance: ``accept.implicit``
is a candidate until people have reviewed it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import polars as pl

from evalpipe.contracts.render import polars_schema
from evalpipe.contracts.tables.signals import SEMANTIC
from evalpipe.signals import rulefiles
from evalpipe.signals.semantic import NEGATIVE, Turn, make_row, opening
from evalpipe.signals.text import HEAD_CHARS

EXTRACTOR = "structure"
_WORDS = r"[a-z0-9_]{3,}|[а-я]{3,}|[ء-ي]{3,}|[ऀ-ॿ]{2,}|[가-힣]{2,}|[㐀-䶿一-鿿ぁ-ヿ]"
_NOT_LETTERS = r"[^a-z0-9㐀-䶿一-鿿぀-ヿ가-힣а-яء-يऀ-ॿ]+"


@lru_cache(maxsize=1)
def _rules() -> tuple[str, str, dict[str, Any]]:
    data = rulefiles.load("roles.toml")
    approval = rulefiles.to_rust(rulefiles.any_of(data["approval"]))
    new_task = rulefiles.to_rust(rulefiles.any_of(data["new_task"]))
    return approval, new_task, data


def with_roles(turns: pl.DataFrame, semantic: pl.DataFrame) -> pl.DataFrame:
    """Mark what each turn does.

    Args:
        turns: Frame of :func:`evalpipe.signals.turns.human_turns`.
        semantic: Emitted pattern rows of these turns.

    Returns:
        The turns with Boolean ``is_negative``, ``is_confirm``, ``is_praise``, ``is_approval``,
        ``opens_task``, ``accepts`` (opens a task after a claim of completion, without a word on it).
    """
    approval, new_task, rules = _rules()
    said = semantic.group_by("session_id", "seq").agg(
        is_negative=pl.col("signal").is_in(list(NEGATIVE)).any(),
        is_confirm=(pl.col("signal") == "confirm.explicit").any(),
        is_praise=(pl.col("signal") == "praise").any(),
    )
    marks = ["is_negative", "is_confirm", "is_praise"]
    head = pl.col("prose").str.head(HEAD_CHARS)
    turns = turns.join(said, on=["session_id", "seq"], how="left", maintain_order="left").with_columns(
        *(pl.col(mark).fill_null(value=False) for mark in marks),
        is_approval=head.str.contains(approval),
        opens=head.str.contains(new_task),
        before=pl.col("prose").shift(1).over("session_id"),
    )
    is_first = pl.col("prev_turn_seq").is_null()
    settled = pl.col("agent_claimed_done") | pl.col("is_confirm") | pl.col("is_praise")
    may_open = pl.col("opens") & settled & ~pl.col("is_negative") & ~pl.col("is_approval") & ~is_first
    words = [pl.col(c).str.head(600).str.extract_all(_WORDS).list.unique() for c in ("prose", "before")]
    shared = words[0].list.set_intersection(words[1]).list.len()
    smaller = pl.min_horizontal(words[0].list.len(), words[1].list.len())
    near = turns.filter(may_open).select("row", overlap=shared / smaller.clip(lower_bound=1))
    turns = turns.join(near, on="row", how="left", maintain_order="left")
    fresh = (pl.col("overlap") <= rules["max_overlap"]).fill_null(value=False)
    silent = ~pl.col("is_confirm") & ~pl.col("is_praise") & pl.col("agent_claimed_done")
    return turns.with_columns(opens_task=is_first | fresh, accepts=fresh & silent).drop("opens", "before", "overlap")


def structural_rows(turns: pl.DataFrame, semantic: pl.DataFrame, chars: int) -> pl.DataFrame:
    """Rows of ``rework.repeat`` and ``accept.implicit``, unsorted, ``task_id`` null.

    A request repeated word for word counts when a complaint or a correction stands in the turn or
    in the one that it repeats; people also repeat what worked. A second correction of one target
    counts too.
    """
    _, _, rules = _rules()
    letters = pl.col("prose").str.replace_all(_NOT_LETTERS, " ").str.strip_chars()
    said = turns.filter(pl.col("prose").str.len_bytes() >= rules["min_repeat_letters"]).select(
        "row", "session_id", "is_negative", "has_agent", said=letters
    ).filter(pl.col("said").str.len_bytes() >= rules["min_repeat_letters"])  # fmt: skip
    twice = said.with_columns(
        is_again=pl.int_range(pl.len()).over("session_id", "said") > 0,
        was_negative=pl.col("is_negative").cast(pl.Int32).cum_sum().over("session_id", "said") > 0,
    ).filter(pl.col("is_again") & pl.col("has_agent"))
    again = twice.select(
        "row",
        confidence=pl.when("was_negative")
        .then(rules["confidence_repeat"])
        .otherwise(rules["confidence_repeat_neutral"]),
    )
    corrected = semantic.filter((pl.col("signal") == "correction") & pl.col("target").is_not_null())
    corrected = corrected.sort("session_id", "seq").filter(pl.int_range(pl.len()).over("session_id", "target") > 0)
    target = turns.join(corrected.select("session_id", "seq").unique(), on=["session_id", "seq"], how="semi")
    parts = [
        _marked(again, "rework.repeat", "structure.same-words"),
        _marked(
            target.select("row", confidence=pl.lit(rules["confidence_repeat_target"])),
            "rework.repeat",
            "structure.same-target",
        ),
        _marked(
            turns.filter("accepts").select("row", confidence=pl.lit(rules["confidence_accept"])),
            "accept.implicit",
            "structure.next-task",
        ),
    ]
    found = pl.concat(parts).sort("row", "signal", "confidence", "rule", descending=[False, False, True, False])
    found = found.unique(["row", "signal"], keep="first", maintain_order=True)
    about = turns.select("row", "session_id", "seq", "turn", "text", "lang", "prev_turn_seq")
    joined = found.join(about, on="row", how="left", maintain_order="left")
    columns = ("signal", "rule", "confidence", "session_id", "seq", "turn", "text", "lang", "prev_turn_seq")
    rows = [
        make_row(Turn(*about_turn), signal, rule, confidence, opening(about_turn[3], chars), chars, EXTRACTOR)
        for signal, rule, confidence, *about_turn in joined.select(columns).iter_rows()
    ]
    return pl.DataFrame(rows, schema=polars_schema(SEMANTIC), orient="row")


def _marked(rows: pl.DataFrame, signal: str, rule: str) -> pl.DataFrame:
    return rows.select("row", "confidence", signal=pl.lit(signal), rule=pl.lit(rule))
