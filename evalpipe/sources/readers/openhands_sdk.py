"""Events of OpenHands' agent SDK, which names its events by ``kind``, to steps.

Belongs here: those events. Does not belong here: the events of the older releases
(``openhands_events.py``), files and the records around a history (``openhands.py``).

Calls have ids of their own, and a result names its call. Several actions of one response share its
``llm_response_id``; tokens and costs stand in updates of the conversation's statistics, as running
totals of the session.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from evalpipe.sources.readers.base import KEPT, NOISE, NOT_A_RECORD, Record, block_text, json_text
from evalpipe.sources.readers.openhands_events import EventSession
from evalpipe.sources.readers.values import cost_of, id_of, object_of, objects_of, text_digest, text_of, uncached
from evalpipe.sources.session import (
    END,
    ERROR,
    EXIT_CODE,
    IS_ERROR,
    KIND,
    OUTPUT,
    TEXT,
    agent_row,
    count,
    exit_code,
    tool_row,
    user_row,
)
from evalpipe.sources.times import normal_time

_NOISE = frozenset({
    "TokenEvent", "StreamingDeltaEvent", "LLMCompletionLogEvent", "CondensationRequest", "HookExecutionEvent",
    "CondensationSummaryEvent", "UnknownEvent",
})  # fmt: skip
_API = re.compile(r"^LLM|RateLimit|ServiceUnavailable|APIConnection|Timeout", re.I)
_LIMIT = re.compile(r"MaxIterations|IterationLimit|Budget|Stuck", re.I)
# "finished" is not among them: it follows every answer of the agent.
_END_STATES = {"error": "error", "stuck": "timeout"}

Handler = Callable[[EventSession, str, Record, "str | None"], str]


def is_sdk_event(record: Record) -> bool:
    """Whether the record is an event of the SDK."""
    kind = record.get("kind")
    return type(kind) is str and (kind in _HANDLERS or kind in _NOISE) and "source" in record


def add_sdk_event(session: EventSession, event: Record) -> str:
    """Append one event; ``KEPT``, ``NOISE`` or a quarantine code."""
    kind = text_of(event.get("kind")) or ""
    if kind in _NOISE:
        return NOISE
    handler = _HANDLERS.get(kind)
    if handler is None:
        return NOT_A_RECORD
    at = normal_time(event.get("timestamp"))
    status = handler(session, id_of(event.get("id")) or f"#{len(session.rows)}", event, at)
    if status is KEPT:
        session.n_messages += 1
        if at is not None:
            session.see(at)
    return status


def _message(session: EventSession, key: str, event: Record, at: str | None) -> str:
    text = block_text(object_of(event.get("llm_message")).get("content"))
    if event.get("source") == "agent":
        session.rows.append(agent_row(key, text or None, at, session.model))
        return KEPT
    is_person = event.get("source") == "user" and not event.get("sender")
    if is_person:
        session.end_status = None
    if text:
        session.rows.append(user_row(key, "human" if is_person else "meta", text, at))
    if extra := block_text(event.get("extended_content")):
        session.rows.append(user_row(f"{key}.more", "injected", extra, at))
    return KEPT


def _system(session: EventSession, key: str, event: Record, at: str | None) -> str:
    prompt = text_of(object_of(event.get("system_prompt")).get("text"))
    if prompt:
        session.prompt_version = text_digest(prompt)
    tools = objects_of(event.get("tools"))
    names = [text_of(tool.get("name")) or text_of(tool.get("title")) for tool in tools]
    if found := {name for name in names if name}:
        session.tools = sorted(found)
    return KEPT


def _action(session: EventSession, key: str, event: Record, at: str | None) -> str:
    text = block_text(event.get("thought"))
    response_id = id_of(event.get("llm_response_id")) or key
    action = object_of(event.get("action"))
    name = text_of(event.get("tool_name")) or text_of(action.get("kind")) or "unknown"
    if name == "finish":
        session.responses.add(response_id)
        session.rows.append(agent_row(key, text_of(action.get("message")) or text or None, at, session.model))
        session.end_status = "completed"
        return KEPT
    if response_id not in session.responses:
        session.responses.add(response_id)
        session.rows.append(agent_row(f"{key}.said", text or None, at, session.model))
    given = text_of(object_of(event.get("tool_call")).get("arguments"))
    arguments = given or json_text({k: v for k, v in action.items() if k != "kind"})
    call_id = id_of(event.get("tool_call_id")) or key
    row = tool_row(call_id, name, arguments, at)
    session.rows.append(row)
    session.open_calls[call_id] = row
    return KEPT


def _result(session: EventSession, key: str, event: Record, at: str | None) -> str:
    call_id = id_of(event.get("tool_call_id")) or key
    row = session.open_calls.pop(call_id, None)
    if row is None:
        if event.get("tool_name") == "finish":
            return NOISE
        row = tool_row(call_id, None, None, None)
        session.rows.append(row)
    row[END] = at
    kind = event.get("kind")
    if kind == "AgentErrorEvent":
        row[OUTPUT], row[IS_ERROR], row[ERROR] = text_of(event.get("error")), True, "tool_error"
        return KEPT
    if kind == "UserRejectObservation":
        reason = text_of(event.get("rejection_reason"))
        if event.get("rejection_source") == "hook":
            row[OUTPUT], row[IS_ERROR], row[ERROR] = reason, True, "tool_error"
        else:
            row[TEXT], row[ERROR] = reason, "refused"
        return KEPT
    seen = object_of(event.get("observation"))
    row[OUTPUT] = block_text(seen.get("content")) or text_of(seen.get("output")) or text_of(seen.get("error"))
    code = exit_code(seen.get("exit_code", object_of(seen.get("metadata")).get("exit_code")))
    flag = seen.get("is_error")
    row[IS_ERROR] = flag if type(flag) is bool else None
    if seen.get("timeout") is True or code == -1:
        # -1 is no exit: the harness stopped waiting for the command.
        row[ERROR] = "timeout"
    else:
        row[EXIT_CODE] = code
        row[ERROR] = "tool_error" if flag is True and code is None else None
    return KEPT


def _condensation(session: EventSession, key: str, event: Record, at: str | None) -> str:
    if text := text_of(event.get("summary")):
        session.rows.append(user_row(key, "compaction", text, at))
    return KEPT


def _stopped(session: EventSession, key: str, event: Record, at: str | None) -> str:
    session.rows.append(user_row(key, "interrupt", None, at))
    return KEPT


def _failed(session: EventSession, key: str, event: Record, at: str | None) -> str:
    code = text_of(event.get("code")) or ""
    row = user_row(key, "system", text_of(event.get("detail")) or code or None, at)
    row[KIND], row[ERROR] = "system", "api_error" if _API.search(code) else None
    session.rows.append(row)
    session.end_status = "timeout" if _LIMIT.search(code) else "error"
    return KEPT


def _state(session: EventSession, key: str, event: Record, at: str | None) -> str:
    name, value = event.get("key"), event.get("value")
    if name == "full_state":
        state = object_of(value)
        _model(session, state.get("agent"))
        _stats(session, state.get("stats"))
        value = state.get("execution_status", state.get("agent_status"))
    elif name == "stats":
        _stats(session, value)
        return KEPT
    elif name not in ("execution_status", "agent_status"):
        return NOISE
    if type(value) is str and value in _END_STATES and session.end_status is None:
        session.end_status = _END_STATES[value]
    return KEPT


def _model(session: EventSession, agent: object) -> None:
    session.model = text_of(object_of(object_of(agent).get("llm")).get("model")) or session.model


def _stats(session: EventSession, stats: object) -> None:
    """Running totals by use of a model; the last update counts."""
    uses = objects_of(list(object_of(object_of(stats).get("usage_to_metrics")).values()))
    sums: list[int | None] = [None] * 5
    costs = [cost for use in uses if (cost := cost_of(use.get("accumulated_cost"))) is not None]
    for use in uses:
        usage = object_of(use.get("accumulated_token_usage"))
        cached, written = usage.get("cache_read_tokens"), usage.get("cache_write_tokens")
        counts = (
            uncached(usage.get("prompt_tokens"), cached, written), count(usage.get("completion_tokens")), count(cached),
            count(written), count(usage.get("reasoning_tokens")),
        )  # fmt: skip
        sums = [one if two is None else two + (one or 0) for one, two in zip(sums, counts, strict=True)]
    if costs:
        session.cost_usd = sum(costs)
    if any(value is not None for value in sums):
        session.stated_tokens = tuple(sums)


_HANDLERS: dict[str, Handler] = {
    "MessageEvent": _message,
    "SystemPromptEvent": _system,
    "ActionEvent": _action,
    "ObservationEvent": _result,
    "AgentErrorEvent": _result,
    "UserRejectObservation": _result,
    "Condensation": _condensation,
    "PauseEvent": _stopped,
    "InterruptEvent": _stopped,
    "ConversationErrorEvent": _failed,
    "ConversationStateUpdateEvent": _state,
}
