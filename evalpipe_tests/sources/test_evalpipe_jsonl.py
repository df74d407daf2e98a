"""evalpipe's own JSON lines: every field that docs/evalpipe-jsonl.md names."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evalpipe_tests.sources.helpers import Read, write

SESSION: dict[str, Any] = {
    "evalpipe": 1, "type": "session", "session_id": "s1", "agent": "acme", "agent_release": "2.1", "model": "m-a",
    "user_id": "u1", "tenant": "t", "workspace": "/home/ana/proj", "parent_session_id": "s0",
    "started_at": "2026-01-05T10:00:00Z", "scenario": "coding", "task_id": "k", "trial": 2, "harness": "rt",
    "tools": ["Read", "Bash", "Read"], "prompt_version": "p3", "retrieval_version": "r1",
    "assignment": {"policy": "ab-1", "unit": "session", "probability": 0.25, "epoch": "e1"}, "consent": "contract",
}  # fmt: skip


def step(n: int, kind: str, session_id: str = "s1", **fields: Any) -> dict[str, Any]:
    return {"type": "step", "session_id": session_id, "step_id": str(n), "kind": kind, **fields}


def test_a_session_with_every_field(tmp_path: Path) -> None:
    read = Read(
        write(
            tmp_path,
            SESSION,
            step(1, "user", text="go", at="2026-01-05T10:00:00Z"),
            step(
                2,
                "agent",
                text="ok",
                model="m-a",
                at="2026-01-05T10:00:01Z",
                tokens={"input": 1, "output": 2, "reasoning": 0},
            ),
            step(
                3,
                "tool",
                name="Bash",
                arguments={"command": "ls"},
                output="x",
                exit_code=2,
                is_error=True,
                error="timeout",
                started_at="2026-01-05T10:00:02+00:00",
                ended_at="2026-01-05T10:00:05Z",
                first_token_ms=12,
                parent_id="2",
            ),
            {
                "type": "end",
                "session_id": "s1",
                "status": "completed",
                "at": "2026-01-05T10:00:09Z",
                "outcome": {"success": True, "reward": 0.5},
                "cost_usd": 0.01,
            },
        )
    )
    s = read.session
    expected = {
        "session_id": "evalpipe_jsonl:s1",
        "source": "evalpipe_jsonl",
        "agent": "acme",
        "agent_release": "2.1",
        "model": "m-a",
        "user_id": "u1",
        "tenant": "t",
        "workspace": "/home/ana/proj",
        "parent_session_id": "evalpipe_jsonl:s0",
        "scenario_declared": "coding",
        "task_id": "k",
        "trial": 2,
        "harness": "rt",
        "tools": ["Bash", "Read"],
        "prompt_version": "p3",
        "retrieval_version": "r1",
        "assignment_policy": "ab-1",
        "assignment_unit": "session",
        "assignment_probability": 0.25,
        "routing_epoch": "e1",
        "consent": "contract",
        "end_status_logged": "completed",
        "objective_reward": 0.5,
        "is_objective_success": True,
        "logged_cost_usd": 0.01,
        "n_turns": 1,
        "n_steps": 3,
        "n_tool_calls": 1,
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_tokens": None,
        "reasoning_tokens": 0,
        "started_at": datetime(2026, 1, 5, 10, tzinfo=UTC),
        "ended_at": datetime(2026, 1, 5, 10, 0, 9, tzinfo=UTC),
    }
    assert {name: s[name] for name in expected} == expected
    tool = read.steps.row(2, named=True)
    assert tool["arguments"] == '{"command":"ls"}'
    assert (tool["exit_code"], tool["is_error"], tool["error"], tool["first_token_ms"]) == (2, True, "timeout", 12)
    assert (tool["ended_at"] - tool["started_at"]).total_seconds() == 3
    assert tool["parent_id"] == "2"
    assert read.rows("origin") == ["human", "agent", "tool"]


def test_only_type_session_id_and_agent_are_required(tmp_path: Path) -> None:
    read = Read(
        write(tmp_path, {"evalpipe": 1, "type": "session", "session_id": "s", "agent": "a"}, step(1, "user", "s"))
    )
    s = read.session
    assert not s["is_dated"]
    assert (s["model"], s["n_models"], s["user_id"], s["tools"]) == (None, 0, None, None)
    assert read.rows("text", "started_at") == [(None, None)]


def test_sessions_may_interleave(tmp_path: Path) -> None:
    other = {**SESSION, "session_id": "s2"}
    read = Read(
        write(tmp_path, SESSION, other, *[step(i, "user", s, text=f"{s}{i}") for i in range(2) for s in ("s2", "s1")])
    )
    assert read.rows("text") == ["s10", "s11", "s20", "s21"]


def test_a_queued_step_is_a_turn_and_other_origins_are_not(tmp_path: Path) -> None:
    read = Read(write(tmp_path, SESSION, step(1, "user", origin="queued"), step(2, "user", origin="interrupt")))
    assert read.session["n_turns"] == 1


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({"type": "session", "session_id": "s2"}, "BAD_FIELD"),
        ({**SESSION, "started_at": "yesterday"}, "BAD_FIELD"),
        ({**SESSION, "user_id": ["u"]}, "BAD_FIELD"),
        ({**SESSION, "consent": False}, "BAD_FIELD"),
        (step(1, "thought"), "BAD_FIELD"),
        (step(1, "user", origin="alien"), "BAD_FIELD"),
        (step(1, "tool", error="bad luck"), "BAD_FIELD"),
        (step(1, "user", text=["x"]), "BAD_FIELD"),
        ({"type": "end", "session_id": "s1", "status": "maybe"}, "BAD_FIELD"),
        ({"type": "step", "kind": "user"}, "NO_SESSION_ID"),
        ({"type": "other", "session_id": "s1"}, "NOT_A_RECORD"),
        ({"type": ["session"], "session_id": "s1"}, "NOT_A_RECORD"),
        ("[]", "NOT_A_RECORD"),
        ('{"type": "step"', "BAD_JSON"),
    ],
)
def test_records_that_break_the_format_are_quarantined_alone(tmp_path: Path, record: Any, code: str) -> None:
    read = Read(write(tmp_path, SESSION, record, step(9, "user", text="kept")))
    assert read.codes == [code]
    assert read.rows("text") == ["kept"]
    assert read.quarantine["line"].to_list() == [2]


def test_impossible_numbers_are_unknown(tmp_path: Path) -> None:
    bad = {"assignment": {"probability": 1.5, "unit": "team"}, "trial": -1}
    read = Read(
        write(
            tmp_path,
            {**SESSION, **bad},
            step(1, "agent", tokens={"input": -1, "output": 2.5, "cache_read": 3.0}),
            step(2, "tool", exit_code=2**40, first_token_ms="x"),
            {"type": "end", "session_id": "s1", "cost_usd": -1},
        )
    )
    s = read.session
    assert (s["assignment_probability"], s["assignment_unit"], s["trial"], s["logged_cost_usd"]) == (None,) * 4
    assert (s["input_tokens"], s["output_tokens"], s["cache_read_tokens"]) == (None, None, 3)
    assert read.rows("exit_code", "first_token_ms")[1] == (None, None)


def test_a_session_starts_when_it_says_even_if_a_step_stands_before_it(tmp_path: Path) -> None:
    early = step(1, "user", text="go", at="2026-01-05T10:00:07Z")
    read = Read(write(tmp_path, {**SESSION, "session_id": "s2"}, early, SESSION))
    s = read.sessions.row(0, named=True)
    assert (s["session_id"], s["started_at"], s["ended_at"]) == (
        "evalpipe_jsonl:s1",
        datetime(2026, 1, 5, 10, tzinfo=UTC),
        datetime(2026, 1, 5, 10, 0, 7, tzinfo=UTC),
    )


def test_what_a_sub_agent_is_told_opens_no_turn(tmp_path: Path) -> None:
    read = Read(write(tmp_path, SESSION, step(1, "user", text="go"), step(2, "user", text="look", parent_id="t1")))
    assert read.session["n_turns"] == 1


def test_steps_without_a_session_record_have_an_unknown_agent(tmp_path: Path) -> None:
    read = Read(write(tmp_path, SESSION, step(1, "user", session_id="s9", text="go")))
    assert read.sessions.select("session_id", "agent").rows()[1] == ("evalpipe_jsonl:s9", "unknown")


def test_any_step_may_state_times_and_the_first_token(tmp_path: Path) -> None:
    times = {"started_at": "2026-01-05T10:00:01Z", "ended_at": "2026-01-05T10:00:04Z"}
    read = Read(
        write(tmp_path, SESSION, step(1, "agent", text="x", first_token_ms=250, **times), step(2, "graph", name="plan"))
    )
    first, second = read.steps.rows(named=True)
    assert (first["first_token_ms"], (first["ended_at"] - first["started_at"]).total_seconds()) == (250, 3)
    assert (second["kind"], second["name"]) == ("graph", "plan")
    assert (second["is_error"], second["arguments"], second["started_at"]) == (None, None, None)


def test_the_example_in_the_docs_is_read_whole(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "evalpipe-jsonl.md"
    example = page.read_text("utf-8").partition("```json\n")[2].partition("```")[0]
    read = Read(write(tmp_path, example))
    assert read.codes == []
    s = read.session
    assert (s["n_turns"], s["n_tool_calls"], s["is_objective_success"], s["logged_cost_usd"]) == (1, 1, True, 0.01)


def test_overlapping_calls_are_no_fault_of_the_clock(tmp_path: Path) -> None:
    def span(start: int, end: int) -> dict[str, str]:
        return {"started_at": f"2026-01-05T10:00:{start:02d}Z", "ended_at": f"2026-01-05T10:00:{end:02d}Z"}

    calls = [step(2, "tool", name="a", **span(5, 9)), step(3, "tool", name="b", **span(4, 6))]
    read = Read(write(tmp_path, SESSION, step(1, "user", text="go", at="2026-01-05T10:00:01Z"), *calls))
    assert not read.session["is_clock_repaired"]


@pytest.mark.parametrize(
    ("fields", "is_fault"),
    [
        ({"kind": "agent", "at": "2026-01-05T10:00:04Z"}, True),
        ({"kind": "agent", "at": "2026-01-05T10:00:06Z"}, False),
        ({"kind": "user", "at": "2026-01-05T10:00:04Z"}, True),
        ({"kind": "agent", "at": "2026-01-05T10:00:06Z", "parent_id": "2"}, True),
        ({"kind": "agent", "at": "2026-01-05T10:00:08Z", "parent_id": "2"}, False),
        ({"kind": "tool", "started_at": "2026-01-05T10:00:08Z", "ended_at": "2026-01-05T10:00:07Z"}, True),
        ({"kind": "tool", "started_at": "2026-01-05T10:00:08Z", "ended_at": "2026-01-05T10:00:08.5Z"}, False),
    ],
)
def test_a_step_before_what_must_come_first_is_a_fault_of_the_clock(
    tmp_path: Path, fields: dict[str, str], is_fault: bool
) -> None:
    before = [
        step(1, "user", text="go", at="2026-01-05T10:00:05Z"),
        step(2, "tool", name="a", started_at="2026-01-05T10:00:07Z", ended_at="2026-01-05T10:00:09Z"),
    ]
    read = Read(write(tmp_path, SESSION, *before, step(3, **fields)))
    assert read.session["is_clock_repaired"] is is_fault


def test_times_as_counts_and_in_rare_spellings(tmp_path: Path) -> None:
    head = {**SESSION, "started_at": 1767607200}
    steps = [step(1, "user", text="go", at="2026-01-05t10:00:01z"), step(2, "agent", text="ok", at=1767607202500)]
    read = Read(write(tmp_path, head, *steps))
    assert read.codes == []
    assert read.rows("started_at") == [
        datetime(2026, 1, 5, 10, 0, 1, tzinfo=UTC), datetime(2026, 1, 5, 10, 0, 2, 500_000, tzinfo=UTC),
    ]  # fmt: skip
    assert not read.session["is_clock_repaired"]


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z", "0001-01-01T00:00:00+05:00"])
def test_the_zero_of_a_calendar_is_a_bad_field_and_the_session_stays(tmp_path: Path, at: str) -> None:
    """Go and .NET write it where no time was set; what the steps say of the time holds."""
    steps = [step(1, "user", text="go"), step(2, "agent", text="ok", at="2026-01-05T10:00:00Z")]
    read = Read(write(tmp_path, {**SESSION, "started_at": at}, *steps))
    assert read.codes == ["BAD_FIELD"]
    assert read.session["started_at"] == datetime(2026, 1, 5, 10, tzinfo=UTC)
    assert read.rows("text") == ["go", "ok"]


def test_what_is_cached_for_an_hour_is_told_apart(tmp_path: Path) -> None:
    counts = ({"cache_write": 5, "cache_write_1h": 3}, {"input": 1, "cache_write_1h": -1}, None)
    steps = [step(n, "agent", text="ok", tokens=tokens) for n, tokens in enumerate(counts)]
    read = Read(write(tmp_path, SESSION, *steps))
    assert read.rows("cache_write_tokens", "cache_write_1h_tokens") == [(5, 3), (None, None), (None, None)]


def test_a_header_with_a_bad_field_says_all_the_rest(tmp_path: Path) -> None:
    head = {**SESSION, "user_id": 42, "started_at": "soon", "scenario": {}, "consent": "withdrawn"}
    read = Read(write(tmp_path, head, step(1, "user", text="go", at="2026-01-05T10:00:00Z")))
    assert read.codes == ["BAD_FIELD"]
    row = read.sessions.row(0, named=True)
    told = {name: row[name] for name in ("agent", "user_id", "consent", "assignment_policy", "scenario_declared")}
    assert told == {
        "agent": "acme", "user_id": "42", "consent": "withdrawn", "assignment_policy": "ab-1", "scenario_declared": None
    }  # fmt: skip


@pytest.mark.parametrize("consent", [False, True, 0, ["withdrawn"], {}])
def test_consent_that_cannot_be_read_allows_nothing(tmp_path: Path, consent: object) -> None:
    read = Read(write(tmp_path, {**SESSION, "consent": consent}, step(1, "user", text="go")))
    assert read.codes == ["BAD_FIELD"]
    assert read.sessions["consent"].to_list() == ["withdrawn"]


def test_a_second_header_adds_to_the_first_and_takes_nothing_back(tmp_path: Path) -> None:
    first = {**SESSION, "consent": "withdrawn"}
    second = {
        "evalpipe": 1, "type": "session", "session_id": "s1", "agent": "acme", "model": "m-b",
        "started_at": "2026-01-07T10:00:00Z", "consent": "contract",
    }  # fmt: skip
    for order in ((first, second), (second, first)):
        folder = tmp_path / str(order[0]["started_at"][:10])
        folder.mkdir()
        read = Read(write(folder, order[0], step(1, "user", text="go"), order[1], step(2, "agent", text="ok")))
        row = read.sessions.row(0, named=True)
        assert (row["user_id"], row["consent"], row["started_at"].day) == ("u1", "withdrawn", 5)


def test_of_two_headers_that_contradict_each_other_the_first_holds(tmp_path: Path) -> None:
    """As of two parts of a session: what was assigned before the first turn is what was assigned."""
    second = {
        **SESSION, "agent": "other", "agent_release": "9", "model": "m-z", "user_id": "u9", "trial": 7, "tools": ["z"],
        "parent_session_id": "p9", "scenario": "z", "consent": "later",
        "assignment": {"policy": "z", "unit": "session", "probability": 0.1, "epoch": "z"},
    }  # fmt: skip
    first = {**SESSION, "consent": "contract", "trial": 1, "parent_session_id": "p1"}
    alone = Read(write(tmp_path, first, step(1, "user", text="go"))).session
    both = Read(write(tmp_path, first, step(1, "user", text="go"), second)).session
    of_file = {"file_id", "content_digest"}
    added = {name for name in both if both[name] != alone[name]} - of_file
    assert {name: alone[name] for name in added} == dict.fromkeys(added), "only what the first left out"
    named = {name: both[name] for name in ("agent", "user_id", "consent", "trial", "assignment_policy")}
    assert named == {"agent": "acme", "user_id": "u1", "consent": "contract", "trial": 1, "assignment_policy": "ab-1"}


def test_open_calls_of_other_sessions_cost_nothing(tmp_path: Path) -> None:
    lines = [step(1, "tool", f"s{n}", name="Bash", is_open=True) for n in range(40)]
    result = {"type": "result", "session_id": "s7", "step_id": "1", "output": "x"}
    read = Read(write(tmp_path, *[{**SESSION, "session_id": f"s{n}"} for n in range(40)], *lines, result))
    assert read.codes == []
    assert read.steps.filter(error="no_result").height == 39


@pytest.mark.parametrize("consent", [" Withdrawn", "WITHDRAWN"])
def test_a_withdrawal_in_other_letters_is_one(tmp_path: Path, consent: str) -> None:
    assert Read(write(tmp_path, {**SESSION, "consent": consent})).session["consent"] == "withdrawn"
