"""Conversations of the chat interfaces: a row with ``messages``, or one bare message a line.

Belongs here: the fields around the messages, for OpenAI's shape (training rows, stored
completions, agents' own dumps) and for Anthropic's, which differ in their content blocks only.
Does not belong here: the messages themselves (``openai_messages.py``), or rows of a known
benchmark, which are recognised first.

Mapping: id from ``id``, ``conversation_id``, ``session_id`` or ``thread_id`` where it is long
enough to be unique, else from the content; user from ``user`` or ``metadata``; a response beside
the messages (``choices``, ``response``, ``output`` of one message) is the last message.
"""

from __future__ import annotations

from dataclasses import replace

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    KEPT,
    NOT_A_RECORD,
    FileContext,
    Record,
    RowParser,
    digest_of,
    json_readers,
    row_reader,
    word_of,
)
from evalpipe.sources.readers.gathering import GatheringParser
from evalpipe.sources.readers.openai_messages import add_messages, is_message_list, version_of
from evalpipe.sources.session import Session, small_count, text_or_none
from evalpipe.sources.times import normal_time

OPENAI, ANTHROPIC = "openai_messages", "anthropic_messages"

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})

_CONVERSATION_IDS = ("conversation_id", "session_id", "thread_id")
_IDS = (*_CONVERSATION_IDS, "id")
#: A shorter id, such as a row number, is unique in its file only.
_UNIQUE_ID = 16
_TIMES = ("timestamp", "created_at", "created", "started_at")
_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"})


class ChatParser(RowParser):
    """Parser of one file of rows."""

    source = OPENAI

    def read(self, record: Record) -> Session | str:
        """Take one conversation."""
        messages = record.get("messages")
        if messages is None or messages == []:
            return NOT_A_RECORD
        return session_of_row(record, messages, self.source) if is_message_list(messages) else BAD_FIELD


class MessagesParser(GatheringParser):
    """Parser of conversations whose messages are the records of the file, in whatever order they take turns."""

    source = OPENAI

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        #: Name of the session of each id that messages bear; of those without one the id is ``None``.
        self._names: dict[str | None, str] = {}

    def feed(self, record: Record) -> str:
        """Take one message."""
        if not is_role(record.get("role")):
            return NOT_A_RECORD
        own = _text(record, *_CONVERSATION_IDS)
        name = self._names.get(own)
        if name is None:
            name = self._names[own] = self._name(own, record)
        self.gathered.put(name, record)
        if self.current is None or self.current.session_id != f"{self.source}:{name}":
            self.current = Session(self.source, name, self.source)
        self.current.n_records += 1
        return KEPT

    def _name(self, own: str | None, first: Record) -> str:
        if own is not None and len(own) >= _UNIQUE_ID:
            return own
        # The first message and the file's name: two conversations may begin alike, or lie in files of one name.
        place = f"{self.context.stem}/{digest_of(first)}"
        return f"{own}/{place}" if own else place

    def assemble(self, session: Session, items: list[Record]) -> None:
        """Turn the messages into steps."""
        session.n_records = len(items)
        session.user_id = next((user for item in items if (user := _text(item, "user_id", "user"))), None)
        add_messages(session, list(map(_timed, items)))


class AnthropicParser(ChatParser):
    """Parser of rows whose messages hold Anthropic's content blocks."""

    source = ANTHROPIC


class AnthropicMessagesParser(MessagesParser):
    """Parser of messages with Anthropic's content blocks."""

    source = ANTHROPIC


def session_of_row(record: Record, messages: list[Record], source: str) -> Session:
    """The session of a row with messages.

    Args:
        record: The row.
        messages: Its messages.
        source: Source name.
    """
    answer = _answer(record)
    if answer is not None:
        messages = [*messages, answer]
    session_id = row_id(record, messages)
    session = Session(source, session_id, text_or_none(record.get("agent")) or source)
    session.model = text_or_none(record.get("model"))
    metadata = record.get("metadata")
    inner = metadata if type(metadata) is dict else {}
    session.user_id = _text(record, "user_id", "user") or _text(inner, "user_id", "user")
    session.task_id = _text(record, "task_id") or _text(inner, "task_id")
    session.trial = small_count(record.get("trial"))
    session.tools = tool_names(record.get("tools")) or tool_names(record.get("functions"))
    prompt = record.get("system")
    if type(prompt) is str and prompt:
        session.prompt_version = version_of(prompt)
    at = next((found for name in _TIMES if (found := normal_time(record.get(name))) is not None), None)
    if at is not None:
        session.see(at)
    add_messages(session, list(map(_timed, messages)))
    return session


def _timed(message: Record) -> Record:
    """A message with its time where steps look for it: databases name it as they name that of a row."""
    at = message.get("created_at")
    return {"timestamp": at, **message} if at is not None else message


def row_id(record: Record, content: object) -> str:
    """An id for a row: its own where it is long enough to be unique, with a digest of its content else."""
    own = _text(record, *_IDS)
    if own is not None and len(own) >= _UNIQUE_ID:
        return own
    return f"{own}/{digest_of(content)}" if own else digest_of(content)


def tool_names(tools: object) -> list[str] | None:
    """Names of the tools that a request offers, in any of the interfaces' shapes."""
    if type(tools) is not list:
        return None
    names: set[str] = set()
    for tool in tools:
        if type(tool) is str:
            names.add(tool)
        elif type(tool) is dict:
            function = tool.get("function")
            body = function if type(function) is dict else tool
            if name := text_or_none(body.get("name")):
                names.add(name)
    return sorted(names) or None


def _answer(record: Record) -> Record | None:
    """The response that a logged request got."""
    response = record.get("response")
    body = response if type(response) is dict else record
    choices = body.get("choices")
    if type(choices) is list and choices and type(choices[0]) is dict:
        found = choices[0].get("message")
    else:
        found = next((body.get(k) for k in ("completion", "output", "response") if type(body.get(k)) is dict), None)
        if found is None and body is not record:
            found = body
    if type(found) is not dict or found.get("role") != "assistant":
        return None
    return {"usage": body.get("usage"), "model": body.get("model"), **found}


def _text(record: Record, *names: str) -> str | None:
    for name in names:
        value = record.get(name)
        if type(value) is str and value:
            return value
        if type(value) is int:
            return str(value)
    return None


def is_role(value: object) -> bool:
    """Whether the value is the role of a message."""
    return type(value) is str and value in ROLES


def _has_roles(messages: object) -> bool:
    """Whether these are role messages; the last may be cut off."""
    found = [m for m in messages if type(m) is dict] if type(messages) is list else []
    return bool(found) and "role" in found[0] and all(is_role(m.get("role", "user")) for m in found)


def _has_blocks(messages: list[Record]) -> bool:
    for message in messages:
        content = message.get("content") if type(message) is dict else None
        blocks = content if type(content) is list else []
        if any(type(b) is dict and word_of(b.get("type")) in _ANTHROPIC_BLOCKS for b in blocks):
            return True
    return False


def _is_row(record: Record) -> bool:
    return _has_roles(record.get("messages"))


def _is_anthropic_row(record: Record) -> bool:
    # A system prompt beside the messages exists in this interface only.
    return _is_row(record) and ("system" in record or _has_blocks(record["messages"]))


def _is_message(record: Record) -> bool:
    return is_role(record.get("role")) and ("content" in record or "tool_calls" in record)


def _is_anthropic_message(record: Record) -> bool:
    return _is_message(record) and (record.get("type") == "message" or _has_blocks([record]))


_ROWS = replace(row_reader(OPENAI, _is_row, ChatParser), version="2")
_MESSAGES = replace(_ROWS, recognise=_is_message, parser=MessagesParser, is_one_record_a_session=False)

READERS = (
    *json_readers(replace(_ROWS, name=ANTHROPIC, recognise=_is_anthropic_row, parser=AnthropicParser)),
    *json_readers(_ROWS),
    *json_readers(replace(_MESSAGES, name=ANTHROPIC, recognise=_is_anthropic_message, parser=AnthropicMessagesParser)),
    *json_readers(_MESSAGES),
)
