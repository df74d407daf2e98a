"""Rows that hold messages of one conversation: which rows go together, and what each of them adds.

Belongs here: the comparison of the messages of rows. Does not belong here: the fields of a row
(``chat_rows.py``), what a message means (``openai_messages.py``), or the calls of a trace, whose
spellings differ far more (``thread.py``).

A conversation may lie in rows of one turn each, in snapshots that grow, or in logged requests, of
which each holds the history so far. Messages are compared by what they say; prompts of the system
are not, since clients put the time of day into them.

People say the same again ("yes", "continue"), so a row of one turn that begins with words of an
earlier one goes on with the conversation. It is another version of what was said only if what the
two share holds an answer, or if rows of this conversation hold their history.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from evalpipe.sources.readers.base import Record, json_text, word_of
from evalpipe.sources.readers.thread import overlap

_SYSTEM = frozenset({"system", "developer"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
#: What comes and goes in a block between a response and its repetition in the next request.
_UNSAID = frozenset({"cache_control", "citations", "annotations", "caller"})


@dataclass(frozen=True, slots=True)
class Row:
    """The messages of one row.

    Attributes:
        messages: The messages, the response last.
        is_request: Whether the row is a logged request: its history was said before, and its answer
            is a call of the model of its own.
        is_answered: Whether a response stood beside the messages.
        mark: Id and time that the row states; empty where it states neither.
        model: Which model it names.
    """

    messages: list[Record]
    is_request: bool
    is_answered: bool
    mark: str = ""
    model: str | None = None


class Threads:
    """Conversations of logged requests, which name none: a request belongs to the one whose history it resends."""

    def __init__(self) -> None:
        #: Name of the conversation that stood where a row ended, the latest of several.
        self._after: dict[bytes, str] = {}
        self._names: dict[str, str] = {}

    def name(self, row: Row, new_name: str, user: str | None, response: str | None) -> str:
        """Name of the conversation of a logged request.

        Args:
            row: The request.
            new_name: Its name, if it begins a conversation.
            user: Who asked, as far as that is logged; requests of two people are never joined.
            response: Id of the response, which is the same where a row was delivered twice.
        """
        bodies = _bodies(row.messages)
        paths = _paths(bodies, (user or "").encode("utf-8", "replace"))
        found = self._names.get(response) if response else None
        n_asked = len(bodies) - row.is_answered
        for place in range(min(n_asked, len(bodies) - 1), 0, -1) if found is None else ():
            name = self._after.get(paths[place - 1])
            # Without an answer in it, a beginning may be anyone's.
            if name is not None and any(body.get("role") == "assistant" for body in bodies[: min(place + 1, n_asked)]):
                found = name
                break
        name = found or new_name
        if paths:
            self._after[paths[-1]] = name
        if response:
            self._names[response] = name
        return name


@dataclass(slots=True)
class Conversation:
    """What the rows of one conversation told, in order.

    Attributes:
        messages: Each message once.
    """

    messages: list[Record] = field(default_factory=list)
    _keys: list[bytes] = field(default_factory=list)
    #: All ways through the conversation that some row took, and where it stands.
    _known: set[bytes] = field(default_factory=set)
    _tip: bytes = b""
    _system: object = None
    #: Marks of the rows, each with the end of its way.
    _seen: set[tuple[str, bytes]] = field(default_factory=set)
    _models: set[str | None] = field(default_factory=set)
    #: Whether a row went on without any history, and whether one held several turns.
    _is_by_turn: bool = False
    _holds_history: bool = False

    def add(self, row: Row) -> list[Record] | None:
        """Take the messages of a row.

        Returns:
            Those that are new; ``None`` for another version of the conversation, of which nothing was taken.
        """
        bodies = _bodies(row.messages)
        keys = [message_key(body) for body in bodies]
        paths = _paths(bodies)
        marked = (row.mark, paths[-1] if paths else b"")
        is_delivered_again = bool(row.mark) and marked in self._seen
        self._seen.add(marked)
        if is_delivered_again:
            return []
        n_known = next((place for place in range(len(paths), 0, -1) if paths[place - 1] in self._known), 0)
        is_turn = _n_asked(bodies) == 1
        is_again = is_turn and self._is_said_again(row, bodies, n_known)
        self._holds_history |= not is_turn
        self._models.add(row.model)
        if n_known and not is_again:
            if not row.is_request and n_known < len(bodies) and paths[n_known - 1] != self._tip:
                return None
            tip = paths[-1] if n_known < len(bodies) else self._tip
        else:
            # Whole turns that come again at another time are no overlap of windows.
            is_whole = is_again and n_known == len(bodies) and self._is_by_turn
            n_known = 0 if is_whole else overlap(self._keys, keys)
            self._is_by_turn |= is_turn and bool(self._keys) and not n_known
            tip = self._tip
            for key in keys[n_known:]:
                tip = _step(tip, key)
                self._known.add(tip)
        self._known.update(paths)
        self._tip = tip
        self._keys += keys[n_known:]
        new = self._systems(row) + bodies[n_known:]
        self.messages += new
        return new

    def _is_said_again(self, row: Row, bodies: Sequence[Record], n_known: int) -> bool:
        """Whether a row of one turn whose beginning is known is a turn of its own all the same."""
        if any(body.get("role") == "assistant" for body in bodies[:n_known]):
            return bool(row.mark) and self._is_by_turn and n_known == len(bodies)
        if self._is_by_turn:
            return True
        # One question that two models were asked has two answers, and a request may be made again.
        return not (self._holds_history or row.is_request) and self._models == {row.model}

    def _systems(self, row: Row) -> list[Record]:
        """The prompt of the row, where it is another than before."""
        systems = [message for message in row.messages if message.get("role") in _SYSTEM]
        said = [message.get("content") for message in systems]
        if not said or said == self._system:
            return []
        self._system = said
        return systems


def message_key(message: Record) -> bytes:
    """A digest of what a message says: the same for a response and for its repetition in a later request."""
    parts = [word_of(message.get("role")), word_of(message.get("tool_call_id") or message.get("name"))]
    content = message.get("content")
    for block in content if type(content) is list else [content]:
        if type(block) is not dict:
            parts.append(json_text(block) or "")
        elif type(block.get("text")) is str:
            parts.append(block["text"])
        elif word_of(block.get("type")) not in _THOUGHTS:
            parts.append(json_text({name: value for name, value in block.items() if name not in _UNSAID}) or "")
    calls = message.get("tool_calls")
    for call in calls if type(calls) is list else ():
        function = call.get("function") if type(call) is dict else None
        called = function if type(function) is dict else {}
        parts += [json_text(called.get(name)) or "" for name in ("name", "arguments")]
    said = "\x1e".join(part for part in parts if part)
    return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=16).digest()


def _n_asked(bodies: Sequence[Record]) -> int:
    """How many of the messages a user typed; results of calls stand in user messages too."""
    n_asked = 0
    for body in bodies:
        content = body.get("content")
        blocks = content if type(content) is list else []
        is_result = any(type(block) is dict and "tool_use_id" in block for block in blocks)
        n_asked += body.get("role") == "user" and not is_result
    return n_asked


def _bodies(messages: Sequence[Record]) -> list[Record]:
    return [message for message in messages if message.get("role") not in _SYSTEM]


def _paths(bodies: Sequence[Record], seed: bytes = b"") -> list[bytes]:
    """For each message, a digest of all up to it."""
    path = _step(b"", seed) if seed else b""
    paths = []
    for body in bodies:
        path = _step(path, message_key(body))
        paths.append(path)
    return paths


def _step(path: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(path + key, digest_size=16).digest()
