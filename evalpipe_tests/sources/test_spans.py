"""From spans to steps, whatever the format: history, sub-agents, calls, errors, tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalpipe_tests.sources.helpers import Read, write
from evalpipe_tests.sources.traces import (
    ANSWER,
    ASK,
    CALL_PART,
    HISTORY,
    RESULT_PART,
    THANKS,
    agent,
    chat,
    nanos,
    otel_span,
    otlp,
    parts,
    tool,
)

SAID = parts("assistant", ANSWER)
ERROR = {"code": 2, "message": "boom"}


def of(folder: Path, *spans: dict[str, Any]) -> Read:
    return Read(write(folder, otlp(*spans)))


def words(read: Read) -> list[tuple[str, str]]:
    return read.rows("origin", "text", kind="user")


U = [parts("user", f"u{n}") for n in range(9)]
A = [parts("assistant", f"a{n}") for n in range(9)]


@pytest.mark.parametrize("is_one_trace", [True, False])
@pytest.mark.parametrize(
    "views",
    [
        [[U[0]], [U[0], A[0], U[1]], [U[0], A[0], U[1], A[1], U[2]]],  # the whole history
        [[U[0]], [U[0], A[0], U[1]], [A[0], U[1], A[1], U[2]]],  # a window of it
        [[U[0]], [A[0], U[1]], [A[1], U[2]]],  # a narrow one
        [[U[0]], [U[0], A[0], U[1]], [U[0], U[1], U[2]]],  # without the answers
        [[U[0]], [U[0], parts("assistant", "a0 (edited)"), U[1]], [U[0], A[0], U[1], A[1], U[2]]],
        [[U[0]], [U[0], A[0], U[1]], [U[0], U[2]]],  # with a part cut out
        [[parts("system", "S"), U[0]], [parts("system", "S"), U[1]], [parts("system", "S"), U[2]]],  # only the new
    ],
)
def test_a_turn_that_later_calls_resend_counts_once(
    tmp_path: Path, views: list[list[dict[str, Any]]], *, is_one_trace: bool
) -> None:
    spans = []
    for n, view in enumerate(views):
        trace = "t" if is_one_trace else f"t{n}"
        if not is_one_trace or n == 0:
            spans.append(agent(f"r{n}", n * 10, n * 10 + 5, trace))
        root = "r0" if is_one_trace else f"r{n}"
        spans.append(chat(f"l{n}", root, n * 10 + 1, view, [A[n]], trace))
    read = of(tmp_path, *spans)
    assert read.rows("kind", "text") == [
        ("user", "u0"), ("agent", "a0"), ("user", "u1"), ("agent", "a1"), ("user", "u2"), ("agent", "a2"),
    ]  # fmt: skip
    assert read.session["n_turns"] == 3


def test_the_same_words_said_twice_are_two_turns(tmp_path: Path) -> None:
    yes = parts("user", "yes")
    read = of(
        tmp_path,
        agent("r", 0, 30),
        chat("l0", "r", 1, [yes], [A[0]]),
        chat("l1", "r", 2, [yes, A[0], yes], [A[1]]),
        chat("l2", "r", 3, [yes, A[0], yes, A[1], yes], [A[2]]),
    )
    assert read.session["n_turns"] == 3


def test_a_narrow_window_tells_a_repeated_word_by_the_answer_before_it(tmp_path: Path) -> None:
    yes = parts("user", "yes")
    read = of(tmp_path, agent("r", 0, 9), chat("l0", "r", 1, [yes], [A[0]]), chat("l1", "r", 2, [A[0], yes], [A[1]]))
    assert read.rows("text") == ["yes", "a0", "yes", "a1"]


def test_traces_that_send_only_what_is_new(tmp_path: Path) -> None:
    spans = [
        span
        for n in range(3)
        for span in (agent(f"r{n}", n * 9, n * 9 + 5, f"t{n}"), chat(f"l{n}", f"r{n}", n * 9, [U[n]], [A[n]], f"t{n}"))
    ]
    assert words(of(tmp_path, *spans)) == [("human", f"u{n}") for n in range(3)]


def test_an_answer_given_before_ties_a_call_to_the_conversation(tmp_path: Path) -> None:
    asked = {"input.value": "u0", "openinference.span.kind": "CHAIN", "session.id": "s1"}
    read = of(
        tmp_path,
        otel_span("r", None, "talk", 0, 9, attributes=asked),
        chat("l0", "r", 1, [U[0]], [A[0]]),
        chat(
            "l1", "r", 2, [parts("tool", {**RESULT_PART, "id": "c7"}), A[0], parts("assistant", "noted"), U[1]], [A[1]]
        ),
    )
    assert words(read) == [("human", "u0"), ("human", "u1")]


def test_a_conversation_may_go_on_after_a_template(tmp_path: Path) -> None:
    asked = {"input.value": "u0", "openinference.span.kind": "CHAIN", "session.id": "s1"}
    template = parts("user", "Answer this: u0")
    read = of(
        tmp_path,
        otel_span("r", None, "talk", 0, 9, attributes=asked),
        chat("l0", "r", 1, [template], [A[0]]),
        chat("l1", "r", 2, [template, parts("assistant", "a0, edited"), U[1]], [A[1]]),
    )
    assert words(read) == [("human", "u0"), ("injected", "Answer this: u0"), ("human", "u1")]


def test_a_question_at_the_root_is_new_each_time_and_not_counted_again_below(tmp_path: Path) -> None:
    asked = {"input.value": "yes", "openinference.span.kind": "AGENT", "session.id": "s1"}
    spans = []
    for n in range(2):
        history = [parts("user", "yes"), A[0]] * n
        spans += [
            otel_span(f"r{n}", None, "agent", n * 10, n * 10 + 5, f"t{n}", attributes=asked),
            chat(f"l{n}", f"r{n}", n * 10 + 1, [*history, parts("user", "yes")], [A[n]], f"t{n}"),
        ]
    read = of(tmp_path, *spans)
    assert read.rows("kind", "text") == [("user", "yes"), ("agent", "a0"), ("user", "yes"), ("agent", "a1")]


def test_prompts_beside_the_conversation_are_no_turns(tmp_path: Path) -> None:
    template = parts("user", f"Context: the depot.\nQuestion: {ASK}")
    asked = {"input.value": ASK, "openinference.span.kind": "CHAIN", "session.id": "s1"}
    read = of(
        tmp_path,
        otel_span("r", None, "rag", 0, 9, attributes=asked),
        chat("l1", "r", 1, [parts("system", "Write a search query."), parts("user", "depot rules")], [A[0]]),
        chat("l2", "r", 2, [parts("user", "example"), A[8], template], [SAID]),
    )
    assert words(read) == [
        ("human", ASK),
        ("injected", "depot rules"),
        ("injected", "example"),
        ("injected", template["parts"][0]["content"]),
    ]
    assert read.session["n_turns"] == 1


def test_a_helper_call_without_a_known_question_is_told_by_its_own_prompt(tmp_path: Path) -> None:
    title = [parts("system", "Name this talk."), parts("user", "user asks for parcel 7")]
    read = of(
        tmp_path,
        agent("r", 0, 9),
        chat("l1", "r", 1, [parts("system", "Be brief."), U[0]], [A[0]]),
        chat("l2", "r", 2, title, [parts("assistant", "Parcels")]),
        chat("l3", "r", 3, [parts("system", "Be brief."), U[0], A[0], U[1]], [A[1]]),
    )
    assert words(read) == [("human", "u0"), ("injected", "user asks for parcel 7"), ("human", "u1")]


def test_a_log_that_begins_late_keeps_what_was_said_before(tmp_path: Path) -> None:
    read = of(tmp_path, agent("r", 0, 9), chat("l", "r", 1, [*HISTORY, SAID, parts("user", THANKS)], [A[0]]))
    assert read.rows("kind", "text", "output") == [
        ("user", ASK, None), ("tool", None, "Bonn"), ("agent", ANSWER, None), ("user", THANKS, None), ("agent", "a0", None),
    ]  # fmt: skip


@pytest.mark.parametrize("is_told_at_root", [False, True])
def test_history_of_a_trace_without_a_session_belongs_to_other_traces(tmp_path: Path, *, is_told_at_root: bool) -> None:
    talk = [
        {"role": "user", "content": f"u{n // 2}"} if n % 2 == 0 else {"role": "assistant", "content": f"a{n // 2}"}
        for n in range(5)
    ]
    spans = []
    for n in range(3):
        root = {"openinference.span.kind": "CHAIN", "input.value": json.dumps({"messages": talk[: 2 * n + 1]})}
        if is_told_at_root:
            spans.append(otel_span(f"r{n}", None, "talk", n * 9, n * 9 + 5, f"t{n}", attributes=root))
        view = [message for pair in zip(U, A, strict=True) for message in pair][: 2 * n + 1]
        spans.append(chat(f"l{n}", f"r{n}" if is_told_at_root else None, n * 9, view, [A[n]], f"t{n}"))
    read = of(tmp_path, *spans)
    assert read.sessions["n_turns"].to_list() == [1, 1, 1]
    assert read.rows("kind", "text") == [(kind, f"{kind[0]}{n}") for n in range(3) for kind in ("user", "agent")]


def test_a_greeting_at_the_root_is_the_agents(tmp_path: Path) -> None:
    greeting = {
        "openinference.span.kind": "AGENT", "input.value": "Hi, what can I do?", "output.value": "Hi, what can I do?",
    }  # fmt: skip
    read = of(
        tmp_path,
        otel_span("r", None, "agent", 0, 1, attributes=greeting),
        chat("l", "r", 0, [], [parts("assistant", "Hi, what can I do?")]),
    )
    assert read.rows("kind", "text") == [("agent", "Hi, what can I do?")]


def test_what_a_tool_or_a_working_agent_starts_is_a_child(tmp_path: Path) -> None:
    read = of(
        tmp_path,
        agent("r", 0, 20),
        chat("l1", "r", 1, HISTORY[:2], HISTORY[2:3]),
        tool("x1", "r", 2),
        agent("sub", 3, 5, parent="x1", attributes={"gen_ai.agent.name": "tracker", "gen_ai.conversation.id": "other"}),
        chat("l2", "sub", 4, [parts("user", "track it")], [A[1]], attributes={"gen_ai.response.model": "m-2"}),
        agent("beside", 6, 9, parent="r", attributes={"gen_ai.agent.name": "checker"}),
        chat("l3", "beside", 7, [parts("user", "check it")], [A[2]], attributes={"gen_ai.response.model": "m-2"}),
        tool("x2", "beside", 8, attributes={"gen_ai.tool.call.id": "c2", "gen_ai.tool.name": "ring"}),
        chat("l4", "r", 10, HISTORY, [SAID]),
    )
    assert read.rows("kind", "name", "text", "parent_id") == [
        ("user", None, ASK, None),
        ("agent", None, None, None),
        ("tool", "track", None, None),
        ("agent", None, "a1", "c1"),
        ("graph", "invoke_agent helper", None, None),
        ("agent", None, "a2", "beside"),
        ("tool", "ring", None, "beside"),
        ("agent", None, ANSWER, None),
    ]
    s = read.session
    assert (s["session_id"], s["agent"], s["model"], s["n_models"]) == ("otlp:s1", "helper", "m-1", 1)
    assert (s["n_turns"], s["n_tool_calls"], s["output_tokens"]) == (1, 2, 40)


def test_an_agent_in_a_mere_wrapper_is_the_agent(tmp_path: Path) -> None:
    read = of(
        tmp_path,
        otel_span("w", None, "Agent workflow", 0, 9, attributes={"openinference.span.kind": "AGENT"}),
        agent("r", 1, 8, parent="w"),
        chat("l", "r", 2, [U[0]], [A[0]]),
    )
    assert read.rows("kind", "parent_id") == [("user", None), ("agent", None)]
    assert read.session["agent"] == "helper"


def test_what_two_instrumentations_log_counts_once(tmp_path: Path) -> None:
    read = of(
        tmp_path,
        agent("r", 0, 9, attributes={"gen_ai.usage.input_tokens": 200, "gen_ai.usage.output_tokens": 20}),
        otel_span("outer", "r", "ChatModel", 1, 2, attributes={"openinference.span.kind": "LLM"}),
        chat("inner", "outer", 1.1, HISTORY[:2], HISTORY[2:3]),
        otel_span("x", "r", "track", 2, 3, attributes={"openinference.span.kind": "TOOL", "tool.name": "track"}),
        tool("y", "x", 2.1),
        chat("l2", "r", 4, HISTORY, [SAID]),
    )
    assert read.rows("kind", "name", "model", "output", "output_tokens") == [
        ("user", None, None, None, None),
        ("agent", None, "m-1", None, 10),
        ("tool", "track", None, "Bonn", None),
        ("agent", None, "m-1", None, 10),
    ]
    assert (read.session["n_tool_calls"], read.session["output_tokens"]) == (1, 20)


def test_calls_without_spans_take_their_results_from_the_next_call(tmp_path: Path) -> None:
    lost = {**CALL_PART, "id": "c2", "arguments": {"parcel": 8}}
    form = {"type": "tool_call", "id": "c3", "name": "answer_form", "arguments": {"city": "Bonn"}}
    read = of(
        tmp_path,
        agent("r", 0, 9),
        chat("l1", "r", 1, HISTORY[:2], [parts("assistant", CALL_PART, lost)]),
        chat("l2", "r", 3, [*HISTORY[:2], parts("assistant", CALL_PART, lost), parts("tool", RESULT_PART)],
             [parts("assistant", form)]),
    )  # fmt: skip
    assert read.rows("name", "arguments", "output", "error", kind="tool") == [
        ("track", '{"parcel":7}', "Bonn", None),
        ("track", '{"parcel":8}', None, "no_result"),
        # Nothing ever ran this tool: the model was told to answer in its form.
        ("answer_form", '{"city":"Bonn"}', None, None),
    ]


def test_spans_of_parallel_calls_find_theirs_by_arguments(tmp_path: Path) -> None:
    calls = [{"type": "tool_call", "name": "track", "arguments": {"parcel": n}} for n in (7, 8)]
    ran = [
        otel_span(f"x{n}", "r", "track.tool", 2, 3, attributes={
            "traceloop.span.kind": "tool", "traceloop.entity.name": "track",
            "traceloop.entity.input": f'{{ "parcel": {n} }}', "traceloop.entity.output": f"out {n}",
        })
        for n in (8, 7)
    ]  # fmt: skip
    read = of(tmp_path, agent("r", 0, 9), chat("l1", "r", 1, HISTORY[:2], [parts("assistant", *calls)]), *ran)
    assert read.rows("arguments", "output", kind="tool") == [('{"parcel":7}', "out 7"), ('{"parcel":8}', "out 8")]


def test_a_plain_span_that_bears_the_name_of_a_waiting_call_ran_it(tmp_path: Path) -> None:
    ran = {"openinference.span.kind": "CHAIN", "input.value": "{'parcel': 7}", "output.value": "Bonn"}
    read = of(
        tmp_path,
        agent("r", 0, 9),
        chat("l1", "r", 1, HISTORY[:2], HISTORY[2:3]),
        otel_span("x", "r", "track", 2, 4, attributes=ran),
        chat("l2", "x", 3, [U[0]], [A[0]]),
        chat("l3", "r", 5, HISTORY, [SAID]),
    )
    assert read.rows("kind", "name", "text", "output", "parent_id") == [
        ("user", None, ASK, None, None),
        ("agent", None, None, None, None),
        ("tool", "track", None, "Bonn", None),
        ("agent", None, "a0", None, "c1"),
        ("agent", None, ANSWER, None, None),
    ]


def test_errors_of_tools_models_and_roots(tmp_path: Path) -> None:
    gone = {"gen_ai.tool.call.result": "", "gen_ai.tool.call.id": "c9"}
    late = {"code": 2, "message": "Request timed out"}
    read = of(
        tmp_path,
        agent("r", 0, 9, status=ERROR),
        tool("x1", "r", 1, status=ERROR, attributes=gone),
        tool("x2", "r", 2, status=late, attributes={**gone, "gen_ai.tool.call.id": "c8"}),
        tool("x3", "r", 3, status={"code": 1}),
        tool("x4", "r", 4, attributes={"gen_ai.tool.call.id": "c7"}),
        chat("l1", "r", 5, [U[0]], [], status=ERROR),
        chat("l2", "r", 6, [U[0]], [], status=late),
    )
    assert read.rows("is_error", "error", "output", kind="tool") == [
        (True, "tool_error", "boom"),
        (True, "timeout", "Request timed out"),
        (False, None, "Bonn"),
        (None, None, "Bonn"),
    ]
    assert read.rows("origin", "text", "error", "model", kind="agent") == [
        ("synthetic", "boom", "api_error", None),
        ("synthetic", "Request timed out", "timeout", None),
    ]
    s = read.session
    assert (s["end_status_logged"], s["model"], s["is_objective_success"]) == ("error", None, None)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, (100, 10, None, None, None)),
        ({"gen_ai.usage.cache_read.input_tokens": 60, "gen_ai.usage.cache_creation.input_tokens": 30}, (10, 10, 60, 30, None)),
        # Older instrumentations of Anthropic leave the cached part out.
        ({"gen_ai.usage.cache_read_input_tokens": 900}, (100, 10, 900, None, None)),
        ({"gen_ai.usage.cache_read_input_tokens": 50, "llm.usage.total_tokens": 160}, (100, 10, 50, None, None)),
        ({"gen_ai.usage.reasoning_tokens": 4}, (100, 10, None, None, 4)),
        ({"gen_ai.usage.input_tokens": "12"}, (12, 10, None, None, None)),
        ({"gen_ai.usage.input_tokens": -1, "gen_ai.usage.output_tokens": 1.5}, (None, None, None, None, None)),
    ],
)  # fmt: skip
def test_tokens_by_kind(tmp_path: Path, more: dict[str, Any], expected: tuple[int | None, ...]) -> None:
    read = of(tmp_path, chat("l", None, 0, [U[0]], [A[0]], attributes=more))
    kinds = ("input", "output", "cache_read", "cache_write", "reasoning")
    assert read.rows(*[f"{kind}_tokens" for kind in kinds], kind="agent") == [expected]


def test_an_agent_that_logs_nothing_inside_still_speaks(tmp_path: Path) -> None:
    inside = {
        "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"go"}]}]',
        "gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"text","content":"gone"}]}]',
        "gen_ai.usage.output_tokens": 7, "gen_ai.request.model": "m-9",
    }  # fmt: skip
    read = of(tmp_path, agent("r", 0, 9, attributes=inside))
    assert read.rows("kind", "text", "output_tokens") == [("user", "go", None), ("agent", "gone", 7)]
    assert read.session["model"] == "m-9"


def test_a_retrieval_is_one_step_and_no_call(tmp_path: Path) -> None:
    kind = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": ASK,
        "retrieval.documents.0.document.content": "rules",
    }
    read = of(
        tmp_path,
        agent("r", 0, 9),
        otel_span("q1", "r", "retrieve", 1, 2, attributes=kind),
        otel_span("q2", "q1", "vectors", 1, 2, attributes=kind),
        chat("l", "r", 3, [U[0]], [A[0]]),
    )
    assert read.rows("kind", "name", "arguments", "output")[0] == (
        "graph", "retrieve", ASK, '[{"document":{"content":"rules"}}]',
    )  # fmt: skip
    assert (read.steps.height, read.session["n_tool_calls"]) == (3, 0)


def test_spans_without_times_keep_the_order_of_the_log(tmp_path: Path) -> None:
    spans = [
        chat("l0", "r", 1, [U[0]], [A[0]]),
        tool("x", "l0", 2),
        chat("l1", "r", 3, [U[0], A[0], U[1]], [A[1]]),
        agent("r", 0, 5),
    ]
    for span in spans:
        del span["startTimeUnixNano"], span["endTimeUnixNano"]
    read = of(tmp_path, *spans)
    assert read.rows("kind") == ["user", "agent", "tool", "user", "agent"]
    assert read.session["is_dated"] is False
    assert read.rows("started_at", "ended_at") == [(None, None)] * 5


def test_steps_bear_the_times_of_their_spans(tmp_path: Path) -> None:
    read = of(tmp_path, agent("r", 0, 9), chat("l1", "r", 1, HISTORY[:2], HISTORY[2:3]), tool("x", "r", 2.25))
    seconds = [[at.timestamp() - int(nanos(0)) / 1e9 for at in row] for row in read.rows("started_at", "ended_at")]
    assert seconds == [[1, 1], [1, 2], [2.25, 2.75]]
    s = read.session
    assert (s["ended_at"] - s["started_at"]).total_seconds() == 9
