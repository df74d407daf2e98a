"""Which messages, rows and events of one file belong to one conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalpipe_tests.sources.bench_logs import event, read, wildchat
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


def turn(conversation: str, question: str, answer: str, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": question}]
    return {
        "conversation_id": conversation,
        "messages": [*messages, {"role": "assistant", "content": answer}],
        **fields,
    }


def request(n: int, asked: list[tuple[str, str]], answer: str, **fields: Any) -> dict[str, Any]:
    """A request to OpenAI's interface as a proxy logs it, with its response."""
    return {
        "id": f"chatcmpl-0123456789{fields.get('user', '')}abcdef{n}",
        "created": 1767607200 + 60 * n,
        "model": "m",
        "messages": [{"role": "system", "content": f"It is {n} o'clock."}, *({"role": r, "content": t} for r, t in asked)],
        "choices": [{"index": 0, "message": {"role": "assistant", "content": answer, "refusal": None}}],
        "usage": {"prompt_tokens": 100 * n, "completion_tokens": n},
        **fields,
    }  # fmt: skip


def requests(n: int, **fields: Any) -> list[dict[str, Any]]:
    """The requests of one conversation of n turns: each resends what was said before."""
    history: list[tuple[str, str]] = []
    found = []
    for place in range(1, n + 1):
        history = [*history, ("user", f"q{place}")]
        found.append(request(place, history, f"a{place}", **fields))
        history = [*history, ("assistant", f"a{place}")]
    return found


@pytest.mark.parametrize("conversation", [A, "7"])
def test_rows_of_one_conversation_may_each_hold_their_own_turn(tmp_path: Path, conversation: str) -> None:
    rows = [turn(conversation, f"q{n}", f"a{n}", created_at=f"2026-01-05T10:0{n}:00Z") for n in range(3)]
    found = read(tmp_path, *rows)
    assert list(said(found).values()) == [["q0", "a0", "q1", "a1", "q2", "a2"]]
    assert (found.session["n_turns"], found.file()["rows_kept"]) == (3, 3)
    assert [at.minute for at in found.rows("started_at")] == [0, 0, 1, 1, 2, 2]


SHORT_TURNS = [("continue", "a0"), ("go", "a1"), ("continue", "a2"), ("go", None), ("yes", "a4"), ("go", "a1")]


@pytest.mark.parametrize("conversation", [A, "7"])
def test_rows_of_one_turn_may_say_what_was_said_before(tmp_path: Path, conversation: str) -> None:
    """People type "yes" and "continue" again; such a row is no other version of an earlier turn."""
    rows = [
        {**turn(conversation, question, answer or ""), "created_at": f"2026-01-05T10:0{n}:00Z"}
        for n, (question, answer) in enumerate(SHORT_TURNS)
    ]
    for row, (_, answer) in zip(rows, SHORT_TURNS, strict=True):
        row["messages"] = row["messages"] if answer else row["messages"][:-1]
    expected = [text for turn_of in SHORT_TURNS for text in turn_of if text]
    # What is delivered a second time says nothing more.
    for delivered in (rows, [*rows, rows[2], rows[0]]):
        found = read(tmp_path, *delivered)
        assert found.rows("text") == expected
        assert sum(chunk.sessions.height for chunk in found.chunks) == 1
    logged = [
        {"conversation_id": conversation, "id": f"resp_{n}", "created_at": row["created_at"],
         "messages": [{"role": "user", "content": question}], "response": {"role": "assistant", "content": f"r{n}"}}
        for n, (row, (question, _)) in enumerate(zip(rows, SHORT_TURNS, strict=True))
    ]  # fmt: skip
    found = read(tmp_path, *logged, name="requests.jsonl")
    assert found.rows("text") == [text for n, (question, _) in enumerate(SHORT_TURNS) for text in (question, f"r{n}")]


def rows_of(*turns: str, **fields: list[str]) -> list[dict[str, Any]]:
    """Rows of one conversation; of the words of each the user says the first, the third and so on."""
    rows = []
    for n, words in enumerate(turns):
        roles = ("user", "assistant")
        messages = [{"role": roles[place % 2], "content": word} for place, word in enumerate(words.split(","))]
        rows.append({"conversation_id": A, "messages": messages, **{name: told[n] for name, told in fields.items()}})
    return rows


TIMES = [f"2026-01-05T10:0{n}:00Z" for n in range(9)]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ("q,b1 q,b2 q,b3 q,b3,next,fine", "q b3 next fine"),
        ("q,He q,Hello q,Hello! q,Hello!,next,fine", "q Hello! next fine"),
        ("q w q w", "q w"),
        ("q,x w,y q,x w,y", "q x w y"),
        ("q q,x w w,y q q,x", "q x w y"),
        ("q,x w e,z w,y", "q x w y e z"),
        ("q,x w e,z w,y w,y w", "q x w y e z"),
        ("q,x w e w,y e,z", "q x w y e z"),
        ("q,b1 q,b2 q,b3 w,y", "q b1 w y"),
        ("q q,x w,y q,z", "q x w y q z"),
        ("yes,a go,b yes,c", "yes a go b yes c"),
    ],
)
def test_rows_without_id_or_time_say_again_what_they_repeat(tmp_path: Path, turns: str, expected: str) -> None:
    """A turn that is written again as its answer grows, or is made anew, is no further turn."""
    assert read(tmp_path, *rows_of(*turns.split())).rows("text") == expected.split()


def test_a_turn_that_is_made_anew_before_a_row_with_history_is_a_version(tmp_path: Path) -> None:
    turns = ("q,b1", "q,b2", "q,b3", "q,b3,next,fine")
    assert read(tmp_path, *rows_of(*turns, created_at=TIMES[:4])).rows("text") == ["q", "b3", "next", "fine"]


@pytest.mark.parametrize(
    ("turns", "fields"),
    [
        (("q,b1", "q,b2"), {}),
        (("q,b1", "q,b2"), {"created_at": [TIMES[0]] * 2, "model": ["m", "m"]}),
        (("q,b1", "q,b2"), {"created_at": [TIMES[0]] * 2, "id": ["r1", "r2"]}),
        (("q,b1", "q,b2"), {"created_at": TIMES[:2], "id": ["r1", "r1"]}),
        (("q,Hel", "q,Hello", "q,Hello world"), {}),
        (("q,Hel", "q,Hello", "q,Hello world"), {"created_at": TIMES[:3]}),
    ],
)
def test_answers_to_one_question_are_versions_of_one_turn(
    tmp_path: Path, turns: tuple[str, ...], fields: dict[str, list[str]]
) -> None:
    found = read(tmp_path, *rows_of(*turns, **fields))
    assert found.rows("text")[0] == "q"
    assert len(found.rows("text")) == 2


def test_rows_of_one_turn_with_times_of_their_own_are_turns_whatever_they_repeat(tmp_path: Path) -> None:
    turns = ("yes,a", "yes,b", "go,c", "yes,a")
    found = read(tmp_path, *rows_of(*turns, created_at=TIMES[:4]))
    assert found.rows("text") == [word for said_of in turns for word in said_of.split(",")]
    alone = read(tmp_path, *rows_of("yes,a", "yes,b", created_at=TIMES[:2]))
    assert alone.rows("text") == ["yes", "a", "yes", "b"]
    # Logged as they begin and as they end.
    begun = read(tmp_path, *rows_of("yes", "yes,a", "go", "go,c", "yes", "yes,a", created_at=TIMES[:6]))
    assert begun.rows("text") == ["yes", "a", "go", "c", "yes", "a"]


def test_a_row_that_grew_out_of_a_question_alone_counts_once(tmp_path: Path) -> None:
    said_of = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "q"},
    ]
    found = read(tmp_path, *({"conversation_id": A, "messages": said_of[:n]} for n in (1, 2, 3)))
    assert found.rows("text") == ["q", "a", "q"]


def test_rows_of_a_window_that_moves_overlap(tmp_path: Path) -> None:
    whole = [{"role": role, "content": f"{role[0]}{n}"} for n in range(4) for role in ("user", "assistant")]
    found = read(tmp_path, *({"conversation_id": A, "messages": whole[n : n + 4]} for n in (0, 2, 4)))
    assert found.rows("text") == [message["content"] for message in whole]


def test_another_version_of_a_conversation_is_a_copy_and_stays_countable(tmp_path: Path) -> None:
    longer = turn(A, "q", "a")
    longer["messages"] += [{"role": "user", "content": "more"}, {"role": "assistant", "content": "b"}]
    for rows in ((longer, turn(A, "q", "other")), (turn(A, "q", "other"), longer)):
        found = read(tmp_path, *rows)
        assert found.rows("text") == ["q", "a", "more", "b"]
        copies = pl.concat(chunk.sessions for chunk in found.chunks)
        assert sorted(copies["n_messages"]) == [3, 5]


def test_logged_requests_of_a_conversation_are_one_session(tmp_path: Path) -> None:
    found = read(tmp_path, *requests(3))
    assert found.rows("text") == ["q1", "a1", "q2", "a2", "q3", "a3"]
    s = found.session
    assert (s["n_turns"], s["input_tokens"], s["output_tokens"]) == (3, 600, 6)
    assert [at.minute for at in found.rows("started_at", kind="agent")] == [1, 2, 3]
    assert found.file()["rows_kept"] == 3


def test_requests_that_call_tools_and_such_that_are_made_again(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    calls = {"role": "assistant", "content": None, "tool_calls": [call]}
    first = request(1, [("user", "q")], "")
    first["choices"][0]["message"] = {**calls, "content": ""}
    second = request(2, [("user", "q")], "done")
    second["messages"] += [calls, {"role": "tool", "tool_call_id": "c1", "content": "out"}]
    again = {
        **second,
        "id": "chatcmpl-0123456789abcdef9",
        "choices": [{"message": {"role": "assistant", "content": "no"}}],
    }
    found = read(tmp_path, first, second, second, again)
    assert found.rows("kind", "text", "output") == [
        ("user", "q", None), ("agent", None, None), ("tool", None, "out"), ("agent", "done", None), ("agent", "no", None),
    ]  # fmt: skip
    assert found.session["input_tokens"] == 100 + 200 + 200


def test_requests_that_begin_alike_are_conversations_of_their_own(tmp_path: Path) -> None:
    hello = [request(n, [("user", "hi")], "Hello!") for n in (1, 2)]
    found = read(tmp_path, *hello, request(3, [("user", "hi"), ("assistant", "Hello!"), ("user", "help")], "Yes."))
    assert sorted(said(found).values()) == [["hi", "Hello!"], ["hi", "Hello!", "help", "Yes."]]
    apart = [*requests(1, user="ann"), *requests(2, user="bob")[1:]]
    found = read(tmp_path, *apart, name="apart.jsonl")
    assert sorted(found.sessions["user_id"]) == ["ann", "bob"]


def test_rows_without_an_id_stay_conversations_of_their_own(tmp_path: Path) -> None:
    """Rows of training data may begin alike; nothing says that one goes on where another ends."""
    rows = [{"messages": turn(A, "q", "a")["messages"][: n + 2]} for n in range(2)]
    assert read(tmp_path, *rows).sessions.height == 2


def test_rows_of_a_conversation_may_lie_on_disk_meanwhile(tmp_path: Path) -> None:
    rows = [row for user in "abcdefg" for row in requests(9, user=user)]
    rows += [turn(f"conv-0123456789abc-{n % 5}", f"q{n} {'x' * 200}", f"a{n}") for n in range(40)]
    path = tmp_path / "log.jsonl"
    read(tmp_path, *rows)
    spool = tmp_path / "spool"
    spool.mkdir()
    held, spilled = Read(path), Read(path, spool=spool, held_bytes=2_000)
    assert said(spilled) == said(held)
    assert sorted(held.sessions["n_turns"]) == [8] * 5 + [9] * 7


def test_rows_of_a_data_set_with_one_id_are_copies_unless_one_holds_the_other(tmp_path: Path) -> None:
    row = wildchat()
    other = {**row, "conversation": [{"role": "user", "content": "else"}]}
    part = {**row, "conversation": row["conversation"][:2]}
    found = read(tmp_path, row, other, part)
    copies = pl.concat(chunk.sessions for chunk in found.chunks)
    assert sorted(copies["n_messages"]) == [1, len(row["conversation"])]
