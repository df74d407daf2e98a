"""Conversations of the chat interfaces as rows with ``messages``.

Belongs here: the fields around the messages, for OpenAI's shape (training rows, stored
completions, agents' own dumps) and for Anthropic's, which differ in their content blocks only.
Does not belong here: the messages themselves (``openai_messages.py``), which rows go together
(``row_threads.py``), or rows of a known benchmark, which are recognised first.

Mapping: id from ``conversation_id``, ``session_id``, ``thread_id`` or ``id`` where it is long
enough to be unique, else from the content. Rows of one conversation are one session. The id of a
logged request names the request: what it resends tells its conversation. User from ``user`` or
``metadata``; a response beside the messages (``choices``, ``response``, ``output`` of one message) is the last message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    KEPT,
    NOT_A_RECORD,
    FileContext,
    Record,
    digest_of,
    json_readers,
    row_reader,
)
from evalpipe.sources.readers.chat_messages import (
    ANTHROPIC,
    ANTHROPIC_READERS,
    CONVERSATION_IDS,
    OPENAI,
    OPENAI_READERS,
    UNIQUE_ID,
    has_blocks,
    is_role,
    plain_text,
    timed,
)
from evalpipe.sources.readers.gathering import GatheringParser
from evalpipe.sources.readers.openai_messages import add_messages, is_message_list, version_of
from evalpipe.sources.readers.row_threads import Conversation, Row, Threads
from evalpipe.sources.session import Session, small_count, text_or_none
from evalpipe.sources.times import normal_time

#: Beginnings of ids that name a response, and so no conversation.
_RESPONSE_IDS = ("chatcmpl-", "msg_", "resp_", "gen-", "cmpl-")
_TIMES = ("timestamp", "created_at", "created", "started_at")


class ChatParser(GatheringParser):
    """Parser of one file of rows.

    A row that names no conversation and is no logged request is a session, and goes on at once. The
    others are gathered: a conversation may lie in many rows, anywhere in the file.
    """

    source = OPENAI

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        self._threads = Threads()
        #: Name of the session of each short id of a conversation.
        self._names: dict[tuple[str | None, ...], str] = {}

    def feed(self, record: Record) -> str:
        """Take one row."""
        messages = record.get("messages")
        if messages is None or messages == []:
            return NOT_A_RECORD
        if not is_message_list(messages):
            return BAD_FIELD
        name = self._conversation(record, row_of(record))
        if name is None:
            self.keep(_session([record], self.source)[0])
            return KEPT
        self.gathered.put(name, record)
        self.current = Session(self.source, name, self.source)
        return KEPT

    def _conversation(self, record: Record, row: Row) -> str | None:
        """Name of the conversation of a row; ``None`` where nothing ties it to other rows."""
        own = plain_text(record, *CONVERSATION_IDS)
        if own is None and row.is_request:
            response = plain_text(record, "id") if has_long_id(record) else None
            return self._threads.name(row, row_id(record, row.messages), user_of_row(record), response)
        if own is None and has_long_id(record):
            return plain_text(record, "id")
        if own is None or len(own) >= UNIQUE_ID:
            return own
        # Data sets number their questions and have them answered many times.
        of_run = tuple(plain_text(record, name) for name in ("trial", "model", "agent"))
        return self._names.setdefault((own, user_of_row(record), *of_run), row_id(record, row.messages))

    def assemble(self, session: Session, items: list[Record]) -> None:
        """Turn the rows of a conversation into steps; other versions of it become copies."""
        versions = _session(items, self.source, session)
        for n, version in enumerate(versions[1:]):
            self.sessions[f"{session.session_id}/{n}"] = version

    def finish(self, session: Session) -> None:
        """Make the steps of a session that was gathered."""
        if session.session_id in self._items:
            super().finish(session)

    def rest(self) -> Iterator[None]:
        """Fill ``sessions`` group by group, then with the copies that each of them brought."""
        for _ in super().rest():
            yield
            while self.sessions:
                yield


class AnthropicParser(ChatParser):
    """Parser of rows whose messages hold Anthropic's content blocks."""

    source = ANTHROPIC


def _session(records: list[Record], source: str, known: Session | None = None) -> list[Session]:
    """The session of the rows of one conversation, and further versions of it.

    Args:
        records: The rows, in order.
        source: Source name.
        known: The session, where it was made already; else it is named by its first row.
    """
    rows = [row_of(record) for record in records]
    name = "" if known is not None else row_id(records[0], rows[0].messages)
    session = known or Session(source, name, source)
    said = Conversation(rows)
    versions: list[Record] = []
    models = {text_or_none(record.get("model")) for record in records}
    for record, row in zip(records, rows, strict=True):
        is_first = said.is_empty
        new = said.add(row)
        if new is None:
            versions.append(record)
        elif len(records) > 1:
            new[:] = _dated(new, record, is_first=is_first)
        _describe(session, record)
    session.n_records = len(records)
    session.model = models.pop() if len(models) == 1 else None
    add_messages(session, list(map(timed, said.messages)))
    native = session.session_id.removeprefix(f"{source}:")
    # Each version alone: whichever is the longest counts.
    return [session, *(_session([record], source, Session(source, native, source))[0] for record in versions)]


def row_of(record: Record) -> Row:
    """The messages of a row, and whether it is a logged request."""
    answer = _answer(record)
    is_request = answer is not None or (plain_text(record, "id") or "").startswith(_RESPONSE_IDS)
    messages = record["messages"]
    # Without another name of the conversation, it is the conversation that an id names.
    is_of_row = is_request or plain_text(record, *CONVERSATION_IDS) is not None
    own = (plain_text(record, "id") or None) if is_of_row else None
    said = [*messages, answer] if answer is not None else messages
    return Row(said, is_request, answer is not None, own, _time_of(record), text_or_none(record.get("model")))


def _dated(new: list[Record], record: Record, *, is_first: bool) -> list[Record]:
    """New messages of one row of several, with the row's time and model; history before the first has neither."""
    at, model = _time_of(record), record.get("model")
    asked = max((n for n, message in enumerate(new) if message["role"] == "user"), default=0) if is_first else 0
    facts = {name: value for name, value in (("timestamp", at), ("model", model)) if value is not None}
    return [message if n < asked else {**facts, **_stated(timed(message))} for n, message in enumerate(new)]


def _stated(message: Record) -> Record:
    return {name: value for name, value in message.items() if value is not None}


def _describe(session: Session, record: Record) -> None:
    """Take what a row says of its session; of several rows the first that says it."""
    metadata = record.get("metadata")
    inner = metadata if type(metadata) is dict else {}
    if session.agent == session.session_id.partition(":")[0]:
        session.agent = text_or_none(record.get("agent")) or session.agent
    session.user_id = session.user_id or user_of_row(record)
    session.task_id = session.task_id or plain_text(record, "task_id") or plain_text(inner, "task_id")
    if session.trial is None:
        session.trial = small_count(record.get("trial"))
    session.tools = session.tools or tool_names(record.get("tools")) or tool_names(record.get("functions"))
    prompt = record.get("system")
    if type(prompt) is str and prompt:
        session.prompt_version = version_of(prompt)
    at = _time_of(record)
    if at is not None:
        session.see(at)


def user_of_row(record: Record) -> str | None:
    """Whom a row names as the user."""
    metadata = record.get("metadata")
    return plain_text(record, "user_id", "user") or (
        plain_text(metadata, "user_id", "user") if type(metadata) is dict else None
    )


def _time_of(record: Record) -> str | None:
    return next((found for name in _TIMES if (found := normal_time(record.get(name))) is not None), None)


def row_id(record: Record, content: object) -> str:
    """An id for a row: its own where it is long enough to be unique, with a digest of its content else."""
    own = plain_text(record, *CONVERSATION_IDS, "id")
    if own is not None and len(own) >= UNIQUE_ID:
        return own
    return f"{own}/{digest_of(content)}" if own else digest_of(content)


def has_long_id(record: Record) -> bool:
    """Whether a row has an id of its own that is unique."""
    return len(plain_text(record, "id") or "") >= UNIQUE_ID


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


def _has_roles(messages: object) -> bool:
    """Whether these are role messages; the last may be cut off."""
    found = [m for m in messages if type(m) is dict] if type(messages) is list else []
    return bool(found) and "role" in found[0] and all(is_role(m.get("role", "user")) for m in found)


def _is_row(record: Record) -> bool:
    return _has_roles(record.get("messages"))


def _is_anthropic_row(record: Record) -> bool:
    # A system prompt beside the messages exists in this interface only.
    return _is_row(record) and ("system" in record or has_blocks(record["messages"]))


_ROWS = replace(row_reader(OPENAI, _is_row, ChatParser), version="4")

READERS = (
    *json_readers(replace(_ROWS, name=ANTHROPIC, recognise=_is_anthropic_row, parser=AnthropicParser)),
    *json_readers(_ROWS),
    *ANTHROPIC_READERS,
    *OPENAI_READERS,
)
