"""Correction episodes: targets, ends, bounds, and what holds for every course of talk."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.contracts.render import frame
from evalpipe.contracts.tables import masked
from evalpipe.contracts.tables import signals as tables
from evalpipe.signals.episodes import derived_rows, episodes
from evalpipe_tests.signals.build import Talk

#: A turn as the rows it holds: x correction, c complaint, p praise, + confirmation; a letter behind is its target.
Said = list[str]
_SIGNALS = {
    "x": "correction",
    "c": "complaint.failure_report",
    "p": "praise",
    "+": "confirm.explicit",
    "r": "rework.repeat",
}


def inputs(talks: dict[str, list[Said]], *, silent: tuple[str, ...] = ()) -> tuple[pl.DataFrame, ...]:
    """Turns, steps and semantic rows of sessions; the last turn of silent ones has no answer."""
    steps: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for session, said in talks.items():
        talk = Talk(session)
        for number, words in enumerate(said):
            talk.user("words")
            for index, word in enumerate(words):
                name = f"{session}-{number}-{index}"
                rows.append({
                    "signal_id": name, "session_id": session, "turn": talk.turn, "seq": len(talk.steps) - 1,
                    "signal": _SIGNALS[word[0]], "target": word[1:] or None, "polarity": 1, "strength": 1.0,
                    "confidence": 0.9, "lang": "en", "method": "rule", "pattern_id": "x", "span_start": 0, "span_end": 0,
                    "extractor": "patterns", "extractor_version": "1",
                })  # fmt: skip
            if session not in silent or number < len(said) - 1:
                talk.agent("an answer")
        steps += talk.steps
    table = frame(masked.STEPS, steps)
    turns = table.filter(pl.col("kind") == "user").select("session_id", "seq", "turn")
    return turns, table, frame(tables.SEMANTIC, rows)


def found(said: list[Said], *, is_answered: bool = True) -> list[tuple[Any, ...]]:
    rows = episodes(*inputs({"s": said}, silent=() if is_answered else ("s",)))
    return rows.select("turn", "target", "k", "n_judged", "ending").rows()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([["x"], []], [(1, None, 1, 1, "weak")]),
        ([["x"], ["+"]], [(1, None, 1, 1, "strong")]),
        ([["x"], ["c"], ["p"]], [(1, None, 2, 2, "strong")]),
        ([["x"], ["+", "c"], []], [(1, None, 2, 2, "weak")]),
        ([["x"]], [(1, None, None, 0, "censored")]),
        ([["x"], ["c"]], [(1, None, None, 1, "censored")]),
        ([["xa"], ["xb"], []], [(1, "a", 1, 1, "weak"), (2, "b", 1, 1, "weak")]),
        ([["xa"], ["xa", "xb"], ["xb"], []], [(1, "a", 2, 2, "weak"), (2, "b", 2, 2, "weak")]),
        ([["xa", "xb"], ["c"], ["cb"], []], [(1, "a", 2, 2, "weak"), (1, "b", 3, 3, "weak")]),
        ([["xa"], ["ca"], ["r"], []], [(1, "a", 3, 3, "weak")]),
        ([["x"], ["xa"], ["xb"], []], [(1, "a", 2, 2, "weak"), (3, "b", 1, 1, "weak")]),
        ([["c"], ["ca"]], []),
    ],
)  # fmt: skip
def test_course(said: list[Said], expected: list[tuple[Any, ...]]) -> None:
    assert found(said) == expected


def test_an_objection_that_nobody_answered_ends_rejected() -> None:
    assert found([["x"], ["c"]], is_answered=False) == [(1, None, None, 1, "rejected")]


def test_an_episode_lists_the_objections_to_its_target() -> None:
    rows = episodes(*inputs({"s": [["xa", "xb"], ["c"], ["cb"], []]}))
    assert rows["inputs"].to_list() == [["s-0-0", "s-1-0"], ["s-0-1", "s-1-0", "s-2-0"]]


def test_bounds_of_what_was_not_seen() -> None:
    turns, steps, semantic = inputs(
        {"censored": [["x"], ["c"]], "done": [["x"], []], "gone": [["x"]]}, silent=("gone",)
    )
    nothing = pl.DataFrame(schema={"session_id": pl.String, "turn": pl.Int32, "inputs": pl.List(pl.String)})
    tasks = turns.select("session_id", "turn", task_id="session_id")
    first = pl.DataFrame(
        schema={
            "session_id": pl.String,
            "task_id": pl.String,
            "turn": pl.Int32,
            "is_met": pl.Boolean,
            "inputs": pl.List(pl.String),
        }
    )
    rows = derived_rows(episodes(turns, steps, semantic), first, nothing, tasks)
    bounds = dict(zip(rows["session_id"], rows.select("value", "value_high").rows(), strict=True))
    # A second response was given and not judged: right at once would be k = 2.
    assert bounds == {"censored": (0.0, 0.5), "done": (1.0, 1.0), "gone": (0.0, 0.0)}


WORD = st.sampled_from(["x", "xa", "xb", "c", "ca", "cb", "p", "+", "r"])
COURSE = st.lists(st.lists(WORD, max_size=3), max_size=8)


@settings(max_examples=150, deadline=None)
@given(COURSE, st.booleans())
def test_every_episode_is_within_its_session(said: list[Said], answered: bool) -> None:
    rows = episodes(*inputs({"s": said}, silent=() if answered else ("s",)))
    corrections = {f"s-{n}-{i}" for n, words in enumerate(said) for i, word in enumerate(words) if word[0] == "x"}
    assert corrections <= {name for row in rows["inputs"] for name in row}, "every correction belongs to an episode"
    for row in rows.iter_rows(named=True):
        left = len(said) - row["turn"]
        assert (row["k"] is None) == (row["ending"] in ("rejected", "censored"))
        assert row["k"] is None or 1 <= row["k"] <= left
        assert row["n_judged"] == (left if row["k"] is None else row["k"])
        assert row["is_censored"] == (row["ending"] == "censored")
        assert row["inputs"]
    opened = rows.select("turn", "target").rows()
    assert len(set(opened)) == len(opened)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from("pqrs"), COURSE, min_size=1), st.randoms(use_true_random=False))
def test_sessions_do_not_touch_each_other(talks: dict[str, list[Said]], random: Any) -> None:
    together = episodes(*inputs(talks)).sort("session_id", "turn", "target", "seq")
    names = list(talks)
    random.shuffle(names)
    alone = pl.concat([episodes(*inputs({name: talks[name]})) for name in names])
    assert together.equals(alone.sort("session_id", "turn", "target", "seq"))


@settings(max_examples=60, deadline=None)
@given(COURSE)
def test_one_more_objection_never_makes_recovery_sooner(said: list[Said]) -> None:
    before = episodes(*inputs({"s": [["x"], *said]}))["k"][0]
    after = episodes(*inputs({"s": [["x"], ["c"], *said]}))["k"][0]
    assert before is None or after == before + 1 or (after is None and before is None)
