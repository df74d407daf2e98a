"""Events and items of a Codex rollout to steps, one function a type.

Belongs here: what each event or item adds to a session. Does not belong here: the envelopes around
them (``codex.py``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from evalpipe.sources.readers.base import BAD_FIELD, KEPT, NOISE, Record, block_text, json_text, user_of
from evalpipe.sources.readers.codex_results import put_output
from evalpipe.sources.readers.codex_usage import RunningUsage
from evalpipe.sources.session import (
    ARGUMENTS,
    END,
    ERROR,
    KIND,
    MODEL,
    NAME,
    START,
    STEP_ID,
    Row,
    Session,
    agent_row,
    text_or_none,
    tool_row,
    user_row,
)

SOURCE = "codex"
NOISE_ITEMS = frozenset({"reasoning", "ghost_snapshot", "compaction", "compaction_summary", "other"})

_INJECTED = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|INSTRUCTIONS|permissions instructions|turn_aborted|skill"
    r"|collaboration_mode|app-context|apps_instructions|model_switch|subagent_notification)\b"
    r"|# AGENTS\.md instructions for )"
)
_IMAGE = re.compile(r"\s*(?:<image\b[^<>]{0,500}>|</image>)\s*")
_LOCAL_COMMAND = re.compile(r"\s*<user_shell_command\b")
_IDE_REQUEST = "## My request for Codex:"


class CodexSession(Session):
    """A session with the indexes that lines of this format refer back to."""

    def __init__(self, session_id: str) -> None:
        super().__init__(SOURCE, session_id, "codex")
        self.turn_model: str | None = None
        self.open_calls: dict[str, Row] = {}
        self.closed_calls: dict[str, Row] = {}
        # How often each text came as an event and as an item: it was said as often as the larger.
        self.as_event: Counter[tuple[str, str]] = Counter()
        self.as_item: Counter[tuple[str, str]] = Counter()
        self.started = ""
        self.usage = RunningUsage()
        #: Whether another agent speaks in the user's place.
        self.is_sub_agent = False


#: Takes body, session and time; says what became of the record.
Handler = Callable[[Record, CodexSession, str | None], str]


def _step_id(session: Session) -> str:
    return str(len(session.rows))


def _first_telling(session: CodexSession, seen: Counter[tuple[str, str]], role: str, text: str) -> bool:
    """Whether this text, told as event or as item, is new rather than the echo of the other."""
    other = session.as_item if seen is session.as_event else session.as_event
    key = (role, text.strip())
    seen[key] += 1
    return seen[key] > other[key]


def _user_text(session: CodexSession, text: str, at: str | None) -> None:
    step_id = _step_id(session)
    human = "meta" if session.is_sub_agent else "human"
    if _INJECTED.match(text):
        session.rows.append(user_row(step_id, "injected", text, at))
    elif _LOCAL_COMMAND.match(text):
        session.rows.append(user_row(step_id, "local_command", text, at))
    elif _IDE_REQUEST in text:
        context, _, words = text.partition(_IDE_REQUEST)
        session.rows.append(user_row(step_id, "injected", context.strip(), at))
        session.end_status = None
        if words.strip():
            session.rows.append(user_row(_step_id(session), human, words.strip(), at))
    else:
        session.rows.append(user_row(step_id, human, text, at))
        session.end_status = None


def _without_images(content: object) -> object:
    """The blocks of a message without those that stand around an image; the event of the same message has none."""
    if type(content) is not list:
        return content
    return [b for b in content if type(b) is not dict or not _IMAGE.fullmatch(text_or_none(b.get("text")) or "")]


def _message(body: Record, session: CodexSession, at: str | None) -> str:
    text = block_text(_without_images(body.get("content")))
    role = body.get("role")
    if text is None or not text.strip():
        return NOISE
    if role == "user":
        if not _first_telling(session, session.as_item, "user", text):
            return NOISE
        _user_text(session, text, at)
    elif role == "assistant":
        if not _first_telling(session, session.as_item, "assistant", text):
            return NOISE
        _agent_text(session, text, at)
    else:
        session.rows.append(user_row(_step_id(session), "injected", text, at))
    return KEPT


def _agent_text(session: CodexSession, text: str, at: str | None) -> None:
    session.rows.append(agent_row(_step_id(session), text, at, session.turn_model))
    session.end_status = None


def _user_event(body: Record, session: CodexSession, at: str | None) -> str:
    text = body.get("message")
    if type(text) is not str:
        return BAD_FIELD
    if not text.strip() or not _first_telling(session, session.as_event, "user", text):
        return NOISE
    _user_text(session, text, at)
    return KEPT


def _agent_event(body: Record, session: CodexSession, at: str | None) -> str:
    text = body.get("message")
    if type(text) is not str:
        return BAD_FIELD
    if not text.strip() or not _first_telling(session, session.as_event, "assistant", text):
        return NOISE
    _agent_text(session, text, at)
    return KEPT


def _call(body: Record, session: CodexSession, at: str | None) -> str:
    call_id = text_or_none(body.get("call_id")) or text_or_none(body.get("id")) or _step_id(session)
    if call_id in session.open_calls:
        return NOISE
    name = text_or_none(body.get("name")) or str(body["type"]).removesuffix("_call")
    arguments = next((body[key] for key in ("arguments", "input", "action") if body.get(key) is not None), None)
    row = tool_row(call_id, name, json_text(arguments), at)
    known = session.closed_calls.get(call_id)
    if known is not None:
        if known[NAME] is None or (known[NAME], known[ARGUMENTS], known[START]) == (name, row[ARGUMENTS], at):
            return NOISE
        # Local models begin to count anew with each response.
        del session.closed_calls[call_id]
        row[STEP_ID] = f"{call_id}#{_step_id(session)}"
    row[MODEL] = session.turn_model
    session.rows.append(row)
    if str(body["type"]) in ("web_search_call", "image_generation_call"):
        row[END] = at  # run by the provider; the log never holds a result
    else:
        session.open_calls[call_id] = row
    session.end_status = None
    return KEPT


def _call_output(body: Record, session: CodexSession, at: str | None) -> str:
    call_id = text_or_none(body.get("call_id"))
    if call_id is None:
        return BAD_FIELD
    if call_id in session.closed_calls:
        return NOISE
    row = session.open_calls.pop(call_id, None)
    if row is None:
        row = tool_row(call_id, None, None, None)
        session.rows.append(row)
    session.closed_calls[call_id] = row
    row[END] = at
    row[ERROR] = None
    put_output(row, body.get("output", body.get("tools")))
    return KEPT


def _turn_context(body: Record, session: CodexSession, _at: str | None) -> str:
    session.turn_model = text_or_none(body.get("model")) or session.turn_model
    if session.workspace is None:
        session.workspace = text_or_none(body.get("cwd"))
        session.user_id = user_of(session.workspace)
    return NOISE


def _compacted(body: Record, session: CodexSession, at: str | None) -> str:
    session.rows.append(user_row(_step_id(session), "compaction", text_or_none(body.get("message")), at))
    return KEPT


def copied(body: Record, session: CodexSession) -> None:
    """Take what a fork copied from its parent, where it counts: the model in use, and the tokens used by then."""
    kind, usage = body.get("type"), _total_usage(body)
    if kind == "turn_context":
        _turn_context(body, session, None)
    elif kind == "token_count" and usage is not None:
        session.usage.copied(usage)


def _total_usage(body: Record) -> Record | None:
    info = body.get("info")
    usage = info.get("total_token_usage") if type(info) is dict else None
    return usage if type(usage) is dict else None


def _token_count(body: Record, session: CodexSession, _at: str | None) -> str:
    usage = _total_usage(body)
    if usage is None:
        return NOISE
    session.usage.note(usage, session.turn_model, session.rows)
    return KEPT


def _aborted(body: Record, session: CodexSession, at: str | None) -> str:
    session.rows.append(user_row(_step_id(session), "interrupt", text_or_none(body.get("reason")), at))
    for row in session.open_calls.values():
        row[ERROR] = "interrupted"
    session.end_status = "interrupted"
    return KEPT


def _complete(_body: Record, session: CodexSession, _at: str | None) -> str:
    session.end_status = None
    return NOISE


def _error(body: Record, session: CodexSession, at: str | None) -> str:
    row = user_row(_step_id(session), "system", text_or_none(body.get("message")), at)
    row[KIND], row[ERROR] = "system", "api_error"
    session.rows.append(row)
    return KEPT


#: What to do with an event, by its type; all other events are noise.
EVENTS: dict[str, Handler] = {
    "user_message": _user_event,
    "agent_message": _agent_event,
    "token_count": _token_count,
    "turn_aborted": _aborted,
    "task_complete": _complete,
    "error": _error,
    "stream_error": _error,
}


def _ignore(_body: Record, _session: CodexSession, _at: str | None) -> str:
    return NOISE


#: What to do with an item of the model's history, by its type.
ITEMS: dict[str, Handler] = {
    "message": _message,
    "function_call": _call,
    "custom_tool_call": _call,
    "local_shell_call": _call,
    "web_search_call": _call,
    "image_generation_call": _call,
    "tool_search_call": _call,
    "function_call_output": _call_output,
    "custom_tool_call_output": _call_output,
    "tool_search_output": _call_output,
    "turn_context": _turn_context,
    "compacted": _compacted,
    **dict.fromkeys(NOISE_ITEMS, _ignore),
}
