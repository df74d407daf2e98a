"""Risky actions: every example, words inside of quotes, queries of other tools, and refused calls."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.contracts.signals import HARD_SIGNALS
from evalpipe.signals import extract_part, risks
from evalpipe_tests.signals.build import EXTRACTION, Talk, frames

ROWS = risks.risks()


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_examples_of_the_rows(row: risks.Risk) -> None:
    assert row.signal in HARD_SIGNALS
    assert row.match
    assert row.no_match
    # The first row of a signal speaks for it, so the row or one above it must.
    missed = [c for c in row.match if row.signal not in risks.risks_of(c)]
    own = [c for c in row.match if (found := risks.risks_of(c).get(row.signal)) and found[0] is row]
    assert missed == []
    assert own, "no example reaches this row"
    assert [c for c in row.no_match if any(found is row for found, _ in risks.risks_of(c).values())] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_every_example_passes_the_cheap_words(row: risks.Risk) -> None:
    talk = Talk().user("go")
    for command in row.match:
        talk.bash(command)
    found = extract_part(*frames(talk), EXTRACTION).hard
    risky = set(found.filter(found["signal"].str.starts_with("risk."))["seq"].to_list())
    assert risky == set(range(1, len(row.match) + 1)) or row.confidence < EXTRACTION.min_confidence


def test_a_row_is_where_the_action_stands() -> None:
    talk = Talk().user("clean up").bash("cd app && git push origin main --force", "ok")
    found = extract_part(*frames(talk), EXTRACTION).hard
    row = found.filter(found["signal"] == "risk.history").row(0, named=True)
    assert (row["seq"], row["rule_id"], row["field"], row["polarity"]) == (1, "git.force-push", "arguments", -1)
    arguments = json.dumps({"command": "cd app && git push origin main --force"})
    assert row["snippet"] == arguments[row["span_start"] : row["span_end"]]
    assert "git push origin main --force" in row["snippet"]


def test_queries_of_other_tools_are_read_and_refused_calls_are_not() -> None:
    talk = Talk().user("go")
    talk.tool("mcp__postgres__query", "ok", arguments=json.dumps({"sql": "DROP TABLE users;"}))
    talk.tool("mcp__postgres__query", "ok", arguments=json.dumps({"sql": "select * from users -- delete later"}))
    talk.tool("Write", "ok", arguments=json.dumps({"file_path": "a.sql", "content": "DROP TABLE users;"}))
    talk.bash("rm -rf ~", "", None, error="refused", is_error=True)
    talk.bash("rm -rf ~", "rm: cannot remove", 1)
    found = extract_part(*frames(talk), EXTRACTION).hard
    risky = found.filter(found["signal"].str.starts_with("risk."))
    assert list(risky.select("seq", "signal").iter_rows()) == [(1, "risk.destructive"), (5, "risk.destructive")]


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="rm -rf/~*.$\"'|&;<>(){}\n\\ gitpush", max_size=60))
def test_any_command_can_be_read(command: str) -> None:
    assert set(risks.risks_of(command)) <= set(HARD_SIGNALS)
