"""Events of OpenHands to steps.

Belongs here: actions, observations, and what they say of calls, delegates and the end. Does not
belong here: files and the records around a history (``openhands.py``).

An action that does something is a call, and the observation that names it as its ``cause`` is its
result. A response with several calls is repeated in each of their actions: its usage counts once.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from evalpipe.sources.readers.base import KEPT, NOISE, NOT_A_RECORD, Record, json_text
from evalpipe.sources.readers.values import (
    add_counts,
    cost_of,
    id_of,
    object_of,
    objects_of,
    openai_counts,
    text_digest,
    text_of,
)
from evalpipe.sources.session import (
    ARGUMENTS,
    END,
    ERROR,
    EXIT_CODE,
    IS_ERROR,
    KIND,
    NAME,
    OUTPUT,
    STEP_ID,
    TEXT,
    Row,
    Session,
    agent_row,
    exit_code,
    tool_row,
    user_row,
)
from evalpipe.sources.times import normal_time

SOURCE = "openhands"

#: Events that carry nothing to analyse.
_NOISE_ACTIONS = frozenset({"recall", "null", "pause", "resume", "start", "init", "condensation_request", "summarize"})
_NOISE_OBSERVATIONS = frozenset({
    "recall", "null", "condense", "agent_condensation", "loop_detection", "loop_recovery", "server_ready", "chat",
    "success", "status",
})  # fmt: skip
#: What the evaluation harness answers in the user's place when the agent stops talking.
_CANNED = re.compile(
    r"\s*(?:Please continue working on the task|If you are done with the task, please run|"
    r"Please run the following command: <execute_bash> exit|IMPORTANT: YOU SHOULD NEVER ASK FOR HUMAN)"
)
_TIMEOUT = re.compile(r"no new output after|timed out|timeout", re.I)
_LIMIT = re.compile(r"maximum (?:number of )?iteration|max(?:imum)?[ _]budget|reached maximum|stuck in a loop", re.I)
_API = re.compile(r"litellm|ERROR_LLM|rate ?limit|APIError|APIConnection|ServiceUnavailable|InternalServerError", re.I)
_END_STATES = {
    "finished": "completed",
    "rejected": "error",
    "stopped": "interrupted",
    "user_stopped": "interrupted",
    "error": "error",
}


class EventSession(Session):
    """A session with the actions that wait for their observations."""

    def __init__(self, session_id: str, agent: str) -> None:
        super().__init__(SOURCE, session_id, agent)
        self.is_named = True
        self.open_calls: dict[str, Row] = {}
        self.responses: set[str] = set()
        #: Step and action id of the delegates at work, innermost last.
        self.delegates: list[tuple[str, str]] = []

    @property
    def parent(self) -> str | None:
        """Step that what happens now belongs to."""
        return self.delegates[-1][0] if self.delegates else None

    def close(self) -> None:
        """Note the calls that nothing answered."""
        for row in self.open_calls.values():
            row[ERROR] = row[ERROR] or ("interrupted" if self.end_status == "interrupted" else "no_result")


def is_event(record: Record) -> bool:
    """Whether the record is an action or an observation."""
    if type(record.get("action")) is str:
        return type(record.get("args")) is dict
    return type(record.get("observation")) is str and type(record.get("extras")) is dict


def add_event(session: EventSession, event: Record) -> str:
    """Append one event; ``KEPT``, ``NOISE`` or a quarantine code."""
    at = normal_time(event.get("timestamp"))
    action, observation = event.get("action"), event.get("observation")
    if type(action) is str:
        status = _action(session, action, event, at)
    elif type(observation) is str:
        status = _observation(session, observation, event, at)
    else:
        return NOT_A_RECORD
    if status is KEPT:
        session.n_messages += 1
        if at is not None:
            session.see(at)
    return status


def _action(session: EventSession, action: str, event: Record, at: str | None) -> str:
    if action in _NOISE_ACTIONS:
        return NOISE
    args = object_of(event.get("args"))
    key = id_of(event.get("id")) or f"#{len(session.rows)}"
    _metrics(session, event)
    if handler := _ACTIONS.get(action):
        handler(session, key, event, args, at)
        return KEPT
    if event.get("source") != "agent":
        if action in ("run", "run_ipython"):
            row = user_row(key, "local_command", None, at, session.parent)
            row[NAME], row[ARGUMENTS] = action, json_text(args)
            session.rows.append(row)
            session.open_calls[key] = row
            return KEPT
        return NOT_A_RECORD
    _call(session, key, action, event, args, at)
    return KEPT


def _message(session: EventSession, key: str, event: Record, args: Record, at: str | None) -> None:
    text = text_of(args.get("content")) or text_of(event.get("message"))
    if event.get("source") == "agent":
        _say(session, key, event, text, at)
        return
    if text is None:
        return
    is_person = event.get("source") == "user" and not _CANNED.match(text)
    origin = "meta" if session.parent or not is_person else "human"
    if origin == "human":
        session.end_status = None
    session.rows.append(user_row(key, origin, text, at, session.parent))


def _system(session: EventSession, key: str, event: Record, args: Record, at: str | None) -> None:
    text = text_of(args.get("content"))
    if text and session.prompt_version is None:
        session.prompt_version = text_digest(text)
    session.agent_release = session.agent_release or text_of(args.get("openhands_version"))
    session.harness = session.harness or text_of(args.get("agent_class"))
    names = [text_of(object_of(tool.get("function")).get("name")) for tool in objects_of(args.get("tools"))]
    if tools := {name for name in names if name}:
        session.tools = sorted(tools)


def _finish(session: EventSession, key: str, event: Record, args: Record, at: str | None) -> None:
    outputs = object_of(args.get("outputs"))
    text = text_of(args.get("final_thought")) or text_of(args.get("thought")) or text_of(outputs.get("content"))
    _say(session, key, event, text, at)
    if session.parent is None:
        session.end_status = "completed" if event["action"] == "finish" else "error"


def _state(session: EventSession, key: str, event: Record, args: Record, at: str | None) -> None:
    state = args.get("agent_state")
    if event.get("source") == "user" and state in ("stopped", "paused"):
        session.rows.append(user_row(key, "interrupt", None, at))
        session.end_status = "interrupted" if state == "stopped" else session.end_status


def _condensation(session: EventSession, key: str, event: Record, args: Record, at: str | None) -> None:
    if text := text_of(args.get("summary")):
        session.rows.append(user_row(key, "compaction", text, at, session.parent))


def _delegate(session: EventSession, key: str, event: Record, args: Record, at: str | None) -> None:
    row = _call(session, key, "delegate", event, args, at)
    session.delegates.append((row[STEP_ID], key))


_ACTIONS: dict[str, Callable[[EventSession, str, Record, Record, str | None], None]] = {
    "message": _message,
    "system": _system,
    "finish": _finish,
    "reject": _finish,
    "change_agent_state": _state,
    "condensation": _condensation,
    "delegate": _delegate,
}


def _say(session: EventSession, key: str, event: Record, text: str | None, at: str | None) -> None:
    """A step for what the agent says, with the usage of its response."""
    response = object_of(object_of(event.get("tool_call_metadata")).get("model_response"))
    response_id = id_of(response.get("id"))
    is_first = response_id is None or response_id not in session.responses
    if text is None and (not response or not is_first):
        return
    row = agent_row(key, text, at, text_of(response.get("model")) or session.model, session.parent)
    if response_id is not None:
        session.responses.add(response_id)
    if is_first:
        add_counts(row, openai_counts(object_of(response.get("usage"))))
    session.rows.append(row)


def _call(session: EventSession, key: str, action: str, event: Record, args: Record, at: str | None) -> Row:
    _say(session, f"{key}.said", event, text_of(args.get("thought")), at)
    metadata = object_of(event.get("tool_call_metadata"))
    given = {name: value for name, value in args.items() if name != "thought"}
    row = tool_row(
        id_of(metadata.get("tool_call_id")) or key,
        text_of(metadata.get("function_name")) or action,
        json_text(given),
        at,
        session.parent,
    )
    if args.get("confirmation_state") == "rejected":
        row[ERROR] = "refused"
    session.rows.append(row)
    session.open_calls[key] = row
    return row


def _metrics(session: EventSession, event: Record) -> None:
    """Costs are running totals: the last counts."""
    cost = cost_of(object_of(event.get("llm_metrics")).get("accumulated_cost"))
    if cost is not None:
        session.cost_usd = cost


def _observation(session: EventSession, observation: str, event: Record, at: str | None) -> str:
    extras = object_of(event.get("extras"))
    if observation == "agent_state_changed":
        return _state_changed(session, event, extras, at)
    if observation in _NOISE_OBSERVATIONS:
        return NOISE
    cause = id_of(event.get("cause"))
    if observation == "delegate" and session.delegates:
        session.delegates.pop()
    row = session.open_calls.pop(cause, None) if cause is not None else None
    key = id_of(event.get("id")) or f"#{len(session.rows)}"
    content = json_text(event.get("content"))
    if row is None and observation == "error":
        _failed(session, key, content, at)
        return KEPT
    if row is None:
        name = text_of(object_of(event.get("tool_call_metadata")).get("tool_call_id"))
        row = tool_row(name or key, None, None, None, session.parent)
        session.rows.append(row)
    row[OUTPUT], row[END] = content or json_text(extras.get("outputs")), at
    _outcome(row, observation, event, extras)
    return KEPT


def _outcome(row: Row, observation: str, event: Record, extras: Record) -> None:
    metadata = object_of(extras.get("metadata"))
    code = exit_code(metadata.get("exit_code", extras.get("exit_code")))
    success = event.get("success")
    if observation in ("error", "user_rejected"):
        row[IS_ERROR] = True
        row[ERROR] = "refused" if observation == "user_rejected" else "tool_error"
        if observation == "user_rejected" and row[KIND] == "tool":
            row[TEXT], row[OUTPUT] = row[OUTPUT], None
    elif code == -1:
        # Not an exit: the command was still running when the harness stopped waiting.
        row[ERROR] = "timeout" if _TIMEOUT.search(text_of(metadata.get("suffix")) or row[OUTPUT] or "") else row[ERROR]
    else:
        row[EXIT_CODE] = code
        row[IS_ERROR] = not success if type(success) is bool else None if code is None else code != 0


def _failed(session: EventSession, key: str, content: str | None, at: str | None) -> None:
    """An error that answers no call: of the harness or of the model's interface."""
    row = user_row(key, "system", content, at, session.parent)
    row[KIND], row[ERROR] = "system", "api_error" if _API.search(content or "") else None
    session.rows.append(row)


def _state_changed(session: EventSession, event: Record, extras: Record, at: str | None) -> str:
    state = extras.get("agent_state")
    if type(state) is not str or state not in _END_STATES or session.parent:
        return NOISE
    session.end_status = _END_STATES[state]
    if state == "error":
        reason = text_of(extras.get("reason")) or text_of(event.get("content"))
        if reason and _LIMIT.search(reason):
            session.end_status = "timeout"
        _failed(session, id_of(event.get("id")) or f"#{len(session.rows)}", reason, at)
    return KEPT
