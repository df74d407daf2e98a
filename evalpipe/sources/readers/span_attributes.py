"""Attributes of spans: OpenTelemetry's GenAI names old and new, OpenLLMetry, OpenInference, Vercel's AI SDK.

Belongs here: which attribute says what. Does not belong here: the files in which spans lie (OTLP,
Phoenix), or the shapes of messages (``chat.py``). Where several names say the same, the order of the
tables decides. The model that answered goes before the one asked for: an alias changes silently.
"""

from __future__ import annotations

import re
from typing import Any

from evalpipe.sources.readers.base import Record, word_of
from evalpipe.sources.readers.chat import Message, read_messages
from evalpipe.sources.readers.span_usage import tool_names, usage
from evalpipe.sources.readers.span_values import as_json, flatten, known, listed, loads_text, number_of
from evalpipe.sources.readers.spans import Span
from evalpipe.sources.readers.values import text_of
from evalpipe.sources.session import count

_LOOP = "traceloop.association.properties."
_SESSION = (
    "gen_ai.conversation.id", "session.id", f"{_LOOP}session_id", f"{_LOOP}thread_id", f"{_LOOP}conversation_id",
    "langfuse.session.id", "langsmith.trace.session_id", "ai.telemetry.metadata.sessionId", "metadata.session_id",
    "metadata.thread_id", "session_id", "thread_id",
)  # fmt: skip
_USER = (
    "user.id", "enduser.id", f"{_LOOP}user_id", "langfuse.user.id", "ai.telemetry.metadata.userId", "metadata.user_id",
    "user_id",
)  # fmt: skip
_MODEL = (
    "gen_ai.response.model", "llm.response.model", "ai.response.model", "llm.model_name", "gen_ai.request.model",
    "llm.request.model", "ai.model.id",
)  # fmt: skip
_AGENT = ("gen_ai.agent.name", "agent.name")
_RELEASE = ("gen_ai.agent.version", "langfuse.release", "service.version")

_INPUT = (
    "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "llm.usage.prompt_tokens",
    "ai.usage.inputTokens", "ai.usage.promptTokens",
)  # fmt: skip
_OUTPUT = (
    "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
    "llm.usage.completion_tokens", "ai.usage.outputTokens", "ai.usage.completionTokens",
)  # fmt: skip
_READ = (
    "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens", "gen_ai.usage.input_tokens.cached",
    "llm.token_count.prompt_details.cache_read", "llm.usage.cache_read_input_tokens", "ai.usage.cachedInputTokens",
)  # fmt: skip
_WRITE = (
    "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.cache_write_input_tokens", "gen_ai.usage.input_tokens.cache_write",
    "llm.token_count.prompt_details.cache_write", "llm.usage.cache_creation_input_tokens",
)  # fmt: skip
_REASONING = (
    "gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens", "gen_ai.usage.output_tokens.reasoning",
    "llm.token_count.completion_details.reasoning", "llm.usage.reasoning_tokens", "ai.usage.reasoningTokens",
)  # fmt: skip
_TOTAL = ("gen_ai.usage.total_tokens", "llm.token_count.total", "llm.usage.total_tokens", "ai.usage.totalTokens")
_COST = ("llm.cost.total", "gen_ai.usage.cost", "gen_ai.usage.total_cost")
_FIRST_TOKEN_S = ("gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token")
_FIRST_TOKEN_MS = ("ai.response.msToFirstChunk",)

_IN = (
    "gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages", "ai.prompt.messages", "llm.prompts",
    "gcp.vertex.agent.llm_request", "input.value", "traceloop.entity.input", "ai.prompt", "mlflow.spanInputs",
    "langfuse.observation.input", "langfuse.trace.input",
)  # fmt: skip
_OUT = (
    "gen_ai.output.messages", "gen_ai.completion", "llm.output_messages", "gcp.vertex.agent.llm_response",
    "output.value", "traceloop.entity.output", "mlflow.spanOutputs", "langfuse.observation.output",
    "langfuse.trace.output",
)  # fmt: skip
_OFFERED = ("gen_ai.tool.definitions", "llm.tools", "llm.request.functions")
_NUMBERED = re.compile(r"(.+?)\.\d+(?:\.|$)")
_DETAILS = ("gen_ai.content.prompt", "gen_ai.content.completion", "gen_ai.client.inference.operation.details")
_FACTS = ("metadata.", _LOOP, "langfuse.trace.metadata.", "ai.telemetry.metadata.")
_TOOL_NAME = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
_CALL_ID = ("gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id")
_ARGUMENTS = (
    "gen_ai.tool.call.arguments", "ai.toolCall.args", "gcp.vertex.agent.tool_call_args", "input.value",
    "traceloop.entity.input", "mlflow.spanInputs", "tool.parameters",
)  # fmt: skip
_RESULT = (
    "gen_ai.tool.call.result", "ai.toolCall.result", "gcp.vertex.agent.tool_response", "output.value",
    "traceloop.entity.output", "mlflow.spanOutputs", "retrieval.documents",
)  # fmt: skip

_WRAPPED = re.compile(r"^(?:agent_run|invoke_agent|invocation|create_agent)\s+\[?(.+?)\]?$", re.I)
_MADE = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}|[0-9a-f]{16,}", re.I)
_NOT_NAMES = frozenset({
    "", "agent", "agent workflow", "agentexecutor", "chain", "invoke_agent", "invocation", "langgraph",
    "runnablesequence", "trace", "unnamed trace", "chatopenai", "chatanthropic", "workflow",
})  # fmt: skip

_OPERATIONS = {
    "chat": "llm", "text_completion": "llm", "generate_content": "llm", "completion": "llm",
    "execute_tool": "tool", "invoke_agent": "agent", "retrieval": "retriever",
}  # fmt: skip
_KINDS = {
    "llm": "llm", "chat_model": "llm", "generation": "llm", "tool": "tool", "agent": "agent", "retriever": "retriever",
}  # fmt: skip
_EVENT_ROLES = {
    "gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}  # fmt: skip


def kind_of(flat: Record) -> str:
    """The kind of a span by its attributes, one of ``spans.KINDS``."""
    for key in ("openinference.span.kind", "traceloop.span.kind", "mlflow.spanType", "langfuse.observation.type"):
        name = flat.get(key)
        if type(name) is str:
            return _KINDS.get(name.lower(), "chain")
    operation = flat.get("gen_ai.operation.name")
    if type(operation) is str:
        return _OPERATIONS.get(operation, "chain")
    step = flat.get("ai.operationId")
    if type(step) is str:
        return "tool" if step == "ai.toolCall" else "llm" if step.endswith((".doGenerate", ".doStream")) else "chain"
    if "gen_ai.tool.name" in flat or flat.get("mcp.method.name") == "tools/call":
        return "tool"
    request = flat.get("llm.request.type")
    if type(request) is str:
        return "llm" if request in ("chat", "completion") else "chain"
    is_call = any(key.startswith(("gen_ai.prompt", "gen_ai.completion", "gen_ai.usage")) for key in flat)
    return "llm" if is_call and _first(flat, _MODEL) is not None else "chain"


def fill(span: Span, flat: Record, events: Any = None) -> None:
    """Fill a span from its attributes.

    Args:
        span: Has ids, name and times already; gets its kind and all that attributes tell.
        flat: Attributes by dotted name, those of the resource among them.
        events: The span's events: objects with ``name`` and flat ``attributes``.
    """
    span.kind = kind_of(flat)
    # Ids of single responses stand where conversations should be named.
    named = (_text(flat, key) for key in _SESSION if key in flat)
    span.session_id = next((v for v in named if v and not v.startswith("resp_")), None)
    span.user_id = _first(flat, _USER)
    span.agent = agent_name(_first(flat, _AGENT))
    service = text_of(flat.get("service.name"))
    span.service = None if service is None or service.startswith("unknown_service") else service
    span.release = _first(flat, _RELEASE)
    span.facts = _facts(flat)
    add_events(span, events if type(events) is list else [])
    if span.kind in ("tool", "retriever"):
        _tool(span, flat)
    else:
        _talk(span, flat)
    if span.kind in ("llm", "agent"):
        _usage(span, flat)
    if span.is_error and span.error_text is None:
        span.error_text = text_of(flat.get("exception.message")) or text_of(flat.get("error.type"))


def agent_name(name: str | None) -> str | None:
    """An agent's name without what the framework puts around it; ``None`` where no one chose it.

    Names made for one run (ids) would make an agent of every session.
    """
    if name is None:
        return None
    bare = _WRAPPED.sub(r"\1", name.strip())
    return None if bare.lower() in _NOT_NAMES or _MADE.fullmatch(bare) else bare


def _text(flat: Record, key: str) -> str | None:
    value = flat.get(key)
    return None if value is None or type(value) not in (str, int) or known(value) is None else str(value)


def _first(flat: Record, keys: tuple[str, ...]) -> str | None:
    # Loops rather than generators here: they are asked a dozen times for every span.
    for key in keys:
        if key in flat and (value := _text(flat, key)) is not None:
            return value
    return None


def _value(flat: Record, keys: tuple[str, ...]) -> Any:
    for key in keys:
        if key in flat and (value := known(flat[key])) is not None:
            return value
    return None


def _count(flat: Record, keys: tuple[str, ...]) -> int | None:
    for key in keys:
        if key in flat and (number := count(number_of(flat[key]))) is not None:
            return number
    return None


def _tool(span: Span, flat: Record) -> None:
    if span.kind == "tool":
        span.name = _first(flat, _TOOL_NAME) or span.name
    span.call_id = _first(flat, _CALL_ID)
    span.arguments = as_json(_value(flat, _ARGUMENTS))
    output = known(_value(flat, _RESULT))
    if output is None:
        output = listed(flat, "retrieval.documents")
    result(span, output)


def result(span: Span, output: object) -> None:
    """Put in what a tool gave back, which may be wrapped into a message with the id of its call."""
    found = loads_text(output)
    is_wrapped = type(found) is dict and not found.keys().isdisjoint({"tool_call_id", "kwargs", "messages", "message"})
    wrapped = read_messages(found, "user") if is_wrapped else []
    answers = [message for message in wrapped if message.role == "tool"]
    if len(answers) == 1:
        span.output = answers[0].text
        span.call_id = span.call_id or answers[0].call_id
        span.is_error = answers[0].is_error if span.is_error is None else span.is_error
    else:
        span.output = as_json(output)


def _talk(span: Span, flat: Record) -> None:
    """Messages in and out; those of events, where attributes hold none."""
    system = known(flat.get("gen_ai.system_instructions"))
    numbered = {match[1] for key in flat if (match := _NUMBERED.match(key))}
    for keys, role, into in ((_IN, "user", span.inputs), (_OUT, "assistant", span.outputs)):
        for key in keys:
            value = flat.get(key)
            if type(value) is not str or value[:1] != "[":
                value = listed(flat, key) if key in flat or key in numbered else None
            found = [] if value is None else read_messages(value, role)
            if found:
                into[:] = found
                break
    if system is not None:
        span.inputs[:0] = [message._replace(role="system") for message in read_messages(system, "system")]
    answer, asked = text_of(flat.get("ai.response.text")), known(flat.get("ai.response.toolCalls"))
    if not span.outputs and (answer or asked is not None):
        calls = [
            {"type": "tool_call", "id": call.get("toolCallId"), "name": call.get("toolName"), "args": call.get("args")}
            for call in (loads_text(asked) if type(loads_text(asked)) is list else [])
            if type(call) is dict
        ]
        span.outputs = read_messages({"role": "assistant", "content": answer, "tool_calls": calls}, "assistant")


def add_events(span: Span, events: list[Any]) -> None:
    """Messages and exceptions that were logged as events of a span.

    Args:
        span: Gets the messages.
        events: Objects with ``name`` and plain ``attributes``.
    """
    for event in events:
        inside = event.get("attributes") if type(event) is dict else None
        if type(inside) is not dict:
            continue
        flat, name = flatten(inside), word_of(event.get("name"))
        if name == "exception":
            kind, text = text_of(flat.get("exception.type")), text_of(flat.get("exception.message"))
            span.error_text = ": ".join([part for part in (kind, text) if part]) or None
        elif name in _EVENT_ROLES:
            span.inputs += _event_message(flat, _EVENT_ROLES[name])
        elif name == "gen_ai.choice":
            message = loads_text(flat.get("message", flat.get("content")))
            span.outputs += read_messages(message if message is not None else {**inside}, "assistant")
        elif name in _DETAILS:
            for key in ("gen_ai.prompt", "gen_ai.input.messages"):
                span.inputs += read_messages(flat.get(key), "user")
            for key in ("gen_ai.completion", "gen_ai.output.messages"):
                span.outputs += read_messages(flat.get(key), "assistant")


def _event_message(flat: Record, role: str) -> list[Message]:
    content = loads_text(flat.get("content"))
    # Words that happen to be an object of JSON stay words.
    content = content if type(content) is list else flat.get("content")
    calls = loads_text(flat.get("tool_calls"))
    return read_messages({"role": role, "tool_call_id": flat.get("id"), "content": content, "tool_calls": calls}, role)


def _usage(span: Span, flat: Record) -> None:
    span.model = _first(flat, _MODEL)
    span.tokens = usage(*[_count(flat, keys) for keys in (_INPUT, _OUTPUT, _READ, _WRITE, _REASONING, _TOTAL)])
    cost = number_of(_value(flat, _COST))
    span.cost_usd = float(cost) if cost is not None and 0 <= cost < float("inf") else None
    seconds = number_of(_value(flat, _FIRST_TOKEN_S))
    if seconds is not None and 0 <= seconds < 10**9:
        span.first_token_ms = round(seconds * 1000)
    else:
        milliseconds = number_of(_value(flat, _FIRST_TOKEN_MS))
        span.first_token_ms = round(milliseconds) if milliseconds is not None and 0 <= milliseconds < 10**12 else None
    span.tools = next((names for key in _OFFERED if (names := tool_names(listed(flat, key)))), ())


def _facts(flat: Record) -> Record:
    """Metadata that the application gave a span."""
    whole = loads_text(flat.get("metadata"))
    facts = dict(whole) if type(whole) is dict else {}
    for key, value in flat.items():
        if key.startswith(_FACTS):
            prefix = next(prefix for prefix in _FACTS if key.startswith(prefix))
            facts[key.removeprefix(prefix)] = value
    return facts
