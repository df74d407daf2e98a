"""SWE-agent's ``.traj`` files: one document a run.

Belongs here: the run and its steps. The format has neither times nor exit codes, names the model only
in a replay configuration, and says nowhere whether the task was solved: ``exit_status`` is how the run
ended. Demonstrations that were put before the task are not part of the run. A run whose statistics
say that no model was called was made by hand: it has no tokens and no cost.

The task is named by the file.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    KEPT,
    NOT_A_RECORD,
    FileContext,
    Parser,
    Reader,
    Record,
    block_text,
    json_readers,
    json_text,
)
from evalpipe.sources.readers.values import (
    content_id,
    cost_of,
    forget_zero_cost,
    id_of,
    object_of,
    objects_of,
    text_digest,
    text_of,
)
from evalpipe.sources.session import (
    ERROR,
    KIND,
    OUTPUT,
    Row,
    Session,
    agent_row,
    count,
    tool_row,
    user_row,
)

SOURCE = "swe_agent"

_LIMITS = ("cost", "context", "time", "max", "limit", "length", "format")
_TIMEOUT = re.compile(r"EXECUTION TIMED OUT|COMMAND TIMED OUT|was cancelled because it took more than", re.I)
_STEM = re.compile(r"\.traj\Z")


class SweParser(Parser):
    """Parser of one file."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self._task = _STEM.sub("", context.stem)

    def feed(self, record: Record) -> str:
        """Take one run."""
        history, steps = record.get("history"), record.get("trajectory")
        if history is None and steps is None:
            return NOT_A_RECORD
        if any(value is not None and not _is_list(value) for value in (history, steps)):
            return BAD_FIELD
        task = id_of(record.get("instance_id")) or self._task
        session = Session(SOURCE, f"{task}/{content_id(history, steps)}", "swe-agent")
        session.task_id, session.harness = task or None, text_of(record.get("environment"))
        session.n_records = 1
        _config(session, record)
        _prompts(session, history or [])
        if steps:
            _steps(session, steps, history or [])
        else:
            _history(session, history or [])
        _info(session, object_of(record.get("info")))
        self.sessions[session.session_id] = session
        self.current = session
        return KEPT


def _is_list(value: object) -> bool:
    return type(value) is list and all(type(item) is dict for item in value)


def _config(session: Session, record: Record) -> None:
    config = record.get("replay_config")
    if type(config) is str:
        try:
            config = orjson.loads(config)
        except orjson.JSONDecodeError:
            config = None
    agent = object_of(object_of(config).get("agent"))
    session.model = text_of(object_of(agent.get("model")).get("name"))


def _prompts(session: Session, history: list[Record]) -> None:
    """System prompt and task: what stands before the agent's first message, demonstrations left out."""
    for index, message in enumerate(history):
        role, text = message.get("role"), block_text(message.get("content"))
        if role == "assistant" and not message.get("is_demo"):
            return
        if message.get("is_demo") or not text:
            continue
        if role == "system":
            session.prompt_version = text_digest(text)
        elif role == "user":
            session.rows.append(user_row(f"prompt{index}", _prompt_origin(message), text, None))


def _prompt_origin(message: Record) -> str:
    return "injected" if message.get("message_type") == "demonstration" else "human"


def _steps(session: Session, steps: list[Record], history: list[Record]) -> None:
    answers = [m for m in history if m.get("role") == "assistant" and not m.get("is_demo")]
    for index, step in enumerate(steps):
        calls = step.get("tool_calls")
        if calls is None and index < len(answers) and answers[index].get("action") == step.get("action"):
            calls = answers[index].get("tool_calls")
        _step(session, index, step, calls, json_text(step.get("observation")))


def _step(session: Session, index: int, step: Record, calls: object, observation: str | None) -> Row | None:
    """One response: what the agent thought, and the command that it gave."""
    thought, action = text_of(step.get("thought")), text_of(step.get("action"))
    said = thought if thought is not None else text_of(step.get("response")) or block_text(step.get("content"))
    session.n_messages += 1
    session.rows.append(agent_row(str(index), (said or "").strip() or None, None, session.model))
    if not action or not action.strip():
        return None
    call = next(iter(objects_of(calls)), {})
    function = object_of(call.get("function"))
    row = tool_row(
        id_of(call.get("id")) or f"{index}.call",
        text_of(function.get("name")) or "shell",
        json_text({"command": action.strip()}),
        None,
    )
    _answer(row, observation)
    session.rows.append(row)
    return row


def _answer(row: Row, observation: str | None) -> None:
    row[OUTPUT] = observation
    row[ERROR] = "timeout" if observation and _TIMEOUT.search(observation[:2000]) else None


def _history(session: Session, history: list[Record]) -> None:
    """Steps of a file that holds messages only: the message after an action is its observation."""
    last: Row | None = None
    for index, message in enumerate(history):
        if message.get("is_demo"):
            continue
        if message.get("role") == "assistant":
            last = _step(session, index, _as_step(message), message.get("tool_calls"), None)
            if last is not None:
                last[ERROR] = "no_result"
        elif message.get("role") in ("user", "tool") and last is not None:
            _answer(last, block_text(message.get("content")))
            last = None


def _as_step(message: Record) -> Record:
    step: dict[str, Any] = {"thought": message.get("thought"), "response": block_text(message.get("content"))}
    return {**step, "action": message.get("action")}


def _info(session: Session, info: Record) -> None:
    stats = object_of(info.get("model_stats"))
    session.agent_release = text_of(info.get("swe_agent_version"))
    n_calls = count(stats.get("api_calls"))
    if n_calls is None or n_calls > 0:
        session.cost_usd = cost_of(stats.get("instance_cost"))
        tokens = count(stats.get("tokens_sent")), count(stats.get("tokens_received"))
        session.stated_tokens = (*tokens, None, None, None) if tokens != (None, None) else None
        forget_zero_cost(session)
    status = text_of(info.get("exit_status"))
    session.end_status = _end_status(status)
    if session.end_status == "error":
        row = user_row("exit", "system", status, None)
        row[KIND] = "system"
        row[ERROR] = "api_error" if "api" in (status or "") else None
        session.rows.append(row)


def _end_status(status: str | None) -> str | None:
    """``submitted`` may name in brackets what cut the run short."""
    if status is None:
        return None
    text = status.lower()
    if text == "submitted":
        return "completed"
    return "timeout" if any(word in text for word in _LIMITS) else "error"


def _recognise(record: Record) -> bool:
    steps = objects_of(record.get("trajectory"))
    if steps:
        return {"action", "observation"} <= steps[0].keys() and not {"args", "extras"} & steps[0].keys()
    history = objects_of(record.get("history"))
    return bool(history) and "role" in history[0] and {"agent", "message_type"} & history[0].keys() != set()


READERS: tuple[Reader, ...] = json_readers(
    Reader(
        name=SOURCE,
        version="1",
        shape="lines",
        recognise=_recognise,
        parser=SweParser,
        is_one_record_a_session=True,
    )
)
