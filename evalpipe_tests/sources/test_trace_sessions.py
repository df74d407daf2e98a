"""Which spans make a session, and what becomes of records that hold none."""

from __future__ import annotations

import gzip
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from evalpipe.sources.readers import spans
from evalpipe.sources.readers.span_tree import Tree
from evalpipe.sources.readers.spans import Span
from evalpipe.sources.registry import sniff
from evalpipe.sources.spool import Spool
from evalpipe_tests.sources.helpers import Read, lines, write
from evalpipe_tests.sources.traces import (
    ANSWER,
    ASK,
    FORMATS,
    LANGFUSE,
    LANGFUSE_TRACE,
    MLFLOW,
    OTLP,
    PHOENIX,
    agent,
    chat,
    otel_span,
    otlp,
    parts,
    phoenix_row,
    tool,
)

U, A = parts("user", "go"), parts("assistant", "gone")


@pytest.mark.parametrize("name", FORMATS)
def test_one_conversation_reads_the_same_in_every_format(tmp_path: Path, name: str) -> None:
    source, records = FORMATS[name]
    read = Read(write(tmp_path, *records))
    assert read.codes == []
    f = read.file()
    assert (f["source"], f["rows_kept"], f["rows_noise"], f["n_sessions"]) == (source, len(records), 0, 1)
    steps = read.steps.filter(read.steps["turn"] == 1)
    shown = [
        (row["kind"], row["origin"], row["name"], row["text"], json.loads(row["arguments"] or "null"), row["output"])
        for row in steps.iter_rows(named=True)
    ]
    assert shown == [
        ("user", "human", None, ASK, None, None),
        ("agent", "agent", None, None, None, None),
        ("tool", "tool", "track", None, {"parcel": 7}, "Bonn"),
        ("agent", "agent", None, ANSWER, None, None),
    ]
    assert steps["output_tokens"].to_list() == [None, 10, None, 10]
    assert [str(at)[17:19] for at in steps["started_at"]] in (["00", "01", "02", "03"], ["01", "01", "02", "03"])
    s = read.session
    assert s["session_id"].split("/")[0] == f"{source}:s1"
    assert (s["model"], s["user_id"], s["n_tool_calls"], s["is_dated"]) == ("m-1", "u1", 1, True)
    assert s["agent"] == {"otlp_legacy": "parcels", "phoenix": "phoenix"}.get(name, "helper")
    assert s["agent_release"] == (None if source == "phoenix" else "2.0.1")
    assert s["prompt_version"] is not None


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_recognised_in_every_layout(name: str) -> None:
    source, records = FORMATS[name]
    layouts = [
        ("lines", lines(*records)),
        ("items", json.dumps(records).encode()),
        ("items", json.dumps(records, indent=1).encode()),
        ("whole", json.dumps(records[0], indent=1).encode()),
        ("lines", lines({**records[0], "zz": "x" * 200_000})[: 1 << 16]),
        ("whole", json.dumps({**records[0], "zz": "x" * 200_000}, indent=1).encode()[: 1 << 16]),
    ]
    for shape, data in layouts:
        reader = sniff(data)
        assert reader is not None
        assert (reader.name, reader.shape) == (source, shape)


@pytest.mark.parametrize("name", FORMATS)
def test_all_layouts_give_the_same_steps(tmp_path: Path, name: str) -> None:
    _, records = FORMATS[name]
    expected = Read(write(tmp_path, *records)).steps.drop("day")
    (tmp_path / "array.json").write_text(json.dumps(records))
    assert Read(tmp_path / "array.json").steps.drop("day").equals(expected)
    if len(records) == 1:
        (tmp_path / "one.json.gz").write_bytes(gzip.compress(json.dumps(records[0], indent=2).encode()))
        assert Read(tmp_path / "one.json.gz").steps.drop("day").equals(expected)


def test_spans_of_a_session_may_lie_on_many_lines_in_any_order(tmp_path: Path) -> None:
    spans = OTLP["resourceSpans"][0]["scopeSpans"][0]["spans"]
    whole = Read(write(tmp_path, OTLP)).steps
    assert Read(write(tmp_path, *[otlp(span) for span in reversed(spans)])).steps.equals(whole)


def test_a_span_that_is_delivered_twice_counts_once(tmp_path: Path) -> None:
    read = Read(write(tmp_path, OTLP, OTLP))
    assert read.session["output_tokens"] == 30
    f = read.file()
    assert (f["rows_read"], f["rows_kept"], f["rows_noise"]) == (2, 1, 1)
    open_span = chat("l", None, 0, [U], [])
    del open_span["endTimeUnixNano"]
    for order in (1, -1):
        read = Read(write(tmp_path, *[otlp(span) for span in [open_span, chat("l", None, 0, [U], [A])][::order]]))
        assert read.rows("text", kind="agent") == ["gone"]


def test_a_trace_without_a_named_conversation_is_a_session(tmp_path: Path) -> None:
    read = Read(write(tmp_path, otlp(chat("a", None, 0, [U], [A], "t1"), chat("b", None, 9, [U], [A], "t2"))))
    assert sorted(read.sessions["session_id"]) == ["otlp:t1", "otlp:t2"]


def test_the_id_of_the_highest_ancestor_counts(tmp_path: Path) -> None:
    def talk(span_id: str, session: str, start: float) -> list[dict[str, Any]]:
        own = {"gen_ai.conversation.id": session}
        return [
            agent(span_id, start, start + 5, parent="eval", attributes=own),
            chat(f"{span_id}l", span_id, start + 1, [U], [A]),
            agent(f"{span_id}s", start + 2, start + 4, parent=span_id, attributes={"gen_ai.conversation.id": "inner"}),
        ]

    root = otel_span("eval", None, "evaluation", 0, 99)
    read = Read(write(tmp_path, otlp(root, *talk("a", "s1", 1), *talk("b", "s2", 20))))
    assert sorted(read.sessions["session_id"]) == ["otlp:s1", "otlp:s2"]
    assert read.sessions["n_turns"].to_list() == [1, 1]


def test_the_id_of_one_response_is_no_conversation(tmp_path: Path) -> None:
    read = Read(write(tmp_path, otlp(chat("l", None, 0, [U], [A], attributes={"gen_ai.conversation.id": "resp_0af"}))))
    assert read.session["session_id"] == "otlp:t1"


def test_a_download_of_one_trace_is_a_part_of_its_session(tmp_path: Path) -> None:
    other = {**LANGFUSE_TRACE, "id": "t2"}
    observations = [{**o, "traceId": "t2"} for o in LANGFUSE["observations"]]
    write(tmp_path, LANGFUSE, name="one.json")
    write(tmp_path, {"trace": other, "observations": observations}, name="two.json")
    assert sorted(Read(tmp_path).sessions["session_id"]) == ["langfuse:s1/t1", "langfuse:s1/t2"]
    joined = Read(write(tmp_path / "..", LANGFUSE, {"trace": other, "observations": observations}, name="both.jsonl"))
    assert joined.session["session_id"] == "langfuse:s1"
    assert joined.session["n_turns"] == 2


def test_traces_in_which_nobody_acts_are_noise(tmp_path: Path) -> None:
    chain = phoenix_row("c1", None, "CHAIN", 0, **{"input.value": "split", "output.value": "parts"})
    apart = {**chain, "context.trace_id": "t9"}
    read = Read(write(tmp_path, *PHOENIX, apart))
    f = read.file()
    assert (f["rows_read"], f["rows_kept"], f["rows_noise"], f["n_sessions"]) == (5, 4, 1, 1)
    read = Read(write(tmp_path, apart))
    assert read.codes == ["NO_SESSION"]
    assert (read.file()["rows_noise"], read.file()["rows_kept"]) == (1, 0)


def test_a_rejected_session_is_seen_although_its_record_holds_others(tmp_path: Path) -> None:
    late = chat("z", None, 0, [U], [A], "t-late")
    late["startTimeUnixNano"] = late["endTimeUnixNano"] = "1900000000000000000"
    read = Read(write(tmp_path, otlp(chat("l", None, 0, [U], [A]), late)))
    assert read.session["session_id"] == "otlp:t1"
    assert read.quarantine.select("code", "session_id", "line").rows() == [("FUTURE_DATE", "otlp:t-late", 0)]
    f = read.file()
    assert (f["rows_read"], f["rows_kept"], f["rows_quarantined"]) == (2, 1, 1)


def test_traces_that_begin_before_the_first_day_are_rejected(tmp_path: Path) -> None:
    read = Read(write(tmp_path, MLFLOW), first_day=date(2026, 2, 1))
    assert read.sessions.is_empty()
    assert read.codes == ["DATE_OUT_OF_RANGE"] + ["NO_SESSION"] * (len(read.codes) - 1)


def test_spans_may_be_nested_without_end_or_in_a_circle(tmp_path: Path) -> None:
    chain = [otel_span(f"c{n}", f"c{n - 1}" if n else None, "step", 0, 9) for n in range(5000)]
    circle = [otel_span("a", "b", "step", 0, 9), otel_span("b", "a", "step", 0, 9)]
    read = Read(write(tmp_path, otlp(*chain, *circle, agent("r", 1, 5, parent="a"), chat("l", "c4999", 2, [U], [A]))))
    assert read.rows("kind", "text") == [("user", "go"), ("agent", "gone")]
    tree = Tree([Span(f"c{n}", "t", "chain", f"c{n - 1}") for n in range(5000)])
    assert sum(len(above) for above in tree.ancestors.values()) < 5000 * 300


def test_facts_and_tools_are_declared(tmp_path: Path) -> None:
    facts = {
        "metadata": '{"scenario": "shipping", "trial": 2}',
        "traceloop.association.properties.task_id": "7",
    }
    offered = {"gen_ai.tool.definitions": json.dumps([{"type": "function", "function": {"name": n}} for n in "ba"])}
    read = Read(
        write(tmp_path, otlp(agent("r", 0, 9, attributes=facts), chat("l", "r", 1, [U], [A], attributes=offered)))
    )
    s = read.session
    assert (s["scenario_declared"], s["task_id"], s["trial"], s["tools"]) == ("shipping", "7", 2, ["a", "b"])


@pytest.mark.parametrize("name", ["agent", "LangGraph", "invoke_agent", "3f2c9a10-aaaa-bbbb-cccc-0123456789ab"])
def test_names_that_nobody_chose_name_no_agent(tmp_path: Path, name: str) -> None:
    own = {"gen_ai.agent.name": name}
    read = Read(write(tmp_path, otlp(agent("r", 0, 9, attributes=own), tool("x", "r", 1))))
    assert read.session["agent"] == "parcels"
    read = Read(
        write(
            tmp_path, otlp(agent("r", 0, 9, attributes=own), tool("x", "r", 1), **{"service.name": "unknown_service:x"})
        )
    )
    assert read.session["agent"] == "otlp"


def asked_by(user: str | None, trace: str, start: float, text: str) -> dict[str, Any]:
    """A span of a session that is numbered 1, of a trace and a user."""
    who = {} if user is None else {"user.id": user}
    row = phoenix_row(
        trace, None, "LLM", start, **{"session.id": "1", **who},
        **{"llm.input_messages": [{"message.role": "user", "message.content": text}]},
        **{"llm.output_messages": [{"message.role": "assistant", "message.content": "ok"}]},
    )  # fmt: skip
    return {**row, "context.trace_id": trace}


OF_TWO_USERS = [
    asked_by("ann", "t1", 0, "of ann"),
    asked_by("bob", "t2", 10, "of bob"),
    asked_by("bob", "t3", 20, "more of bob"),
    asked_by("ann", "t4", 30, "more of ann"),
]


def words_by_session(read: Read) -> dict[str, list[str]]:
    steps = read.steps.filter(kind="user").sort("session_id", "seq")
    return dict(steps.group_by("session_id", maintain_order=True).agg("text").iter_rows())


def test_a_short_id_of_two_users_is_a_session_of_each(tmp_path: Path) -> None:
    for order in (OF_TWO_USERS, OF_TWO_USERS[::-1]):
        read = Read(write(tmp_path, *order))
        users = dict(read.sessions.select("session_id", "user_id").iter_rows())
        assert sorted((users[key], texts) for key, texts in words_by_session(read).items()) == [
            ("ann", ["of ann", "more of ann"]), ("bob", ["of bob", "more of bob"]),
        ]  # fmt: skip
    alone = Read(write(tmp_path, *OF_TWO_USERS[1:3], asked_by(None, "t5", 40, "nobody's")))
    assert alone.session["session_id"] == "phoenix:1"


def test_with_a_second_user_each_is_named_by_their_first_trace(tmp_path: Path) -> None:
    """The bare id would be one person's in one file and another's in the next."""
    rows = [*OF_TWO_USERS, asked_by("eve", "t0", 50, "of eve"), asked_by(None, "t9", 55, "nobody's")]
    names = {"ann": "phoenix:1@trace:t1", "bob": "phoenix:1@trace:t2", "eve": "phoenix:1@trace:t0"}
    spool = tmp_path / "spool"
    spool.mkdir()
    for n in range(1, len(rows) + 1):
        path = write(tmp_path, *rows[:n])
        for options in ({}, {"spool": spool, "held_bytes": 10}):
            read = Read(path, **options)
            users = dict(read.sessions.select("user_id", "session_id").iter_rows())
            expected = {user: name for user, name in names.items() if user in users}
            assert users == (expected if n > 1 else {"ann": "phoenix:1"})
            if n == len(rows):
                assert words_by_session(read)["phoenix:1@trace:t1"] == ["of ann", "more of ann", "nobody's"]


def test_spans_of_nobody_are_moved_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most, put = 0, Spool.put

    def counted(self: Spool, key: str, item: Any) -> None:
        nonlocal most
        put(self, key, item)
        most = max(most, sum(map(len, self._held.values())))

    monkeypatch.setattr(Spool, "put", counted)
    monkeypatch.setattr(spans, "_SPANS_GIVEN", 8)
    rows = [asked_by(None, f"t{n}", n, f"{n} {'x' * 20_000}") for n in range(200)]
    spool = tmp_path / "spool"
    spool.mkdir()
    spilled = Read(write(tmp_path, *rows), spool=spool, held_bytes=10_000)
    assert most < 60
    most = 0
    held = Read(write(tmp_path, *rows))
    assert most == 200
    assert words_by_session(spilled) == words_by_session(held)
