"""OpenCode: the log of a plugin's hooks (an array or event a line), and exported sessions.

Belongs here: the layouts, and which records make which session. Does not belong here: a message
and its parts (``opencode_parts.py``).

In the hook log a message, and each of its parts, is written again whenever it changes: the last
counts. A sub-agent's session names its parent. Where both are in the file, its steps become child
steps of the call that started it; an exported one is a session of its own that names its parent and
in which no person speaks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    KEPT,
    NO_SESSION_ID,
    NOISE,
    NOT_A_RECORD,
    FileContext,
    Parser,
    Reader,
    Record,
    json_readers,
    user_of,
)
from evalpipe.sources.readers.opencode_parts import Place, add_message, sub_session
from evalpipe.sources.readers.values import forget_zero_cost, id_of, object_of, text_of
from evalpipe.sources.session import STEP_ID, Row, Session
from evalpipe.sources.times import normal_time

SOURCE = "opencode"
_HOOK = "hook"

#: Events and hooks that carry nothing to analyse, or what other events say in full.
_NOISE_START = (
    "session.", "server.", "file.", "lsp.", "permission.", "question.", "todo.", "command.", "tui.", "vcs.", "pty.",
    "project.", "installation.", "ide.", "mcp.", "storage.", "global.", "worktree.", "workspace.", "experimental.",
    "tool.", "chat.", "config", "auth", "shell.", "message.part.delta", "message.part.removed", "message.removed",
)  # fmt: skip


@dataclass
class _Log:
    """What is known of one session: its facts, messages in order, and their parts in order."""

    info: Record = field(default_factory=dict)
    messages: dict[str, Record] = field(default_factory=dict)
    parts: dict[str, dict[str, Record]] = field(default_factory=dict)


class OpencodeParser(Parser):
    """Parser of one file; its sessions interleave."""

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self._logs: dict[str, _Log] = {}
        #: Parents of sub-agents' sessions whose parent is in the file too.
        self._parents: dict[str, str] = {}

    def feed(self, record: Record) -> str:
        """Take one line of the hook log, or one exported session."""
        if type(record.get("messages")) is list and type(record.get("info")) is dict:
            return self._export(record)
        kind, properties = _event(record)
        if kind is None or properties is None:
            return NOT_A_RECORD
        if kind == "message.updated":
            return self._message(properties)
        if kind == "message.part.updated":
            return self._part(properties)
        if kind in ("session.created", "session.updated"):
            return self._info(properties)
        if kind == "chat.message":
            return self._chat(record)
        return NOISE if kind.startswith(_NOISE_START) else NOT_A_RECORD

    def _export(self, record: Record) -> str:
        info = record["info"]
        session_id = text_of(info.get("id"))
        if session_id is None:
            return NO_SESSION_ID
        known = self._logs.get(session_id)
        if known is not None and len(known.messages) > len(record["messages"]):
            # A shorter copy of a session that is read already.
            return self._keep(session_id)
        log = self._logs[session_id] = _Log(info)
        for index, item in enumerate(record["messages"]):
            message, parts = object_of(item).get("info"), object_of(item).get("parts")
            if type(message) is not dict:
                continue
            key = id_of(message.get("id")) or f"#{index}"
            log.messages[key] = message
            for at, part in enumerate(parts if type(parts) is list else ()):
                if type(part) is dict:
                    log.parts.setdefault(key, {})[id_of(part.get("id")) or f"#{at}"] = part
        return self._keep(session_id)

    def _message(self, properties: Record) -> str:
        info = properties.get("info")
        if type(info) is not dict:
            return BAD_FIELD
        session_id, key = text_of(info.get("sessionID") or properties.get("sessionID")), id_of(info.get("id"))
        if session_id is None or key is None:
            return NO_SESSION_ID
        self._logs.setdefault(session_id, _Log()).messages[key] = info
        return self._keep(session_id)

    def _part(self, properties: Record) -> str:
        part = properties.get("part")
        if type(part) is not dict:
            return BAD_FIELD
        session_id = text_of(part.get("sessionID") or properties.get("sessionID"))
        message, key = id_of(part.get("messageID")), id_of(part.get("id"))
        if session_id is None or message is None or key is None:
            return NO_SESSION_ID
        self._logs.setdefault(session_id, _Log()).parts.setdefault(message, {})[key] = part
        return self._keep(session_id)

    def _info(self, properties: Record) -> str:
        info = properties.get("info")
        if type(info) is not dict:
            return BAD_FIELD
        session_id = text_of(info.get("id"))
        if session_id is None:
            return NO_SESSION_ID
        self._describe(session_id, info)
        return self._keep(session_id)

    def _chat(self, record: Record) -> str:
        """A message as the user sends it; the events that follow repeat it, unless the log is cut."""
        hook = record.get(_HOOK)
        value = object_of(hook[2]) if type(hook) is list and len(hook) > 2 else {}
        message = object_of(value.get("message"))
        session_id, key = text_of(message.get("sessionID")), id_of(message.get("id"))
        if session_id is None or key is None:
            return NO_SESSION_ID
        log = self._logs.setdefault(session_id, _Log())
        log.messages.setdefault(key, message)
        for index, part in enumerate(value["parts"] if type(value.get("parts")) is list else ()):
            if type(part) is dict:
                log.parts.setdefault(key, {}).setdefault(id_of(part.get("id")) or f"#{index}", part)
        return self._keep(session_id)

    def _describe(self, session_id: str, info: Record) -> None:
        log = self._logs.setdefault(session_id, _Log())
        log.info = {**log.info, **info}
        parent = text_of(info.get("parentID"))
        # Who is a sub-agent is settled when its session first appears, so nobody is their own ancestor.
        is_new = session_id not in self.sessions and session_id not in self._parents
        if parent is not None and parent != session_id and parent in self._logs and is_new:
            self._parents[session_id] = parent

    def _keep(self, session_id: str) -> str:
        root = self._root(session_id)
        session = self.sessions.get(root)
        if session is None:
            session = self.sessions[root] = Session(SOURCE, root, "opencode")
        session.n_records += 1
        self.current = session
        return KEPT

    def _root(self, session_id: str) -> str:
        while session_id in self._parents:
            session_id = self._parents[session_id]
        return session_id

    def finish(self, session: Session) -> None:
        """Turn messages and parts into steps, those of sub-agents after the call that started them."""
        session_id = session.session_id.removeprefix(f"{SOURCE}:")
        info = self._logs[session_id].info
        session.agent_release = text_of(info.get("version"))
        session.workspace = text_of(info.get("directory"))
        session.user_id = user_of(session.workspace)
        parent = text_of(info.get("parentID"))
        session.parent_session_id = f"{SOURCE}:{parent}" if parent else None
        self._add(session, session_id, Place(None, is_sub_agent=parent is not None))
        forget_zero_cost(session)
        if not session.first_at and (at := normal_time(object_of(info.get("time")).get("created"))):
            session.see(at)

    def _add(self, session: Session, session_id: str, place: Place) -> None:
        log = self._logs.pop(session_id, None)
        if log is None:
            return
        # Parts may lie in a log whose start, with their message, was cut off.
        for key in [*log.messages, *(key for key in log.parts if key not in log.messages)]:
            message = log.messages.get(key, {"role": "assistant"})
            parts = list(log.parts.get(key, {}).values())
            for row, part in add_message(session, key, message, parts, place):
                self._sub_agent(session, row, part)
        # Those that no call in the log started.
        for child in [child for child, parent in self._parents.items() if parent == session_id]:
            self._add(session, child, Place(place.parent or child, is_sub_agent=True))

    def _sub_agent(self, session: Session, call: Row, part: Record) -> None:
        child = sub_session(part)
        if child is not None and child in self._parents:
            self._add(session, child, Place(call[STEP_ID], is_sub_agent=True))


def _event(record: Record) -> tuple[str | None, Record | None]:
    """Type and properties of a line: ``["event", {...}]``, another hook, or a bare event."""
    hook = record.get(_HOOK)
    if type(hook) is list:
        name = hook[0] if hook and type(hook[0]) is str else None
        if name != "event":
            return name, {}
        record = object_of(hook[1]) if len(hook) > 1 else {}
    event = record.get("event")
    if type(event) is dict:
        record = event
    properties = record.get("properties")
    return text_of(record.get("type")), properties if type(properties) is dict else None


def _ids(properties: Record) -> Iterator[object]:
    yield properties.get("sessionID")
    for key in ("info", "part"):
        yield object_of(properties.get(key)).get("sessionID")
        yield object_of(properties.get(key)).get("id")


def _recognise_export(record: Record) -> bool:
    session_id = text_of(object_of(record.get("info")).get("id"))
    return session_id is not None and session_id.startswith("ses") and "messages" in record


def _recognise_line(record: Record) -> bool:
    kind, properties = _event(record)
    if kind is None or properties is None:
        return False
    if kind.startswith(("session.", "message.")):
        return any(type(i) is str and i.startswith("ses") for i in _ids(properties))
    return type(record.get(_HOOK)) is list and kind.startswith(_NOISE_START)


LINES = Reader(
    name=SOURCE, version="2", shape="lines", recognise=_recognise_line, parser=OpencodeParser, array_key=_HOOK
)
READERS: tuple[Reader, ...] = (
    *json_readers(replace(LINES, recognise=_recognise_export, is_one_record_a_session=True, array_key="")),
    LINES,
)
