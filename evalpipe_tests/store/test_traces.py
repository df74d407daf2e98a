"""Which copies of a trace are parts of one session: a function of their spans alone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.store import traces
from evalpipe.store.traces import FACTS, joined_traces, named_by_trace

DAY, AT = date(2026, 1, 5), datetime(2026, 1, 5, 10, tzinfo=UTC)
LONG = "otlp:conversation-0123456789"
#: Spans of a copy, by number: whether they have ended.
Copy = dict[int, bool]


def _taken(copies: list[Copy], *, session_id: str = LONG, n_bytes: int = 1) -> set[int]:
    """Places of the copies that are joined; copies in the order in which they would count."""
    ranked = pl.DataFrame({
        "session_id": [session_id] * len(copies), "landed_id": [session_id] * len(copies), "day": [DAY] * len(copies),
        "stem": [str(n) for n in range(len(copies))], "copy": [0] * len(copies), "source": ["otlp"] * len(copies),
        "content_digest": [str(n) for n in range(len(copies))], "n_messages": [1] * len(copies),
        "started_at": [AT + timedelta(seconds=n) for n in range(len(copies))], "ended_at": [AT] * len(copies),
        "traces": [sorted({f"t{key // 10}" for key in copy}) for copy in copies], "span_bytes": [n_bytes] * len(copies),
    })  # fmt: skip

    def look(some: pl.DataFrame) -> pl.DataFrame:
        rows = [
            (session_id, DAY, stem, 0, list(copy), [1] * len(copy), list(copy.values()))
            for stem, copy in ((stem, copies[int(stem)]) for stem in some["stem"])
        ]
        return pl.DataFrame(rows, schema=list(FACTS), orient="row")

    return {int(stem) for one in joined_traces(ranked, look) for _, stem, _ in one.places}


@given(st.lists(st.dictionaries(st.integers(0, 40), st.booleans(), min_size=1), min_size=2, max_size=6))
def test_every_span_and_every_end_is_in_a_part_and_each_part_adds_something(copies: list[Copy]) -> None:
    taken = _taken(copies) or {0}
    told = {(key, ended) for n in taken for key, ended in copies[n].items()}
    assert {key for key, _ in told} == {key for copy in copies for key in copy}
    assert {key for key, ended in told if ended} == {key for copy in copies for key, ended in copy.items() if ended}
    assert 0 in taken
    known: set[tuple[int, bool]] = set()
    for n in sorted(taken):
        says = {(key, value) for key, ended in copies[n].items() for value in {False, ended}}
        assert says - known
        known |= says


def test_under_a_short_id_only_what_shares_a_trace_is_joined() -> None:
    copies = [{1: True}, {2: True}, {11: True}]
    assert _taken(copies) == {0, 1, 2}
    assert _taken(copies, session_id="otlp:7") == {0, 1}
    assert _taken(copies, session_id=f"otlp:{'0' * 32}") == {0, 1}


def test_a_session_of_more_spans_than_can_be_held_leaves_the_smallest_parts_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(traces, "_MOST_BYTES", 20)
    assert _taken([{1: True}, {2: True}, {3: True}], n_bytes=9) == {0, 1}


def test_a_trace_that_one_session_holds_under_a_name_is_that_sessions() -> None:
    rows = pl.DataFrame(
        [("otlp:t1", "otlp", ["t1"]), (LONG, "otlp", ["t1", "t2"]), ("phoenix:t1", "phoenix", ["t1"])],
        schema=["session_id", "source", "traces"],
        orient="row",
    )
    assert named_by_trace(rows).select("session_id", "is_renamed").rows() == [
        (LONG, True), (LONG, False), ("phoenix:t1", False),
    ]  # fmt: skip
    two = pl.concat([rows, rows[1:2].with_columns(session_id=pl.lit("otlp:another"))])
    assert not named_by_trace(two)["is_renamed"].any()


def _named(*rows: tuple[str, list[str]]) -> list[tuple[str, bool]]:
    """Ids that copies get, and whether they were renamed."""
    copies = pl.DataFrame([(f"otlp:{name}", "otlp", held) for name, held in rows],
        schema=["session_id", "source", "traces"], orient="row")  # fmt: skip
    return [(name.removeprefix("otlp:"), is_renamed)
        for name, is_renamed in named_by_trace(copies).select("session_id", "is_renamed").rows()]  # fmt: skip


def test_a_session_is_found_under_the_name_that_it_got_with_a_second_user() -> None:
    assert _named(("1", ["t1"]), ("1", ["t0"]), ("1@trace:t1", ["t1", "t2"]), ("1@trace:t3", ["t3"])) == [
        ("1@trace:t1", True), ("1", False), ("1@trace:t1", False), ("1@trace:t3", False),
    ]  # fmt: skip
    assert _named(("1@trace:t1", ["t1"]), ("2@trace:t1", ["t1"]), ("2", ["t1"]), ("2", ["t1", "t1"])) == [
        ("1@trace:t1", False), ("2@trace:t1", False), ("2@trace:t1", True), ("2@trace:t1", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "copies",
    [
        # A part of the trace that names nobody stood with bob, whose own trace is elsewhere, or nowhere.
        [("1", ["a1", "b1"]), ("1@trace:a1", ["a1"]), ("1@trace:b2", ["b2"])],
        [("1", ["a1", "b1"]), ("1@trace:a1", ["a1"]), ("1@trace:b1", ["b1"])],
        # Spans that name nobody go with the first user of each file.
        [("1@trace:a1", ["a1", "n"]), ("1@trace:b1", ["b1", "n"]), ("1", ["n"])],
        [("1", ["b1"]), ("1@trace:a1", ["a1", "b1"])],
        [("1", ["a1", "b1"]), ("1@trace:a1", ["a1", "b1"]), ("1@trace:b1", ["a1", "b1"])],
        [("1@trace:a1", ["a1", "a2"]), ("1@trace:a2", ["a2", "a3"])],
    ],
)
def test_a_session_that_may_be_another_persons_keeps_its_name(copies: list[tuple[str, list[str]]]) -> None:
    for order in (copies, copies[::-1]):
        assert _named(*order) == [(name, False) for name, _ in order]
