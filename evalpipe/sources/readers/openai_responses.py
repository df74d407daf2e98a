"""OpenAI's Responses interface: stored responses, a request's items beside them.

Belongs here: items to role messages. Does not belong here: what becomes of the messages
(``openai_messages.py``), or Codex rollouts, which hold such items in lines of their own.

Mapping: a row is one response with what it answered (``input``). Rows that name the response
before them (``previous_response_id``) or one ``conversation`` continue one session. A response
that failed is an API error of the step, and the session's end where it is the last.
"""

from __future__ import annotations

from evalpipe.sources.readers.base import (
    BAD_FIELD,
    KEPT,
    NOT_A_RECORD,
    FileContext,
    Reader,
    Record,
    digest_of,
    json_readers,
    json_text,
    word_of,
)
from evalpipe.sources.readers.chat_messages import is_role
from evalpipe.sources.readers.chat_rows import tool_names
from evalpipe.sources.readers.gathering import GatheringParser
from evalpipe.sources.readers.openai_messages import add_messages, version_of
from evalpipe.sources.session import Session, text_or_none
from evalpipe.sources.times import normal_time

SOURCE = "openai_responses"

_END_STATUS = {"failed": "error", "cancelled": "interrupted"}
#: Items that are a call, and under which key its arguments stand.
_CALLS = {
    "function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments", "local_shell_call": "action",
    "shell_call": "action", "computer_call": "action", "web_search_call": "action", "file_search_call": "queries",
    "code_interpreter_call": "code", "image_generation_call": "prompt", "apply_patch_call": "operation",
}  # fmt: skip
#: Calls that the provider runs itself: the item holds the result too.
_HOSTED = {
    "mcp_call": "output",
    "code_interpreter_call": "outputs",
    "file_search_call": "results",
    "web_search_call": "",
}
_ITEM_TYPES = frozenset({"message", "reasoning", *_CALLS, *(f"{name}_output" for name in _CALLS)})


class ResponsesParser(GatheringParser):
    """Parser of one file; a conversation may go over many rows, which may stand anywhere."""

    source = SOURCE

    def __init__(self, context: FileContext) -> None:
        super().__init__(context)
        #: Key of the session of each response and conversation.
        self._key_of: dict[str, str] = {}

    def feed(self, record: Record) -> str:
        """Take one response."""
        output = record.get("output")
        if output is None:
            return NOT_A_RECORD
        if type(output) is not list:
            return BAD_FIELD
        own = text_or_none(record.get("id")) or digest_of(record)
        conversation = record.get("conversation")
        thread = text_or_none(conversation.get("id")) if type(conversation) is dict else text_or_none(conversation)
        before = thread or text_or_none(record.get("previous_response_id"))
        known = self._key_of.get(before) if before else None
        key = known or thread or own
        for name in (own, thread):
            if name:
                self._key_of[name] = key
        # The last of several rows that begin one session counts.
        self.gathered.put(key, (known is None, record))
        self.current = Session(SOURCE, key, SOURCE)
        return KEPT

    def assemble(self, session: Session, items: list[tuple[bool, Record]]) -> None:
        """Turn the responses of a session into steps."""
        begun = max((place for place, (is_first, _) in enumerate(items) if is_first), default=0)
        messages: list[Record] = []
        for _, record in items[begun:]:
            messages += _response(session, record)
        add_messages(session, messages)


def _response(session: Session, record: Record) -> list[Record]:
    """Note what a response says of its session; its messages."""
    session.n_records += 1
    session.model = text_or_none(record.get("model")) or session.model
    session.user_id = text_or_none(record.get("user")) or session.user_id
    session.tools = tool_names(record.get("tools")) or session.tools
    prompt = record.get("instructions")
    if type(prompt) is str and prompt:
        session.prompt_version = version_of(prompt)
    status = record.get("status")
    session.end_status = _END_STATUS.get(status) if type(status) is str else None
    asked = record.get("input")
    request = [{"role": "user", "content": asked}] if type(asked) is str else messages_of(asked)
    answer = messages_of(record["output"])
    _stamp(request, answer, record, normal_time(record.get("created_at")))
    return request + answer


def _stamp(request: list[Record], answer: list[Record], record: Record, at: str | None) -> None:
    """Put time, model and tokens of a response where they belong: its first message of the agent."""
    for message in [*request, *answer]:
        message.setdefault("timestamp", at)
    first = next((m for m in answer if m["role"] == "assistant"), None)
    if first is None and type(record.get("usage")) is dict:
        first = {"role": "assistant", "content": None, "timestamp": at}
        answer.insert(0, first)
    if first is not None:
        first["usage"] = record.get("usage")
        for message in answer:
            message["model"] = record.get("model")


def messages_of(items: object) -> list[Record]:
    """Role messages of a list of items; reasoning and unknown items hold no message."""
    found: list[Record] = []
    for item in items if type(items) is list else ():
        if type(item) is not dict:
            continue
        kind = item.get("type", "message")
        if kind == "message" and is_role(item.get("role")):
            found.append({"role": item["role"], "content": item.get("content")})
        elif type(kind) is str and kind in _CALLS:
            found += _call(item, kind)
        elif type(kind) is str and kind.endswith("_output"):
            content = item.get("output")
            text = content if type(content) in (str, list) else json_text(content)
            found.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": text})
    return found


def _call(item: Record, kind: str) -> list[Record]:
    call_id = text_or_none(item.get("call_id")) or text_or_none(item.get("id"))
    name = text_or_none(item.get("name")) or kind.removesuffix("_call")
    call = {"id": call_id, "name": name, "arguments": item.get(_CALLS[kind])}
    messages: list[Record] = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    if kind in _HOSTED and item.get("status") != "in_progress":
        error = item.get("error")
        result: Record = {"role": "tool", "tool_call_id": call_id, "content": json_text(item.get(_HOSTED[kind]))}
        if error or word_of(item.get("status")) in ("failed", "incomplete"):
            result["error"] = error if type(error) is dict else {"message": json_text(error)}
        messages.append(result)
    return messages


def _recognise(record: Record) -> bool:
    output = record.get("output")
    items = [item for item in output if type(item) is dict] if type(output) is list else []
    if record.get("object") == "response" and type(output) is list:
        return True
    return "input" in record and bool(items) and all(word_of(item.get("type")) in _ITEM_TYPES for item in items[:3])


READERS = json_readers(Reader(name=SOURCE, version="2", shape="lines", recognise=_recognise, parser=ResponsesParser))
