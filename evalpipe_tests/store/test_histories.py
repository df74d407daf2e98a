"""Which session the turns count in that several begin with: a function of the set of sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.store.histories import Repeated, repeated_histories

AT = datetime(2026, 1, 5, 10, tzinfo=UTC)
Given = dict[str, list[int]]


def _rows(sessions: Given, *, order: Sequence[str] | None = None, source: str = "claude_code") -> pl.DataFrame:
    """Sessions of turns, each of which begins in the second that is its number."""
    return pl.DataFrame(
        [
            (name, source, AT + timedelta(seconds=turns[0]), AT + timedelta(seconds=max(turns)), [7 << 32 | t for t in turns])
            for name in order or sessions
            for turns in [sessions[name]]
        ],
        schema={"session_id": pl.String, "source": pl.String, "started_at": pl.Datetime("us", "UTC"),
                "ended_at": pl.Datetime("us", "UTC"), "turn_keys": pl.List(pl.UInt64)},
        orient="row",
    )  # fmt: skip


def _decided(sessions: Given, order: Sequence[str] | None = None) -> tuple[dict[str, str], dict[str, tuple[int, str]]]:
    lost, repeated = repeated_histories(_rows(sessions, order=order))
    gone = dict(lost.select("session_id", "counted_session_id").iter_rows())
    return gone, {one.session_id: (one.n_turns, one.counted_session_id) for one in repeated}


def test_a_session_that_goes_on_from_another_counts_its_own_turns() -> None:
    assert _decided({"b": [1, 2], "a": [1, 2, 3]}) == ({}, {"a": (2, "b")})
    # Taken up again from the one that was taken up, and from the middle of the first.
    assert _decided({"a": [1, 2], "b": [1, 2, 3], "c": [1, 2, 3, 4], "d": [1, 9]}) == (
        {}, {"b": (2, "a"), "c": (3, "b"), "d": (1, "a")},
    )  # fmt: skip


def test_a_session_that_was_left_at_once_only_repeats() -> None:
    assert _decided({"a": [1, 2], "b": [1, 2]}) == ({"b": "a"}, {})
    assert _decided({"a": [1, 2, 3], "b": [1, 2]})[1] == {"a": (2, "b")}


def test_what_the_last_shared_turn_brought_later_is_its_own() -> None:
    rows = _rows({"a": [1, 2], "b": [1, 2, 30], "c": [1, 2, 3]})
    assert repeated_histories(rows)[1] == [
        Repeated("b", 2, AT + timedelta(seconds=2), "a"), Repeated("c", 2, AT + timedelta(seconds=2), "a"),
    ]  # fmt: skip
    # The one that it goes on from went on too: what stands in the turn is all of it.
    assert repeated_histories(_rows({"a": [1, 2, 3], "b": [1, 2, 30]}))[1] == [Repeated("b", 2, None, "a")]


def test_what_names_no_turns_and_other_formats_repeat_nothing() -> None:
    rows = _rows({"a": [1, 2], "b": [1, 2, 3]})
    assert repeated_histories(rows.with_columns(turn_keys=pl.lit(None, pl.List(pl.UInt64))))[1] == []
    other = pl.concat([rows[:1], _rows({"b": [1, 2, 3]}, source="another")])
    assert repeated_histories(other)[1] == []
    assert _decided({"a": [1, 2], "b": [2, 3]}) == ({}, {}), "no beginning is shared"


@given(st.lists(st.lists(st.sampled_from([2, 3, 4, 5]), max_size=4), min_size=2, max_size=5))
def test_every_turn_counts_once_in_whatever_order_sessions_come(tails: list[list[int]]) -> None:
    sessions = {str(n): [1, *tail] for n, tail in enumerate(tails)}
    gone, repeated = _decided(sessions)
    ways = {tuple(turns[:n]) for turns in sessions.values() for n in range(1, len(turns) + 1)}
    counted = [
        tuple(turns[:n])
        for name, turns in sessions.items()
        if name not in gone
        for n in range(repeated.get(name, (0, ""))[0] + 1, len(turns) + 1)
    ]
    assert sorted(counted) == sorted(ways)
    assert not gone.keys() & set(gone.values())
    for order in list(permutations(sessions))[:6]:
        assert _decided(sessions, order=order) == (gone, repeated)
