"""Messages of rows, compared by what they say.

Belongs here: digests of messages and of ways through a conversation, and what one row holds of another.
Does not belong here: what follows from it (``row_threads.py``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from evalpipe.sources.readers.base import Record, json_text, word_of

SYSTEM = frozenset({"system", "developer"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
#: What comes and goes in a block between a response and its repetition in the next request.
_UNSAID = frozenset({"cache_control", "citations", "annotations", "caller"})


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


def n_asked(bodies: Sequence[Record]) -> int:
    """How many of the messages a user typed; results of calls stand in user messages too."""
    n_typed = 0
    for body in bodies:
        content = body.get("content")
        blocks = content if type(content) is list else []
        is_result = any(type(block) is dict and "tool_use_id" in block for block in blocks)
        n_typed += body.get("role") == "user" and not is_result
    return n_typed


def question_of(paths: Sequence[bytes], bodies: Sequence[Record]) -> bytes:
    """The way up to the first message of a user."""
    return next(path for path, body in zip(paths, bodies, strict=True) if body.get("role") == "user")


def is_grown(one: Sequence[Record], other: Sequence[Record]) -> bool:
    """Whether one row holds all that the other does, of its last message perhaps only a beginning."""
    shorter, longer = sorted((one, other), key=len)
    last = len(shorter) - 1
    if [message_key(body) for body in shorter[:last]] != [message_key(body) for body in longer[:last]]:
        return False
    begun, whole = sorted((_text(shorter[last]), _text(longer[last])), key=len)
    return shorter[last].get("role") == longer[last].get("role") and whole.startswith(begun)


def _text(message: Record) -> str:
    content = message.get("content")
    blocks = content if type(content) is list else [content]
    texts = [block.get("text") if type(block) is dict else block for block in blocks]
    return "".join(text for text in texts if type(text) is str)


def bodies_of(messages: Sequence[Record]) -> list[Record]:
    """The messages without the prompts of the system."""
    return [message for message in messages if message.get("role") not in SYSTEM]


def paths_of(bodies: Sequence[Record], seed: bytes = b"") -> list[bytes]:
    """For each message, a digest of all up to it."""
    path = step(b"", seed) if seed else b""
    paths = []
    for body in bodies:
        path = step(path, message_key(body))
        paths.append(path)
    return paths


def step(path: bytes, key: bytes) -> bytes:
    """The digest of a way that goes one message further."""
    return hashlib.blake2b(path + key, digest_size=16).digest()
