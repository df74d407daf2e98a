"""What holds for every session, however odd its text."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import date
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.signals import SignalsPart, extract_part, session_outcomes
from evalpipe.signals.ledger import empty_ledger
from evalpipe.signals.turns import HUMAN
from evalpipe_tests.signals.build import EXTRACTION, PRICES, Talk, criteria, frames, later

SAYINGS = st.sampled_from(
    ["It still does not work", "No, use `a.py` instead", "Perfect, now add a menu", "it works now", "不对，应该是升序", "还是没有反应",
     "não funcionou", "Era isso mesmo", "see\n```\nfail\n```\nstill broken", "<PERSON:a:qkzv> said no", "", "yes", "revert that",
     "> quoted\nIt is still broken", "Which one do you want?", "Fixed, done.", "x" * 9000 + " still broken"]
) | st.text(max_size=40)  # fmt: skip
OUTPUTS = st.sampled_from(
    [None, "", "ok", "bash: foo: command not found", "1 failed", "Traceback (most recent call last):\n  x\nValueError: y",
     "<tool_use_error>File does not exist.</tool_use_error>", "The user doesn't want to proceed", "İ fatal: no", "y" * 6000 + "\nfatal: z"]
) | st.text(max_size=30)  # fmt: skip
COMMANDS = st.sampled_from(
    ["ls", "pytest -q | tail", "git commit -m 'x'", "git revert HEAD", "foo || true", ""]
) | st.text(max_size=20)
ORIGINS = ("human", "queued", "interrupt", "command", "local_command", "meta", "injected", "notification", "compaction")
USER = st.tuples(st.just("user"), SAYINGS | st.none(), st.sampled_from(ORIGINS))
AGENT = st.tuples(st.just("agent"), SAYINGS | st.none(), st.just("agent"))
TOOL = st.tuples(
    st.sampled_from(["Bash", "Edit", "Read", "lookup", "Teleport"]), COMMANDS, OUTPUTS, st.none() | st.integers(-9, 130),
    st.sampled_from([None, True, False]), st.sampled_from([None, None, None, "refused", "interrupted", "cascade", "no_result"]),
)  # fmt: skip
SESSION = st.lists(USER | AGENT | TOOL, max_size=12)
TABLES = [f.name for f in fields(SignalsPart)]


def talk(name: str, events: list[tuple[Any, ...]], **session: Any) -> Talk:
    out = Talk(name, **session)
    for event in events:
        if event[0] == "user":
            out.user(event[1], origin=event[2])
        elif event[0] == "agent":
            out.agent(event[1])
        else:
            tool, command, output, code, flag, error = event
            out.tool(tool, output, command=command, exit_code=code, is_error=flag, error=error)
    return out


@settings(max_examples=10, deadline=None)
@given(SESSION, st.sampled_from([None, ["Bash", "Edit", "Read"]]), st.sampled_from([None, True, False]))
def test_every_row_is_located(events: list[tuple[Any, ...]], tools: list[str] | None, objective: bool | None) -> None:
    sessions, steps = frames(talk("s", events, tools=tools, is_objective_success=objective))
    part = extract_part(sessions, steps, EXTRACTION)
    by_seq = {row["seq"]: row for row in steps.iter_rows(named=True)}
    for row in pl.concat([part.semantic, part.candidates]).iter_rows(named=True):
        step = by_seq[row["seq"]]
        assert step["origin"] in HUMAN
        assert step["text"][row["span_start"] : row["span_end"]] == row["snippet"]
        assert len(row["snippet"]) <= EXTRACTION.snippet_chars
        assert row["lang"] in EXTRACTION.languages or row["extractor"] == "structure"
    for row in part.hard.iter_rows(named=True):
        assert len(row["snippet"]) <= EXTRACTION.snippet_chars
        assert row["field"] is None or not row["signal"].startswith("objective")
        text = "" if row["field"] is None else by_seq[row["seq"]][row["field"]]
        assert row["snippet"] == text[row["span_start"] : row["span_end"]]
    assert part.semantic["confidence"].ge(EXTRACTION.min_confidence).all()
    assert part.candidates["confidence"].lt(EXTRACTION.min_confidence).all()


@settings(max_examples=10, deadline=None)
@given(st.lists(SESSION, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_sessions_do_not_touch_each_other_and_order_does_not_matter(
    sessions: list[list[tuple[Any, ...]]], random: Any
) -> None:
    talks = [talk(f"s{i}", events, user_id=f"u{i}") for i, events in enumerate(sessions)]
    whole = extract_part(*frames(*talks), EXTRACTION)
    apart = [extract_part(*frames(one), EXTRACTION) for one in talks]
    frame, steps = frames(*talks)
    places = list(range(steps.height))
    random.shuffle(places)
    shuffled = extract_part(frame.sort("session_id", descending=True), steps[places], EXTRACTION)
    for name in TABLES:
        expected = pl.concat([getattr(one, name) for one in apart])
        assert getattr(whole, name).equals(expected), name
        assert getattr(shuffled, name).equals(expected), name


@settings(max_examples=10, deadline=None)
@given(SESSION, st.sampled_from([None, "completed", "interrupted", "error", "timeout"]), st.booleans())
def test_outcomes_are_within_bounds(events: list[tuple[Any, ...]], logged: str | None, settled: bool) -> None:
    sessions, steps = frames(talk("s", events, end_status_logged=logged))
    part = extract_part(sessions, steps, EXTRACTION)
    rules = criteria()
    row = session_outcomes(
        date(2026, 1, 5), sessions, part.session_features, part.hard, part.semantic, later(), rules,
        is_settled=settled, usage=part.session_usage, prices=PRICES, ledger=empty_ledger(),
    ).row(0, named=True)  # fmt: skip
    for name in rules.estimand.metrics:
        num, den = row[f"{name}_num"], row[f"{name}_den"]
        assert (num is None) == (den is None)
        if num is not None and name != "execution_errors":
            assert 0 <= num <= den
    assert json.dumps(row, default=str)
