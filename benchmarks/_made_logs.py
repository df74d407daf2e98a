"""Logs of one made-up work day in every format that ``read_logs.py`` times.

Belongs here: the conversations, and how each format writes them. Does not belong here: timing.
All formats hold the same conversations, so that their speeds can be compared: a person asks, the
agent calls a tool, reads 0.1 to 4 KB of output, and answers. Traces resend the conversation with every
call, as instrumentations do. The same seed gives the same bytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

_START = datetime(2026, 1, 5, 8, tzinfo=UTC)
_SYLLABLES = ["ka", "lo", "mi", "ren", "tu", "sa", "ve", "dor", "pi", "ne", "gal", "ti", "shu", "ba", "er", "on"]
_TOOLS = ("search_orders", "read_file", "run_tests", "edit_file", "lookup_customer")
_PROMPT = "You help people with their orders and with the program that handles them. Be brief, and never guess. " * 6


@dataclass(frozen=True)
class Turn:
    """One question, the call it led to, and the answer."""

    at: datetime
    ask: str
    call_id: str
    tool: str
    arguments: dict[str, Any]
    output: str
    answer: str


@dataclass(frozen=True)
class Talk:
    """One conversation."""

    key: str
    user: str
    turns: tuple[Turn, ...]


def talks(n: int, n_turns: int, scale: float = 1.0, seed: int = 7) -> list[Talk]:
    """Conversations of the day.

    Args:
        n: How many.
        n_turns: Mean number of questions in each.
        scale: Length of all texts relative to the usual one.
        seed: Of the random texts.
    """
    draw = random.Random(seed)
    words = ["".join(draw.choices(_SYLLABLES, k=draw.randint(1, 4))) for _ in range(3000)]

    def text(low: int, high: int) -> str:
        found = draw.choices(words, k=max(2, int(draw.randint(low, high) * scale / 6)))
        # Line ends, quotes and a few wide letters: what makes real logs dearer to parse than letters.
        return " ".join(found[:-1]) + draw.choice((".\n", ' "so".\n', " é.\n", ".\n- ")) + found[-1]

    out = []
    for n_talk in range(n):
        at = _START + timedelta(seconds=7 * n_talk)
        turns = []
        for n_turn in range(draw.randint(max(1, n_turns // 2), n_turns + n_turns // 2)):
            at += timedelta(seconds=draw.randint(20, 200), milliseconds=draw.randint(1, 999))
            tool = draw.choice(_TOOLS)
            arguments = {
                "query": text(10, 120),
                "limit": draw.randint(1, 50),
                "path": f"/srv/app/{draw.choice(words)}.py",
            }
            said = text(20, 400), f"call_{n_talk}_{n_turn}", tool, arguments, text(100, 4000), text(100, 900)
            turns.append(Turn(at, *said))
        out.append(Talk(f"{draw.getrandbits(128):032x}", f"user-{n_talk % 50}", tuple(turns)))
    return out


def _iso(at: datetime, later: float = 0) -> str:
    return (at + timedelta(seconds=later)).isoformat(timespec="milliseconds")[:23] + "Z"


def _nanos(at: datetime, later: float = 0) -> int:
    return int((at + timedelta(seconds=later)).timestamp() * 1000) * 10**6


def _dumped(value: object) -> str:
    return orjson.dumps(value).decode()


def _openai(turn: Turn) -> list[dict[str, Any]]:
    """A turn as messages: question, call, result, answer."""
    function = {"name": turn.tool, "arguments": _dumped(turn.arguments)}
    return [
        {"role": "user", "content": turn.ask},
        {"role": "assistant", "content": None, "tool_calls": [{"id": turn.call_id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": turn.call_id, "content": turn.output},
        {"role": "assistant", "content": turn.answer},
    ]  # fmt: skip


def _spans(talk: Talk) -> Iterator[tuple[Turn, str, list[dict[str, Any]]]]:
    """Each turn with the id of its trace, and input and output of its two model calls."""
    history: list[dict[str, Any]] = [{"role": "system", "content": _PROMPT}]
    for n, turn in enumerate(talk.turns):
        said = _openai(turn)
        first, second = [*history, said[0]], [*history, *said[:3]]
        yield turn, f"{talk.key[:28]}{n:04x}", [{"in": first, "out": said[1]}, {"in": second, "out": said[3]}]
        history += said


def evalpipe(talk: Talk) -> Iterator[Any]:
    """evalpipe's own lines."""
    yield {
        "evalpipe": 1, "type": "session", "session_id": talk.key, "agent": "helper", "agent_release": "1.4.0",
        "model": "m-1", "user_id": talk.user, "started_at": _iso(talk.turns[0].at), "scenario": "orders",
    }  # fmt: skip
    base = {"type": "step", "session_id": talk.key}
    for turn in talk.turns:
        used = {"input": 900, "output": 120, "cache_read": 4000, "cache_write": 0, "reasoning": 0}
        yield {**base, "kind": "user", "text": turn.ask, "at": _iso(turn.at)}
        yield {
            **base, "kind": "tool", "step_id": turn.call_id, "name": turn.tool, "arguments": turn.arguments,
            "output": turn.output, "exit_code": 0, "is_error": False, "started_at": _iso(turn.at, 2),
            "ended_at": _iso(turn.at, 3),
        }  # fmt: skip
        yield {**base, "kind": "agent", "text": turn.answer, "at": _iso(turn.at, 6), "model": "m-1", "tokens": used}
    yield {"type": "end", "session_id": talk.key, "status": "completed", "at": _iso(talk.turns[-1].at, 7)}


def claude_code(talk: Talk) -> Iterator[Any]:
    """Claude Code's lines."""
    last = None
    for n, turn in enumerate(talk.turns):
        usage = {
            "input_tokens": 9,
            "cache_read_input_tokens": 14000,
            "cache_creation_input_tokens": 300,
            "output_tokens": 90,
        }
        blocks: list[tuple[str, float, Any, dict[str, Any]]] = [
            ("user", 0, turn.ask, {}),
            ("assistant", 2, [{"type": "tool_use", "id": turn.call_id, "name": turn.tool, "input": turn.arguments}], {}),
            (
                "user", 3, [{"type": "tool_result", "tool_use_id": turn.call_id, "content": turn.output, "is_error": False}],
                {"toolUseResult": {"stdout": turn.output, "stderr": "", "interrupted": False}},
            ),
            ("assistant", 6, [{"type": "text", "text": turn.answer}], {}),
        ]  # fmt: skip
        for place, (kind, later, content, more) in enumerate(blocks):
            message: dict[str, Any] = {"role": kind, "content": content}
            if kind == "assistant":
                message |= {"id": f"msg_{n}_{place}", "type": "message", "model": "m-1", "usage": usage}
            uuid = f"{talk.key[:20]}-{n:05d}-{place}"
            yield {
                "parentUuid": last, "isSidechain": False, "userType": "external", "cwd": "/srv/app", "version": "2.0.1",
                "sessionId": talk.key, "gitBranch": "main", "type": kind, "message": message, "uuid": uuid,
                "timestamp": _iso(turn.at, later), **more,
            }  # fmt: skip
            last = uuid


def codex(talk: Talk) -> Iterator[Any]:
    """A Codex rollout; a file holds one."""
    head = {"id": talk.key, "timestamp": _iso(talk.turns[0].at), "cwd": "/srv/app", "cli_version": "0.40.0"}
    yield {"timestamp": _iso(talk.turns[0].at), "type": "session_meta", "payload": head}
    for turn in talk.turns:
        yield {"timestamp": _iso(turn.at), "type": "turn_context", "payload": {"cwd": "/srv/app", "model": "m-1"}}
        items = [
            (0, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": turn.ask}]}),
            (2, {"type": "function_call", "name": turn.tool, "arguments": _dumped(turn.arguments), "call_id": turn.call_id}),
            (3, {
                "type": "function_call_output", "call_id": turn.call_id,
                "output": _dumped({"output": turn.output, "metadata": {"exit_code": 0, "duration_seconds": 0.4}}),
            }),
            (6, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": turn.answer}]}),
        ]  # fmt: skip
        for later, payload in items:
            yield {"timestamp": _iso(turn.at, later), "type": "response_item", "payload": payload}


def openai_messages(talk: Talk) -> Iterator[Any]:
    """Rows with ``messages``."""
    said = [message for turn in talk.turns for message in _openai(turn)]
    yield {
        "id": talk.key,
        "model": "m-1",
        "user": talk.user,
        "messages": [{"role": "system", "content": _PROMPT}, *said],
    }


def anthropic_messages(talk: Talk) -> Iterator[Any]:
    """Rows with ``messages`` of blocks."""
    said: list[dict[str, Any]] = []
    for turn in talk.turns:
        said += [
            {"role": "user", "content": turn.ask},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": turn.call_id, "name": turn.tool, "input": turn.arguments}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": turn.call_id, "content": [{"type": "text", "text": turn.output}]}]},
            {"role": "assistant", "content": [{"type": "text", "text": turn.answer}],
             "usage": {"input_tokens": 900, "output_tokens": 120}},
        ]  # fmt: skip
    yield {"id": talk.key, "model": "m-1", "system": _PROMPT, "messages": said}


def sharegpt(talk: Talk) -> Iterator[Any]:
    """Rows with ``conversations``."""
    said = []
    for turn in talk.turns:
        call = _dumped({"name": turn.tool, "arguments": turn.arguments})
        pairs = ("human", turn.ask), ("function_call", call), ("observation", turn.output), ("gpt", turn.answer)
        said += [{"from": speaker, "value": value} for speaker, value in pairs]
    yield {"id": f"identity_{talk.user}", "system": _PROMPT, "conversations": said}


def wildchat(talk: Talk) -> Iterator[Any]:
    """Rows as WildChat publishes them, with the moderation of each message."""
    scores = dict.fromkeys(_TOOLS, 0.000123456789)
    said = []
    for n, turn in enumerate(talk.turns):
        same = {"language": "English", "redacted": False, "toxic": False, "turn_identifier": n}
        said.append({"content": turn.ask, "role": "user", "hashed_ip": talk.key, "timestamp": None, **same})
        said.append({"content": turn.answer, "role": "assistant", "timestamp": _iso(turn.at)[:19] + "+00:00", **same})
    moderation = [
        {"categories": dict.fromkeys(_TOOLS, False), "category_scores": scores, "flagged": False} for _ in said
    ]
    yield {
        "conversation_hash": talk.key, "model": "m-1", "timestamp": _iso(talk.turns[-1].at)[:19] + "+00:00",
        "conversation": said, "turn": len(talk.turns), "language": "English", "openai_moderation": moderation,
        "detoxify_moderation": [scores for _ in said], "toxic": False, "redacted": False, "hashed_ip": talk.key,
    }  # fmt: skip


def inspect(talk: Talk) -> Iterator[Any]:
    """Samples of Inspect's logs with their events."""
    messages: list[dict[str, Any]] = [{"id": "m0", "role": "system", "content": _PROMPT}]
    events: list[dict[str, Any]] = [
        {"event": "span_begin", "id": "solver", "type": "solver", "name": "solver", "timestamp": _iso(talk.turns[0].at)}
    ]
    for n, turn in enumerate(talk.turns):
        call = {"id": turn.call_id, "function": turn.tool, "arguments": turn.arguments}
        said = [
            {"id": f"u{n}", "role": "user", "content": turn.ask},
            {"id": f"c{n}", "role": "assistant", "content": "", "tool_calls": [call]},
            {
                "id": f"t{n}",
                "role": "tool",
                "tool_call_id": turn.call_id,
                "function": turn.tool,
                "content": turn.output,
            },
            {"id": f"a{n}", "role": "assistant", "content": turn.answer},
        ]
        for place, later in ((1, 2.0), (3, 6.0)):
            usage = {"input_tokens": 900, "output_tokens": 120}
            events.append({
                "event": "model", "uuid": f"e{n}{place}", "span_id": "solver", "timestamp": _iso(turn.at, later - 1),
                "completed": _iso(turn.at, later), "model": "lab/m-1", "input": [*messages, *said[:place]],
                "output": {"choices": [{"message": said[place]}], "usage": usage},
            })  # fmt: skip
        events.append({
            "event": "tool", "id": turn.call_id, "span_id": "solver", "function": turn.tool, "arguments": turn.arguments,
            "result": turn.output, "timestamp": _iso(turn.at, 2), "completed": _iso(turn.at, 3),
        })  # fmt: skip
        messages += said
    yield {
        "id": talk.key, "epoch": 1, "input": talk.turns[0].ask, "target": "x", "uuid": talk.key, "messages": messages,
        "events": events, "scores": {"match": {"value": "C"}},
    }  # fmt: skip


def _parts(message: dict[str, Any]) -> dict[str, Any]:
    """A message in the parts of OpenTelemetry's conventions."""
    if message["role"] == "tool":
        part = {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
        return {"role": "tool", "parts": [part]}
    if call := message.get("tool_calls"):
        function = call[0]["function"]
        arguments = orjson.loads(function["arguments"])
        part = {"type": "tool_call", "id": call[0]["id"], "name": function["name"], "arguments": arguments}
        return {"role": "assistant", "parts": [part]}
    return {"role": message["role"], "parts": [{"type": "text", "content": message["content"]}]}


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = {int: "intValue", str: "stringValue"}
    return [
        {"key": key, "value": {kinds[type(value)]: str(value)}} for key, value in values.items()
    ]  # integers are text in OTLP's JSON


def otlp(talk: Talk) -> Iterator[Any]:
    """Export requests of OpenTelemetry, one a turn."""
    resource = {"attributes": _attributes({"service.name": "orders", "service.version": "1.4.0"})}
    for turn, trace, calls in _spans(talk):
        ids = [f"{trace[-12:]}{n:04x}" for n in range(4)]
        chats = [
            {
                "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.response.model": "m-1",
                "gen_ai.usage.input_tokens": 900, "gen_ai.usage.output_tokens": 120,
                "gen_ai.input.messages": _dumped([_parts(m) for m in call["in"]]),
                "gen_ai.output.messages": _dumped([_parts(call["out"])]),
            }
            for call in calls
        ]  # fmt: skip
        agent = {
            "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper", "gen_ai.conversation.id": talk.key,
            "user.id": talk.user,
        }  # fmt: skip
        tool = {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": turn.tool, "gen_ai.tool.call.id": turn.call_id,
            "gen_ai.tool.call.arguments": _dumped(turn.arguments), "gen_ai.tool.call.result": turn.output,
        }  # fmt: skip
        spans = [
            {
                "traceId": trace, "spanId": ids[n], "parentSpanId": ids[0] if n else "", "name": name, "kind": 1,
                "startTimeUnixNano": str(_nanos(turn.at, start)), "endTimeUnixNano": str(_nanos(turn.at, end)),
                "attributes": _attributes(values), "status": {"code": 1},
            }
            for n, (name, start, end, values) in enumerate([
                ("invoke_agent helper", 0, 6, agent), ("chat m", 1, 2, chats[0]), ("execute_tool", 2, 3, tool),
                ("chat m", 3, 6, chats[1]),
            ])
        ]  # fmt: skip
        yield {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "made"}, "spans": spans}]}]}


def langfuse(talk: Talk) -> Iterator[Any]:
    """Traces of Langfuse with their observations."""
    for turn, trace, calls in _spans(talk):

        def seen(
            kind: str, n: int, start: float, end: float, turn: Turn = turn, trace: str = trace, **more: Any
        ) -> Any:
            return {
                "id": f"{trace}{n}", "traceId": trace, "type": kind, "parentObservationId": f"{trace}0" if n else None,
                "startTime": _iso(turn.at, start), "endTime": _iso(turn.at, end), "level": "DEFAULT",
                "statusMessage": None, "metadata": None, "version": None, "environment": "default", **more,
            }  # fmt: skip

        observations = [seen("AGENT", 0, 0, 6, name="helper", input=None, output=None)]
        for n, (call, start, end) in enumerate(zip(calls, (1, 3), (2, 6), strict=True)):
            observations.append(seen(
                "GENERATION", 1 + n, start, end, name="chat", model="m-1", input=_dumped(call["in"]),
                output=_dumped(call["out"]), usageDetails={"input": 900, "output": 120, "total": 1020}, totalCost=0.01,
            ))  # fmt: skip
        tool = seen("TOOL", 3, 2, 3, name=turn.tool, input=_dumped(turn.arguments), output=_dumped(turn.output))
        head = {
            "id": trace, "projectId": "p", "name": "helper", "timestamp": _iso(turn.at), "userId": talk.user,
            "sessionId": talk.key, "release": "1.4.0", "version": None, "input": turn.ask, "output": turn.answer,
            "metadata": {"scenario": "orders"}, "scores": [],
        }  # fmt: skip
        yield {"trace": head, "observations": [*observations, tool]}


def langsmith(talk: Talk) -> Iterator[Any]:
    """Runs of LangSmith, one a line."""
    kinds = {"system": "SystemMessage", "user": "HumanMessage", "assistant": "AIMessage", "tool": "ToolMessage"}

    def message(value: dict[str, Any], **more: Any) -> dict[str, Any]:
        kwargs: dict[str, Any] = {"content": value["content"] or "", **more}
        if value["role"] == "tool":
            kwargs |= {"tool_call_id": value["tool_call_id"], "status": "success"}
        for call in value.get("tool_calls", ()):
            function = call["function"]
            asked = {"name": function["name"], "args": orjson.loads(function["arguments"]), "id": call["id"]}
            kwargs["tool_calls"] = [{**asked, "type": "tool_call"}]
        names = ["langchain", "schema", "messages", kinds[value["role"]]]
        return {"lc": 1, "type": "constructor", "id": names, "kwargs": kwargs}

    for turn, trace, calls in _spans(talk):

        def run(n: int, kind: str, start: float, end: float, turn: Turn = turn, trace: str = trace, **more: Any) -> Any:
            order = f"20260105T100000000000Z{trace}"
            facts = {"thread_id": talk.key, "user_id": talk.user, "revision_id": "1.4.0", "ls_model_name": "m"}
            return {
                "id": f"{trace}{n}" if n else trace, "run_type": kind, "trace_id": trace, "error": None,
                "dotted_order": f"{order}.20260105T100001000000Z{trace}{n}" if n else order,
                "parent_run_id": trace if n else None, "start_time": _iso(turn.at, start)[:-1],
                "end_time": _iso(turn.at, end)[:-1], "extra": {"metadata": facts}, **more,
            }  # fmt: skip

        ask, answer = {"role": "user", "content": turn.ask}, {"type": "ai", "content": turn.answer}
        yield run(0, "chain", 0, 6, name="helper", inputs={"messages": [ask]}, outputs={"messages": [answer]})
        for n, (call, start, end) in enumerate(zip(calls, (1, 3), (2, 6), strict=True)):
            used = {"input_tokens": 900, "output_tokens": 120, "total_tokens": 1020}
            said = message(call["out"], usage_metadata=used, response_metadata={"model_name": "m-1"})
            inputs = {"messages": [[message(m) for m in call["in"]]]}
            yield run(
                1 + n, "llm", start, end, name="chat", inputs=inputs, outputs={"generations": [[{"message": said}]]}
            )
        output = {"type": "tool", "content": turn.output, "tool_call_id": turn.call_id, "status": "success"}
        yield run(3, "tool", 2, 3, name=turn.tool, inputs={"input": turn.arguments}, outputs={"output": output})


def phoenix(talk: Talk) -> Iterator[Any]:
    """Rows of Phoenix's frame of spans."""

    def flat(value: dict[str, Any]) -> dict[str, Any]:
        out = {"message.role": value["role"]}
        if value["content"] is not None:
            out["message.content"] = value["content"]
        if value["role"] == "tool":
            out["message.tool_call_id"] = value["tool_call_id"]
        if calls := value.get("tool_calls"):
            names = {f"tool_call.function.{key}": inner for key, inner in calls[0]["function"].items()}
            out["message.tool_calls"] = [{"tool_call.id": calls[0]["id"], **names}]
        return out

    for turn, trace, calls in _spans(talk):

        def row(kind: str, n: int, start: float, end: float, turn: Turn = turn, trace: str = trace, **more: Any) -> Any:
            return {
                "name": kind.lower(), "span_kind": kind, "parent_id": f"{trace[-15:]}0" if n else None,
                "start_time": _iso(turn.at, start), "end_time": _iso(turn.at, end), "status_code": "OK",
                "status_message": "", "events": [], "context.span_id": f"{trace[-15:]}{n}", "context.trace_id": trace,
                **{f"attributes.{key}": value for key, value in more.items()},
            }  # fmt: skip

        names = {"session.id": talk.key, "user.id": talk.user}
        yield row("AGENT", 0, 0, 6, **{"input.value": turn.ask, "output.value": turn.answer, **names})
        for n, (call, start, end) in enumerate(zip(calls, (1, 3), (2, 6), strict=True)):
            yield row("LLM", 1 + n, start, end, **{
                "llm.model_name": "m-1", "llm.input_messages": [flat(m) for m in call["in"]],
                "llm.output_messages": [flat(call["out"])], "llm.token_count.prompt": 900,
                "llm.token_count.completion": 120, "input.mime_type": "application/json",
            })  # fmt: skip
        values = {"tool.name": turn.tool, "input.value": _dumped(turn.arguments), "output.value": turn.output}
        yield row("TOOL", 3, 2, 3, **values)


def mlflow(talk: Talk) -> Iterator[Any]:
    """Traces of MLflow."""
    for turn, trace, calls in _spans(talk):

        def span(kind: str, n: int, name: str, start: float, turn: Turn = turn, trace: str = trace, **more: Any) -> Any:
            values = {
                "mlflow.spanType": _dumped(kind),
                **{f"mlflow.{key}": _dumped(inner) for key, inner in more.items()},
            }
            return {
                "trace_id": trace, "span_id": f"{trace[-15:]}{n}", "parent_span_id": f"{trace[-15:]}0" if n else None,
                "name": name, "start_time_unix_nano": _nanos(turn.at, start), "end_time_unix_nano": _nanos(turn.at, start + 1),
                "events": [], "status": {"code": "STATUS_CODE_OK", "message": ""}, "attributes": values,
            }  # fmt: skip

        spans = [span("AGENT", 0, "helper", 0)]
        for n, (call, start) in enumerate(zip(calls, (1, 3), strict=True)):
            spans.append(span("CHAT_MODEL", 1 + n, "chat", start, **{
                "spanInputs": {"messages": call["in"], "model": "m-1"}, "spanOutputs": {"choices": [{"message": call["out"]}]},
                "chat.tokenUsage": {"input_tokens": 900, "output_tokens": 120, "total_tokens": 1020},
            }))  # fmt: skip
        spans.append(span("TOOL", 3, turn.tool, 2, spanInputs=turn.arguments, spanOutputs=turn.output))
        facts = {"mlflow.trace.session": talk.key, "mlflow.trace.user": talk.user, "mlflow.modelId": "1.4.0"}
        info = {"trace_id": trace, "request_time": _iso(turn.at), "state": "OK", "trace_metadata": facts, "tags": {}}
        yield {"info": info, "data": {"spans": spans}}


Writer = Callable[[Talk], Iterator[Any]]

#: Formats: how a conversation is written, and whether each needs a file of its own.
FORMATS: dict[str, tuple[Writer, bool]] = {
    "claude_code": (claude_code, False),
    "codex": (codex, True),
    "evalpipe_jsonl": (evalpipe, False),
    "openai_messages": (openai_messages, False),
    "anthropic_messages": (anthropic_messages, False),
    "sharegpt": (sharegpt, False),
    "wildchat": (wildchat, False),
    "inspect": (inspect, False),
    "otlp": (otlp, False),
    "langfuse": (langfuse, False),
    "langsmith": (langsmith, False),
    "phoenix": (phoenix, False),
    "mlflow": (mlflow, False),
}
