"""Which messages, rows and events of one file belong to one conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalpipe_tests.sources.bench_logs import event, read
from evalpipe_tests.sources.helpers import Read

A, B = "conv-0123456789abcdef", "conv-fedcba9876543210"


def message(conversation: object, role: str, text: str, minute: int = 0, **fields: Any) -> dict[str, Any]:
    at = f"2026-01-05T10:{minute:02d}:00Z"
    return {"conversation_id": conversation, "role": role, "content": text, "created_at": at, **fields}


def said(found: Read) -> dict[str, list[str]]:
    """Texts of each session, in order."""
    by_session = found.steps.sort("session_id", "seq").group_by("session_id", maintain_order=True).agg("text")
    return dict(by_session.iter_rows())


def test_messages_of_several_conversations_are_told_apart(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        message(A, "user", "q1", 1, user_id="ann"),
        message(B, "user", "q2", 2),
        message(A, "assistant", "a1", 3),
        message(B, "assistant", "a2", 4),
    )
    assert said(found) == {f"openai_messages:{A}": ["q1", "a1"], f"openai_messages:{B}": ["q2", "a2"]}
    starts = found.sessions.sort("session_id")["started_at"]
    assert [at.minute for at in starts] == [1, 2]
    assert found.sessions.sort("session_id")["user_id"].to_list() == ["ann", None]
    assert found.file()["rows_kept"] == 4


def test_messages_of_a_short_id_are_a_conversation_of_their_file(tmp_path: Path) -> None:
    rows = [message(1, "user", "q1"), message(2, "user", "q2"), message(1, "assistant", "a1")]
    read(tmp_path, *rows, name="a.jsonl")
    read(tmp_path, *rows[1:], name="b.jsonl")
    found = Read(tmp_path)
    assert sorted(said(found).values()) == [["a1"], ["q1", "a1"], ["q2"], ["q2"]]


def test_messages_of_many_conversations_may_lie_on_disk_meanwhile(tmp_path: Path) -> None:
    rows = [message(f"conv-0123456789abc-{n % 7}", "user", f"{n} {'x' * 200}", n % 60) for n in range(70)]
    path = tmp_path / "log.jsonl"
    read(tmp_path, *rows)
    spool = tmp_path / "spool"
    spool.mkdir()
    spilled = Read(path, spool=spool, held_bytes=2_000)
    assert said(spilled) == said(Read(path))
    assert spilled.sessions.height == 7


def test_messages_of_a_day_that_is_refused_are_quarantined_one_by_one(tmp_path: Path) -> None:
    old = {"created_at": "1999-01-05T10:00:00Z"}
    found = read(
        tmp_path, message(A, "user", "q1", **old), message(B, "user", "q2"), message(A, "assistant", "a1", **old)
    )
    assert said(found) == {f"openai_messages:{B}": ["q2"]}
    assert found.quarantine.select("code", "line").rows() == [("DATE_OUT_OF_RANGE", 1), ("DATE_OUT_OF_RANGE", 3)]


def test_events_go_to_the_session_that_they_name(tmp_path: Path) -> None:
    def one(session: str, kind: str, second: int, text: str) -> dict[str, Any]:
        return event(kind, second, session_id=session, content=[{"type": "text", "text": text}])

    found = read(
        tmp_path,
        one("sesn_A", "user.message", 1, "qa"),
        one("sesn_B", "user.message", 2, "qb"),
        one("sesn_A", "agent.message", 3, "aa"),
        event("span.model_request_end", 4, session_id="sesn_B", model_usage={"input_tokens": 2, "output_tokens": 5}),
        event("span.model_request_end", 5, session_id="sesn_A", model_usage={"input_tokens": 3, "output_tokens": 1}),
    )
    assert said(found) == {"anthropic_events:sesn_A": ["qa", "aa"], "anthropic_events:sesn_B": ["qb", None]}
    tokens = found.sessions.sort("session_id").select("input_tokens", "output_tokens").rows()
    assert tokens == [(3, 1), (2, 5)]
