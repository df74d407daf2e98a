"""What is particular to one trace format."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalpipe.sources.readers.outcomes import Score, state
from evalpipe.sources.readers.spans import Span
from evalpipe_tests.sources.helpers import Read, lines, write
from evalpipe_tests.sources.traces import (
    ANSWER,
    ASK,
    COZE_LOOP,
    LANGFUSE_OBSERVATIONS,
    LANGFUSE_TRACE,
    LANGSMITH,
    MLFLOW,
    OTLP,
    PHOENIX,
    agent,
    coze_step,
    observation,
    otel_log,
    otel_span,
    otlp,
    run,
)

STEPS = [("user", ASK), ("agent", None), ("tool", None), ("agent", ANSWER)]


def told(read: Read) -> list[tuple[str, str | None]]:
    return read.rows("kind", "text")


def test_otlp_messages_may_be_events_of_the_span(tmp_path: Path) -> None:
    def event(name: str, **attributes: Any) -> dict[str, Any]:
        return {
            "name": name,
            "attributes": [{"key": k.replace("_", "."), "value": {"stringValue": v}} for k, v in attributes.items()],
        }

    def call(events: list[dict[str, Any]], attributes: dict[str, Any]) -> Read:
        kind = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", **attributes}
        return Read(write(tmp_path, otlp(otel_span("l", None, "chat", 0, 1, attributes=kind, events=events))))

    choice = event("gen_ai.choice", message=json.dumps({"role": "assistant", "content": ANSWER}))
    assert told(call([event("gen_ai.user.message", content=ASK), choice], {})) == [("user", ASK), ("agent", ANSWER)]
    old = [
        {"name": "gen_ai.content.prompt", "attributes": [{"key": "gen_ai.prompt", "value": {"stringValue": json.dumps([{"role": "user", "content": ASK}])}}]},
        {"name": "gen_ai.content.completion", "attributes": [{"key": "gen_ai.completion", "value": {"stringValue": json.dumps([{"role": "assistant", "content": ANSWER}])}}]},
    ]  # fmt: skip
    assert told(call(old, {})) == [("user", ASK), ("agent", ANSWER)]
    failed = event("exception", exception_type="RateLimitError", exception_message="slow down")
    read = Read(
        write(
            tmp_path,
            otlp(
                otel_span(
                    "l",
                    None,
                    "chat",
                    0,
                    1,
                    attributes={"gen_ai.operation.name": "chat"},
                    events=[failed],
                    status={"code": 2},
                )
            ),
        )
    )
    assert read.rows("text", "error") == [("RateLimitError: slow down", "api_error")]


def test_otlp_messages_may_be_logged_beside_the_spans(tmp_path: Path) -> None:
    kind = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "m-1"}
    spans = otlp(otel_span("l", None, "chat", 0, 2, attributes=kind))
    named = {"attributes": [{"key": "event.name", "value": {"stringValue": "gen_ai.user.message"}}]}
    told_of = [
        otel_log(1, "gen_ai.choice", {"message": json.dumps({"role": "assistant", "content": ANSWER})}),
        otel_log(0.5, "", {"content": ASK}, **named),
        otel_log(0.6, "gen_ai.user.message", {"content": "of no span"}, "lost"),
    ]
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": told_of}]}]}
    other = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "x"}}]}]}]}
    for records in ((spans, logs, other), (logs, other, spans)):
        read = Read(write(tmp_path, *records))
        assert told(read) == [("user", ASK), ("agent", ANSWER)]
        assert (read.file()["rows_kept"], read.file()["rows_noise"]) == (2, 1)
    assert Read(write(tmp_path, logs)).codes == ["NO_SESSION"]


def test_otlp_content_that_was_not_captured_is_not_made_up(tmp_path: Path) -> None:
    kind = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", "gen_ai.usage.output_tokens": 5}
    read = Read(write(tmp_path, otlp(agent("r", 0, 9), otel_span("l", "r", "chat", 1, 2, attributes=kind))))
    assert read.rows("kind", "text", "model", "output_tokens") == [("agent", None, "m-1", 5)]
    assert read.session["n_turns"] == 0


def test_otlp_snake_case_and_flat_attributes(tmp_path: Path) -> None:
    spans = [
        {
            "trace_id": "t1",
            "span_id": "l",
            "name": "chat",
            "start_time_unix_nano": 1_767_607_200_000_000_000,
            "end_time_unix_nano": 1_767_607_201_000_000_000,
            "attributes": [
                {"key": "gen_ai.operation.name", "value": {"string_value": "chat"}},
                {"key": "gen_ai.request.model", "value": {"string_value": "m-1"}},
                {"key": "gen_ai.usage.input_tokens", "value": {"int_value": "12"}},
                {"key": "gen_ai.prompt", "value": {"string_value": ASK}},
            ],
        }
    ]
    read = Read(write(tmp_path, {"resource_spans": [{"scope_spans": [{"spans": spans}]}]}))
    assert read.rows("kind", "text", "input_tokens") == [("user", ASK, None), ("agent", None, 12)]


def test_otlp_requests_without_spans_are_noise_and_broken_ones_are_quarantined(tmp_path: Path) -> None:
    read = Read(write(tmp_path, OTLP, {"resourceLogs": []}, {"resourceMetrics": [{}]}, {"resourceSpans": []},
                      {"resourceSpans": [{"scopeSpans": [{"spans": [1]}]}]}, {"resourceSpans": 7}, {"other": 1}))  # fmt: skip
    f = read.file()
    assert (f["rows_read"], f["rows_kept"], f["rows_noise"]) == (7, 1, 3)
    assert read.codes == ["BAD_FIELD", "BAD_FIELD", "NOT_A_RECORD"]


def test_vercel_spans(tmp_path: Path) -> None:
    def step(span_id: str, operation: str, start: float, **more: Any) -> dict[str, Any]:
        inside = {"ai.operationId": operation, **{f"ai.{k}": v for k, v in more.items()}}
        return otel_span(span_id, None if span_id == "r" else "r", operation, start, start + 1, attributes=inside)

    asked = json.dumps([{"role": "user", "content": [{"type": "text", "text": ASK}]}])
    calls = json.dumps([{"toolCallId": "c1", "toolName": "track", "args": '{"parcel":7}'}])
    read = Read(
        write(
            tmp_path,
            otlp(
                step("r", "ai.generateText", 0, **{"prompt": json.dumps({"messages": json.loads(asked)}), "telemetry.metadata.sessionId": "s1"}),
                step("l", "ai.generateText.doGenerate", 1, **{"prompt.messages": asked, "response.toolCalls": calls, "response.model": "m-1", "usage.promptTokens": 12}),
                step("x", "ai.toolCall", 2, **{"toolCall.name": "track", "toolCall.id": "c1", "toolCall.args": '{"parcel":7}', "toolCall.result": '"Bonn"'}),
                step("m", "ai.generateText.doGenerate", 3, **{"prompt.messages": asked, "response.text": ANSWER, "response.model": "m-1"}),
            ),
        )
    )  # fmt: skip
    assert told(read) == STEPS
    assert read.rows("output", kind="tool") == ["Bonn"]
    assert read.session["session_id"] == "otlp:s1"


def test_phoenix_rows_may_be_parquet(tmp_path: Path) -> None:
    table = [
        {**row, "start_time": datetime(2026, 1, 5, 10, tzinfo=UTC) + timedelta(seconds=n), "events": []}
        for n, row in enumerate(PHOENIX)
    ]
    for row in table:
        for key in ("attributes.llm.input_messages", "attributes.llm.output_messages"):
            row[key] = repr(row[key]) if isinstance(row.get(key), list) else row.get(key)
        row["attributes.llm.token_count.prompt"] = float(row.get("attributes.llm.token_count.prompt") or "nan")
    pq.write_table(pa.Table.from_pylist(table), tmp_path / "spans.parquet")
    read = Read(tmp_path / "spans.parquet")
    assert told(read) == STEPS
    assert read.session["input_tokens"] == 200


def test_phoenix_pages_and_console_spans(tmp_path: Path) -> None:
    spans = [
        {
            "name": row["name"],
            "context": {"trace_id": f"0x{row['context.trace_id']}", "span_id": f"0x{row['context.span_id']}"},
            "kind": "SpanKind.INTERNAL",
            "parent_id": row["parent_id"] and f"0x{row['parent_id']}",
            "start_time": row["start_time"].replace(" ", "T").replace("+00:00", "Z"),
            "end_time": row["end_time"],
            "status": {"status_code": "ERROR", "description": "boom"}
            if row["span_kind"] == "TOOL"
            else {"status_code": "UNSET"},
            "attributes": {
                "openinference.span.kind": row["span_kind"],
                **{k.removeprefix("attributes."): v for k, v in row.items() if k.startswith("attributes.")},
            },
            "resource": {"attributes": {"service.name": "parcels", "service.version": "2.0.1"}},
        }
        for row in PHOENIX
    ]
    read = Read(write(tmp_path, *spans))
    assert told(read) == STEPS
    assert read.rows("is_error", "error", "output", "step_id", kind="tool") == [(True, "tool_error", "Bonn", "c1")]
    assert read.rows("step_id", kind="agent") == ["l1", "l2"]
    assert (read.session["agent"], read.session["agent_release"]) == ("parcels", "2.0.1")
    page = tmp_path / "page.json"
    page.write_text(json.dumps({"next_cursor": None, "data": spans}))
    assert told(Read(page)) == STEPS


BLOB = {"trace_id": "traceId", "parent_observation_id": "parentObservationId", "start_time": "startTime",
        "end_time": "endTime", "status_message": "statusMessage", "usage_details": "usageDetails"}  # fmt: skip


def blob(row: dict[str, Any], **more: Any) -> dict[str, Any]:
    names = {camel: snake for snake, camel in BLOB.items()}
    out = {names.get(key, key): value for key, value in row.items()}
    for key in ("start_time", "end_time"):
        out[key] = out[key].replace("T", " ").removesuffix("Z")
    return {**out, "project_id": "p", **more}


def test_langfuse_blob_export_with_the_facts_of_the_trace(tmp_path: Path) -> None:
    rows = [blob(o, session_id="s1", user_id="u1", provided_model_name="m-1") for o in LANGFUSE_OBSERVATIONS]
    read = Read(write(tmp_path, *rows, *[{**row, "trace_id": "t2", "id": row["id"] + "2"} for row in rows]))
    assert (read.session["session_id"], read.session["user_id"]) == ("langfuse:s1", "u1")
    assert read.session["output_tokens"] == 40


def test_langfuse_takes_session_and_outcome_from_the_trace(tmp_path: Path) -> None:
    rows = [{**o, "metadata": {"thread_id": f"own-{o['id']}"}} for o in LANGFUSE_OBSERVATIONS]
    read = Read(write(tmp_path, *rows, LANGFUSE_TRACE, {**LANGFUSE_TRACE, "id": "t2"}))
    s = read.session
    # Langfuse's own judges (source EVAL) state no outcome, whatever their scores are called.
    assert (s["session_id"], s["objective_reward"], s["is_objective_success"]) == ("langfuse:s1", 1.0, True)


def test_langfuse_traces_alone_tell_what_was_said(tmp_path: Path) -> None:
    page = tmp_path / "traces.json"
    traces = [{**LANGFUSE_TRACE, "id": f"t{n}", "observations": ["o1"]} for n in range(2)]
    page.write_text(json.dumps({"data": traces, "meta": {"page": 1}}))
    read = Read(page)
    assert told(read) == [("user", ASK), ("agent", ANSWER)] * 2
    assert read.session["session_id"] == "langfuse:s1"


def test_langfuse_errors_scores_and_reasoning(tmp_path: Path) -> None:
    own = {"input": 10, "output": 20, "input_cache_read": 5, "output_reasoning": 7, "total": 42}
    joined = {"input": 15, "output": 27, "prompt_details.cache_read": 5, "completion_details.reasoning": 7, "total": 42}
    read = Read(write(
        tmp_path,
        observation("l1", None, "GENERATION", 0, usageDetails=own, output="x", model="m"),
        observation("l2", None, "GENERATION", 1, usageDetails=joined, output="y", model="m"),
        observation("x", None, "TOOL", 2, level="ERROR", statusMessage="no route", input="{}"),
        {"id": "q", "traceId": "t1", "name": "tone", "value": 1, "dataType": "NUMERIC"},
        {"what": "else"},
    ))  # fmt: skip
    tokens = read.rows("input_tokens", "output_tokens", "cache_read_tokens", "reasoning_tokens", kind="agent")
    assert tokens == [(10, 27, 5, 7), (10, 27, 5, 7)]
    assert read.rows("is_error", "error", "output", kind="tool") == [(True, "tool_error", "no route")]
    assert (read.file()["rows_noise"], read.codes) == (1, ["NOT_A_RECORD"])


def test_langsmith_tables_hold_json_as_text(tmp_path: Path) -> None:
    texts = ("inputs", "outputs", "extra", "events", "feedback_stats")
    rows = [
        {key: json.dumps(value) if key in texts else value for key, value in record.items()} for record in LANGSMITH
    ]
    expected = Read(write(tmp_path, *LANGSMITH))
    read = Read(write(tmp_path, *rows))
    assert read.steps.equals(expected.steps)
    assert read.session["is_objective_success"] is True


@pytest.mark.parametrize("is_end_first", [False, True])
def test_langsmith_runs_may_come_in_halves(tmp_path: Path, *, is_end_first: bool) -> None:
    late = ("end_time", "outputs", "error")
    halves = []
    for record in LANGSMITH:
        begin = {key: value for key, value in record.items() if key not in late}
        end = {"id": record["id"], "name": record["name"], **{key: record[key] for key in late}}
        halves += [end, begin] if is_end_first else [begin, end]
    read = Read(write(tmp_path, *halves))
    assert told(read) == STEPS
    assert (read.file()["rows_kept"], read.file()["rows_noise"]) == (8, 0)


def test_langsmith_errors_and_runs_without_a_thread(tmp_path: Path) -> None:
    plain = {"extra": {}, "inputs": {"question": ASK}}
    read = Read(write(
        tmp_path,
        run("r1", "r1", "chain", 0, error="Traceback: boom", **plain),
        run("r2", "r1/r2", "llm", 1, error="APITimeoutError: timed out", outputs=None, **plain),
        run("r3", "r1/r3", "tool", 2, name="track", error="ValueError: 7", inputs={"input": "7"}, extra=None),
    ))  # fmt: skip
    assert read.rows("kind", "text", "error", "output") == [
        ("user", ASK, None, None),
        ("agent", "APITimeoutError: timed out", "timeout", None),
        ("tool", None, "tool_error", "ValueError: 7"),
    ]
    assert (read.session["session_id"], read.session["end_status_logged"]) == ("langsmith:r1", "error")


def test_langsmith_zeros_of_runs_without_usage_are_unknown(tmp_path: Path) -> None:
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0, "total_cost": 0}
    told = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11, "total_cost": "0.5"}
    read = Read(write(tmp_path, run("r1", "r1", "llm", 0, **zeros), run("r2", "r2", "llm", 1, **told)))
    assert sorted(read.rows("input_tokens", "output_tokens"), key=str) == [(9, 2), (None, None)]
    assert read.session["logged_cost_usd"] == 0.5


def test_mlflow_states_outcome_and_facts(tmp_path: Path) -> None:
    s = Read(write(tmp_path, MLFLOW)).session
    assert (s["objective_reward"], s["is_objective_success"]) == (1.0, True)
    assert (s["scenario_declared"], s["task_id"], s["end_status_logged"]) == ("shipping", "7", None)
    failed = {**MLFLOW, "info": {**MLFLOW["info"], "state": "ERROR", "assessments": None}}
    s = Read(write(tmp_path, failed)).session
    assert (s["end_status_logged"], s["objective_reward"], s["is_objective_success"]) == ("error", None, None)


def test_mlflow_rows_of_a_search(tmp_path: Path) -> None:
    info = {key: value for key, value in MLFLOW["info"].items() if key != "assessments"}
    row = {**info, "spans": MLFLOW["data"]["spans"], "assessments": json.dumps(MLFLOW["info"]["assessments"])}
    for spans in (row["spans"], json.dumps(row["spans"])):
        read = Read(write(tmp_path, {**row, "spans": spans}))
        assert told(read) == STEPS
        assert (read.session["objective_reward"], read.session["user_id"]) == (1.0, "u1")


def pascal(value: Any) -> Any:
    """The same trajectory under the names of its Go structure."""
    if isinstance(value, list):
        return [pascal(item) for item in value]
    if not isinstance(value, dict):
        return value
    names = {key: "".join("ID" if part == "id" else part.capitalize() for part in key.split("_")) for key in value}
    return {names[key]: member if key == "metadata" else pascal(member) for key, member in value.items()}


def micros(value: Any) -> Any:
    """The same trajectory with times in microseconds, as older releases write them."""
    if isinstance(value, list):
        return [micros(item) for item in value]
    if not isinstance(value, dict):
        return value
    scaled = ("started_at", "duration", "latency_first_resp")
    return {key: int(member) * 1000 if key in scaled else micros(member) for key, member in value.items()}


@pytest.mark.parametrize(
    "record",
    [COZE_LOOP, pascal(COZE_LOOP), micros(COZE_LOOP), {"item": 1, "trajectory": json.dumps(COZE_LOOP)}],
    ids=["json", "go", "micros", "inside"],
)
def test_coze_trajectories_in_all_spellings(tmp_path: Path, record: dict[str, Any]) -> None:
    read = Read(write(tmp_path, record))
    assert told(read) == STEPS
    assert read.rows("first_token_ms", kind="agent") == [200, 200]
    assert [str(at)[17:19] for at in read.rows("ended_at", kind="agent")] == ["02", "04"]


def test_coze_sub_agents_stand_twice_and_count_once(tmp_path: Path) -> None:
    sub = {
        **coze_step("sub", "x1", None, 2.2, name="tracker", input="track 7", output="Bonn"),
        "steps": [coze_step("l9", "sub", "model", 2.3, output=ANSWER), coze_step("gone", "sub", "tool", 2.4, name="ring",
                  basic_info={"started_at": 1767607202400, "error": {"code": 5, "msg": "busy"}})],
    }  # fmt: skip
    main = COZE_LOOP["agent_steps"][0]
    step = coze_step("sub", "x1", "agent", 2.2, name="tracker")
    graph = coze_step("g1", "a1", "graph", 0.5, name="flow")
    record = {**COZE_LOOP, "agent_steps": [{**main, "steps": [graph, *main["steps"], step]}, sub]}
    read = Read(write(tmp_path, record))
    assert read.rows("kind", "name", "parent_id", "error") == [
        ("user", None, None, None),
        ("agent", None, None, None),
        ("tool", "track", None, None),
        ("agent", None, "c1", None),
        ("tool", "ring", "c1", "tool_error"),
        ("agent", None, None, None),
    ]


def test_coze_agents_below_steps_that_are_left_out(tmp_path: Path) -> None:
    sub = {**coze_step("sub", "left-out", None, 2.2, name="tracker"), "steps": [coze_step("l9", "sub", "model", 2.3)]}
    read = Read(write(tmp_path, {**COZE_LOOP, "agent_steps": [COZE_LOOP["agent_steps"][0], sub]}))
    assert read.rows("kind", "name", "parent_id")[3:5] == [("graph", "tracker", None), ("agent", None, "sub")]


def test_coze_trajectory_that_is_no_such_thing(tmp_path: Path) -> None:
    bad = [{"agent_steps": [1]}, {"root_step": []}, {"agent_steps": [{"steps": 1}]}, {"x": 1}]
    read = Read(write(tmp_path, COZE_LOOP, *bad))
    assert read.codes == ["BAD_FIELD", "BAD_FIELD", "BAD_FIELD", "NOT_A_RECORD"]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([Score("task_success", 1, True)], (1.0, True)),
        ([Score("resolved", False, True)], (0.0, False)),
        ([Score("reward", 0.25, True)], (0.25, None)),
        ([Score("Correctness", "fail", True)], (0.0, False)),
        ([Score("correct", "0", True)], (0.0, False)),
        ([Score("correctness", 1, False)], (None, None)),
        ([Score("compassion", 1, True), Score("toxicity", 0, True)], (None, None)),
        ([Score("success", None, True), Score("success", "maybe", True), Score("success", [1], True)], (None, None)),
        ([Score("success", 0, True), Score("success", 1, True)], (1.0, True)),
    ],
)
def test_scores_that_state_an_outcome(scores: list[Score], expected: tuple[float | None, bool | None]) -> None:
    span = Span("a", "t", "agent")
    state(span, scores)
    assert (span.reward, span.is_success) == expected


def test_lines_of_other_formats_are_not_taken(tmp_path: Path) -> None:
    strangers = [
        {"messages": [{"role": "user", "content": "x"}], "id": "1", "outputs": {}},
        {"trace": "x", "observations": []},
        {"info": {"model": "m"}, "data": {"a": 1}},
        {"context": "text", "question": "q", "answer": "a"},
        {"id": "1", "type": "SPAN", "input": "x"},
        {"id": "1", "timestamp": "2026-01-05", "input": "x", "output": "y"},
    ]
    for n, stranger in enumerate(strangers):
        path = tmp_path / f"{n}.jsonl"
        path.write_bytes(lines(stranger))
    assert set(Read(tmp_path).codes) == {"UNKNOWN_FORMAT"}


@pytest.mark.parametrize(
    ("costs", "expected"), [((0.5, 0.25), 0.75), ((0.5, None), None), ((0, 0.001), None), ((None, None), None)]
)
def test_a_cost_that_some_calls_lack_is_no_cost_of_the_session(
    tmp_path: Path, costs: tuple[float | None, ...], expected: float | None
) -> None:
    calls = [
        observation(
            f"g{n}", None, "GENERATION", n, model="m", usageDetails={"input": 1000, "output": 10}, totalCost=cost,
            input=[{"role": "user", "content": f"q{n}"}], output={"role": "assistant", "content": f"a{n}"},
        )
        for n, cost in enumerate(costs)
    ]  # fmt: skip
    assert Read(write(tmp_path, *calls)).session["logged_cost_usd"] == expected
