"""Deterministic ids, and snippets that equal their span.

Belongs here: digests of keys and the window of text kept as evidence.
"""

from __future__ import annotations

import hashlib
import re

_TOKEN = re.compile(r"<[A-Z][A-Z0-9_]*(?::[^<>\s]{1,80})+>")


def digest(*parts: object) -> str:
    """Sixteen hexadecimal digits of BLAKE2b over the parts; the same parts give the same id."""
    text = "\x1f".join(str(part) for part in parts)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def window(text: str, start: int, end: int, chars: int) -> tuple[int, int]:
    """The span kept as evidence: the match and what stands around it, at most ``chars`` long.

    The bounds fall on white space where there is some, and never inside a mask token, so that a
    snippet carries whole pseudonyms or none.

    Args:
        text: The masked field.
        start, end: The match.
        chars: Longest span.

    Returns:
        (start, end) of the span; its text is the snippet.
    """
    if end - start >= chars:
        low, high = start, start + chars
    else:
        pad = chars - (end - start)
        low = max(0, start - pad // 2)
        high = min(len(text), low + chars)
        low = max(0, min(low, high - chars))
        low, high = _on_spaces(text, low, high, start, end)
    for token in _TOKEN.finditer(text, max(0, low - 200), min(len(text), high + 200)):
        if token.start() < low < token.end():
            low = min(token.end(), high)
        if token.start() < high < token.end():
            high = max(token.start(), low)
    return low, high


def cuts_token(text: str, start: int, end: int) -> bool:
    """Whether a span of a masked field begins or ends inside a mask token."""
    near = _TOKEN.finditer(text, max(0, start - 200), min(len(text), end + 200))
    return any(token.start() < at < token.end() for token in near for at in (start, end))


def _on_spaces(text: str, low: int, high: int, start: int, end: int) -> tuple[int, int]:
    if low > 0:
        cut = text.find(" ", low, min(start, low + 20))
        low = cut + 1 if cut >= 0 else low
    if high < len(text):
        cut = text.rfind(" ", max(end, high - 20), high)
        high = cut if cut >= 0 else high
    return low, high
