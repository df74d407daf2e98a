"""What all validators share: facts from data files, character sets, edges.

Belongs here: helpers without knowledge of one entity. Does not belong here: decisions about what is
sensitive. Offsets are bytes; every look-back and look-ahead is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Start, end (bytes) and the canonical value that a pseudonym is made of.
Found = tuple[int, int, str]

# No underscore: people and programs join words with it, as in `backup_<key>.tar` or `mcp__<key>`.
WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
ALNUM = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
DIGITS = b"0123456789"
_GLUE = re.compile(
    rb"(?:\\[nrtbfv0]|%[0-9A-Fa-f]{2}|\x1b\[[0-9;]{0,12}m|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|(?:033|1b|001b)\[[0-9;]{0,12}m)\Z"
)


@dataclass(frozen=True, slots=True)
class Facts:
    """Word lists, number plans and names of entities of a rule set, as validators read them."""

    words: Mapping[str, frozenset[str]]
    plans: Mapping[str, Any]
    entities: frozenset[bytes] = frozenset()


#: The form of a token of masking, and the same as a part of larger expressions.
TOKEN_FORM = rb"<[A-Z][A-Z_]{2,29}(?::[a-z0-9\-]{1,40}|:[a-p]{4}:[a-p]{20})?>"
_TOKEN = re.compile(rb"<([A-Z][A-Z_]{2,29})(?::[a-z0-9\-]{1,40}|:[a-p]{4}:[a-p]{20})?>")


def without_tokens(value: bytes, facts: Facts) -> bytes:
    """A value without the tokens that stand in it."""
    if b"<" not in value:
        return value
    return _TOKEN.sub(lambda token: b"" if token.group(1) in facts.entities else token.group(), value)


def touches_left(v: bytes, start: int) -> bool:
    """Whether a word character stands before ``start`` that no escape or colour code ends with."""
    if not start or v[start - 1] not in WORD:
        return False
    return _GLUE.search(v, max(0, start - 20), start) is None


def touches_right(v: bytes, end: int) -> bool:
    """Whether a word character stands at ``end``."""
    return end < len(v) and v[end] in WORD


def text(v: bytes) -> str:
    """Bytes of a view as text; a cut multi-byte character becomes a replacement mark."""
    return v.decode("utf-8", "replace")


def align_right(v: bytes, end: int) -> int:
    """Move ``end`` off the middle of a multi-byte character."""
    while end < len(v) and 0x80 <= v[end] < 0xC0:
        end += 1
    return end


def is_repetitive(value: bytes) -> bool:
    """Whether a token body is a filler such as ``xxxx`` or ``0000``: at most three distinct bytes."""
    return len(set(value.lower())) <= 3
