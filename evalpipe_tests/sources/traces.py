"""Small traces in the real shapes, written for these tests: one conversation in every format."""

from __future__ import annotations

import json
from typing import Any

#: 2026-01-05T10:00:00Z in seconds.
T0 = 1_767_607_200
ASK, ANSWER, THANKS = "Where is parcel 7?", "It is in Bonn.", "Thanks, that helps."


def iso(second: float) -> str:
    return f"2026-01-05T10:00:{second:06.3f}Z"


def nanos(second: float) -> str:
    return str(T0 * 10**9 + round(second * 10**9))


def otel_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [otel_value(item) for item in value]}}
    return {"stringValue": value}


def otel_span(
    span_id: str, parent: str | None, name: str, start: float, end: float, trace: str = "t1", **fields: Any
) -> dict[str, Any]:
    """A span of OTLP; ``attributes`` may be a plain object."""
    attributes = fields.pop("attributes", {})
    span = {
        "traceId": trace,
        "spanId": span_id,
        "name": name,
        "startTimeUnixNano": nanos(start),
        "endTimeUnixNano": nanos(end),
        "attributes": [{"key": key, "value": otel_value(value)} for key, value in attributes.items()],
        "status": {"code": 0},
        **fields,
    }
    return span if parent is None else {**span, "parentSpanId": parent}


def otel_log(second: float, name: str, body: dict[str, Any], span_id: str = "l", **more: Any) -> dict[str, Any]:
    """A log record of OTLP that tells of a model call."""
    values = [{"key": key, "value": otel_value(value)} for key, value in body.items()]
    return {
        "timeUnixNano": nanos(second), "traceId": "t1", "spanId": span_id, "eventName": name,
        "body": {"kvlistValue": {"values": values}}, **more,
    }  # fmt: skip


def otlp(*spans: dict[str, Any], **resource: Any) -> dict[str, Any]:
    facts = {"service.name": "parcels", "service.version": "2.0.1", **resource}
    attributes = [{"key": key, "value": otel_value(value)} for key, value in facts.items()]
    return {
        "resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]
    }


def parts(role: str, *inside: Any) -> dict[str, Any]:
    """A message in the parts of OpenTelemetry; text stands for a text part."""
    return {
        "role": role,
        "parts": [{"type": "text", "content": p} if isinstance(p, str) else p for p in inside],
    }


CALL_PART = {"type": "tool_call", "id": "c1", "name": "track", "arguments": {"parcel": 7}}
RESULT_PART = {"type": "tool_call_response", "id": "c1", "response": "Bonn"}


def chat(
    span_id: str,
    parent: str | None,
    start: float,
    inputs: list[Any],
    outputs: list[Any],
    trace: str = "t1",
    **more: Any,
) -> dict[str, Any]:
    """A model call of OTLP in today's names."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m-alias",
        "gen_ai.response.model": "m-1",
        "gen_ai.input.messages": json.dumps(inputs),
        "gen_ai.output.messages": json.dumps(outputs),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
        **more.pop("attributes", {}),
    }
    return otel_span(span_id, parent, "chat m-1", start, start + 1, trace, attributes=attributes, **more)


def agent(span_id: str, start: float, end: float, trace: str = "t1", parent: str | None = None, **more: Any) -> Any:
    """An agent's run of OTLP."""
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "helper",
        "gen_ai.conversation.id": "s1",
        "user.id": "u1",
        **more.pop("attributes", {}),
    }
    return otel_span(span_id, parent, "invoke_agent helper", start, end, trace, attributes=attributes, **more)


def tool(span_id: str, parent: str, start: float, trace: str = "t1", **more: Any) -> dict[str, Any]:
    """A tool's run of OTLP."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "track",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"parcel":7}',
        "gen_ai.tool.call.result": "Bonn",
        **more.pop("attributes", {}),
    }
    return otel_span(span_id, parent, "execute_tool track", start, start + 0.5, trace, attributes=attributes, **more)


HISTORY = [
    parts("system", "Be brief."),
    parts("user", ASK),
    parts("assistant", CALL_PART),
    parts("tool", RESULT_PART),
]
OTLP = otlp(
    agent("a1", 0, 5),
    chat("l1", "a1", 1, HISTORY[:2], HISTORY[2:3]),
    tool("x1", "a1", 2),
    chat("l2", "a1", 3, HISTORY, [parts("assistant", ANSWER)]),
    agent("a2", 10, 12, "t2"),
    chat(
        "l3",
        "a2",
        11,
        [*HISTORY, parts("assistant", ANSWER), parts("user", THANKS)],
        [parts("assistant", "Bye.")],
        "t2",
    ),
)

LEGACY = otlp(
    otel_span("a1", None, "parcels.workflow", 0, 5, attributes={
        "traceloop.span.kind": "workflow", "traceloop.association.properties.session_id": "s1",
        "traceloop.association.properties.user_id": "u1",
        "traceloop.entity.input": json.dumps({"inputs": {"message": ASK}}),
        "traceloop.entity.output": json.dumps({"outputs": ANSWER}),
    }),
    otel_span("l1", "a1", "openai.chat", 1, 2, attributes={
        "llm.request.type": "chat", "gen_ai.system": "OpenAI", "gen_ai.request.model": "m-alias",
        "gen_ai.response.model": "m-1",
        "gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "Be brief.",
        "gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": ASK,
        "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.finish_reason": "tool_calls",
        "gen_ai.completion.0.tool_calls.0.id": "c1", "gen_ai.completion.0.tool_calls.0.name": "track",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"parcel":7}',
        "gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 10,
    }),
    otel_span("x1", "a1", "track.tool", 2, 2.5, attributes={
        "traceloop.span.kind": "tool", "traceloop.entity.name": "track",
        "traceloop.entity.input": '{"parcel": 7}', "traceloop.entity.output": "Bonn",
    }),
    otel_span("l2", "a1", "openai.chat", 3, 4, attributes={
        "llm.request.type": "chat", "gen_ai.response.model": "m-1",
        "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": ASK,
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.content": '{"type":"tool_call","id":"c1","name":"track","arguments":{"parcel":7}}',
        "gen_ai.prompt.2.role": "tool", "gen_ai.prompt.2.content": "Bonn", "gen_ai.prompt.2.tool_call_id": "c1",
        "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": ANSWER,
        "gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 10,
    }),
)  # fmt: skip


def phoenix_row(span_id: str, parent: str | None, kind: str, start: float, **attributes: Any) -> dict[str, Any]:
    """A row of Phoenix's data frame of spans."""
    return {
        "name": kind.lower(),
        "span_kind": kind,
        "parent_id": parent,
        "start_time": f"2026-01-05 10:00:{start:09.6f}+00:00",
        "end_time": f"2026-01-05 10:00:{start + 1:09.6f}+00:00",
        "status_code": "OK",
        "status_message": "",
        "events": [],
        "context.span_id": span_id,
        "context.trace_id": "t1",
        **{f"attributes.{key}": value for key, value in attributes.items()},
    }


def oi(role: str, content: str | None = None, **more: Any) -> dict[str, Any]:
    """A message in OpenInference's flat names."""
    return {"message.role": role, **({} if content is None else {"message.content": content}), **more}


OI_CALL = {
    "message.tool_calls": [
        {
            "tool_call.id": "c1",
            "tool_call.function.name": "track",
            "tool_call.function.arguments": '{"parcel": 7}',
        }
    ]
}
PHOENIX = [
    phoenix_row("a1", None, "AGENT", 0, **{"input.value": ASK, "session.id": "s1", "user.id": "u1", "output.value": ANSWER}),
    phoenix_row(
        "l1", "a1", "LLM", 1,
        **{
            "llm.model_name": "m-1",
            "llm.input_messages": [oi("system", "Be brief."), oi("user", ASK)],
            "llm.output_messages": [oi("assistant", None, **OI_CALL)],
            "llm.token_count.prompt": 100.0, "llm.token_count.completion": 10.0,
        },
    ),
    phoenix_row("x1", "a1", "TOOL", 2, **{"tool.name": "track", "input.value": '{"parcel": 7}', "output.value": "Bonn"}),
    phoenix_row(
        "l2", "a1", "LLM", 3,
        **{
            "llm.model_name": "m-1",
            # Exports of Phoenix's database hold Python's repr.
            "llm.input_messages": repr([oi("system", "Be brief."), oi("user", ASK), oi("assistant", None, **OI_CALL),
                                        oi("tool", "Bonn", **{"message.tool_call_id": "c1"})]),
            "llm.output_messages": repr([oi("assistant", ANSWER)]),
            "llm.token_count.prompt": 100, "llm.token_count.completion": 10,
            "session.id": "None",
        },
    ),
]  # fmt: skip


def openai(role: str, content: str | None, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


OPENAI_CALL = {"id": "c1", "type": "function", "function": {"name": "track", "arguments": '{"parcel": 7}'}}
OPENAI = [
    openai("system", "Be brief."),
    openai("user", ASK),
    openai("assistant", None, tool_calls=[OPENAI_CALL]),
    openai("tool", "Bonn", tool_call_id="c1"),
]


def observation(span_id: str, parent: str | None, kind: str, start: float, **fields: Any) -> dict[str, Any]:
    return {
        "id": span_id,
        "traceId": "t1",
        "type": kind,
        "name": kind.lower(),
        "parentObservationId": parent,
        "startTime": iso(start),
        "endTime": iso(start + 1),
        "level": "DEFAULT",
        "statusMessage": None,
        "metadata": None,
        "input": None,
        "output": None,
        **fields,
    }


LANGFUSE_OBSERVATIONS = [
    observation("a1", None, "AGENT", 0, name="helper"),
    observation(
        "l1", "a1", "GENERATION", 1, model="m-1", input=json.dumps(OPENAI[:2]), output=json.dumps(OPENAI[2]),
        usageDetails={"input": 100, "output": 10, "total": 110}, totalCost=0.25, timeToFirstToken=0.2,
    ),
    observation("x1", "a1", "TOOL", 2, name="track", input='{"parcel": 7}', output='"Bonn"'),
    observation(
        "l2", "a1", "GENERATION", 3, model="m-1", input=OPENAI, output=openai("assistant", ANSWER),
        usageDetails={"input": 100, "output": 10, "total": 110}, totalCost=0.5,
    ),
]  # fmt: skip
LANGFUSE_TRACE = {
    "id": "t1",
    "projectId": "p",
    "name": "parcels",
    "timestamp": iso(0),
    "userId": "u1",
    "sessionId": "s1",
    "release": "2.0.1",
    "version": None,
    "input": json.dumps(ASK),
    "output": json.dumps(ANSWER),
    "metadata": {"scenario": "shipping"},
    "scores": [
        {"name": "toxicity", "value": 1, "source": "EVAL", "dataType": "NUMERIC"},
        {"name": "task_success", "value": 1, "source": "API", "dataType": "BOOLEAN"},
        {"name": "correctness", "value": 0, "source": "EVAL", "dataType": "NUMERIC"},
    ],
}
LANGFUSE = {"trace": LANGFUSE_TRACE, "observations": LANGFUSE_OBSERVATIONS}


def lc(kind: str, content: str, **kwargs: Any) -> dict[str, Any]:
    """A message as LangChain serialises it."""
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", kind],
        "kwargs": {"content": content, **kwargs},
    }


LC_CALL = {"name": "track", "args": {"parcel": 7}, "id": "c1", "type": "tool_call"}
LC = [
    lc("SystemMessage", "Be brief.", type="system"),
    lc("HumanMessage", ASK, type="human"),
    lc("AIMessage", "", type="ai", tool_calls=[LC_CALL]),
    lc("ToolMessage", "Bonn", type="tool", tool_call_id="c1", status="success"),
]


def run(run_id: str, path: str, kind: str, start: float, **fields: Any) -> dict[str, Any]:
    """A run of LangSmith; ``path`` holds the ids from the root on."""
    order = ".".join(f"20260105T10000{n}000000Z{part}" for n, part in enumerate(path.split("/")))
    return {
        "id": run_id,
        "name": kind,
        "run_type": kind,
        "trace_id": path.split("/")[0],
        "dotted_order": order,
        "start_time": iso(start)[:-1],
        "end_time": iso(start + 1)[:-1],
        "error": None,
        "extra": {"metadata": {"thread_id": "s1", "user_id": "u1", "revision_id": "2.0.1", "ls_model_name": "m-alias"}},
        **fields,
    }


def generation(message: dict[str, Any]) -> dict[str, Any]:
    message["kwargs"] |= {
        "usage_metadata": {
            "input_tokens": 100, "output_tokens": 10, "total_tokens": 110, "input_token_details": {"cache_read": 40},
        },
        "response_metadata": {"model_name": "m-1"},
    }  # fmt: skip
    return {"generations": [[{"text": "", "message": message}]]}


LANGSMITH = [
    run(
        "r1", "r1", "chain", 0, name="helper", inputs={"messages": [{"role": "user", "content": ASK}]},
        outputs={"messages": [{"type": "human", "content": ASK}, {"type": "ai", "content": ANSWER}]},
        feedback_stats={"tone": {"n": 1, "avg": 0.1}, "correct": {"n": 1, "avg": 1.0}},
    ),
    run(
        "r2", "r1/r2", "llm", 1, inputs={"messages": [LC[:2]]},
        outputs=generation(lc("AIMessage", "", type="ai", tool_calls=[LC_CALL])),
        events=[{"name": "start", "time": iso(1)}, {"name": "new_token", "time": iso(1.25)}],
    ),
    run(
        "r3", "r1/r3", "tool", 2, name="track", inputs={"input": "{'parcel': 7}"},
        outputs={"output": {"type": "tool", "content": "Bonn", "tool_call_id": "c1", "status": "success"}},
    ),
    run("r4", "r1/r4", "llm", 3, inputs={"messages": [LC]}, outputs=generation(lc("AIMessage", ANSWER, type="ai"))),
]  # fmt: skip


def mlflow_span(span_id: str, parent: str | None, kind: str, start: float, **attributes: Any) -> dict[str, Any]:
    return {
        "trace_id": "dDE=",
        "span_id": span_id,
        "parent_span_id": parent,
        "name": kind.lower(),
        "start_time_unix_nano": int(nanos(start)),
        "end_time_unix_nano": int(nanos(start + 1)),
        "events": [],
        "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": {
            "mlflow.spanType": json.dumps(kind),
            **{f"mlflow.{key}": json.dumps(value) for key, value in attributes.items()},
        },
    }


USED = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
MLFLOW = {
    "info": {
        "trace_id": "tr-1",
        "request_time": iso(0),
        "state": "OK",
        "trace_metadata": {
            "mlflow.trace.session": "s1", "mlflow.trace.user": "u1", "mlflow.modelId": "2.0.1",
            "mlflow.traceInputs": json.dumps({"question": ASK}), "mlflow.trace_schema.version": "3",
        },
        "tags": {"mlflow.traceName": "helper", "domain": "shipping", "task_id": "7"},
        "assessments": [
            {"assessment_name": "task_reward", "source": {"source_type": "CODE"}, "feedback": {"value": 1.0}},
            {"assessment_name": "correctness", "source": {"source_type": "LLM_JUDGE"}, "feedback": {"value": False}},
        ],
    },
    "data": {
        "spans": [
            mlflow_span("a1", None, "AGENT", 0),
            mlflow_span(
                "l1", "a1", "CHAT_MODEL", 1, spanInputs={"messages": OPENAI[:2], "model": "m-1"},
                spanOutputs={"choices": [{"message": OPENAI[2]}]}, **{"chat.tokenUsage": USED},
            ),
            {**mlflow_span("x1", "a1", "TOOL", 2, spanInputs={"parcel": 7}, spanOutputs="Bonn"), "name": "track"},
            mlflow_span(
                "l2", "a1", "CHAT_MODEL", 3, spanInputs={"messages": OPENAI, "model": "m-1"},
                spanOutputs={"choices": [{"message": openai("assistant", ANSWER)}]}, **{"chat.tokenUsage": USED},
            ),
        ]
    },
}  # fmt: skip


def coze_step(step_id: str, parent: str | None, kind: str | None, start: float, **fields: Any) -> dict[str, Any]:
    step = {
        "id": step_id,
        "parent_id": parent,
        "type": kind,
        "name": fields.pop("name", kind),
        "input": fields.pop("input", ""),
        "output": fields.pop("output", ""),
        "basic_info": {"started_at": str(int(nanos(start)) // 10**6), "duration": "1000"},
        **fields,
    }
    return {key: value for key, value in step.items() if value is not None}


COZE_TOKENS = {"input_tokens": "100", "output_tokens": "10", "latency_first_resp": "200", "reasoning_tokens": "4"}
COZE_LOOP = {
    "id": "t1",
    "root_step": coze_step(
        "a1", None, None, 0, name="helper", input=ASK, output=ANSWER,
        metadata={"thread_id": "s1", "user_id": "u1", "version": "2.0.1"},
    ),
    "agent_steps": [
        {
            **coze_step("a1", "0", None, 0, name="helper", input=ASK, output=ANSWER),
            "steps": [
                coze_step(
                    "l1", "g1", "model", 1, input=json.dumps({"messages": OPENAI[:2], "model": "m-1"}),
                    output=json.dumps({"choices": [{"message": OPENAI[2]}]}), model_info=COZE_TOKENS,
                ),
                coze_step("x1", "a1", "tool", 2, name="track", input='{"parcel": 7}', output="Bonn"),
                coze_step(
                    "l2", "a1", "model", 3, input=json.dumps({"messages": OPENAI, "model": "m-1"}),
                    output=json.dumps({"choices": [{"message": openai("assistant", ANSWER)}]}), model_info=COZE_TOKENS,
                ),
            ],
        }
    ],
}  # fmt: skip

#: Every format: the source that must recognise it, and its records.
FORMATS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "otlp": ("otlp", [OTLP]),
    "otlp_legacy": ("otlp", [LEGACY]),
    "phoenix": ("phoenix", PHOENIX),
    "langfuse": ("langfuse", [LANGFUSE]),
    "langfuse_trace": ("langfuse", [{**LANGFUSE_TRACE, "observations": LANGFUSE_OBSERVATIONS}]),
    "langfuse_apart": ("langfuse", [*LANGFUSE_OBSERVATIONS, LANGFUSE_TRACE]),
    "langsmith": ("langsmith", LANGSMITH),
    "mlflow": ("mlflow", [MLFLOW]),
    "coze_loop": ("coze_loop", [COZE_LOOP]),
}
