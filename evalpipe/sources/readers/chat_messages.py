"""Messages of the chat interfaces as records of their own: what a database exports, one a line.

Belongs here: which conversation a message belongs to, and what rows and messages have in common. Does
not belong here: rows of whole conversations (``chat_rows.py``), what a message means
(``openai_messages.py``).

Mapping: ``conversation_id``, ``session_id`` or ``thread_id`` names the conversation; messages without
one are one conversation, as an agent dumps its history.
"""

from __future__ import annotations

from evalpipe.sources.readers.base import (
    KEPT,
    NOT_A_RECORD,
    FileContext,
    Reader,
    Record,
    digest_of,
    json_readers,
    word_of,
)
from evalpipe.sources.readers.gathering import GatheringParser
from evalpipe.sources.readers.openai_messages import add_messages
from evalpipe.sources.session import Session

OPENAI, ANTHROPIC = "openai_messages", "anthropic_messages"

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
CONVERSATION_IDS = ("conversation_id", "session_id", "thread_id")
#: A shorter id, such as a row number, is unique in its file only.
UNIQUE_ID = 16

_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"})


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
        own = plain_text(record, *CONVERSATION_IDS)
        name = self._names.get(own)
        if name is None:
            name = self._names[own] = self._name(own, record)
        self.gathered.put(name, record)
        if self.current is None or self.current.session_id != f"{self.source}:{name}":
            self.current = Session(self.source, name, self.source)
        self.current.n_records += 1
        return KEPT

    def _name(self, own: str | None, first: Record) -> str:
        if own is not None and len(own) >= UNIQUE_ID:
            return own
        # The first message and the file's name: two conversations may begin alike, or lie in files of one name.
        place = f"{self.context.stem}/{digest_of(first)}"
        return f"{own}/{place}" if own else place

    def assemble(self, session: Session, items: list[Record]) -> None:
        """Turn the messages into steps."""
        session.n_records = len(items)
        session.user_id = next((user for item in items if (user := plain_text(item, "user_id", "user"))), None)
        add_messages(session, list(map(timed, items)))


class AnthropicMessagesParser(MessagesParser):
    """Parser of messages with Anthropic's content blocks."""

    source = ANTHROPIC


def timed(message: Record) -> Record:
    """A message with its time where steps look for it: databases name it as they name that of a row."""
    at = message.get("created_at")
    return {"timestamp": at, **message} if at is not None else message


def plain_text(record: Record, *names: str) -> str | None:
    """The first of the fields that holds text or a number, as text."""
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


def has_blocks(messages: list[Record]) -> bool:
    """Whether some message holds blocks that Anthropic's interface alone has."""
    for message in messages:
        content = message.get("content") if type(message) is dict else None
        blocks = content if type(content) is list else []
        if any(type(b) is dict and word_of(b.get("type")) in _ANTHROPIC_BLOCKS for b in blocks):
            return True
    return False


def _is_message(record: Record) -> bool:
    return is_role(record.get("role")) and ("content" in record or "tool_calls" in record)


def _is_anthropic_message(record: Record) -> bool:
    return _is_message(record) and (record.get("type") == "message" or has_blocks([record]))


ANTHROPIC_READERS = json_readers(Reader(ANTHROPIC, "4", "lines", _is_anthropic_message, AnthropicMessagesParser))
OPENAI_READERS = json_readers(Reader(OPENAI, "4", "lines", _is_message, MessagesParser))
