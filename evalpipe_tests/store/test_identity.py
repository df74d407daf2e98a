"""One session in the logs of two exporters counts once; sessions that only look alike count each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.store.identity import COLUMNS, same_sessions

AT = datetime(2026, 1, 5, 10, tzinfo=UTC)
UUID = "3f0c5a1e-94b7-4d26-8a0b-6c1de27f9a35"
TRACE = "3f0c5a1e94b74d268a0b6c1de27f9a35"

Row = tuple[str, str, int, int, str | None, datetime, datetime, bool]


def row(
    source: str,
    native: str,
    *,
    n: int = 4,
    turns: int = 2,
    said: str | None = None,
    at: timedelta = timedelta(),
    lasts: timedelta = timedelta(hours=1),
    is_dated: bool = True,
) -> Row:
    return (f"{source}:{native}", source, n, turns, said, AT + at, AT + at + lasts, is_dated)


def lost(*rows: Row) -> dict[str, tuple[str, str]]:
    frame = pl.DataFrame(
        list(rows),
        schema=dict(
            zip(
                COLUMNS,
                (pl.String(), pl.String(), pl.Int32(), pl.Int32(), pl.String(), pl.Datetime("us", "UTC"),
                 pl.Datetime("us", "UTC"), pl.Boolean()),
                strict=True,
            )
        ),
        orient="row",
    )  # fmt: skip
    return {one: (counted, rule) for one, counted, rule in same_sessions(frame).iter_rows()}


@pytest.mark.parametrize("native", [UUID, TRACE, "01HF3Z8Q4R5S6T7V8W9XABCDEF", "ses_4f3aQ81kZbT2mN7vLcW0xE"])
def test_an_id_that_nobody_gives_twice_joins_two_sources_and_the_own_log_counts(native: str) -> None:
    for n_export in (1, 99):
        found = lost(row("claude_code", native), row("specstory", native, n=n_export))
        assert found == {f"specstory:{native}": (f"claude_code:{native}", "same_id")}


def test_the_case_of_an_id_is_no_difference() -> None:
    assert lost(row("otlp", TRACE), row("langfuse", TRACE.upper())) != {}


@pytest.mark.parametrize("native", ["7", "session-1", "demo", "00000000-0000-0000-0000-000000000000", f"a/{UUID}"])
def test_an_id_that_somebody_else_may_give_too_joins_nothing(native: str) -> None:
    assert lost(row("otlp", native), row("langfuse", native)) == {}


def test_the_same_id_at_quite_another_time_joins_nothing() -> None:
    assert lost(row("otlp", UUID), row("langfuse", UUID, at=timedelta(hours=2))) == {}
    assert lost(row("otlp", UUID), row("langfuse", UUID, at=timedelta(minutes=65))) != {}
    assert lost(row("otlp", UUID), row("specstory", UUID, at=timedelta(days=9), is_dated=False)) != {}


def test_a_copy_with_words_counts_before_one_without_and_then_the_longer_one() -> None:
    assert lost(row("otlp", UUID, turns=0, n=90), row("specstory", UUID)) == {
        f"otlp:{UUID}": (f"specstory:{UUID}", "same_id")
    }
    assert lost(row("otlp", UUID, n=3), row("langfuse", UUID, n=5)) == {f"otlp:{UUID}": (f"langfuse:{UUID}", "same_id")}


def test_a_copy_with_times_counts_before_a_longer_one_without() -> None:
    found = lost(row("lmsys_chat", UUID, n=9, is_dated=False), row("wildchat", UUID))
    assert found == {f"lmsys_chat:{UUID}": (f"wildchat:{UUID}", "same_id")}


def test_the_same_words_at_the_same_time_join_two_sources() -> None:
    a, b = row("codex", "a", said="w"), row("specstory", "b", said="w", at=timedelta(seconds=90))
    assert lost(a, b) == {"specstory:b": ("codex:a", "same_words")}


@pytest.mark.parametrize(
    "other",
    [
        row("specstory", "b", said="other"),
        row("specstory", "b", said="w", at=timedelta(seconds=121)),
        row("specstory", "b", said="w", is_dated=False),
        row("codex", "b", said="w"),
    ],
    ids=["other words", "later", "undated", "same source"],
)
def test_less_than_that_joins_nothing(other: Row) -> None:
    assert lost(row("codex", "a", said="w"), other) == {}


def test_runs_of_one_task_at_once_are_not_told_apart_and_none_is_lost() -> None:
    rows = [row(source, trial, said="w") for source in ("inspect", "atif") for trial in ("one", "two")]
    assert lost(*rows) == {}
    assert lost(*rows[:3]) == {}


def test_what_an_id_joins_words_do_not_join_on() -> None:
    # Or the session of otlp that an id joins to langfuse would end at the other session of otlp.
    rows = [row("otlp", UUID, n=2), row("langfuse", UUID, said="w"), row("otlp", "a", said="w", n=9)]
    assert lost(*rows) == {f"otlp:{UUID}": (f"langfuse:{UUID}", "same_id")}


ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from(["codex", "otlp", "langfuse", "specstory", "added_reader"]),
        st.sampled_from([UUID, TRACE, "1", "2"]),
        n=st.integers(1, 3),
        turns=st.integers(0, 1),
        said=st.sampled_from([None, "w", "v"]),
        at=st.sampled_from([timedelta(), timedelta(seconds=60), timedelta(hours=3)]),
        is_dated=st.booleans(),
    ),
    max_size=8,
    unique_by=lambda one: one[0],
)


@given(ROWS, st.randoms(use_true_random=False))
def test_what_counts_is_no_matter_of_order_and_never_itself_lost(rows: list[Row], random: object) -> None:
    found = lost(*rows)
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert lost(*shuffled) == found
    assert not {counted for counted, _ in found.values()} & set(found)
    assert all(one.split(":")[0] != counted.split(":")[0] for one, (counted, _) in found.items())


def test_two_agents_that_were_given_one_task_at_once_and_gave_one_answer_are_two_sessions() -> None:
    assert lost(row("claude_code", "a", said="x"), row("codex", "b", said="x")) == {}
    # Whose export the third is, nothing tells.
    assert lost(row("claude_code", "a", said="x"), row("codex", "b", said="x"), row("atif", "c", said="x")) == {}
    # A harness writes a log beside that of the agent which it runs.
    assert lost(row("claude_code", "a", said="x"), row("inspect", "b", said="x")) != {}
